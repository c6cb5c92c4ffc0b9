use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Entered, Vigil};
use crate::op::RECHECK;
use crate::source::Source;

fn source() -> Arc<Source> {
    Arc::new(Source::new())
}

#[test]
fn nobody_there_cuts_no_park() {
    let vigil = Vigil::default();
    assert_eq!(vigil.cut(None), None);
    assert_eq!(vigil.cut(Some(Duration::from_secs(60))), Some(Duration::from_secs(60)));
    assert!(vigil.take_due().is_empty());
}

#[test]
fn a_park_lasts_to_the_next_round_at_the_most() {
    let vigil = Vigil::default();
    assert_eq!(vigil.enter(&source(), false), Entered::First);
    assert_eq!(vigil.enter(&source(), false), Entered::Later);
    assert!(vigil.cut(None).is_some_and(|left| left <= RECHECK));
    assert!(vigil.cut(Some(Duration::from_secs(60))).is_some_and(|left| left <= RECHECK));
    assert_eq!(vigil.cut(Some(Duration::ZERO)), Some(Duration::ZERO));
}

#[test]
fn who_comes_back_from_elsewhere_is_in_it_once() {
    let (vigil, source) = (Vigil::default(), source());
    _ = vigil.enter(&source, false);
    assert_eq!(vigil.enter(&source, true), Entered::Later);
    assert_eq!(vigil.close().len(), 1);
}

#[test]
fn a_round_hands_out_everybody_once() {
    let vigil = Vigil::default();
    let sources = [source(), source(), source()];
    for source in &sources {
        _ = vigil.enter(source, false);
    }
    thread::sleep(vigil.cut(None).unwrap());
    let due = vigil.take_due();
    assert!(due.iter().zip(&sources).all(|(one, other)| Arc::ptr_eq(one, other)) && due.len() == 3);
    assert!(vigil.take_due().is_empty());
    assert_eq!(vigil.cut(None), None);
    assert_eq!(vigil.enter(&sources[0], false), Entered::First);
}

#[test]
fn closed_it_hands_out_who_is_there_and_lets_nobody_in() {
    let vigil = Vigil::default();
    _ = vigil.enter(&source(), false);
    assert_eq!(vigil.close().len(), 1);
    assert_eq!(vigil.enter(&source(), false), Entered::Closed);
    assert_eq!(vigil.cut(None), None);
}
