//! The line that reports an overflow, put together in a handler: without an allocation.

#![forbid(unsafe_code)]

use std::fmt::{self, Write as _};
use std::io::{Cursor, Write as _};

/// Identifies the task that overflowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overflow<'a> {
    /// The task's number.
    pub(crate) id: u64,
    pub(crate) name: Option<&'a str>,
    /// The file and the line of its spawn.
    pub(crate) place: Option<(&'a str, u32)>,
    /// The size of its stack in bytes, as the user knows it: [`Stack::size`](crate::stack::handle::Stack::size).
    pub(crate) stack_size: usize,
    pub(crate) knob: Knob,
}

/// What sets the size of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Knob {
    Builder,
    /// The knob of the main task.
    Main,
    /// The argument of `on_big_stack`.
    BigStack,
}

impl Knob {
    fn advice(self) -> &'static str {
        match self {
            Knob::Builder => {
                "raise it with task::Builder::stack_size or Runtime::builder().stack_size, or run deep code in \
                 task::on_big_stack"
            }
            Knob::Main => {
                "raise it with Runtime::builder().main_stack_size, or run deep code in task::on_big_stack"
            }
            Knob::BigStack => "give task::on_big_stack a larger size",
        }
    }
}

/// The longest name or path that is printed in full, in bytes.
const NAME: usize = 120;

/// Room for a name of the longest length, or for a path of that length, and the rest of the line.
const LINE: usize = 384;

impl Overflow<'_> {
    /// Calls `write` with the report as a line.
    pub(super) fn with_line<T>(&self, write: impl FnOnce(&[u8]) -> T) -> T {
        let mut line = Cursor::new([0; LINE]);
        // What does not fit is cut off.
        _ = writeln!(line, "fibra: {self}");
        write(&line.get_ref()[..line.position() as usize])
    }
}

impl fmt::Display for Overflow<'_> {
    /// Writes the task, the size of its stack, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        match (self.name, self.place) {
            (Some(name), _) => write!(f, "task '{}' (id {id})", Clean(name))?,
            (None, Some((file, line))) => write!(f, "task (id {id}, spawned at {}:{line})", Clean(file))?,
            (None, None) => write!(f, "task (id {id})")?,
        }
        let (size, unit) = match self.stack_size {
            bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => (bytes >> 20, "MiB"),
            bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => (bytes >> 10, "KiB"),
            bytes => (bytes, "bytes"),
        };
        write!(f, " overflowed its stack of {size} {unit}; {}", self.knob.advice())
    }
}

/// Writes a name so that it stays within the line.
struct Clean<'a>(&'a str);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, letter) in self.0.char_indices() {
            if at >= NAME {
                return f.write_str("...");
            }
            f.write_char(if letter.is_ascii_control() { '?' } else { letter })?;
        }
        Ok(())
    }
}
