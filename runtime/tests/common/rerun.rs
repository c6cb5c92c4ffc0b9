//! Tests that must die, or need a process to themselves, run again in a child.

use std::process::{Command, Output};

const VARIABLE: &str = "FIBRA_TEST_CHILD";

/// True in the child.
pub(crate) fn is_child() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Runs the test `name` of this binary, with its module, once more: alone in a process of its own.
pub(crate) fn rerun(name: &str) -> Output {
    let output = child(name).output().expect("the test binary runs again");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("running 1 test"), "no test is called {name}: {stdout}");
    output
}

/// What runs that test.
pub(crate) fn child(name: &str) -> Command {
    let exe = std::env::current_exe().expect("the path of the test binary");
    let mut child = Command::new(exe);
    child.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    child.env(VARIABLE, "1").env("RUST_BACKTRACE", "0");
    child
}

/// What the child wrote to standard error.
pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
