//! The line that reports an overflow, put together without an allocation.

#![forbid(unsafe_code)]

use std::io::{self, Write};

/// The longest name that is printed in full, in bytes.
const NAME: usize = 120;

/// Writes the report: the task, the bytes of its stack, and what to do.
///
/// # Errors
/// Fails where the rest of the line has no room.
pub(super) fn write(to: &mut impl Write, id: u64, name: &[u8], stack_size: usize) -> io::Result<()> {
    to.write_all(b"fibra: task ")?;
    if !name.is_empty() {
        to.write_all(b"'")?;
        for byte in name.iter().take(NAME) {
            // A name of any bytes stays within the one line.
            to.write_all(&[if byte.is_ascii_control() { b'?' } else { *byte }])?;
        }
        to.write_all(if name.len() > NAME { b"...' " } else { b"' " })?;
    }
    let (number, unit) = match stack_size {
        _ if stack_size >= 1 << 20 && stack_size.is_multiple_of(1 << 20) => (stack_size >> 20, "MiB"),
        _ if stack_size >= 1 << 10 && stack_size.is_multiple_of(1 << 10) => (stack_size >> 10, "KiB"),
        _ => (stack_size, "bytes"),
    };
    writeln!(
        to,
        "(id {id}) overflowed its stack of {number} {unit}; \
         raise it with task::Builder::stack_size or Runtime::builder().stack_size"
    )
}
