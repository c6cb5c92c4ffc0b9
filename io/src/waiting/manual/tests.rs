//! What a wait finds at its deadline.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fibra_runtime::{Runtime, spawn, yield_now};

use super::*;

#[test]
fn a_wait_looks_once_more_at_its_deadline() {
    let deadline = Instant::now() + Duration::from_millis(5);
    let look = || (Instant::now() >= deadline).then_some(());
    assert_eq!(ManualSource::default().wait(Direction::Read, Some(deadline), look), Some(()));
    let found = ManualSource::default().wait_or_fail(Direction::Write, Some(deadline), look);
    assert_eq!(found.unwrap(), Some(()));
}

#[test]
fn a_report_names_the_wait() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.run(|| {
        let shared = Arc::new((ManualSource::default(), AtomicBool::new(false)));
        let ours = Arc::clone(&shared);
        let look = move || ours.1.load(Ordering::SeqCst).then_some(());
        let theirs = Arc::clone(&shared);
        let waiter = spawn(move || theirs.0.wait(Direction::Read, None, look));
        let found = loop {
            yield_now();
            if let Some(found) = waiter.task().waits_for() {
                break found;
            }
        };
        assert_eq!((found.kind.as_str(), found.descriptor), ("stream change", None));
        shared.1.store(true, Ordering::SeqCst);
        shared.0.notify(Direction::Read);
        assert_eq!(waiter.join().unwrap(), Some(()));
    });
}
