//! A cache line that several processors touch.
//!
//! A reader of a line that has changed waits for it to come over. A writer waits until earlier writers have had it: the line
//! goes from writer to writer. So the more write it in one moment, the longer each waits.

use std::cell::Cell;

use crate::costs::{HIT, LINE};

pub(crate) struct Line {
    version: Cell<u64>,
    /// The version that each actor has.
    seen: Vec<Cell<u64>>,
    writer: Cell<usize>,
    /// Others have read it since it was written.
    shared: Cell<bool>,
    free_at: Cell<u64>,
}

impl Line {
    pub(crate) fn new(actors: usize) -> Line {
        Line {
            version: Cell::new(0),
            seen: vec![Cell::new(0); actors],
            writer: Cell::new(usize::MAX),
            shared: Cell::new(false),
            free_at: Cell::new(0),
        }
    }

    /// What it costs to read it now.
    pub(crate) fn read(&self, actor: usize, now: u64) -> u64 {
        if self.seen[actor].replace(self.version.get()) == self.version.get() {
            return HIT;
        }
        self.shared.set(true);
        self.free_at.get().saturating_sub(now) + LINE
    }

    /// What it costs to write it now.
    pub(crate) fn write(&self, actor: usize, now: u64) -> u64 {
        let alone = self.writer.get() == actor && !self.shared.get();
        self.version.set(self.version.get() + 1);
        self.seen[actor].set(self.version.get());
        self.writer.set(actor);
        self.shared.set(false);
        if alone {
            return HIT;
        }
        self.free_at.set(self.free_at.get().max(now) + LINE);
        self.free_at.get() - now
    }

    /// Keeps all others from it for a while: what a lock in it does.
    pub(crate) fn hold(&self, time: u64, now: u64) {
        self.free_at.set(self.free_at.get().max(now) + time);
    }
}
