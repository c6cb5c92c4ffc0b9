//! The files of the wait core, and a sleeper that goes through them as `wait/sleep.rs` does, without a stack to leave.

#[path = "../../src/wait/claim.rs"]
mod claim;
#[path = "../../src/wait/list.rs"]
pub(crate) mod list;
#[path = "../../src/wait/lock.rs"]
mod lock;
#[path = "../../src/wait/word.rs"]
pub(crate) mod word;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use loom::sync::{Condvar, Mutex};

pub(crate) use claim::Claim;
pub(crate) use lock::Lock;
use word::{Fallen, Snapshot, Woke, Word};

/// The head of a task, reduced to what a sleep and its wakers touch.
pub(crate) struct Sleeper {
    pub(crate) word: Word,
    /// Stands for the queue in which a woken task waits.
    queue: Tickets,
    /// How often it was queued. Of std: a count of the model, not of the modelled.
    queued: AtomicU32,
    /// How often it left its stack for good, and was taken out of the queue.
    left: AtomicU32,
}

impl Sleeper {
    pub(crate) fn new() -> Arc<Self> {
        let sleeper = Sleeper {
            word: Word::new(),
            queue: Tickets::new(),
            queued: AtomicU32::new(0),
            left: AtomicU32::new(0),
        };
        Arc::new(sleeper)
    }

    /// What a waker does with the answer of its wake.
    pub(crate) fn settle(&self, woke: Woke) {
        if woke == Woke::Queue {
            self.queued.fetch_add(1, Ordering::Relaxed);
            self.queue.put();
        }
    }

    pub(crate) fn queued(&self) -> u32 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Once all wakers have ended: nobody queued it that was not asleep.
    pub(crate) fn assert_even(&self) {
        assert_eq!(self.queued(), self.left.load(Ordering::Relaxed), "queued as often as it slept");
    }

    /// Off the stack until queued. True if it had to be.
    pub(crate) fn leave_stack(&self) -> bool {
        self.leave_stack_and(|| ())
    }

    /// The same; `meanwhile` is what its worker does once it is off its stack.
    pub(crate) fn leave_stack_and(&self, meanwhile: impl FnOnce()) -> bool {
        let asleep = self.word.fall_asleep() == Fallen::Asleep;
        if asleep {
            meanwhile();
            self.queue.take();
            self.left.fetch_add(1, Ordering::Relaxed);
        }
        asleep
    }

    /// Until the notification lands that is on its way.
    pub(crate) fn await_landing(&self) {
        while !self.word.await_landing() {
            self.leave_stack();
        }
    }
}

/// Wake-ups that are counted and kept: a queue of ready tasks, or the driver in which a worker parks.
pub(crate) struct Tickets {
    count: Mutex<u32>,
    more: Condvar,
}

impl Tickets {
    pub(crate) fn new() -> Self {
        Tickets { count: Mutex::new(0), more: Condvar::new() }
    }

    pub(crate) fn put(&self) {
        *self.count.lock().unwrap() += 1;
        self.more.notify_one();
    }

    pub(crate) fn take(&self) {
        let mut count = self.count.lock().unwrap();
        while *count == 0 {
            count = self.more.wait(count).unwrap();
        }
        *count -= 1;
    }
}

/// A worker, told from others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home(usize);

/// The right to wake a sleeper once, as the list keeps it.
pub(crate) struct RawWake(pub(crate) Arc<Sleeper>);

impl RawWake {
    pub(crate) fn wake(self) {
        self.0.settle(self.0.word.notify());
    }
}

/// The order of priority in which `wait/sleep.rs` reads the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waking {
    Notified,
    TimedOut,
    Cancelled,
}

pub(crate) fn waking(why: Snapshot) -> Waking {
    match (why.notified, why.timed_out) {
        (true, _) => Waking::Notified,
        (false, true) => Waking::TimedOut,
        (false, false) => Waking::Cancelled,
    }
}
