//! The wait in a queue as a future.

use std::pin::Pin;

use crate::sleep::polled::Polled;
use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::{Admit, Left, Outcome, PassOn, Until, Waiting};
use crate::sleep::queue::waiters::Waiters;
use crate::waiter::kind::WakeHandle;
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

impl<S, T, const LANES: usize> WaitQueue<S, T, LANES> {
    /// Waits until it is served, as a future that enters the queue with its first poll.
    ///
    /// The outcome is `Done` or `Served`. A future that is dropped before its end runs `leave`: with `Left::Unserved` if
    /// it was queued, with `Left::Served` if it was served and does not take what it was given.
    pub fn wait_async<R>(
        &self,
        lane: usize,
        data: T,
        admit: impl FnMut(&mut S, &mut T, &mut Waiters<'_, T, LANES>) -> Admit<R>,
        leave: impl FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
    ) -> impl Future<Output = (Outcome<R>, T)>
    where
        T: Copy,
    {
        self.wait_async_then(lane, data, admit, || (), leave, |outcome, data| (outcome, *data))
    }

    /// Variant of [`wait_async`](WaitQueue::wait_async) that lets `finish` make the result out of the data.
    ///
    /// What `finish` leaves is dropped with the future. `published` runs when the future is queued and the lock released. It
    /// must not wake futures.
    #[inline(always)]
    pub fn wait_async_then<R, O>(
        &self,
        lane: usize,
        data: T,
        admit: impl FnMut(&mut S, &mut T, &mut Waiters<'_, T, LANES>) -> Admit<R>,
        published: impl FnOnce(),
        leave: impl FnOnce(&mut S, &mut T, &mut Waiters<'_, T, LANES>, Left),
        finish: impl FnOnce(Outcome<R>, &mut T) -> O,
    ) -> impl Future<Output = O> {
        let waiting = Waiting::new(self, lane, data, Until::shielded(None), admit, published, leave);
        let mut sleep = Polled::new(Abandoned(waiting));
        // A block keeps its captures in place. An `async fn` would move the sleep, and have room for the data twice.
        async move {
            // SAFETY: the sleep is a capture, so it is pinned with the block, which uses it by this reference alone.
            let mut sleep = unsafe { Pin::new_unchecked(&mut sleep) };
            loop {
                let why = sleep.as_mut().await;
                let Abandoned(waiting) = sleep.strategy();
                if let Some(outcome) = waiting.settle(why) {
                    // SAFETY: this is the waiter, and the wait is over.
                    return finish(outcome, unsafe { waiting.ended() });
                }
                sleep.as_mut().renew();
            }
        }
    }
}

impl<S, T: Default, const LANES: usize> WaitQueue<S, T, LANES> {
    /// Waits until `ready` says so or it is served, as a future. `ready` runs under the lock.
    pub async fn wait_until_async(&self, lane: usize, mut ready: impl FnMut(&mut S) -> bool) {
        let admit = |state: &mut S, _: &mut T, _: &mut Waiters<'_, T, LANES>| Admit::if_ready(ready(state));
        self.wait_async_then(lane, T::default(), admit, || (), |_, _, _, _| (), |_, _| ()).await;
    }

    /// Variant of [`wait_for`](WaitQueue::wait_for) as a future.
    pub async fn wait_for_async<R>(&self, lane: usize, mut ready: impl FnMut(&mut S) -> Option<R>) -> R {
        let mut value = None;
        loop {
            self.wait_until_async(lane, |state| {
                value = ready(state);
                value.is_some()
            })
            .await;
            if let Some(value) = value.take() {
                return value;
            }
        }
    }
}

/// A waiter that may be dropped before its end. By then its sleep has been withdrawn.
struct Abandoned<W: PassOn>(W);

impl<W: PassOn> Drop for Abandoned<W> {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

impl<W: PassOn + WaitStrategy> WaitStrategy for Abandoned<W> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        self.0.after_asleep(me)
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        self.0.before_awake(why)
    }
}
