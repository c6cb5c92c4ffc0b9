//! What a thief saw of the other workers' queues, so that it takes only tasks that have waited.
//!
//! An idle thief checks all queues. A busy one watches one queue at a time.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::scheduler::block::Block;
use crate::scheduler::idle::Sight;

/// The least time between two looks that count as two.
pub(crate) const TICK: Duration = Duration::from_micros(20);

/// Remembers the last look at each worker's queue.
pub(crate) struct Looks {
    at: Option<Instant>,
    seen: Vec<Seen>,
    spawned: u64,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    taken: u64,
    waiting: u64,
}

impl Looks {
    pub(crate) fn new(workers: usize) -> Self {
        Looks { at: None, seen: vec![Seen::default(); workers], spawned: 0 }
    }

    /// Returns true when the last look is a tick old, so that what it saw counts.
    pub(crate) fn is_ripe(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| now.saturating_duration_since(at) >= TICK)
    }

    /// Returns true if some task that the last look saw in this queue is still there.
    pub(crate) fn has_waited(&self, block: &Block) -> bool {
        let seen = self.seen[block.index];
        // A hint: the queue itself decides what a theft finds.
        let taken_since = block.taken().wrapping_sub(seen.taken);
        taken_since < seen.waiting && block.waiting() > 0
    }

    /// Looks again.
    pub(crate) fn look(&mut self, now: Instant, blocks: &[Arc<Block>], own: usize) -> Sight {
        let mut waiting = false;
        let mut spawned = 0_u64;
        for block in blocks.iter().filter(|block| block.index != own) {
            let seen = Seen { taken: block.taken(), waiting: block.waiting() as u64 };
            waiting |= seen.waiting > 0;
            spawned = spawned.wrapping_add(block.spawned());
            self.seen[block.index] = seen;
        }
        let news = std::mem::replace(&mut self.spawned, spawned) != spawned;
        self.at = Some(now);
        match (waiting, news) {
            (true, _) => Sight::Waiting,
            (false, true) => Sight::News,
            (false, false) => Sight::Nothing,
        }
    }
}

/// How long busy workers leave a worker alone that takes none of its waiting tasks.
const PATIENCE: Duration = Duration::from_millis(1);

/// Remembers what a busy worker saw of one other worker at a time.
///
/// A look costs a read of that worker's cache lines.
pub(crate) struct PeerWatch {
    on: usize,
    /// How many tasks that worker had taken, and since when it has taken no more though some wait.
    seen: Option<(u64, Instant)>,
}

impl PeerWatch {
    /// Makes a watch that looks at worker `on` first.
    pub(crate) fn new(on: usize) -> Self {
        PeerWatch { on, seen: None }
    }

    /// Looks once more: at this worker while it takes none of its waiting tasks, else at the next.
    ///
    /// Returns the worker once that has lasted so long that the caller may help.
    pub(crate) fn look(&mut self, now: Instant, blocks: &[Arc<Block>], own: usize) -> Option<usize> {
        let block = &blocks[self.on];
        let taken = block.taken();
        let waits = self.on != own && block.waiting() > 0;
        if !waits || self.seen.is_some_and(|(before, _)| before != taken) {
            *self = PeerWatch::new((self.on + 1) % blocks.len());
            return None;
        }
        let (_, since) = *self.seen.get_or_insert((taken, now));
        let is_late = now.saturating_duration_since(since) >= PATIENCE;
        if is_late {
            self.seen = None;
        }
        is_late.then_some(self.on)
    }
}
