//! The values of the server under their keys, some with an expiry.
//!
//! The keys are spread over shards with a lock each, so that tasks of several workers rarely contend. An
//! expired value is invisible at once. The next write to its key or the next sweep removes it.

use fibra::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use fibra::time;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

const SHARDS: usize = 16;
/// The values that a sweep removes before it unlocks the shard and yields. Few, so that the worker soon looks
/// at its sockets.
const BATCH: usize = 32;

pub(crate) struct Store {
    shards: [RwLock<Shard>; SHARDS],
    /// Another hasher than that of the maps, whose keys would share a part of their hashes.
    hasher: RandomState,
}

/// One shard: the values of some keys.
#[derive(Default)]
pub(crate) struct Shard {
    entries: HashMap<Arc<[u8]>, Entry>,
    /// The entries with an expiry, the earliest first.
    deadlines: BTreeSet<(Instant, Arc<[u8]>)>,
}

pub(crate) struct Entry {
    pub(crate) value: Box<[u8]>,
    pub(crate) deadline: Option<Instant>,
}

impl Store {
    pub(crate) fn new() -> Store {
        Store { shards: Default::default(), hasher: RandomState::new() }
    }

    /// Locks the shard of a key for reading.
    pub(crate) fn read(&self, key: &[u8]) -> RwLockReadGuard<'_, Shard> {
        self.shard(key).read()
    }

    /// Locks the shard of a key for changes. Nothing else changes there until the guard is dropped, except by
    /// expiry.
    pub(crate) fn write(&self, key: &[u8]) -> RwLockWriteGuard<'_, Shard> {
        self.shard(key).write()
    }

    fn shard(&self, key: &[u8]) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    /// Removes expired values.
    pub(crate) fn sweep(&self) {
        for shard in &self.shards {
            while shard.write().sweep(BATCH) == BATCH {
                fibra::yield_now();
            }
        }
    }

    /// Returns the number of keys, and how many of them expire.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let counts = self.shards.iter().map(|shard| {
            let shard = shard.read();
            (shard.entries.len(), shard.deadlines.len())
        });
        counts.fold((0, 0), |(keys, expire), (more, of_them)| (keys + more, expire + of_them))
    }
}

impl Shard {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.is_live())
    }

    /// Sets the value and its expiry.
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8], deadline: Option<Instant>) {
        let value = value.into();
        let old = match self.entries.get_mut(key) {
            Some(entry) => {
                entry.value = value;
                entry.deadline
            }
            None => {
                self.entries.insert(key.into(), Entry { value, deadline: None });
                None
            }
        };
        if old != deadline {
            self.expire(key, deadline);
        }
    }

    /// Sets the expiry of an existing value.
    pub(crate) fn expire(&mut self, key: &[u8], deadline: Option<Instant>) {
        let Some((key, _)) = self.entries.get_key_value(key) else { return };
        let key = Arc::clone(key);
        let old = self.entries.get_mut(&key).and_then(|entry| mem::replace(&mut entry.deadline, deadline));
        let key = match old {
            Some(old) => {
                let place = (old, key);
                self.deadlines.remove(&place);
                place.1
            }
            None => key,
        };
        self.deadlines.extend(deadline.map(|deadline| (deadline, key)));
    }

    /// Removes a value. Returns whether there was one.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let Some((key, entry)) = self.entries.remove_entry(key) else { return false };
        let is_live = entry.is_live();
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, key));
        }
        is_live
    }

    /// Removes at most so many expired entries. Returns how many it removed.
    fn sweep(&mut self, most: usize) -> usize {
        let now = time::now();
        for swept in 0..most {
            match self.deadlines.first() {
                Some((deadline, _)) if *deadline <= now => {}
                _ => return swept,
            }
            if let Some((_, key)) = self.deadlines.pop_first() {
                self.entries.remove(&key);
            }
        }
        most
    }
}

impl Entry {
    fn is_live(&self) -> bool {
        self.deadline.is_none_or(|deadline| time::now() < deadline)
    }
}
