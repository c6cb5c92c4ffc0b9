//! The barrier; its state is in `barrier/round.rs`.

mod round;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::turn::{self, Queue, Turn};
use crate::wait::list::Node;
use crate::wait::{self, Lock, RawWake};
use round::{Party, Round};

/// A place where a given number of parties meet before any of them goes on, again and again.
///
/// # Fairness
/// The last one to come goes on as the leader of the round and wakes the others, in the order in which they came. Who comes to
/// the next round meanwhile belongs to that one.
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
    round: Lock<Round>,
}

/// What a round of a [`Barrier`] tells each of its parties.
pub struct BarrierWaitResult {
    leader: bool,
}

impl BarrierWaitResult {
    /// True for one party of each round: the one that came last.
    pub fn is_leader(&self) -> bool {
        self.leader
    }
}

impl Barrier {
    /// Makes a barrier for `parties` parties. One for zero of them is one for a single party, as std's is: nobody waits there.
    pub const fn new(parties: usize) -> Self {
        Barrier { parties, round: Lock::new(Round::new()) }
    }

    /// Waits until all parties have come.
    ///
    /// # Cancellation
    /// A cancellation point. Who unwinds has left the round: another has to come in its place.
    pub fn wait(&self) -> BarrierWaitResult {
        let Some(result) = self.wait_to(|| None) else { unreachable!("there is no deadline") };
        result
    }

    /// Waits until all parties have come, but no longer than `timeout`. `None` if they did not: the caller has then left the round,
    /// and another, or the caller once more, has to come in its place.
    ///
    /// # Cancellation
    /// A cancellation point, as in [`wait`](Barrier::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Option<BarrierWaitResult> {
        self.wait_to(|| time::deadline(timeout))
    }

    /// Waits until all parties have come, but not beyond `deadline`; otherwise as [`wait_timeout`](Barrier::wait_timeout).
    ///
    /// # Cancellation
    /// A cancellation point, as in [`wait`](Barrier::wait).
    pub fn wait_deadline(&self, deadline: Instant) -> Option<BarrierWaitResult> {
        self.wait_to(|| Some(deadline))
    }

    /// Waits until all parties have come, as a future, for `async` code. It comes with its first poll.
    ///
    /// # Cancellation
    /// Dropped before the round is complete it leaves the round.
    pub async fn wait_async(&self) -> BarrierWaitResult {
        let result = turn::wait_async(self, Party::new(), |party| self.pass(party)).await;
        turn::charge().await;
        result
    }

    fn wait_to(&self, deadline: impl FnOnce() -> Option<Instant>) -> Option<BarrierWaitResult> {
        wait::checkpoint();
        // The last one to come does not sleep, so that it may also be one that must not.
        let party = Party::new();
        if !wait::may_suspend() && self.round.lock().complete(self.parties, &party) {
            return Some(self.pass(&party));
        }
        let turn = Turn::new(self, party);
        turn.wait(deadline()).then(|| self.pass(turn.asks()))
    }

    /// Goes on, with a round that is complete. Its leader wakes the others.
    fn pass(&self, party: &Party) -> BarrierWaitResult {
        let led = party.led();
        if let Some(ended) = led {
            wait::wake_all(&self.round, |round| round.next(ended));
        }
        BarrierWaitResult { leader: led.is_some() }
    }
}

impl Queue for Barrier {
    type Asks = Party;

    unsafe fn enlist(&self, node: &Node<Party>, wake: RawWake) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.round.lock().arrive(self.parties, node, wake) }
    }

    unsafe fn withdraw(&self, node: &Node<Party>) -> bool {
        // SAFETY: the caller's contract.
        unsafe { self.round.lock().leave(node) }
    }

    fn pass_on(&self, party: &Party) {
        // The round was complete, with the one who was let through. Should that be its leader, nobody else wakes the others.
        _ = self.pass(party);
    }

    fn departed(&self) {
        // Nobody is in anybody's way.
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.leader).finish()
    }
}

// Who unwinds out of a wait has left the round, so a panic leaves it whole.
impl UnwindSafe for Barrier {}
impl RefUnwindSafe for Barrier {}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("parties", &self.parties).finish_non_exhaustive()
    }
}
