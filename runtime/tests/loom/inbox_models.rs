//! The inbox of a worker, the park that a push into it breaks, and the end of the worker.

use std::sync::Arc;

use loom::thread;

use crate::holders::Holders;
use crate::inbox::Inbox;
use crate::park_state::{Found, ParkState};
use crate::primitive::{AtomicBool, Ordering, check, check_bounded};
use crate::task::{Header, TaskRef};
use crate::wait::Tickets;

/// As much of a block as it takes to wake its worker's tasks, and some tasks.
struct Block {
    inbox: Inbox,
    state: ParkState,
    driver: Tickets,
    holders: Holders,
    /// The runtime has ended.
    ended: AtomicBool,
    tasks: [Header; 3],
}

// SAFETY: tasks are handed over by the inbox, and the block by its count, which is what the models check.
unsafe impl Sync for Block {}
// SAFETY: as above.
unsafe impl Send for Block {}

/// What a model breaks, to show that the model finds it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// A waker takes no count of the block of the task's worker.
    Uncounted,
    /// The notice that breaks a park is left out where the worker runs.
    NoNotice,
}

impl Block {
    fn new() -> Arc<Self> {
        let block = Block {
            inbox: Inbox::new(),
            state: ParkState::new(),
            driver: Tickets::new(),
            holders: Holders::new(),
            ended: AtomicBool::new(false),
            tasks: [Header::new(), Header::new(), Header::new()],
        };
        assert!(block.inbox.is_empty() && !block.state.is_parked() && !block.has_ended());
        Arc::new(block)
    }

    fn spawn(self: &Arc<Self>, f: impl FnOnce(&Block) + 'static) -> thread::JoinHandle<()> {
        let block = Arc::clone(self);
        thread::spawn(move || f(&block))
    }

    /// The state of each task is how often it was pushed and is still to be taken.
    fn push(&self, task: usize) {
        let task = TaskRef::of(&self.tasks[task]);
        // SAFETY: the model pushes each task from one thread at a time, when it is in no inbox.
        task.header().state.with_mut(|state| unsafe { *state += 1 });
        self.inbox.push(task);
    }

    /// By the worker: takes all there is, and shows each as its number.
    fn take(&self, mut each: impl FnMut(usize)) {
        self.inbox.take(|task| {
            // SAFETY: a taken task has one owner.
            let pushed = task.header().state.with_mut(|state| unsafe { std::mem::take(&mut *state) });
            assert_eq!(pushed, 1, "taken as often as pushed");
            let place = self.tasks.iter().position(|header| TaskRef::of(header) == task);
            each(place.expect("one of the tasks"));
        });
    }

    /// As `Block::deliver`, with the count of an `Arc`.
    fn deliver(&self, task: usize, flaw: Flaw) {
        let counts = flaw != Flaw::Uncounted;
        if counts {
            self.holders.hold();
        }
        self.push(task);
        self.holders.touch();
        if self.state.is_parked() {
            self.unpark();
        }
        self.holders.touch();
        if counts {
            self.holders.release();
        }
    }

    /// As `Block::unpark`.
    fn unpark(&self) {
        if self.state.unpark() == Found::Parked {
            self.driver.put();
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// As `Worker::rest`, until something came or the runtime has ended.
    fn rest(&self) {
        while self.inbox.is_empty() && !self.has_ended() {
            if self.state.begin_park() && self.inbox.is_empty() {
                self.driver.take();
            }
            self.state.end_park();
        }
    }

    /// As `Shared::announce_end`.
    fn end(&self, flaw: Flaw) {
        self.ended.swap(true, Ordering::SeqCst);
        if flaw != Flaw::NoNotice || self.state.is_parked() {
            self.unpark();
        }
    }
}

/// Finds: a push that is lost between others, or shows the worker less than was done before it; two pushes of one thread
/// that are taken out of order.
#[test]
fn pushes_of_many_threads_are_taken_once_and_in_order() {
    check_bounded(3, || {
        let block = Block::new();
        let twice = block.spawn(|block| {
            block.push(0);
            block.push(1);
        });
        let once = block.spawn(|block| block.push(2));
        let mut taken = Vec::new();
        block.take(|task| taken.push(task));
        twice.join().unwrap();
        once.join().unwrap();
        block.take(|task| taken.push(task));
        let at = |task| taken.iter().position(|taken| *taken == task);
        assert!(taken.len() == 3 && at(0) < at(1) && at(2).is_some(), "{taken:?}");
    });
}

/// Finds: a push that has seen a task as the head, which is taken and pushed again meanwhile (ABA); a link that the worker
/// reads of a task that it has let go.
#[test]
fn a_task_may_be_pushed_again_as_soon_as_it_was_taken() {
    check(|| {
        let block = Block::new();
        block.push(0);
        let pusher = block.spawn(|block| {
            block.push(1);
            block.push(2);
        });
        let (mut taken, mut again) = ([0; 3], true);
        block.take(|task| {
            taken[task] += 1;
            if task == 0 && std::mem::take(&mut again) {
                // It ran, slept, and was woken by another worker.
                block.push(0);
            }
        });
        pusher.join().unwrap();
        block.take(|task| taken[task] += 1);
        assert_eq!(taken, [2, 1, 1]);
    });
}

/// Finds: a worker that parks with a task in its inbox, since each of two pushers relied on its peer, or on a notice that
/// the worker has used up.
#[test]
fn a_worker_wakes_for_each_of_two_that_deliver() {
    check_bounded(3, || {
        let block = Block::new();
        let deliverers = [0, 1].map(|task| block.spawn(move |block| block.deliver(task, Flaw::None)));
        let mut taken = 0;
        while taken < 2 {
            block.rest();
            block.take(|_| taken += 1);
        }
        deliverers.into_iter().for_each(|deliverer| deliverer.join().unwrap());
    });
}

/// Finds: the waker of a worker's last task touches the worker's block after the worker has left.
#[test]
fn a_block_outlives_its_senders() {
    check(|| the_last_task(Flaw::None));
}

/// Shows that the model finds it.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_delivery_without_a_count_touches_a_block_that_is_gone() {
    check(|| the_last_task(Flaw::Uncounted));
}

fn the_last_task(flaw: Flaw) {
    let block = Block::new();
    let deliverer = block.spawn(move |block| block.deliver(0, flaw));
    block.rest();
    block.take(|_| ());
    block.holders.release();
    deliverer.join().unwrap();
    assert!(block.holders.is_freed(), "freed by the last");
}

/// Finds: the runtime ends just as a worker parks, which then sleeps for ever.
#[test]
fn the_end_meets_the_park() {
    check(|| the_end(Flaw::None));
}

/// Shows that the model finds it: the look at the queues after a park has begun does not see the end, so that it takes the
/// notice.
#[test]
#[should_panic(expected = "deadlock")]
fn an_end_that_leaves_no_notice_is_missed() {
    check(|| the_end(Flaw::NoNotice));
}

fn the_end(flaw: Flaw) {
    let block = Block::new();
    let ender = block.spawn(move |block| block.end(flaw));
    block.rest();
    assert!(block.has_ended());
    ender.join().unwrap();
}

/// Finds: a worker that parks for ever as the runtime ends, since the end relies on the notice of a delivered task.
#[test]
fn the_end_comes_beside_a_delivery() {
    check_bounded(3, || {
        let block = Block::new();
        let deliverer = block.spawn(|block| block.deliver(0, Flaw::None));
        let ender = block.spawn(|block| block.end(Flaw::None));
        let mut taken = 0;
        while taken == 0 || !block.has_ended() {
            block.rest();
            block.take(|_| taken += 1);
            thread::yield_now();
        }
        deliverer.join().unwrap();
        ender.join().unwrap();
    });
}
