//! What `ci/counts.sh` needs of `counts`: names to ask for, and that each path comes to its end.

use std::process::{Command, Output};

fn counts(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_counts")).args(arguments).output().expect("it can be started")
}

#[test]
fn every_path_has_a_name_and_an_end() {
    let output = counts(&[]);
    let names = String::from_utf8(output.stdout).expect("names are text");
    assert_eq!(names.lines().count(), 10, "{names}");
    for line in names.lines() {
        let (name, _) = line.split_once(": ").expect("a name, and what it is");
        let output = counts(&[name, "256"]);
        assert!(output.status.success(), "{name}: {output:?}");
    }
}

#[test]
fn an_unknown_path_or_no_time_at_all_is_status_2() {
    for wrong in [&["nowhere", "10"][..], &["yield"], &["yield", "x"], &["event", "0"]] {
        assert_eq!(counts(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
