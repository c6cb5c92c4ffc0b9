//! A semaphore in small: what a model waits for that is about how one waits.

use std::ops::Deref;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::wait::list::{List, Node};
use crate::wait::{self, Asleep, Lock, WaitStrategy, WakeHandle, Waking, Withdrawal, over, wake_each};

pub(crate) struct Gate {
    state: Lock<State>,
    /// Written before a permit, read after it.
    data: UnsafeCell<u32>,
}

struct State {
    permits: u32,
    waiters: List,
}

// SAFETY: the data is handed over with the permits, which is what the models check.
unsafe impl Sync for Gate {}
// SAFETY: as above.
unsafe impl Send for Gate {}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        let state = Lock::new(State { permits: 0, waiters: List::new() });
        drop(state.lock());
        Arc::new(Gate { state, data: UnsafeCell::new(0) })
    }

    pub(crate) fn write(&self) {
        // SAFETY: no thread reads it before the permit.
        self.data.with_mut(|data| unsafe { *data = 7 });
    }

    pub(crate) fn assert_written(&self) {
        // SAFETY: no thread writes it after the permit.
        assert_eq!(self.data.with(|data| unsafe { *data }), 7);
    }

    /// Gives a permit to a waiter, or leaves it.
    pub(crate) fn open(&self) {
        let wake = {
            let mut state = self.state.lock();
            let wake = state.waiters.pop_front();
            state.permits += u32::from(wake.is_none());
            wake
        };
        if let Some(wake) = wake {
            wake.wake();
        }
    }

    /// Gives permits to all waiters.
    pub(crate) fn open_to_all(&self) {
        let mut state = self.state.lock();
        let wakes: Vec<_> = std::iter::from_fn(|| state.waiters.pop_front()).collect();
        drop(state);
        wake_each(wakes);
    }

    /// Waits for a permit, and says why that ended.
    pub(crate) fn pass(&self, hurried: bool) -> Waking {
        wait::sleep(&UntilOpen::of(self), hurried.then(over))
    }

    pub(crate) fn permits(&self) -> u32 {
        self.state.lock().permits
    }

    pub(crate) fn has_waiters(&self) -> bool {
        !self.state.lock().waiters.is_empty()
    }

    pub(crate) fn spawn<R: 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Gate) -> R + 'static,
    ) -> thread::JoinHandle<R> {
        let gate = Arc::clone(self);
        thread::spawn(move || f(&gate))
    }

    /// Writes, and gives a permit.
    pub(crate) fn spawn_open(self: &Arc<Self>) -> thread::JoinHandle<()> {
        self.spawn(|gate| {
            gate.write();
            gate.open();
        })
    }
}

/// Fails if a wake that was meant for an earlier sleep of this thread ends the next one.
pub(crate) fn assert_no_wake_is_left() {
    assert_eq!(Gate::new().pass(true), Waking::TimedOut, "no thread opens it");
}

/// The wait for a permit.
pub(crate) struct UntilOpen<G> {
    gate: G,
    node: Node,
}

impl<G> UntilOpen<G> {
    pub(crate) fn of(gate: G) -> Self {
        UntilOpen { gate, node: Node::new() }
    }
}

impl<G: Deref<Target = Gate>> WaitStrategy for UntilOpen<G> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut state = self.gate.state.lock();
        if state.permits > 0 {
            state.permits -= 1;
            return Asleep::Rouse;
        }
        // SAFETY: the node is in no list and stays until the sleep is over; its wake is taken under this lock, and
        // `before_awake` answers `Served` from then on.
        unsafe { state.waiters.push_back(&self.node, me.raw()) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: the node is in this list or in none.
        match why == Waking::Notified || unsafe { self.gate.state.lock().waiters.remove(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
