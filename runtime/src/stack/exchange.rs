//! The exchange of one class of stacks: what no worker holds, behind a mutex that is crossed in batches.
//!
//! ```text
//!   a worker's cache ──put──▶ warm ──lot──▶ on their way to the kernel ──▶ cold
//!          ▲                   │                (unowned)                    │
//!          └────── fetch ──────┴─────────────────────────────────────────────┘
//!          └── fetch_fresh ── ranges of regions that are not cut
//! ```
//!
//! Warm stacks come last in, first out. Those that stay at the bottom between two marks are cold; trimming moves them
//! over to the cold ones, in small lots, with the mutex free while the kernel works.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::base::clock;
use crate::base::primitive::{Mutex, MutexGuard};
use crate::stack::fresh::Fresh;
use crate::stack::guard::StackGuards;
use crate::stack::handle::Stack;
use crate::stack::region::Region;
use crate::stack::size;

/// How many stacks are trimmed in one go at most: a third of a millisecond of work where all were used deeply.
pub(super) const LOT: usize = 16;

/// Tells what is left to do after a [`Pool::trim`](crate::stack::pool::Pool::trim).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "cold memory stays resident unless trimming goes on"]
pub(crate) enum Trim {
    /// Nothing: no unused stack holds memory.
    Clean,
    /// Some unused stacks hold memory but are not old enough: call again after [`Config::trim_after`](crate::stack::stacks::Config).
    Later,
    /// One lot is done and more is ready: look for work, then call again.
    More,
}

/// Counts stacks; see [`Stacks::counts`](crate::stack::stacks::Stacks::counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Stacks that the regions have room for.
    pub(crate) mapped: usize,
    /// Stacks in use or in the workers' pools.
    pub(crate) outside: usize,
    /// Stacks in the exchanges that hold memory.
    pub(crate) warm: usize,
    /// Stacks in the exchanges that hold none.
    pub(crate) cold: usize,
}

/// All that is common to the stacks of one size in one runtime.
pub(super) struct Class {
    size: usize,
    guard: usize,
    guards: StackGuards,
    shared: Mutex<Shared>,
}

struct Shared {
    /// Stacks with memory, the longest here in front.
    warm: VecDeque<Stack>,
    /// So many in front have not moved since `marked`.
    still: usize,
    marked: Instant,
    /// Stacks without memory.
    cold: Vec<Stack>,
    /// Ranges of regions that are not cut yet.
    fresh: Vec<Fresh>,
    /// The stacks of all regions.
    mapped: usize,
}

impl Class {
    /// Makes a class of stacks of `size` bytes. Maps nothing yet.
    pub(super) fn new(size: usize, guard: usize, guards: StackGuards) -> Self {
        let shared = Shared {
            warm: VecDeque::new(),
            still: 0,
            marked: clock::machine(),
            cold: Vec::new(),
            fresh: Vec::new(),
            mapped: 0,
        };
        Self { size, guard, guards, shared: Mutex::new(shared) }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Moves up to `most` stacks to the end of `into`, the warmest last, and returns how many.
    pub(super) fn fetch(&self, most: usize, into: &mut Vec<Stack>) -> usize {
        let mut shared = self.lock();
        let start = into.len();
        while into.len() - start < most {
            let Some(stack) = shared.pop() else { break };
            into.push(stack);
        }
        into[start..].reverse();
        into.len() - start
    }

    /// Takes stacks in, the last of them as the warmest.
    pub(super) fn put(&self, stacks: impl Iterator<Item = Stack>) {
        self.lock().warm.extend(stacks);
    }

    /// Splits off a range of at most `most` stacks to cut, mapping a region if there is none left.
    pub(super) fn fetch_fresh(&self, most: usize) -> io::Result<Fresh> {
        let mut shared = self.lock();
        if shared.fresh.is_empty() {
            let stacks = size::stacks_in_region(self.size, shared.mapped);
            let region = Region::map(self.size, self.guard, stacks, self.guards)?;
            shared.mapped += region.stacks();
            shared.fresh.push(Fresh::whole(region));
        }
        let last = shared.fresh.len() - 1;
        let range = shared.fresh[last].split(most);
        if shared.fresh[last].len() == 0 {
            shared.fresh.pop();
        }
        Ok(range)
    }

    /// Takes back what is left of a range.
    pub(super) fn put_fresh(&self, range: Fresh) {
        if range.len() > 0 {
            self.lock().fresh.push(range);
        }
    }

    /// Gives the memory of some stacks back that have been here for `age`.
    pub(super) fn trim(&self, now: Instant, age: Duration) -> Trim {
        let mut lot = match self.lock().lot(now, age) {
            Ok(lot) => lot,
            Err(verdict) => return verdict,
        };
        lot.iter_mut().for_each(Stack::discard);
        let mut shared = self.lock();
        shared.cold.append(&mut lot);
        shared.verdict()
    }

    /// Adds what there is of this class to a runtime's count.
    pub(super) fn count(&self, counts: &mut Counts) {
        let shared = self.lock();
        counts.mapped += shared.mapped;
        counts.warm += shared.warm.len();
        counts.cold += shared.cold.len();
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Nothing here panics halfway; a poisoned exchange is as good as any.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn pop(&mut self) -> Option<Stack> {
        let stack = self.warm.pop_back().or_else(|| self.cold.pop());
        self.still = self.still.min(self.warm.len());
        stack
    }

    /// Takes the next stacks to trim out, or says why there are none.
    fn lot(&mut self, now: Instant, age: Duration) -> Result<Vec<Stack>, Trim> {
        if self.still == 0 {
            self.still = self.warm.len();
            self.marked = now;
            return Err(if self.warm.is_empty() { Trim::Clean } else { Trim::Later });
        }
        if now.saturating_duration_since(self.marked) < age {
            return Err(Trim::Later);
        }
        let lot = self.still.min(LOT);
        self.still -= lot;
        Ok(self.warm.drain(..lot).collect())
    }

    fn verdict(&self) -> Trim {
        match (self.still, self.warm.is_empty()) {
            (0, true) => Trim::Clean,
            (0, false) => Trim::Later,
            _ => Trim::More,
        }
    }
}
