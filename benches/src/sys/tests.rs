//! Tests of `sys`.

use super::*;

#[test]
fn the_processor_time_of_a_pid_is_that_of_the_process() {
    let own = || own_cpu_time();
    let before = loop {
        match own() {
            little if little < Duration::from_millis(5) => {}
            enough => break enough,
        }
    };
    let outside = cpu_time_of(std::process::id()).expect("our own clock");
    let after = own();
    assert!((before..=after).contains(&outside), "{outside:?} is read between {before:?} and {after:?}");
}

#[test]
fn lists_of_processors_have_ranges() {
    assert_eq!(listed("0-2,8\n"), [0, 1, 2, 8]);
    assert_eq!((listed("3"), listed("\n")), (vec![3], vec![]));
}

#[test]
fn some_processor_is_allowed() {
    assert!(!allowed_cpus().is_empty());
}
