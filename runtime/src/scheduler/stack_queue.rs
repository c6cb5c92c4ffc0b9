//! The workers that wait for a stack at `max_stacks`, in order.
//!
//! A worker whose task finds no stack enters. A worker with unused stacks gives them to the exchange,
//! and takes as many workers out: it is their turn to look there. Others look only if a turn has
//! passed, as the worker may be in a task that computes. A worker that has found a stack leaves, and
//! enters again behind the others for its next task.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval between two tries for a stack, while a task waits for one.
pub(crate) const STACK_RETRY: Duration = Duration::from_millis(2);

/// How long other workers leave a stack to the worker whose turn it is.
const TURN: Duration = STACK_RETRY.saturating_mul(2);

/// Queues workers, by their indices.
#[derive(Default)]
pub(crate) struct StackQueue {
    /// The first worker's index plus one, or 0 while there is none. Changed under the lock.
    first: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    workers: VecDeque<usize>,
    /// When the last turn began.
    turn: Option<Instant>,
}

impl StackQueue {
    /// Returns true if another worker than this is the first; a hint. A plain load, on every give.
    #[inline]
    pub(crate) fn is_led_by_another(&self, worker: usize) -> bool {
        // Relaxed: a hint. A worker that waits wakes the others now and then.
        let first = self.first.load(Ordering::Relaxed);
        first != 0 && first != worker + 1
    }

    /// Puts a worker last, unless it is in the queue.
    pub(crate) fn enter(&self, worker: usize) {
        self.change(|waiting| {
            if !waiting.workers.contains(&worker) {
                waiting.workers.push_back(worker);
            }
        });
    }

    /// Takes a worker out that has found a stack.
    pub(crate) fn leave(&self, worker: usize) {
        self.change(|waiting| waiting.workers.retain(|other| *other != worker));
    }

    /// Takes the first worker out, whose turn begins now.
    pub(crate) fn next(&self, now: Instant) -> Option<usize> {
        self.change(|waiting| {
            let worker = waiting.workers.pop_front()?;
            waiting.turn = Some(now);
            Some(worker)
        })
    }

    /// Returns true if it is the turn of this worker, which has entered, or if it `is_due` to look and no
    /// worker has its turn.
    pub(crate) fn admits(&self, worker: usize, is_due: bool, now: Instant) -> bool {
        self.change(|waiting| {
            let is_over = |turn| now.saturating_duration_since(turn) >= TURN;
            !waiting.workers.contains(&worker) || (is_due && waiting.turn.is_none_or(is_over))
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut Waiting) -> R) -> R {
        // Nothing panics halfway through a change.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut waiting);
        // Relaxed: a hint.
        self.first.store(waiting.workers.front().map_or(0, |first| first + 1), Ordering::Relaxed);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock;

    #[test]
    fn workers_have_their_turns_in_the_order_in_which_they_came() {
        let (queue, now) = (StackQueue::default(), clock::machine());
        [2, 0, 1, 2].into_iter().for_each(|worker| queue.enter(worker));
        assert!(queue.is_led_by_another(0) && !queue.is_led_by_another(2));
        assert_eq!(queue.next(now), Some(2));
        assert!(queue.admits(2, false, now) && !queue.admits(0, true, now));
        queue.enter(2);
        assert_eq!([(); 4].map(|()| queue.next(now)), [Some(0), Some(1), Some(2), None]);
        assert!(!queue.is_led_by_another(0));
    }

    #[test]
    fn a_worker_that_does_not_come_for_its_stack_loses_its_turn() {
        let (queue, now) = (StackQueue::default(), clock::machine());
        [0, 1].into_iter().for_each(|worker| queue.enter(worker));
        assert!(queue.admits(1, true, now) && !queue.admits(1, false, now), "no turn has begun");
        assert_eq!(queue.next(now), Some(0));
        assert!(!queue.admits(1, true, now));
        assert!(queue.admits(1, true, now + TURN));
    }

    #[test]
    fn a_worker_that_has_left_is_behind_the_others_when_it_comes_again() {
        let (queue, now) = (StackQueue::default(), clock::machine());
        [0, 1].into_iter().for_each(|worker| queue.enter(worker));
        queue.leave(0);
        queue.enter(0);
        assert_eq!([(); 2].map(|()| queue.next(now)), [Some(1), Some(0)]);
    }
}
