//! Wakers by their due times, and the task that calls them.
//!
//! ```text
//!   Sleep ── enters its waker ──▶ Clock {by time} ◀── the keeper, a task that parks until the first is due
//! ```
//!
//! The keeper's park is an ordinary timer of its worker.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Instant;

use fibra_runtime::clock;
use fibra_runtime::task::{self, spawn_internal};
use fibra_runtime::{Handle, Task, wait};

/// See the [module](self).
pub(super) struct Clock {
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    wakers: BTreeMap<Due, Waker>,
    numbers: u64,
    keeper: Option<Task>,
}

/// A time, and the number of a sleep where times are equal.
pub(super) type Due = (Instant, u64);

impl Clock {
    pub(super) fn new(runtime: Handle) -> Clock {
        Clock { runtime, state: Mutex::default() }
    }

    /// Returns a number for a new sleep.
    pub(super) fn number(&self) -> u64 {
        let mut state = self.lock();
        state.numbers += 1;
        state.numbers
    }

    /// Has `waker` called at `due`, in the place of a former one.
    pub(super) fn enter(self: &Arc<Self>, due: Due, waker: Waker) {
        let mut state = self.lock();
        let former = state.wakers.insert(due, waker);
        let is_first = state.wakers.first_key_value().is_some_and(|(first, _)| *first == due);
        // A keeper that could not start, for want of what a task needs, is made anew.
        let keeper = match state.keeper.take().filter(|keeper| !keeper.has_ended()) {
            Some(keeper) => keeper,
            None => self.keeper(),
        };
        state.keeper = Some(keeper.clone());
        drop(state);
        if is_first && former.is_none() {
            keeper.unpark();
        }
        // Foreign code, so not under the lock.
        drop(former);
    }

    /// Takes out what was entered for `due`.
    pub(super) fn remove(&self, due: Due) -> Option<Waker> {
        self.lock().wakers.remove(&due)
    }

    fn keeper(self: &Arc<Self>) -> Task {
        let clock = Arc::downgrade(self);
        spawn_internal(&self.runtime, move || keep(&clock)).task().clone()
    }

    /// Wakes all that are due, and returns the next time.
    fn wake_due(&self) -> Option<Instant> {
        let now = clock::now();
        let mut state = self.lock();
        let later = state.wakers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut state.wakers, later);
        let next = state.wakers.first_key_value().map(|((at, _), _)| *at);
        drop(state);
        due.into_values().for_each(wait::call_waker);
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = &state.keeper {
            keeper.unpark();
        }
    }
}

/// Wakes sleeps in time, until the clock is dropped.
fn keep(clock: &Weak<Clock>) {
    while let Some(present) = clock.upgrade() {
        let next = present.wake_due();
        drop(present);
        match next {
            Some(at) => _ = task::park_timeout(at.saturating_duration_since(clock::now())),
            None => task::park(),
        }
    }
}
