//! The script for gdb.

use std::process::{Command, Output};

use crate::program::{Program, has, library_of_another_version, text};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fibra-gdb.py");

/// Runs commands of gdb, with the script.
fn gdb(target: &[&str], commands: &[&str]) -> Output {
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]).args(target).args(["-ex", &format!("source {SCRIPT}")]);
    commands.iter().for_each(|command| _ = gdb.args(["-ex", command]));
    gdb.output().expect("gdb runs")
}

/// Returns the id of a task in a list, by how the line begins.
fn id<'a>(list: &'a str, task: &str) -> &'a str {
    let line =
        list.lines().find_map(|line| line.strip_prefix(task)).unwrap_or_else(|| panic!("no {task}: {list}"));
    line.split(')').next().expect("one at the least")
}

/// Counts the frames of `deep`. With lines, gdb knows its name without the modules.
fn deep_calls(stacks: &str) -> usize {
    let function = |line: &str| line.split(" (").next().is_some_and(|function| function.ends_with("deep"));
    stacks.lines().filter(|line| function(line)).count()
}

/// Checks what the script shows of a program that waits.
fn is_shown(target: &[&str]) {
    let list = text(&gdb(target, &["fibra tasks"]).stdout);
    let [customer, auditor] = ["customer", "auditor"].map(|name| id(&list, &format!("task '{name}' (id ")));
    let line = format!("(id {customer}) suspended, waiting for mutex of task 'auditor' (id {auditor}) at 0x");
    assert!(list.contains(&line), "{list}");
    assert!(list.contains("waiting for select (channel receive, channel receive)"), "{list}");
    assert!(list.contains(r"task 'r\x1b[31med' (id "), "{list}");

    let commands = [&format!("fibra task {customer} bt"), "fibra graph", "fibra apply all bt", "bt 1"];
    let shown = text(&gdb(target, &commands).stdout);
    let (stack, rest) = shown.split_once("digraph waits {\n").expect("a graph");
    assert_eq!(deep_calls(stack), 3, "{shown}");
    assert!(stack.contains("    #0 "), "{shown}");
    let (graph, stacks) = rest.split_once("\n}\n").expect("its end");
    let once =
        |line: &str| assert_eq!(graph.lines().filter(|one| *one == line).count(), 1, "{line}: {shown}");
    let from = format!("  t{customer} -> ");
    let mutex = graph.lines().find_map(|line| line.strip_prefix(&from)).expect("an arrow");
    once(&format!("  {} -> t{auditor};", mutex.trim_end_matches(';')));
    once(&format!("  t{auditor} [label=\"task 'auditor' (id {auditor})\\nsuspended\"];"));
    once(&format!("  t{customer} [label=\"task 'customer' (id {customer})\\nsuspended\"];"));
    assert!(graph.contains(" [label=\"mutex\\n0x") && graph.contains(", shape=box];"), "{shown}");
    assert_eq!(deep_calls(stacks), 4 + 3 + 4, "{shown}");
    // The stack of the thread is there again.
    let own = stacks.lines().rfind(|line| line.starts_with("#0 ")).expect("a frame");
    assert!(!own.contains("fibra_runtime"), "{shown}");
}

#[test]
fn gdb_lists_tasks() {
    if !has("gdb") {
        return;
    }
    let mut program = Program::start();
    is_shown(&["-p", &program.pid()]);
    program.answers("after");
}

#[test]
fn gdb_lists_tasks_beside_a_copy_of_another_version() {
    if !has("gdb") {
        return;
    }
    let library = library_of_another_version();
    let program = Program::beside(&library.0);
    let list = text(&gdb(&["-p", &program.pid()], &["fibra tasks"]).stdout);
    let line = "\n// not shown: tables of tasks of version 99; this script reads version 1\n";
    assert!(list.contains(line) && list.contains("\ntask 'auditor' (id "), "{list}");
}

#[test]
fn gdb_lists_the_tasks_of_a_core() {
    if !has("gdb") {
        return;
    }
    let mut program = Program::start();
    let Some(core) = program.core() else { return };
    let own = std::env::current_exe().expect("the path of the test binary");
    is_shown(&[own.to_str().expect("text"), core.to_str().expect("text")]);
}

#[test]
fn gdb_shows_the_stacks_of_running_tasks() {
    if !has("gdb") {
        return;
    }
    let program = Program::hanging();
    let shown = text(&gdb(&["-p", &program.pid()], &["fibra apply all bt"]).stdout);
    let running = shown.split("\ntask ").filter(|task| task.contains(") running\n"));
    let running: Vec<_> = running.collect();
    assert_eq!(running.len(), 2, "{shown}");
    assert!(running.iter().all(|task| task.contains("spins")), "{shown}");
}

#[test]
fn what_gdb_cannot_show_is_an_error() {
    if !has("gdb") {
        return;
    }
    let own = std::env::current_exe().expect("the path of the test binary");
    let own = own.to_str().expect("text");
    for (target, command, why) in [
        (&[][..], "fibra tasks", "the program does not use fibra"),
        (&["/bin/sh"][..], "fibra tasks", "the program does not use fibra"),
        (&[own][..], "fibra task 7 bt", "there is no task with id 7"),
        (&[own][..], "fibra tusks", "Shows the tasks of fibra"),
    ] {
        let error = text(&gdb(target, &[command]).stderr);
        assert!(error.contains(why) && !error.contains("Traceback"), "{error}");
    }
}
