//! A runtime of tokio in the background, for crates that need tokio's reactor and timers.
//!
//! The first [`block_on`] of the process starts a thread that runs tokio's reactor, its timers and whatever is spawned with
//! `tokio::spawn`. The future itself stays in the task that calls, and is polled there inside the context of that runtime.
//! Sockets and timers of tokio wake it from that thread, which costs more than a wake on its own
//! worker. Where a crate takes any stream, give it a stream of this crate.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::{Future, IntoFuture, pending};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::thread;

use ::tokio::runtime::{self, Handle};
use fibra_runtime::driver::unpinned;
use fibra_runtime::limit::Refusal;
use fibra_runtime::task::forbid_suspend;
use fibra_runtime::wait;

thread_local! {
    /// On the thread of tokio.
    static IS_TOKIO: Cell<bool> = const { Cell::new(false) };
}

/// Runs a future that needs tokio to its end on the calling task.
///
/// It is [`block_on`](fibra_runtime::block_on) for futures that use `tokio::net`, `tokio::time` or `tokio::spawn`.
///
/// tokio's context is entered for each poll and for the drop of the future, and left before the task
/// sleeps. So other tasks do not see it. Values that need the context when they are made, as timers
/// do, must be made in an `async` block. Tasks of `tokio::spawn` run on tokio's thread, and go on when
/// this call is over. The process has one such thread, which stays to its end.
///
/// # Cancellation
/// A cancellation point, as [`block_on`](fibra_runtime::block_on) is; timeouts and tokens around it end it, and the future is
/// dropped.
///
/// # Panics
/// With the panic of the future. When a poll waits as ordinary code does, by a lock, a join or a `block_on` within: tokio's
/// context must be left in the order in which it was entered, which tasks that change over in between would not do. On the
/// thread of tokio itself, in what was spawned with `tokio::spawn`, which would wait for itself. When that thread cannot be
/// started; [`handle`] answers with an error then.
///
/// What was spawned with `tokio::spawn`, such as the handlers of a server, panics in each wait of fibra, a sleep or a `recv`
/// for example: it would block tokio's only thread. Await there, also the handle of a task that
/// [`Handle::spawn`](fibra_runtime::Handle::spawn) starts for the call. A lock may be taken there. If it is contended, the thread
/// waits for it; the first such lock of the process is reported on standard error, with its place.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use fibra_io::compat::tokio::block_on;
///
/// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
/// # runtime.run(|| {
/// let answer = block_on(async {
///     tokio::time::sleep(Duration::from_millis(1)).await;
///     tokio::spawn(async { 42 }).await
/// });
/// assert_eq!(answer.unwrap(), 42);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    assert!(!IS_TOKIO.get(), "the thread of tokio would wait for itself: await the future instead");
    let handle = handle().unwrap_or_else(|error| panic!("tokio's thread does not start: {error}"));
    let future = pin!(Some(future.into_future()));
    fibra_runtime::block_on(Inside { handle, future })
}

/// Returns a handle to the runtime of tokio, which the first call starts.
///
/// It is for code that spawns on that runtime, or asks for its handle.
///
/// # Errors
/// When there is no thread or no descriptor for it. The next call tries again.
///
/// # Examples
/// ```
/// let tokio = fibra_io::compat::tokio::handle()?;
/// let answer = fibra_runtime::block_on(tokio.spawn(async { 42 }));
/// assert_eq!(answer.unwrap(), 42);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn handle() -> io::Result<&'static Handle> {
    static HANDLE: OnceLock<Handle> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(handle) = HANDLE.get() {
        return Ok(handle);
    }
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = HANDLE.get() {
        return Ok(handle);
    }
    let tokio = runtime::Builder::new_current_thread().enable_all().build();
    let tokio = tokio.map_err(|error| Refusal::of_descriptor("tokio's reactor", error))?;
    let handle = tokio.handle().clone();
    let serve = move || {
        IS_TOKIO.set(true);
        wait::forbid_thread_waits("tokio (see `fibra::compat::tokio`)");
        tokio.block_on(pending::<()>())
    };
    let started = unpinned(|| thread::Builder::new().name("fibra-tokio".to_owned()).spawn(serve));
    started.map_err(|error| Refusal::of_thread("tokio's reactor", error))?;
    Ok(HANDLE.get_or_init(|| handle))
}

/// A future that is polled and dropped in the context of tokio's runtime.
struct Inside<'a, F> {
    handle: &'static Handle,
    /// Some until it is dropped.
    future: Pin<&'a mut Option<F>>,
}

impl<F: Future> Future for Inside<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _here = forbid_suspend();
        let _entered = this.handle.enter();
        this.future.as_mut().as_pin_mut().expect("dropped with this").poll(context)
    }
}

impl<F> Drop for Inside<'_, F> {
    fn drop(&mut self) {
        // Where the task unwinds a wait is let pass: a second panic would end the process. All that can come of it is that this
        // thread stays in tokio's context.
        let _here = (!thread::panicking()).then(forbid_suspend);
        let _entered = self.handle.enter();
        self.future.set(None);
    }
}
