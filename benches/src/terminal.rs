//! Output to a terminal that may be gone. `println!` would panic then, and the figures would be lost.

use std::fmt;
use std::io::{self, Write};

/// Prints on standard output. False if that could not be written.
pub(crate) fn print(program: &str, text: &str) -> bool {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => true,
        Err(error) => {
            complain(format_args!("{program}: standard output could not be written: {error}"));
            false
        }
    }
}

/// Writes one line to standard error.
pub(crate) fn complain(line: fmt::Arguments<'_>) {
    // Nowhere is left to say that it could not be said.
    let _ = writeln!(io::stderr(), "{line}");
}
