//! The budget of a polled task: a future yields once its task has used up its tick.

#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::wait;

/// Counts an operation of a future, which yields once if the polling task has used up its tick.
pub(crate) async fn charge() {
    let mut gave_way = false;
    poll_fn(|context| match gives_way(&mut gave_way, context) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

/// Counts a look that found nothing yet. Returns false.
///
/// So a loop over the look lets other tasks run, and a look that finds something costs no more.
#[cold]
pub(crate) fn missed() -> bool {
    wait::charge_after();
    false
}

/// Counts a look at a value that is not there yet.
#[inline]
pub(crate) fn found<T>(value: Option<T>) -> Option<T> {
    if value.is_none() {
        missed();
    }
    value
}

/// Counts an operation that may take `timeout`. The result tells its deadline.
///
/// A caller that yields does so within its time. No other caller reads a clock before it waits.
#[inline]
pub(crate) fn charge_within(timeout: Duration) -> impl FnOnce() -> Option<Instant> {
    wait::point();
    let begun = wait::charge_poll().then(|| {
        let deadline = time::deadline(timeout);
        wait::charge_after();
        deadline
    });
    move || begun.unwrap_or_else(|| time::deadline(timeout))
}

/// Counts an operation at its first poll. Returns true if the polling task has used up its tick.
///
/// Then it wakes its own task, and the poll must return pending. It never does so twice in a row,
/// since a foreign executor does not know of ticks; `gave_way` remembers that.
pub(crate) fn gives_way(gave_way: &mut bool, context: &Context<'_>) -> bool {
    *gave_way = !*gave_way && wait::charge_poll();
    if *gave_way {
        context.waker().wake_by_ref();
    }
    *gave_way
}
