//! Futures from blocking code: a task or a thread polls a future until it is ready.

#![forbid(unsafe_code)]

use std::future::IntoFuture;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use crate::coroutine::stop::Stop;
use crate::sleep::cancel_points;
use crate::sleep::queue::wait::Until;
use crate::sleep::waker_signal::WakerSignal;
use crate::tasks::context;
use crate::waiter::description::{EndedBy, WaitDescription};

/// Runs `future` to its end on the calling task, which sleeps between two polls.
///
/// On a plain thread it blocks the thread.
///
/// Any future will do that does not need the reactor or the timers of another runtime; for those of
/// tokio there is `fibra::compat::tokio::block_on`, and for our sockets `fibra::compat::Async`. The
/// future need be neither `Send` nor `'static`: it stays on the stack of the caller. One small
/// allocation is made for the waker, none for a poll or a sleep. The waker may be kept for ever,
/// and called from anywhere: once this call is over it does nothing. It has nothing to do with the
/// token of [`park`](crate::api::park::park()), neither gives it nor takes it.
///
/// # Fairness
/// A future that gives way, by waking itself and returning `Pending`, lets all tasks run that are
/// ready before it is polled again. A future that never returns `Pending` is ordinary code that never
/// waits: the sockets of `fibra::compat` and our `*_async` doors give way when a turn is used up,
/// other futures do not. A loop over what is always ready there should yield.
///
/// # Nesting
/// A future may call `block_on` in its turn, or anything else of fibra that waits: the whole task
/// waits then, the outer future with all of its parts. A wake of the outer future that comes
/// meanwhile is kept. What only another part of the outer future can bring about never comes: that
/// is a deadlock.
///
/// # Cancellation
/// A cancellation point, at the begin and before each sleep. The future is dropped by the
/// unwinding. So a [`timeout`](crate::timeout) around it, a [`race`](crate::race()) and a token end
/// it as they end any other wait.
///
/// # Panics
/// Resumes a panic of the future. Panics where
/// [`forbid_suspend`](crate::tasks::forbid::forbid_suspend) is in force and the future is not
/// ready.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let double = fibra::spawn(|| 21);
/// let answer = fibra::block_on(async { 2 * double.await.unwrap() });
/// assert_eq!(answer, 42);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline(always)]
#[track_caller]
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    // In the frame of the caller, so that it is moved into no other.
    block_on_pinned(pin!(future.into_future()))
}

#[track_caller]
fn block_on_pinned<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let (signal, waker) = WakerSignal::new();
    let mut context = Context::from_waker(&waker);
    let until = Until::unwind(None)
        .spinning()
        .described(const { &WaitDescription::new("block_on").ended_by(EndedBy::Outside) });
    cancel_points::checkpoint();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        match signal.take() {
            true => give_way(),
            false => _ = signal.sleep(until),
        }
    }
}

/// Lets other tasks run after a poll that woke its own future, where that is not forbidden.
fn give_way() {
    cancel_points::cancellation_point();
    if let Some(task) = context::task()
        && !task.header().is_forbidden()
    {
        task.suspend(Stop::Yielded);
    }
}
