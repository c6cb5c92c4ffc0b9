//! The word of a mutex and its wait queue, without a clock and without a hand-off policy.
//!
//! The lock order is: the queue of a condition, then the queue of the mutex.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::time::Instant;

use fibra_runtime::clock;

use super::state::{Arrival, Attempt, Moved, Owner, Queue, Release, Word};
use crate::patience;
use crate::primitive::Ordering;
use crate::wait::{Admit, Outcome, Until, WaitDescription, WaitQueue, Waiters, WorkerId};

/// A mutex as its word and its waiters, longest first.
pub(crate) struct Core {
    word: Word,
    /// The number beside its lock counts the unlocks since the last wake, or since the time of a waiter began.
    queue: WaitQueue<(), Waiter>,
}

static MUTEX: WaitDescription = WaitDescription::new("mutex")
    .owner_address(offset_of!(Core, word) as isize - offset_of!(Core, queue) as isize);

/// A waiter's data, which goes with the waiter from one sleep to the next, and from a condition to its mutex.
///
/// It is moved often, so its fields are words: a move of bytes between them reads what was just written in other parts.
pub(crate) struct Waiter {
    /// The address of the owner that the waiter becomes.
    owner: NonZeroUsize,
    /// The worker on which the waiter runs.
    pub(crate) worker: Option<WorkerId>,
    standing: Standing,
    /// Since when unlocks know it as bypassed, or as the first in the queue while a woken waiter is on its way.
    pub(crate) since: Cell<Option<Instant>>,
}

/// What has become of a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
enum Standing {
    /// It was not woken, or has not come after its wake.
    Waits,
    /// It was woken and came too late.
    Bypassed,
    /// It was given the mutex.
    Owns,
}

/// What a waiter got when it was served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// The mutex.
    Lock,
    /// A wake, to compete for the mutex.
    Wake,
}

/// How an unlock treats the longest waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HandOff {
    /// The waiter is woken and competes with arrivals.
    Wake,
    /// The waiter owns the mutex at once.
    Direct,
}

/// What an unlock does about its waiters.
pub(crate) trait Policy {
    /// How the longest waiter is treated.
    fn hand_off(&self, first: &Waiter) -> HandOff;

    /// Returns true if a waiter is woken although another one is on its way, since then if that is known.
    fn wakes_another(&self, since: Option<Instant>) -> bool;
}

impl Waiter {
    /// Makes the data of a task or thread that is going to wait.
    pub(crate) fn new(owner: Owner, worker: Option<WorkerId>) -> Self {
        Waiter { owner: owner.expose_provenance(), worker, standing: Standing::Waits, since: Cell::new(None) }
    }

    pub(crate) fn owner(&self) -> Owner {
        NonNull::with_exposed_provenance(self.owner)
    }

    /// What the waiter was given, once it was served.
    pub(crate) fn given(&self) -> Given {
        match self.standing {
            Standing::Owns => Given::Lock,
            Standing::Waits | Standing::Bypassed => Given::Wake,
        }
    }

    /// Returns true if the waiter was woken, and came too late.
    pub(crate) fn is_bypassed(&self) -> bool {
        self.standing == Standing::Bypassed
    }
}

impl Core {
    pub(crate) const fn new() -> Self {
        Core { word: Word::new(), queue: WaitQueue::new(()) }
    }

    /// The word, for what needs no queue.
    #[inline]
    pub(crate) fn word(&self) -> &Word {
        &self.word
    }

    /// Takes the mutex if it is free, or waits for an unlock: a woken waiter at the front of the queue.
    ///
    /// Returns what the waiter was given, and `None` if `deadline` came first. `published` runs once the waiter is queued.
    #[track_caller]
    pub(crate) fn wait(
        &self,
        waiter: Waiter,
        arrival: Arrival,
        deadline: Option<Instant>,
        published: impl FnOnce(),
    ) -> (Option<Given>, Waiter) {
        let (outcome, waiter) = self.queue.wait(
            0,
            waiter,
            Until::shielded(deadline).described(&MUTEX),
            |(), waiter, waiters| self.enter(waiter, waiters, arrival),
            published,
            |(), _, waiters, _| self.changed(waiters),
        );
        let given = match outcome {
            Outcome::Done(()) => Some(Given::Lock),
            Outcome::Served => Some(waiter.given()),
            Outcome::TimedOut | Outcome::Cancelled => None,
        };
        (given, waiter)
    }

    fn enter(&self, waiter: &mut Waiter, waiters: &Waiters<'_, Waiter, 1>, arrival: Arrival) -> Admit<()> {
        if self.word.take_or_queue(waiter.owner(), arrival) == Attempt::Taken {
            return Admit::Done(());
        }
        match arrival {
            Arrival::New => {
                self.note_first(waiters.front(0).unwrap_or(waiter));
                Admit::Back
            }
            Arrival::Woken => {
                if !waiter.is_bypassed() {
                    waiter.standing = Standing::Bypassed;
                    waiter.since.set(None);
                }
                Admit::Front
            }
        }
    }

    /// Looks for the mutex a last time, for a woken waiter whose time is over. Returns true if
    /// taken.
    pub(crate) fn arrive_late(&self, me: Owner) -> bool {
        self.queue.with(|(), _| self.word.arrive_late(me) == Attempt::Taken)
    }

    /// Unlocks, and wakes a waiter as the policy says. By the owner.
    #[inline]
    pub(crate) fn release(&self, policy: &impl Policy) {
        if !self.word.release_uncontended() {
            self.release_slow(policy);
        }
    }

    /// As [`release`](Core::release), without counting how many unlocks pass over a woken waiter.
    pub(crate) fn release_to_sleep(&self, policy: &impl Policy) {
        if !self.word.release_uncontended() {
            self.release_to_queue(policy);
        }
    }

    #[cold]
    fn release_slow(&self, policy: &impl Policy) {
        match self.word.release_past_queue(|| self.passes_over()) {
            Release::Free => {}
            Release::AskQueue => self.release_to_queue(policy),
        }
    }

    /// Counts an unlock while a woken waiter is on its way. Returns true if it does without a look into the queue. By the owner.
    ///
    /// The count begins anew with each waiter whose time begins, since sections may have become longer. It begins with the
    /// third where a woken waiter and the next one are of one worker.
    fn passes_over(&self) -> bool {
        let passes = self.queue.beside_lock();
        let count = passes.load(Ordering::Relaxed).wrapping_add(1);
        passes.store(count, Ordering::Relaxed);
        !patience::is_look(count)
    }

    /// Unlocks with regard to the longest waiter. By the owner.
    #[cold]
    pub(crate) fn release_to_queue(&self, policy: &impl Policy) {
        self.queue.with(|(), waiters| {
            let hand_off = Cell::new(HandOff::Wake);
            let is_due = |first: &Waiter| {
                hand_off.set(policy.hand_off(first));
                hand_off.get() == HandOff::Direct || !self.is_one_on_its_way(first, policy)
            };
            let served = waiters.serve_front_if(0, is_due, |waiter| {
                if hand_off.get() == HandOff::Direct {
                    waiter.standing = Standing::Owns;
                }
                (waiter.owner(), waiter.worker)
            });
            let next = waiters.front(0);
            let queue = Queue::of(next);
            match (served, hand_off.get()) {
                (None, _) => self.word.release(queue),
                (Some((owner, _)), HandOff::Direct) => {
                    self.word.hand_over(owner, queue);
                    next.into_iter().for_each(|first| self.note_first(first));
                }
                (Some((_, worker)), HandOff::Wake) => {
                    // A waiter of the same worker does not come before the woken one. So its time needs no clock yet.
                    let is_here = worker.is_some() && next.is_some_and(|next| next.worker == worker);
                    self.queue.beside_lock().store(if is_here { 2 } else { 0 }, Ordering::Relaxed);
                    self.word.release_and_wake(queue);
                    if let Some(next) = next.filter(|next| !next.is_bypassed()) {
                        next.since.set((!is_here).then(clock::now));
                    }
                }
            }
        });
    }

    /// Returns true if a woken waiter is on its way that may still come in time.
    fn is_one_on_its_way(&self, first: &Waiter, policy: &impl Policy) -> bool {
        if !self.word.look().has_woken() || policy.wakes_another(first.since.get()) {
            return false;
        }
        first.since.set(first.since.get().or_else(|| Some(clock::now())));
        true
    }

    /// Moves up to `limit` of the longest waiters of a condition into the queue. Returns how many they were.
    ///
    /// Unless the mutex is owned and a woken waiter is on its way, the first of them is woken instead: it competes at once,
    /// since what it waits for has just come about. All of them wait for this mutex.
    ///
    /// Behind the waiters of the mutex it might find that they have changed the value again. Where two kinds of waiters share a
    /// condition, as producers and consumers of one slot do, the queue would sort itself by kind, and a notification of all
    /// would wake the whole other kind in vain.
    pub(crate) fn requeue(&self, from: &mut Waiters<'_, Waiter, 1>, limit: usize) -> usize {
        if from.is_empty(0) || limit == 0 {
            return 0;
        }
        self.queue.with(|(), waiters| {
            // The wake waits for the lock of the condition too, so it comes from there.
            let mut count = match self.word.add_waiters() {
                Moved::Wait => 0,
                Moved::WakeFirst => from.serve_front(0, |_| ()).map_or(0, |()| 1),
            };
            while count < limit && from.requeue_front(0, waiters, 0) {
                count += 1;
            }
            self.changed(waiters);
            count
        })
    }

    /// Notes what has become of the queue, after a change that is no unlock.
    fn changed(&self, waiters: &Waiters<'_, Waiter, 1>) {
        match waiters.front(0) {
            None => self.word.emptied(),
            Some(first) => self.note_first(first),
        }
    }

    /// Notes the time for the first waiter, if it waits for a woken waiter to come.
    fn note_first(&self, first: &Waiter) {
        if first.since.get().is_none() && self.word.look().has_woken() {
            first.since.set(Some(clock::now()));
            // Relaxed: a hint. An unlock that counts at this moment may undo it, which delays the look.
            self.queue.beside_lock().store(0, Ordering::Relaxed);
        }
    }
}
