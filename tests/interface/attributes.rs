//! Promises of `#[fibra::test]` and `#[fibra::main]`. A test that is to fail does so in a child, which runs it alone, with the
//! output captured as usual.

mod errors;
mod failing;
mod passing;

use std::env;
use std::process::{Command, Output};

/// Runs a test of this binary in a child.
fn rerun(name: &str) -> Output {
    let exe = env::current_exe().expect("the path of the test binary");
    let mut child = Command::new(exe);
    child.args([name, "--exact", "--include-ignored"]).env("RUST_BACKTRACE", "0");
    let output = child.output().expect("the test binary runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("running 1 test"), "no test is called {name}: {text}");
    output
}
