//! What the server keeps: values under their keys, some of them for a time.
//!
//! The keys are spread over shards with a lock each, so that tasks of several workers seldom meet. What has expired is not
//! seen any more from that moment; it is thrown away by whoever writes to its key next, or by the next sweep.

use fibra::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

const SHARDS: usize = 16;
/// How many values a sweep throws away before it unlocks the shard and lets the other tasks of its worker run. Not many: a worker
/// whose tasks only yield looks after 128 turns at what its sockets say.
const BATCH: usize = 32;

pub(crate) struct Store {
    shards: [RwLock<Shard>; SHARDS],
    /// Not that of the maps, whose keys would be alike in a part of their hashes.
    hasher: RandomState,
}

/// The values of some keys.
#[derive(Default)]
pub(crate) struct Shard {
    entries: HashMap<Arc<[u8]>, Entry>,
    /// Of all entries that have one, the earliest first.
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

    /// The shard of a key, for looking.
    pub(crate) fn read(&self, key: &[u8]) -> RwLockReadGuard<'_, Shard> {
        self.shard(key).read()
    }

    /// The shard of a key, for changes; what is seen there stays so until the guard is dropped, unless it expires.
    pub(crate) fn write(&self, key: &[u8]) -> RwLockWriteGuard<'_, Shard> {
        self.shard(key).write()
    }

    fn shard(&self, key: &[u8]) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    /// Throws away what has expired.
    pub(crate) fn sweep(&self) {
        for shard in &self.shards {
            while shard.write().sweep(BATCH) == BATCH {
                fibra::yield_now();
            }
        }
    }

    /// How many keys there are, and how many of them expire.
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

    /// Sets the value, and when it expires.
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

    /// Sets when the value expires that there is, if there is one.
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

    /// True if there was a value.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let Some((key, entry)) = self.entries.remove_entry(key) else { return false };
        let is_live = entry.is_live();
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, key));
        }
        is_live
    }

    /// Throws away at most so many entries that have expired, and tells how many they were.
    fn sweep(&mut self, most: usize) -> usize {
        let now = Instant::now();
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
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }
}
