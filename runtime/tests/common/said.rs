//! Tests whose child goes on until it has said something.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, pipe};
use std::os::fd::AsRawFd;
use std::process::{self, ExitStatus, Stdio};

use crate::rerun::child;

/// Names the pipe that ends once the child has said it.
const VARIABLE: &str = "FIBRA_TEST_SAID";

/// Runs a test in a child, lets it go on once it has said `what` so many times, and returns what became of it and all that it said.
pub(crate) fn rerun_until_it_says(test: &str, what: &str, times: usize) -> (ExitStatus, String) {
    // Not its standard input: in a build with `panic = "abort"` the test is run by a child of the child, which has none.
    let (end, unsaid) = pipe().expect("a pipe");
    let path = format!("/proc/{}/fd/{}", process::id(), end.as_raw_fd());
    let mut child = child(test);
    child.env(VARIABLE, path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the test binary runs again");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut text = String::new();
    while text.matches(what).count() < times && said.read_line(&mut text).expect("text") > 0 {}
    drop(unsaid);
    said.read_to_string(&mut text).expect("text");
    (child.wait().expect("it ends"), text)
}

/// In the child: blocks the thread until it has said what it is to say.
pub(crate) fn block_until_said() {
    let path = env::var_os(VARIABLE).expect("the parent has named it");
    let mut end = File::open(path).expect("the pipe");
    end.read_to_end(&mut Vec::new()).expect("nothing and an end");
}
