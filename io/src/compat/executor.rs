//! The executor of hyper: each of its futures becomes a task.

#![forbid(unsafe_code)]

use std::future::Future;

use fibra_runtime::{Handle, block_on};

/// Runs each future that hyper spawns in a task of its own, with [`block_on`].
///
/// # Panics
/// Of a future: it ends that task alone, with a message.
///
/// # Examples
/// ```
/// use fibra_io::compat::Executor;
/// use hyper::rt::Executor as _;
///
/// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
/// # runtime.run(|| {
/// let (sender, receiver) = std::sync::mpsc::channel();
/// Executor::new().execute(async move { sender.send(42) });
/// fibra_runtime::yield_now();
/// assert_eq!(receiver.try_recv(), Ok(42));
///
/// let (sender, receiver) = std::sync::mpsc::channel();
/// Executor::on(fibra_runtime::Handle::current()).execute(async move { sender.send(43) });
/// fibra_runtime::yield_now();
/// assert_eq!(receiver.try_recv(), Ok(43));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Executor {
    runtime: Handle,
}

impl Executor {
    /// Makes one for the runtime of the caller.
    ///
    /// # Panics
    /// Off a runtime; there is [`on`](Executor::on) for that.
    #[track_caller]
    pub fn new() -> Executor {
        Executor::on(Handle::current())
    }

    /// Makes one for that runtime.
    pub fn on(runtime: Handle) -> Executor {
        Executor { runtime }
    }
}

impl Default for Executor {
    fn default() -> Executor {
        Executor::new()
    }
}

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        drop(self.runtime.spawn(move || drop(block_on(future))));
    }
}
