//! A primitive of our own over the wait seam: tokens that are handed from release to the longest waiter.

use std::time::Instant;

use fibra_runtime::wait::list::{List, Node};
use fibra_runtime::wait::{self, Asleep, Lock, WaitStrategy, WakeHandle, Waking, Withdrawal};

pub(crate) struct Tokens {
    state: Lock<State>,
}

struct State {
    free: usize,
    waiters: List,
}

/// One wait for a token.
pub(crate) struct Acquire<'a> {
    tokens: &'a Tokens,
    node: Node,
}

impl Tokens {
    pub(crate) const fn new() -> Self {
        Tokens { state: Lock::new(State { free: 0, waiters: List::new() }) }
    }

    /// Gives one token to the longest waiter, or keeps it.
    pub(crate) fn release(&self) {
        let wake = {
            let mut state = self.state.lock();
            let wake = state.waiters.pop_front();
            state.free += usize::from(wake.is_none());
            wake
        };
        if let Some(wake) = wake {
            wake.wake();
        }
    }

    /// `Notified` says that the caller has the token.
    pub(crate) fn acquire(&self, deadline: Option<Instant>) -> Waking {
        wait::sleep(&self.strategy(), deadline)
    }

    pub(crate) fn strategy(&self) -> Acquire<'_> {
        Acquire { tokens: self, node: Node::new() }
    }

    /// Tokens without a holder.
    pub(crate) fn free(&self) -> usize {
        self.state.lock().free
    }

    pub(crate) fn has_waiters(&self) -> bool {
        !self.state.lock().waiters.is_empty()
    }
}

impl WaitStrategy for Acquire<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut state = self.tokens.state.lock();
        if state.free > 0 {
            state.free -= 1;
            return Asleep::Rouse;
        }
        // SAFETY: the node is in no list, lives until the sleep is over, and is only touched under this lock. The wake is
        // taken by the party that unlinks the node, and `before_awake` answers `Served` from then on.
        unsafe { state.waiters.push_back(&self.node, me.raw()) };
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: the node is in this list or in none.
        let linked = unsafe { self.tokens.state.lock().waiters.remove(&self.node) };
        if linked || why == Waking::Notified { Withdrawal::Withdrawn } else { Withdrawal::Served }
    }
}
