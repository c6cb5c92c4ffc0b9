//! What `preshing` promises: a line for each test, and that none of them hangs or finds anything damaged.

use std::process::{Command, Output};

fn preshing(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_preshing")).args(options).output().expect("preshing can be started")
}

#[test]
fn every_test_has_its_line_of_figures() {
    let output = preshing(&["--rounds", "1000"]);
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8_lossy(&output.stdout);
    for test in ["lightweight mutex", "auto-reset event", "read-write lock"] {
        let line = table.lines().find(|line| line.starts_with(test)).expect("a line of its own");
        let figures: Vec<f64> =
            line[test.len()..].split_whitespace().map_while(|cell| cell.parse().ok()).collect();
        // Of so few rounds a ratio may be that of a held-up test to one of no time.
        assert!(figures.len() >= 7 && figures.iter().all(|figure| (0.0..1e9).contains(figure)), "{line}");
        assert!(figures.iter().any(|&figure| figure > 0.0), "{line}");
    }
}

#[test]
fn a_wrong_command_line_is_status_2() {
    for wrong in [&["--rounds", "0"][..], &["--rounds", "x"], &["--what"]] {
        assert_eq!(preshing(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
