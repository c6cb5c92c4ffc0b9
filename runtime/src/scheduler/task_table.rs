//! The table of the started tasks of one worker, in chunks that never move.
//!
//! A debugger or a reader of a core file finds the chunks of all tables from [`ROOT`]. Chunks are
//! never freed. An emptied table leaves them to the next table that grows, so a reader
//! follows no pointer to freed memory. All slots of an unused chunk are vacant.

#![forbid(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::base::spin_lock::Lock;
use crate::scheduler::note::{ROOT, SLOTS};
use crate::tasks::header::{Header, TaskRef};

#[cfg(test)]
mod tests;

/// The chunks that no table uses. Chunks are made under this lock.
static UNUSED: Lock<Vec<&'static Chunk>> = Lock::new(Vec::new());

/// Holds some slots of a table.
#[repr(C)]
struct Chunk {
    /// The chunk that was made before this one, whatever table uses it.
    older: AtomicPtr<Chunk>,
    /// The address of a task, or twice the index of the next vacant slot plus one.
    slots: [AtomicPtr<Header>; SLOTS],
}

impl Chunk {
    /// Takes an unused chunk, or makes one.
    fn take() -> &'static Chunk {
        let mut unused = UNUSED.lock();
        unused.pop().unwrap_or_else(|| {
            let slots = [const { AtomicPtr::new(vacant(0)) }; SLOTS];
            // Relaxed: the lock orders the chunks; a reader of memory needs no order.
            let older = AtomicPtr::new(ROOT.newest.load(Ordering::Relaxed).cast());
            let chunk = Box::leak(Box::new(Chunk { older, slots }));
            ROOT.newest.store(ptr::from_mut(chunk).cast(), Ordering::Relaxed);
            chunk
        })
    }

    /// Makes all slots vacant; `first` is the index of the first one in its table.
    fn vacate(&self, first: usize) {
        for (slot, index) in self.slots.iter().zip(first..) {
            slot.store(vacant(index + 1), Ordering::Relaxed);
        }
    }
}

/// Returns what a vacant slot holds. Headers have even addresses.
const fn vacant(next: usize) -> *mut Header {
    ptr::without_provenance_mut(next << 1 | 1)
}

/// Holds tasks in numbered slots. Its lock is its owner's matter; so all accesses are relaxed.
pub(crate) struct TaskTable {
    chunks: Vec<&'static Chunk>,
    /// The slot that the next task gets: vacant, or the first one behind all chunks.
    vacant: usize,
    len: usize,
}

impl TaskTable {
    pub(crate) const fn new() -> Self {
        TaskTable { chunks: Vec::new(), vacant: 0, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Enters a task, and returns its slot.
    #[inline]
    pub(crate) fn insert(&mut self, task: TaskRef) -> usize {
        let index = self.vacant;
        if index == self.chunks.len() * SLOTS {
            self.grow();
        }
        let slot = self.slot(index);
        self.vacant = slot.load(Ordering::Relaxed).addr() >> 1;
        slot.store(task.as_ptr(), Ordering::Relaxed);
        self.len += 1;
        index
    }

    /// Vacates the slot of a task.
    #[inline]
    pub(crate) fn remove(&mut self, index: usize) {
        self.slot(index).store(vacant(self.vacant), Ordering::Relaxed);
        self.vacant = index;
        self.len -= 1;
        if self.len == 0 && self.chunks.len() > 2 {
            self.shrink();
        }
    }

    /// Calls `see` with the tasks of the chunk of that number. Returns false for the last one.
    pub(crate) fn walk(&self, number: usize, see: impl FnMut(TaskRef)) -> bool {
        let slots = self.chunks.get(number).into_iter().flat_map(|chunk| &chunk.slots);
        let entries = slots.map(|slot| slot.load(Ordering::Relaxed));
        entries.filter(|entry| entry.addr() & 1 == 0).filter_map(TaskRef::from_ptr).for_each(see);
        number + 1 < self.chunks.len()
    }

    fn slot(&self, index: usize) -> &'static AtomicPtr<Header> {
        &self.chunks[index / SLOTS].slots[index % SLOTS]
    }

    #[cold]
    fn grow(&mut self) {
        let chunk = Chunk::take();
        chunk.vacate(self.chunks.len() * SLOTS);
        self.chunks.push(chunk);
    }

    /// Leaves all chunks of an empty table but the first to other tables.
    #[cold]
    fn shrink(&mut self) {
        UNUSED.lock().extend(self.chunks.drain(1..));
        self.chunks[0].vacate(0);
        self.vacant = 0;
    }
}

impl Drop for TaskTable {
    fn drop(&mut self) {
        UNUSED.lock().append(&mut self.chunks);
    }
}
