//! The pools that wait for stacks, in the order in which they came.
//!
//! ```text
//!  a take fails ───▶ last in queue ─── the pools before it leave ───▶ first ─── stacks are free ───▶ its turn
//!                                                                                                       │
//!                    not in queue ◀────────────────── has taken one, or has not come in time ◀──────────┘
//! ```
//!
//! While pools wait, no other pool takes a stack from the exchange than the first. So a worker that is awake already
//! does not overtake a worker that has to wake up first. A worker that computes lets its turn pass, and comes last again.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::base::clock;
use crate::base::primitive::{AtomicUsize, Mutex, Ordering};

/// How long the first pool may leave free stacks untaken: two intervals in which a worker tries again.
const TURN_LENGTH: Duration = Duration::from_millis(4);

/// Pools, by their numbers from 1 on.
#[derive(Default)]
pub(super) struct PoolQueue {
    /// Twice the number of the first pool, and 1 if it has not tried since its turn began; 0 while no pool waits.
    head: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    pools: VecDeque<usize>,
    /// The begin of the first pool's turn: since then there have been free stacks.
    turn: Option<Instant>,
    /// The first pool has not tried since then.
    untried: bool,
}

impl PoolQueue {
    /// Returns true if another pool than `pool` is the first in the queue. A plain load, on every give.
    #[inline]
    pub(super) fn is_led_by_another(&self, pool: usize) -> bool {
        // Relaxed: a hint that may come late; the queue itself is behind the mutex.
        let first = self.head.load(Ordering::Relaxed) / 2;
        first != 0 && first != pool
    }

    /// Returns true if it is the turn of `pool`, which has not tried since.
    pub(super) fn is_next(&self, pool: usize) -> bool {
        // Relaxed: a hint, as above. The pool that gives a turn wakes the worker after it.
        self.head.load(Ordering::Relaxed) == 2 * pool + 1
    }

    /// Returns true if `pool` may take a stack: no pool waits, or it is the first.
    pub(super) fn admits(&self, pool: usize, is_free: bool) -> bool {
        // Relaxed: a pool that has just entered may be overtaken this once.
        if self.head.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let first = self.change(is_free, |_| ()) / 2;
        first == 0 || first == pool
    }

    /// Puts `pool`, whose try has failed, last in the queue, unless it is in there.
    pub(super) fn enter(&self, pool: usize, is_free: bool) {
        self.change(is_free, |waiting| {
            if !waiting.pools.contains(&pool) {
                waiting.pools.push_back(pool);
            }
            // It has tried just now.
            waiting.untried &= waiting.first() != Some(pool);
        });
    }

    /// Takes `pool` out of the queue.
    ///
    /// Returns true if it is another pool's turn, which has not tried since.
    pub(super) fn leave(&self, pool: usize, is_free: bool) -> bool {
        // Relaxed: a pool sees its own entry.
        self.head.load(Ordering::Relaxed) != 0
            && self.change(is_free, |waiting| waiting.remove(pool)) % 2 == 1
    }

    /// Gives the first pool its turn, as stacks have come back.
    pub(super) fn offer(&self, is_free: bool) {
        self.change(is_free, |_| ());
    }

    /// Changes the queue, and returns the new `head`.
    fn change(&self, is_free: bool, change: impl FnOnce(&mut Waiting)) -> usize {
        // Nothing panics halfway through a change.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.check_time();
        change(&mut waiting);
        waiting.check_free(is_free);
        let head = waiting.head();
        // Relaxed: a hint.
        self.head.store(head, Ordering::Relaxed);
        head
    }
}

impl Waiting {
    fn first(&self) -> Option<usize> {
        self.pools.front().copied()
    }

    fn remove(&mut self, pool: usize) {
        if self.first() == Some(pool) {
            self.turn = None;
        }
        self.pools.retain(|other| *other != pool);
    }

    /// Ends a turn that has lasted too long.
    fn check_time(&mut self) {
        let is_over = |since| clock::machine().saturating_duration_since(since) >= TURN_LENGTH;
        if self.turn.is_some_and(is_over) {
            self.pools.pop_front();
            self.turn = None;
        }
    }

    /// Begins or ends the first pool's turn.
    fn check_free(&mut self, is_free: bool) {
        let may_take = is_free && !self.pools.is_empty();
        if !may_take {
            (self.turn, self.untried) = (None, false);
        } else if self.turn.is_none() {
            (self.turn, self.untried) = (Some(clock::machine()), true);
        }
    }

    fn head(&self) -> usize {
        self.first().map_or(0, |first| 2 * first + usize::from(self.untried))
    }
}
