//! Crates that are written for `async`, over sockets of this crate and in its tasks.
//!
//! A task runs a future with [`block_on`](fibra_runtime::block_on); the future's wakers wake the task.
//! Most futures need nothing else. A future that does I/O gets a socket or a pipe of this crate in an
//! [`Async`], which implements the traits of its library:
//!
//! | feature | gives |
//! | --- | --- |
//! | `tokio-io` | `tokio::io::{AsyncRead, AsyncWrite}` for [`Async`] |
//! | `futures-io` | `futures_io::{AsyncRead, AsyncWrite}` for [`Async`] |
//! | `hyper` | `hyper::rt::{Read, Write}` for [`Async`]; an `Executor` that spawns tasks; a `Timer` |
//! | `tokio` | `tokio::block_on`: a tokio runtime in the background, for crates that need it, such as reqwest and sqlx |
//!
//! They are off by default.
//!
//! # What to mind
//!
//! * **Foreign executors.** `futures::executor::block_on`, or the `block_on` of a tokio runtime, blocks
//!   the thread. Called in a task, it blocks the worker. Call [`block_on`](fibra_runtime::block_on)
//!   there.
//! * **Waiting inside a poll.** A poll may wait as ordinary code does, for a lock or by a `join`. Its
//!   whole task then waits. That is not allowed inside of `tokio::block_on`.

#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
mod adapter;
#[cfg(feature = "hyper")]
mod clock;
#[cfg(feature = "hyper")]
mod executor;
#[cfg(feature = "hyper")]
mod timer;
#[cfg(feature = "tokio")]
pub mod tokio;

#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
pub use self::adapter::{Async, Datagram, Endpoint, Listener, Reader, Writer};
#[cfg(feature = "hyper")]
pub use self::executor::Executor;
#[cfg(feature = "hyper")]
pub use self::timer::{Sleep, Timer};
