//! Processes that live.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::program::{Program, about, both_hang, library_of_another_version, scratch, shown};

#[test]
fn a_process_is_dumped_from_outside_while_its_workers_hang() {
    let program = Program::hanging();
    let dump = shown(&["--pid", &program.pid()]);
    assert!(
        dump.lines().next().is_some_and(|head| head.contains("2 running, 0 ready, 8 suspended")),
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
fn names_are_shown_without_control_characters() {
    let program = Program::start();
    let dump = shown(&["--pid", &program.pid()]);
    assert!(!dump.contains(|letter: char| letter.is_control() && letter != '\n'), "{dump:?}");
    assert!(dump.contains(r"task 'r\u{1b}[31med' (id "), "{dump}");
}

#[test]
fn a_copy_of_fibra_of_another_version_hides_only_its_own_tasks() {
    let library = library_of_another_version();
    let program = Program::beside(&library.0);
    let dump = shown(&["--pid", &program.pid()]);
    let line = "\nnot shown: tables of tasks of version 99; this tool reads version 1\n";
    assert_eq!(dump.matches(line).count(), 1, "{dump}");
    assert!(about(&dump, "customer").contains("waiting for mutex of task 'auditor'"), "{dump}");
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
