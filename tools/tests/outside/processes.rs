//! Processes that live.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::program::{Program, about, both_hang, scratch, shown};

#[test]
fn a_process_is_dumped_from_outside_while_its_workers_hang() {
    let program = Program::hanging();
    let dump = shown(&["--pid", &program.pid()]);
    assert!(
        dump.lines().next().is_some_and(|head| head.contains("2 running, 0 ready, 7 suspended")),
        "{dump}"
    );
    both_hang(&dump);
    let customer = about(&dump, "customer");
    assert!(customer.contains("suspended, spawned at tools/tests/outside/program.rs:"), "{customer}");
    assert!(customer.contains("waiting for mutex of task 'auditor' (id "), "{customer}");
    assert_eq!(customer.matches("common::deep").count(), 3, "{customer}");
    assert_eq!(about(&dump, "on a big stack").matches("common::deep").count(), 4, "{dump}");
    let chooser = about(&dump, "chooser");
    assert!(chooser.contains("waiting for select (channel receive, channel receive)"), "{chooser}");
    let reader = about(&dump, "reader");
    assert!(reader.contains("waiting for descriptor ") && reader.contains(", readable"), "{reader}");
    assert!(about(&dump, "joiner").contains("waiting for join of task (id "), "{dump}");
}

#[test]
fn a_dumped_process_goes_on() {
    let mut program = Program::start();
    program.answers("before");
    shown(&["--pid", &program.pid()]);
    program.answers("after");
    assert_is_let_go(&program);
    // Wherever it is killed.
    for step in 0..40 {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_fibra-dump"));
        tool.args(["--pid", &program.pid()]).stdout(Stdio::null());
        let mut tool = tool.spawn().expect("it runs");
        thread::sleep(Duration::from_micros(step * 500));
        tool.kill().expect("it is killed");
        tool.wait().expect("its end");
        program.answers("still");
        assert_is_let_go(&program);
    }
}

/// Checks that no thread of the program is stopped or traced.
fn assert_is_let_go(program: &Program) {
    for thread in fs::read_dir(format!("/proc/{}/task", program.pid())).expect("its threads") {
        let status = fs::read_to_string(thread.expect("a thread").path().join("status")).expect("a status");
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
        assert!(!status.contains("State:\tt") && !status.contains("State:\tT"), "{status}");
    }
}

#[test]
fn a_stripped_binary_is_shown_by_address() {
    let stripped = scratch("stripped");
    let own = std::env::current_exe().expect("the path of the test binary");
    let strip = Command::new("strip").arg(own).arg("-o").arg(&stripped.0).status();
    assert!(strip.expect("strip runs").success());
    let program = Program::of_file(&stripped.0);
    let dump = shown(&["--pid", &program.pid()]);
    let customer = about(&dump, "customer");
    assert!(customer.contains("waiting for mutex of task 'auditor'"), "{customer}");
    let name = stripped.0.file_name().expect("a name").display();
    assert!(customer.matches(&format!("at {name}+0x")).count() > 3, "{customer}");
    assert!(!dump.contains('…'), "all stacks are walked to their roots: {dump}");
}
