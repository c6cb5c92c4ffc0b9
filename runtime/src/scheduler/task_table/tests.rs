//! A reader of the process's memory finds the tasks, without a lock and by the documented layout alone.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use std::mem::offset_of;
use std::ptr;

use super::{ROOT, SLOTS};
use crate::base::memory;
use crate::runtime::owner::Runtime;
use crate::scheduler::note::Root;
use crate::waiter::description;

fn word(address: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    memory::read(address, &mut bytes).map(|()| u64::from_ne_bytes(bytes))
}

#[test]
fn a_reader_of_memory_finds_all_started_tasks_and_what_they_wait_for() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (parked, mut ids): (Vec<_>, Vec<_>) = (0..2 * SLOTS)
        .map(|_| {
            let handle = runtime.handle().spawn(crate::task::park);
            let id = handle.task().id();
            (handle, id)
        })
        .unzip();
    let is_asleep = |id: &crate::JoinHandle<()>| id.task().waits_for().is_some();
    while !parked.iter().all(is_asleep) {
        std::thread::yield_now();
    }
    let root = ptr::from_ref(&ROOT).addr();
    let mut chunk = word(root + offset_of!(Root, newest)).unwrap() as usize;
    let mut found = Vec::new();
    while chunk != 0 {
        let slots = (1..=SLOTS).map(|slot| word(chunk + 8 * slot).unwrap() as usize);
        // Other tests of this process have tasks as well, which may end meanwhile.
        found.extend(slots.filter(|slot| slot & 1 == 0).filter_map(|header| {
            let record = word(header + ROOT.layout.record as usize)? as usize;
            let waits = description::interpret(record, &mut memory::read)?;
            (waits.name == "park").then(|| word(header + ROOT.layout.id as usize))?
        }));
        chunk = word(chunk).unwrap() as usize;
    }
    ids.retain(|id| !found.contains(id));
    assert_eq!(ids, [], "not found");
    for handle in parked {
        handle.task().unpark();
        handle.join().unwrap();
    }
}
