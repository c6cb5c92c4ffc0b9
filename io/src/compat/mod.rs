//! Crates that are written for `async`, over our sockets and on our tasks.
//!
//! A task runs a future with [`block_on`](fibra_runtime::block_on); what the future waits for wakes the task. Most futures
//! need nothing else. Those that do I/O are given a socket or a pipe of ours in an [`Async`], which speaks what they know:
//!
//! | feature | gives |
//! | --- | --- |
//! | `tokio-io` | `tokio::io::{AsyncRead, AsyncWrite}` for [`Async`] |
//! | `futures-io` | the same of futures-rs |
//! | `hyper` | `hyper::rt::{Read, Write}` for [`Async`]; an `Executor` that spawns tasks; a `Timer` |
//! | `tokio` | `tokio::block_on`: beside a runtime of tokio's own, for crates that insist on it, such as reqwest and sqlx |
//!
//! They are off by default.
//!
//! # What to mind
//!
//! * **Executors of others.** A future that is run by a blocking call of another crate (`futures::executor::block_on`, the
//!   `block_on` of a tokio runtime) blocks the thread, and with it the worker if that is called in a task. Call our `block_on`
//!   there.
//! * **Waiting inside a poll.** A poll that waits as ordinary code does, for a lock or by a `join`, has its whole task wait.
//!   That is allowed, but not inside of `tokio::block_on`.

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
