//! The barrier.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::budget;
use crate::messages::shown;
use crate::wait::{self, Admit, Left, Outcome, Until, WaitDescription, WaitQueue, Waiters};

/// Lets a number of parties meet before any of them goes on, round after round.
///
/// # Fairness
/// The last party to arrive is the leader of the round, and wakes the waiters in the order of
/// arrival. A party that arrives meanwhile belongs to the next round.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # use fibra_sync as sync;
/// use std::sync::Arc;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let barrier = Arc::new(sync::Barrier::new(3));
/// let parties: Vec<_> = (0..3)
///     .map(|_| {
///         let barrier = Arc::clone(&barrier);
///         fibra::spawn(move || barrier.wait().is_leader())
///     })
///     .collect();
/// let leaders = parties.into_iter().filter_map(|party| party.join().unwrap().then_some(()));
/// assert_eq!(leaders.count(), 1);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Barrier {
    parties: usize,
    /// Counts the parties of the present round, and holds the waiting ones.
    round: WaitQueue<usize, ()>,
}

/// Tells a party of a [`Barrier`] whether it leads the round.
#[derive(Debug)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// Returns true for one party of each round: the last one to come.
    pub fn is_leader(&self) -> bool {
        self.is_leader
    }
}

impl Barrier {
    /// Makes a barrier for `parties` parties.
    ///
    /// With zero parties it acts as with one, as std's does: no party waits.
    pub const fn new(parties: usize) -> Self {
        Barrier { parties, round: WaitQueue::new(0) }
    }

    /// Waits until all parties have come.
    ///
    /// # Cancellation
    /// A cancellation point. A party that unwinds has left the round: a further party must come in
    /// its place.
    pub fn wait(&self) -> BarrierWaitResult {
        let Some(result) = self.wait_to(|| None) else { unreachable!("there is no deadline") };
        result
    }

    /// Waits until all parties have come, at most for `timeout`.
    ///
    /// Returns `None` if they did not: the caller has left the round, and a party must come in its place.
    ///
    /// # Cancellation
    /// A cancellation point, as in [`wait`](Barrier::wait).
    ///
    /// # Examples
    /// ```
    /// # use std::time::{Duration, Instant};
    /// let barrier = fibra_sync::Barrier::new(2);
    /// assert!(barrier.wait_timeout(Duration::from_millis(1)).is_none(), "no other party came");
    /// assert!(barrier.wait_deadline(Instant::now()).is_none());
    /// std::thread::scope(|scope| {
    ///     let other = scope.spawn(|| fibra_runtime::block_on(barrier.wait_async()).is_leader());
    ///     assert_ne!(barrier.wait().is_leader(), other.join().unwrap());
    /// });
    /// ```
    pub fn wait_timeout(&self, timeout: Duration) -> Option<BarrierWaitResult> {
        self.wait_to(|| time::deadline(timeout))
    }

    /// Waits until all parties have come, at most until `deadline`.
    ///
    /// Otherwise it is [`wait_timeout`](Barrier::wait_timeout).
    ///
    /// # Cancellation
    /// A cancellation point, as in [`wait`](Barrier::wait).
    pub fn wait_deadline(&self, deadline: Instant) -> Option<BarrierWaitResult> {
        self.wait_to(|| Some(deadline))
    }

    /// Waits until all parties have come, as a future.
    ///
    /// The caller counts as come from the first poll on.
    ///
    /// # Cancellation
    /// A future that is dropped before the round is complete leaves the round.
    pub async fn wait_async(&self) -> BarrierWaitResult {
        let (outcome, ()) =
            self.round.wait_async(0, (), |come, (), waiters| self.arrive(come, waiters), depart).await;
        budget::charge().await;
        BarrierWaitResult { is_leader: outcome == Outcome::Done(()) }
    }

    fn wait_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> Option<BarrierWaitResult> {
        wait::checkpoint();
        // The last party does not sleep, so it may come where suspension is forbidden.
        if !wait::may_suspend() && self.round.with(|come, waiters| self.complete(come, waiters)) {
            return Some(BarrierWaitResult { is_leader: true });
        }
        let until = Until::unwind(deadline()).described(const { &WaitDescription::new("barrier") });
        let (outcome, ()) =
            self.round.wait(0, (), until, |come, (), waiters| self.arrive(come, waiters), || (), depart);
        match outcome {
            Outcome::Done(()) => Some(BarrierWaitResult { is_leader: true }),
            Outcome::Served => Some(BarrierWaitResult { is_leader: false }),
            Outcome::TimedOut | Outcome::Cancelled => None,
        }
    }

    /// Comes to the round: as its leader, or to wait for it.
    fn arrive(&self, come: &mut usize, waiters: &mut Waiters<'_, (), 1>) -> Admit<()> {
        if self.complete(come, waiters) {
            return Admit::Done(());
        }
        *come += 1;
        Admit::Back
    }

    /// Joins the round if that completes it, and then wakes all waiters. Returns true if it did.
    fn complete(&self, come: &mut usize, waiters: &mut Waiters<'_, (), 1>) -> bool {
        let is_last = *come + 1 >= self.parties;
        if is_last {
            *come = 0;
            waiters.serve_all(0);
        }
        is_last
    }
}

/// Takes an arrival back, unless its round is over.
fn depart(come: &mut usize, (): &mut (), _waiters: &mut Waiters<'_, (), 1>, left: Left) {
    if left == Left::Unserved {
        *come -= 1;
    }
}

shown!(Barrier: it => parties: it.parties);
