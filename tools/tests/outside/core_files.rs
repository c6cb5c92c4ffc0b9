//! Core files.

use std::fs;
use std::process::{Command, Stdio};

use fibra_tools::printable::printable;

use crate::program::{Program, about, both_hang, copy, has, scratch, shown};

/// Leaves out of a dump what only the process itself tells: its head, and all times.
fn without_times(dump: &str) -> Vec<String> {
    let is_time = |part: &&str| [" old", " so far", " left"].iter().any(|end| part.ends_with(end));
    let line = |line: &str| line.split(", ").filter(|part| !is_time(part)).collect::<Vec<_>>().join(", ");
    dump.lines().skip(1).map(|shown| line(&printable(shown))).collect()
}

#[test]
fn a_core_shows_what_the_dump_showed() {
    let mut program = Program::start();
    let Some(core) = program.core() else { return };
    let path = core.to_str().expect("text");
    let dump = shown(&["--core", path]);
    assert_eq!(without_times(&program.dump), without_times(&dump));
    assert!(about(&dump, "customer").contains("common::deep"), "{dump}");
}

#[test]
fn a_core_is_read_with_a_program_from_elsewhere() {
    let place = scratch("moved");
    copy(&std::env::current_exe().expect("the path of the test binary"), &place.0);
    let mut program = Program::of_file(&place.0);
    let Some(core) = program.core() else { return };
    let moved = scratch("moved-away");
    fs::rename(&place.0, &moved.0).expect("it is moved");
    let [core, exe] = [&core, &moved.0].map(|file| file.to_str().expect("text"));
    let dump = shown(&["--core", core, "--exe", exe]);
    assert_eq!(without_times(&program.dump), without_times(&dump));
}

#[test]
fn a_core_of_running_tasks_has_their_stacks() {
    let mut program = Program::hanging();
    let Some(core) = program.core() else { return };
    let dump = shown(&["--core", core.to_str().expect("text")]);
    both_hang(&dump);
}

#[test]
fn a_core_without_stacks_says_so() {
    if !has("gcore") {
        return;
    }
    let program = Program::start();
    let prefix = scratch("gcore");
    let mut gcore = Command::new("gcore");
    gcore.arg("-o").arg(&prefix.0).arg(program.pid()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(gcore.status().expect("gcore runs").success());
    let core = format!("{}.{}", prefix.0.display(), program.pid());
    let dump = shown(&["--core", &core]);
    fs::remove_file(&core).expect("it is there");
    // Some kernels have the guards in mappings of their own: then the stacks are there.
    let has_stacks = about(&dump, "customer").contains("common::deep");
    assert_ne!(has_stacks, dump.contains("\nnot shown: the stacks that the core lacks, "), "{dump}");
}
