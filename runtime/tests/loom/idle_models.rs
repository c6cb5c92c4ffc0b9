//! The idle protocol: no task waits while every worker is parked.

use std::sync::Arc;

use loom::thread;

use crate::idle::{Idle, Sight};
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

/// What the model breaks, to show that the models find it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// The worker does not look again after it is counted as parked.
    NoSecondLook,
    /// The last searcher looks for more before it has left the search.
    LooksTooEarly,
    /// A searcher that finds work at its second look does not search again.
    LeavesTheSearch,
    /// A watcher that its own work calls away does not look whether something is left.
    LeavesTheWatch,
}

/// A runtime, reduced to a queue and the workers' parks.
struct Runtime {
    idle: Idle,
    blocks: Vec<Block>,
    /// The tasks that any worker may take. A queue's own synchronization is not sequentially consistent at a push.
    queue: AtomicU64,
    /// Tasks that were taken, in models where all wait for that.
    taken: AtomicU64,
    flaw: Flaw,
}

impl Runtime {
    fn new(workers: usize, flaw: Flaw) -> Arc<Self> {
        let runtime = Runtime {
            idle: Idle::new(workers),
            blocks: (0..workers).map(|_| Block::new()).collect(),
            queue: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            flaw,
        };
        runtime.queue.load(Ordering::Relaxed);
        runtime.taken.load(Ordering::Relaxed);
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

    /// As `Worker::rest` and what follows it: until this worker has a task, and has woken the workers that it had to wake.
    fn next(&self, index: usize, watching: bool) {
        let mut searching = false;
        let mut watching = watching;
        loop {
            searching = searching || self.idle.try_search();
            if (searching || watching) && self.take() {
                break;
            }
            let sight = if watching { Sight::Waiting } else { Sight::Nothing };
            searching = self.park(index, searching, sight);
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
    fn park(&self, index: usize, searching: bool, sight: Sight) -> bool {
        let block = &self.blocks[index];
        let watching = self.idle.park(index, searching, sight);
        let looks = self.flaw != Flaw::NoSecondLook && sight != Sight::News;
        let came = !block.state.begin_park() || (looks && self.has_work());
        if !came && !watching {
            block.driver.take();
        }
        block.state.end_park();
        let woken = !self.idle.unpark(index);
        let again = searching && came && self.flaw != Flaw::LeavesTheSearch;
        woken || (again && self.idle.try_search())
    }

    /// As `Worker::rest`, until a worker has taken the one task.
    fn rest(&self, index: usize, sight: Sight) {
        let (mut searching, mut sight) = (false, sight);
        while self.taken.load(Ordering::SeqCst) == 0 {
            searching = searching || self.idle.try_search();
            if searching && self.take() {
                self.taken.fetch_add(1, Ordering::SeqCst);
                (0..self.blocks.len()).for_each(|other| self.blocks[other].unpark());
                break;
            }
            searching = self.park(index, searching, sight);
            // A watch runs out; then there is nothing new.
            sight = Sight::Nothing;
            // The work that it sees may belong to the other, searching worker.
            thread::yield_now();
        }
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

    /// No worker is parked, searches or watches: no field has run under.
    fn assert_all_counted_back(&self) {
        assert_eq!(self.idle.after_global(), None, "no worker is parked");
        assert!(self.idle.try_search(), "no worker searches");
        assert!(self.idle.end_search(), "and this was the only one");
        self.idle.park(0, false, Sight::Nothing);
        assert_eq!(self.idle.after_spawn(), Some(0), "no worker watches");
    }
}

/// Finds: a task is queued just as the only worker parks; neither finds the other.
#[test]
fn a_task_meets_the_park() {
    check_bounded(3, || one_worker(Flaw::None, false));
}

/// Shows that the model finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn a_park_without_a_second_look_loses_a_task() {
    check_bounded(3, || one_worker(Flaw::NoSecondLook, false));
}

/// Finds: a producer relies on a watcher that has stopped watching.
#[test]
fn a_task_meets_the_end_of_a_watch() {
    check_bounded(3, || {
        let runtime = Runtime::new(1, Flaw::None);
        let producer = {
            let runtime = Arc::clone(&runtime);
            thread::spawn(move || {
                runtime.queue.fetch_add(1, Ordering::Release);
                // Wakes no worker while another one watches.
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

/// Finds: a worker that saw no more than news relies on a watcher, and so does the producer; but the watch ends.
#[test]
fn a_task_meets_a_worker_that_relies_on_a_watcher() {
    check_bounded(3, || one_trusts_in_a_watcher(Flaw::None));
}

/// Shows that the model finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn a_watcher_that_ends_without_a_look_loses_a_task() {
    check_bounded(3, || one_trusts_in_a_watcher(Flaw::NoSecondLook));
}

fn one_trusts_in_a_watcher(flaw: Flaw) {
    let (runtime, threads) = beside_a_watcher(flaw);
    // The watch runs out.
    runtime.idle.unpark(0);
    runtime.rest(0, Sight::Nothing);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Finds: a task is missed as the watcher's own work calls it away, so that it does not look again.
#[test]
fn a_task_meets_a_watcher_that_is_called_away() {
    check_bounded(3, || a_watcher_is_called_away(Flaw::None));
}

/// Shows that the model finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn a_watcher_that_is_called_away_and_wakes_no_worker_loses_a_task() {
    check_bounded(3, || a_watcher_is_called_away(Flaw::LeavesTheWatch));
}

fn a_watcher_is_called_away(flaw: Flaw) {
    let (runtime, threads) = beside_a_watcher(flaw);
    runtime.idle.unpark(0);
    if flaw != Flaw::LeavesTheWatch && runtime.has_work() {
        runtime.wake(runtime.idle.after_spawn());
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// The first worker watches; the second has seen news; a third thread spawns.
fn beside_a_watcher(flaw: Flaw) -> (Arc<Runtime>, [thread::JoinHandle<()>; 2]) {
    let runtime = Runtime::new(2, flaw);
    assert!(runtime.idle.park(0, false, Sight::Waiting), "the first watches");
    let other = {
        let runtime = Arc::clone(&runtime);
        thread::spawn(move || runtime.rest(1, Sight::News))
    };
    let producer = {
        let runtime = Arc::clone(&runtime);
        thread::spawn(move || {
            runtime.queue.fetch_add(1, Ordering::Release);
            runtime.wake(runtime.idle.after_spawn());
        })
    };
    (runtime, [other, producer])
}

/// Finds: of two tasks the second stays queued while the worker that took the first runs it for ever: the producer
/// relied on a searcher that had found something else.
#[test]
fn no_task_lies_while_a_worker_is_parked() {
    check_bounded(2, || two_workers(Flaw::None));
}

/// Shows that the model finds it: a worker that looks for more before it leaves the search misses
/// what comes between.
#[test]
#[should_panic(expected = "deadlock")]
fn a_searcher_that_looks_too_early_loses_a_task() {
    check_bounded(2, || two_workers(Flaw::LooksTooEarly));
}

/// Shows it for the other way out of the search.
#[test]
#[should_panic(expected = "deadlock")]
fn a_searcher_that_finds_work_at_its_park_and_wakes_no_worker_loses_a_task() {
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
