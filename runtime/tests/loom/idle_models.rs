//! The idle protocol: no task waits while every worker is parked.

use std::sync::Arc;

use loom::thread;

use crate::idle::Idle;
use crate::park_state::{Found, ParkState};
use crate::primitive::{AtomicU64, Ordering, check_bounded};
use crate::wait::Tickets;

/// A worker's park.
struct Block {
    state: ParkState,
    driver: Tickets,
}

impl Block {
    fn new() -> Self {
        let block = Block { state: ParkState::new(), driver: Tickets::new() };
        let _ = block.state.is_parked();
        block
    }

    fn unpark(&self) {
        if self.state.unpark() == Found::Parked {
            self.driver.put();
        }
    }
}

/// What the model breaks, to show that the hunts find it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// The worker does not look again after it is counted as parked.
    NoSecondLook,
    /// The last searcher looks for more before it has left the search.
    LooksTooEarly,
    /// A searcher that finds work at its second look does not search again.
    LeavesTheSearch,
}

/// A runtime, reduced to a queue and the workers' parks.
struct Runtime {
    idle: Idle,
    blocks: Vec<Block>,
    /// The tasks that anybody may take. A queue's own synchronization is not sequentially consistent at a push.
    queue: AtomicU64,
    flaw: Flaw,
}

impl Runtime {
    fn new(workers: usize, flaw: Flaw) -> Arc<Self> {
        let runtime = Runtime {
            idle: Idle::new(workers),
            blocks: (0..workers).map(|_| Block::new()).collect(),
            queue: AtomicU64::new(0),
            flaw,
        };
        runtime.queue.load(Ordering::Relaxed);
        assert_eq!(runtime.idle.after_global(), None);
        Arc::new(runtime)
    }

    /// As a spawn from outside.
    fn spawn(&self) {
        self.queue.fetch_add(1, Ordering::Release);
        self.wake(self.idle.after_global());
    }

    fn wake(&self, index: Option<usize>) {
        if let Some(index) = index {
            self.blocks[index].unpark();
        }
    }

    fn has_work(&self) -> bool {
        self.queue.load(Ordering::SeqCst) > 0
    }

    fn take(&self) -> bool {
        let mut seen = self.queue.load(Ordering::Acquire);
        while seen > 0 {
            match self.queue.compare_exchange(seen, seen - 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// As `Worker::rest` and what follows it: until this worker has a task, of which it has told whom it had to tell.
    fn next(&self, index: usize, watching: bool) {
        let mut searching = false;
        let mut watching = watching;
        loop {
            searching = searching || self.idle.try_search();
            if (searching || watching) && self.take() {
                break;
            }
            searching = self.park(index, searching, watching);
            // A watcher's park has a timeout, after which it parks for good.
            watching = false;
            if self.take() {
                break;
            }
        }
        if searching {
            self.found_work();
        }
    }

    /// As `Worker::park`. True if this worker searches now: a producer has woken it for that, or it came to its park from
    /// the search and has to tell others of what it found at the second look.
    fn park(&self, index: usize, searching: bool, watching: bool) -> bool {
        let block = &self.blocks[index];
        self.idle.park(index, searching, watching);
        let came = !block.state.begin_park() || (self.flaw != Flaw::NoSecondLook && self.has_work());
        if !came && !watching {
            block.driver.take();
        }
        block.state.end_park();
        let woken = !self.idle.unpark(index);
        let again = searching && came && self.flaw != Flaw::LeavesTheSearch;
        woken || (again && self.idle.try_search())
    }

    /// As `Worker::found_work`.
    fn found_work(&self) {
        let early = self.has_work();
        let last = self.idle.end_search();
        let more = if self.flaw == Flaw::LooksTooEarly { early } else { self.has_work() };
        if last && more {
            self.wake(self.idle.after_global());
        }
    }

    /// Nobody is parked, nobody searches, nobody watches: no field has run under.
    fn assert_all_counted_back(&self) {
        assert_eq!(self.idle.after_global(), None, "nobody is parked");
        assert!(self.idle.try_search(), "nobody searches");
        assert!(self.idle.end_search(), "and this was the only one");
        self.idle.park(0, false, false);
        assert_eq!(self.idle.after_spawn(), Some(0), "nobody watches");
    }
}

/// Hunts: a task is queued just as the only worker parks; the producer finds nobody parked, the worker finds no task.
#[test]
fn a_task_meets_the_park() {
    check_bounded(3, || one_worker(Flaw::None, false));
}

/// Shows that the hunt finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn a_park_without_a_second_look_loses_a_task() {
    check_bounded(3, || one_worker(Flaw::NoSecondLook, false));
}

/// Hunts: a producer relies on a watcher that has stopped watching.
#[test]
fn a_task_meets_the_end_of_a_watch() {
    check_bounded(3, || {
        let runtime = Runtime::new(1, Flaw::None);
        let producer = {
            let runtime = Arc::clone(&runtime);
            thread::spawn(move || {
                runtime.queue.fetch_add(1, Ordering::Release);
                // Wakes nobody while somebody watches.
                runtime.wake(runtime.idle.after_spawn());
            })
        };
        runtime.next(0, true);
        producer.join().unwrap();
        runtime.assert_all_counted_back();
    });
}

fn one_worker(flaw: Flaw, watching: bool) {
    let runtime = Runtime::new(1, flaw);
    let producer = {
        let runtime = Arc::clone(&runtime);
        thread::spawn(move || runtime.spawn())
    };
    runtime.next(0, watching);
    producer.join().unwrap();
    runtime.assert_all_counted_back();
}

/// Hunts: of two tasks the second is left lying while the worker that took the first runs it for ever: the producer
/// relied on a searcher that had found something else.
#[test]
fn no_task_lies_while_a_worker_is_parked() {
    check_bounded(2, || two_workers(Flaw::None));
}

/// Shows that the hunt finds it: who looks for more before it leaves the search misses what comes between.
#[test]
#[should_panic(expected = "deadlock")]
fn a_searcher_that_looks_too_early_loses_a_task() {
    check_bounded(2, || two_workers(Flaw::LooksTooEarly));
}

/// Shows it for the other way out of the search.
#[test]
#[should_panic(expected = "deadlock")]
fn a_searcher_that_finds_work_at_its_park_and_tells_nobody_loses_a_task() {
    check_bounded(2, || two_workers(Flaw::LeavesTheSearch));
}

fn two_workers(flaw: Flaw) {
    let runtime = Runtime::new(2, flaw);
    // Each worker takes one task and runs it until the other one runs as well.
    let other = {
        let runtime = Arc::clone(&runtime);
        thread::spawn(move || runtime.next(1, false))
    };
    let producer = {
        let runtime = Arc::clone(&runtime);
        thread::spawn(move || {
            runtime.spawn();
            runtime.spawn();
        })
    };
    runtime.next(0, false);
    other.join().unwrap();
    producer.join().unwrap();
    runtime.assert_all_counted_back();
}
