//! Appends the answers of RESP to a buffer.

use std::fmt::Display;
use std::io::Write;

/// Appends a simple string.
pub(crate) fn simple(output: &mut Vec<u8>, word: &str) {
    output.push(b'+');
    output.extend_from_slice(word.as_bytes());
    output.extend_from_slice(b"\r\n");
}

/// Appends an error of one line.
pub(crate) fn error(output: &mut Vec<u8>, text: impl Display) {
    _ = write!(output, "-ERR {text}\r\n");
}

pub(crate) fn integer(output: &mut Vec<u8>, number: i64) {
    _ = write!(output, ":{number}\r\n");
}

/// Appends a byte string.
pub(crate) fn bulk(output: &mut Vec<u8>, bytes: &[u8]) {
    _ = write!(output, "${}\r\n", bytes.len());
    output.extend_from_slice(bytes);
    output.extend_from_slice(b"\r\n");
}

pub(crate) fn nil(output: &mut Vec<u8>) {
    output.extend_from_slice(b"$-1\r\n");
}

/// Appends the head of an array. Its members follow.
pub(crate) fn array(output: &mut Vec<u8>, members: usize) {
    _ = write!(output, "*{members}\r\n");
}
