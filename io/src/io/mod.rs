//! Streams: [`std::io`]'s traits and types, and further ones for tasks.
//!
//! A program ports by changing `use std::io` to `use fibra::io`: items with std's names work as std's.
//! The traits, the adapters and the errors *are* std's, so every crate that is written over them works
//! in tasks as it is.
//!
//! | ours | is |
//! | --- | --- |
//! | [`BufReader`] | std's, which keeps what an operation that ends early has read |
//! | [`copy`](fn@copy) | std's, through a buffer |
//! | [`copy_bidirectional`] | both directions between two streams at once, until both have ended |
//! | [`duplex`](fn@duplex) | two ends of a connection in memory |
//! | [`stdin`](fn@stdin), [`stdout`], [`stderr`] | the standard streams, for tasks |
//! | [`pipe`](fn@pipe) | the two ends of an anonymous pipe |
//! | [`IsTerminal`] | whether something is a terminal |

#![forbid(unsafe_code)]

mod bidirectional;
mod buf_reader;
mod copy;
mod duplex;
mod output;
mod pipe;
mod stdin;
mod terminal;

pub use std::io::{
    BufRead, BufWriter, Bytes, Chain, Cursor, Empty, Error, ErrorKind, IntoInnerError, IoSlice, IoSliceMut,
    LineWriter, Lines, Read, Repeat, Result, Seek, SeekFrom, Sink, Split, Take, Write, WriterPanicked, empty,
    prelude, read_to_string, repeat, sink,
};

pub use self::bidirectional::{HalfClose, copy_bidirectional};
pub use self::buf_reader::BufReader;
pub use self::copy::copy;
pub use self::duplex::{DuplexStream, duplex};
pub use self::output::{
    OutputKind, OutputLock, OutputStream, Stderr, StderrLock, Stdout, StdoutLock, stderr, stdout,
};
pub(crate) use self::pipe::PipeEnd;
pub use self::pipe::{PipeReader, PipeWriter, pipe};
pub use self::stdin::{Stdin, StdinLock, stdin};
pub use self::terminal::IsTerminal;
