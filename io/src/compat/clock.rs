//! Futures that wait for a time: who waits, in the order of the deadlines, and the task that wakes them.
//!
//! ```text
//!   Sleep ── shares ──▶ Alarm {deadline, waker} ◀── Clock {by time} ◀── the keeper, a task that parks until the first
//! ```
//!
//! The keeper's park is an ordinary timer of its worker. A deadline that moves away, as that of a connection does with each
//! request, is a store: the alarm stays where it is, and is put further back when its first time comes. Only one that comes
//! closer has to be entered anew.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Instant;

use fibra_runtime::clock;
use fibra_runtime::task::{self, spawn_servant};
use fibra_runtime::{Handle, Task, wait};

/// See the [module](self).
pub(super) struct Clock {
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By time, and by number where times are equal.
    entries: BTreeMap<(Instant, u64), Arc<Alarm>>,
    numbers: u64,
    keeper: Option<Task>,
}

/// One wait.
pub(super) struct Alarm(Mutex<Wait>);

struct Wait {
    /// None: never.
    deadline: Option<Instant>,
    /// Where it is entered, if it is.
    entry: Option<(Instant, u64)>,
    waker: Option<Waker>,
}

impl Wait {
    /// Returns true if somebody waits to whom the keeper does not come in time.
    fn is_late(&self) -> bool {
        let is_in_time = |deadline| self.entry.is_some_and(|(at, _)| at <= deadline);
        self.waker.is_some() && self.deadline.is_some_and(|deadline| !is_in_time(deadline))
    }
}

impl Alarm {
    pub(super) fn new(deadline: Option<Instant>) -> Alarm {
        Alarm(Mutex::new(Wait { deadline, entry: None, waker: None }))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.lock().deadline
    }

    fn lock(&self) -> MutexGuard<'_, Wait> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock {
    pub(super) fn new(runtime: Handle) -> Clock {
        Clock { runtime, state: Mutex::default() }
    }

    /// Leaves `waker` to be called at the deadline of `alarm`.
    pub(super) fn arm(self: &Arc<Self>, alarm: &Arc<Alarm>, waker: &Waker) {
        // Clones and drops of wakers are code of others: none of it under a lock.
        let fresh = waker.clone();
        let mut wait = alarm.lock();
        let former = wait.waker.replace(fresh);
        let is_late = wait.is_late();
        drop(wait);
        drop(former);
        if is_late {
            self.enter(alarm);
        }
    }

    /// Moves the deadline of `alarm`.
    pub(super) fn reset(self: &Arc<Self>, alarm: &Arc<Alarm>, deadline: Instant) {
        let mut wait = alarm.lock();
        wait.deadline = Some(deadline);
        // If nobody waits, the next poll enters it.
        let is_late = wait.is_late();
        drop(wait);
        if is_late {
            self.enter(alarm);
        }
    }

    /// Forgets an alarm, and its waker.
    pub(super) fn forget(&self, alarm: &Alarm) {
        let mut state = self.lock();
        let mut wait = alarm.lock();
        let entry = wait.entry.take().and_then(|entry| state.entries.remove(&entry));
        let waker = wait.waker.take();
        drop((wait, state));
        drop((entry, waker));
    }

    /// Enters an alarm at its deadline.
    fn enter(self: &Arc<Self>, alarm: &Arc<Alarm>) {
        let mut state = self.lock();
        let mut wait = alarm.lock();
        let Some(deadline) = wait.deadline else { return };
        if let Some(entry) = wait.entry.take() {
            state.entries.remove(&entry);
        }
        state.numbers += 1;
        let entry = (deadline, state.numbers);
        wait.entry = Some(entry);
        drop(wait);
        state.entries.insert(entry, Arc::clone(alarm));
        let is_first = state.entries.first_key_value().is_some_and(|(first, _)| *first == entry);
        // One that could not start, for want of what a task needs, is made anew.
        let keeper = match state.keeper.take().filter(|keeper| !keeper.is_finished()) {
            Some(keeper) => keeper,
            None => self.keeper(),
        };
        state.keeper = Some(keeper.clone());
        drop(state);
        if is_first {
            keeper.unpark();
        }
    }

    /// Starts the task that wakes. It inherits nothing of the one who comes first: that would keep a request's values for as long as
    /// the clock is there, and clone them, which is code of others, under our lock.
    fn keeper(self: &Arc<Self>) -> Task {
        let clock = Arc::downgrade(self);
        spawn_servant(&self.runtime, move || keep(&clock)).task().clone()
    }

    /// Takes out what is due. When the next is, if there is one.
    fn wake_due(&self) -> Option<Instant> {
        let now = clock::now();
        let mut due = Vec::new();
        let mut state = self.lock();
        let next = loop {
            let Some((&(at, number), _)) = state.entries.first_key_value() else { break None };
            if at > now {
                break Some(at);
            }
            let alarm = state.entries.remove(&(at, number)).expect("the first is there");
            let mut wait = alarm.lock();
            if let Some(later) = wait.deadline.filter(|deadline| *deadline > now) {
                // It was moved away meanwhile: it takes its place only now.
                wait.entry = Some((later, number));
                state.entries.insert((later, number), Arc::clone(&alarm));
                continue;
            }
            wait.entry = None;
            due.extend(wait.waker.take());
        };
        drop(state);
        due.into_iter().for_each(wait::call_waker);
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Clock {
    /// Lets the keeper find that nobody needs it any more.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = &state.keeper {
            keeper.unpark();
        }
    }
}

/// The keeper: wakes who is due, until the clock is gone.
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
