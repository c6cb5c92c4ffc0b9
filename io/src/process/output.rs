//! Reads the two output streams of a child at once, since the child may wait until either is read.

#![forbid(unsafe_code)]

use std::io::{self, Read};
use std::thread;

use fibra_runtime::limit::Refusal;
use fibra_runtime::{scope, wait};

use super::{ChildStderr, ChildStdout};
use crate::waiting::helper::{join_helper, spawn_helper};

/// Returns all that comes from either stream, nothing from an absent one.
pub(super) fn read_both(
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    match (stdout, stderr) {
        (Some(stdout), Some(stderr)) if wait::in_task() => read_in_tasks(stdout, stderr),
        (Some(stdout), Some(stderr)) => read_in_threads(stdout, stderr),
        (stdout, stderr) => Ok((read_one(stdout)?, read_one(stderr)?)),
    }
}

fn read_in_tasks(stdout: ChildStdout, stderr: ChildStderr) -> io::Result<(Vec<u8>, Vec<u8>)> {
    scope(|scope| {
        let second = spawn_helper(scope, move || read_all(stderr));
        let first = read_all(stdout);
        if first.is_err() {
            // The caller drops the data of the second stream; it may go on for as long as the child does.
            second.cancel();
        }
        let second = join_helper(second);
        Ok((first?, second??))
    })
}

/// A thread cannot be called back, so after an error the second one is left behind, until its stream ends.
fn read_in_threads(stdout: ChildStdout, stderr: ChildStderr) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let second = thread::Builder::new().spawn(move || read_all(stderr));
    let second = second.map_err(|error| Refusal::of_thread("a second reader", error))?;
    let first = read_all(stdout)?;
    let second = second.join().unwrap_or_else(|_| Err(io::Error::other("the reader of a pipe panicked")));
    Ok((first, second?))
}

fn read_one(stream: Option<impl Read>) -> io::Result<Vec<u8>> {
    stream.map_or(Ok(Vec::new()), read_all)
}

fn read_all(mut stream: impl Read) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all)?;
    Ok(all)
}
