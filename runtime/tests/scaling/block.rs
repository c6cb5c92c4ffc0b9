//! What others may reach of a simulated worker: as much of a block as `looks.rs` asks for, and as the model needs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::park_state::ParkState;
use crate::queue;
use crate::task_counts::Counts;

pub(crate) struct Block {
    pub(crate) index: usize,
    pub(crate) placed: queue::Shared,
    pub(crate) thief: queue::Thief,
    pub(crate) taken: AtomicU64,
    pub(crate) counts: Counts,
    /// The started tasks of this home worker.
    pub(crate) load: AtomicUsize,
    pub(crate) state: ParkState,
}

impl Block {
    pub(crate) fn new(index: usize, thief: queue::Thief) -> Block {
        Block {
            index,
            placed: queue::Shared::new(),
            thief,
            taken: AtomicU64::new(0),
            counts: Counts::default(),
            load: AtomicUsize::new(0),
            state: ParkState::new(),
        }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    pub(crate) fn spawned(&self) -> u64 {
        self.counts.spawned()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.thief.len() + self.placed.len()
    }

    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }
}
