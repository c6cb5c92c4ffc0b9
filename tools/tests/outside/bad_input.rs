//! Each wrong input is one line on standard error, and exit code 1.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::program::{Program, copy, core_of, fibra_dump, scratch, text, with_cores};

/// Checks that these arguments are refused, and why.
fn is_refused(arguments: &[&str], why: &str) {
    let output = fibra_dump(arguments);
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.starts_with("fibra-dump: ") && error.contains(why), "{error}");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn no_process_of_that_number_is_an_error() {
    is_refused(&["--pid", "2147483647"], "there is no process 2147483647");
}

#[test]
fn a_process_that_has_ended_is_an_error() {
    let mut ended = Command::new("true").spawn().expect("true runs");
    let stat = format!("/proc/{}/stat", ended.id());
    while !fs::read_to_string(&stat).expect("its parent has not waited").contains(") Z ") {
        std::thread::yield_now();
    }
    is_refused(&["--pid", &ended.id().to_string()], "has ended");
    ended.wait().expect("its end");
}

#[test]
fn a_process_without_fibra_is_an_error() {
    let mut stranger = Command::new("sleep").arg("1000").spawn().expect("sleep runs");
    is_refused(&["--pid", &stranger.id().to_string()], "does not use fibra");
    stranger.kill().expect("it is killed");
    stranger.wait().expect("its end");
}

#[test]
fn a_process_of_another_user_is_an_error() {
    const NOBODY: u32 = 65534;
    // Root looks into all processes, so it becomes nobody. Anyone else looks into that of root.
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let program = Program::start();
    let pid = if is_root { program.pid() } else { "1".into() };
    // Nobody cannot enter the folders of root.
    let tool = env::temp_dir().join(format!("fibra-dump-{}", std::process::id()));
    copy(env!("CARGO_BIN_EXE_fibra-dump").as_ref(), &tool);
    let mut command = Command::new(&tool);
    command.args(["--pid", &pid]).stdin(Stdio::null());
    if is_root {
        command.uid(NOBODY);
    }
    let output = command.output();
    fs::remove_file(&tool).expect("it is there");
    let output = output.expect("it runs");
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains(&format!("no permission to look into process {pid}: ")), "{error}");
}

#[test]
fn tables_of_another_version_are_an_error() {
    let other = scratch("version");
    let own = env::current_exe().expect("the path of the test binary");
    let note = b"\x06\0\0\0\x08\0\0\0\x01\0\0\0fibra\0";
    let program = fs::read(&own).expect("it");
    let place = program.windows(note.len()).position(|bytes| bytes == note).expect("a note") + 8;
    copy(&own, &other.0);
    // In a process of its own, as the copy.
    let patch =
        format!("printf '\\143' | dd of={} bs=1 seek={place} conv=notrunc status=none", other.0.display());
    assert!(Command::new("sh").args(["-c", &patch]).status().expect("sh runs").success());
    let program = Program::of_file(&other.0);
    is_refused(&["--pid", &program.pid()], "has tables of tasks of version 99; this tool reads version 1");
}

#[test]
fn what_is_no_core_file_is_an_error() {
    let own = env::current_exe().expect("the path of the test binary");
    is_refused(&["--core", own.to_str().expect("text")], "is no core file");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    is_refused(&["--core", source], "is no ELF file");
    is_refused(&["--core", "/no/such/file"], "/no/such/file: No such file");
    is_refused(&["--core", "/dev/null"], "is no ELF file");
}

#[test]
fn a_core_of_another_program_is_an_error() {
    let own = env::current_exe().expect("the path of the test binary");
    let folder = scratch("cores");
    let mut stranger = Command::new("sleep");
    let mut stranger = with_cores(stranger.arg("1000"), &folder).spawn().expect("it runs");
    // Not before the shell has become that.
    let program = format!("/proc/{}/comm", stranger.id());
    while fs::read_to_string(&program).expect("its name") != "sleep\n" {
        std::thread::yield_now();
    }
    let Some(core) = core_of(&mut stranger, &folder) else { return };
    let core = core.to_str().expect("text");
    is_refused(&["--core", core], "does not use fibra");
    is_refused(&["--core", core, "--exe", own.to_str().expect("text")], "is the core of another program");
    is_refused(&["--core", core, "--exe", "/no/such/file"], "/no/such/file: No such file");
}

#[test]
fn a_core_without_the_data_of_the_program_is_an_error() {
    let mut program = Program::start();
    // The headers of ELF files only.
    fs::write(format!("/proc/{}/coredump_filter", program.pid()), "0x10").expect("it is set");
    let Some(core) = program.core() else { return };
    is_refused(&["--core", core.to_str().expect("text")], "lacks the data of the program");
}

#[test]
fn a_truncated_core_is_an_error() {
    let mut program = Program::start();
    let Some(core) = program.core() else { return };
    let whole = fs::metadata(&core).expect("it").len();
    let file = fs::OpenOptions::new().write(true).open(&core).expect("it");
    for (length, why) in
        [(whole - 1, "is truncated: 1 bytes are missing"), (100, "is truncated"), (7, "no ELF")]
    {
        file.set_len(length).expect("it is cut");
        is_refused(&["--core", core.to_str().expect("text")], why);
    }
}
