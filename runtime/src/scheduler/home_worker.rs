//! Wakes and cancels of tasks that stay on their home worker: the rules of AT_HOME.
//!
//! Such a task saves two of the four locked instructions of a hand-over. Its sleep begins with
//! ASLEEP, since its worker alone queues it, and looks only once the task is off its stack. A wake
//! on that worker is a plain store to the wait word, so no other thread may write the word then:
//!
//! ```text
//!  home worker                                another thread
//!  begin_in_task    ASLEEP from the start     notify   adds to the word, then delivers to the inbox
//!  notify_at_home   plain store, queues       cancel   leaves the word alone:
//!  expire           the timer fires here               1  its flag, then the wait word: AT_HOME
//!  cancel_at_home   the flags end a sleep              2  NOTED: the first to set it sends the task
//!    ▲                                                 3  `Block::cancelled`, then unparks the worker
//!    └── check_cancelled: clears NOTED, then checks the flags ◀──────────────────┘
//!  finish           ENDED, and waits while NOTED
//! ```
//!
//! * A sleep has at most one wake. So `notify` from another thread and a plain store never meet.
//! * The first sleep begins without AT_HOME. Its `fall_asleep_at_home` pairs with cancellers that do
//!   not know yet that they have to tell the worker.
//! * A canceller that finds NOTED set has stored its flag before the pending check.
//! * The sender may use the worker's block until it has sent the task. A canceller that finds ENDED
//!   sends nothing. A worker that finds NOTED as it sets ENDED waits for the task to arrive, before
//!   it lets go of the task and of itself.
//! * A migratable task has no home worker to rely on, and never gets AT_HOME.
//!
//! `tests/loom/home_models.rs` has the models.

#![forbid(unsafe_code)]

use std::hint::cold_path;
use std::ptr;
use std::thread;

use crate::scheduler::block::Block;
use crate::scheduler::current;
use crate::scheduler::worker::Worker;
use crate::tasks::header::{HomeWorker, Nature, TaskRef};
use crate::waiter::word::{Fallen, Woke};

impl Worker {
    #[inline(always)]
    pub(crate) fn is_home_of(&self, home: *const HomeWorker) -> bool {
        ptr::eq(self.block.as_home(), home)
    }

    /// Notifies the present sleep of a task that the caller, on this worker's thread, has unlinked.
    #[inline(always)]
    pub(crate) fn notify(&self, task: TaskRef) {
        let header = task.header();
        let word = &header.waiter.word;
        if word.is_at_home() && self.is_home_of(header.home()) {
            if word.notify_at_home() == Woke::Queue {
                self.make_ready(task);
            }
            return;
        }
        cold_path();
        if word.notify() == Woke::Queue {
            self.wake(task);
        }
    }

    /// Completes the sleep of a task that is off its stack, and handles wakes that came before.
    #[inline]
    pub(super) fn settle(&self, task: TaskRef) {
        let header = task.header();
        // Before others may resume it.
        header.set_since(self.coarse.get());
        let word = &header.waiter.word;
        // A waker sends the task to this worker meanwhile, so it does not run before this worker's
        // next pick.
        if !word.is_down() {
            cold_path();
            let fallen = match header.nature {
                Nature::Migratable => word.fall_asleep(),
                _ => word.fall_asleep_at_home(),
            };
            if fallen == Fallen::Roused {
                return self.make_ready(task);
            }
        }
        if header.cancel_flags.any() {
            cold_path();
            self.check_cancel_flags(task);
        }
    }

    /// Ends the sleep of a task that is off its stack here, if it is asleep and a cancel flag ends
    /// that sleep.
    #[cold]
    fn check_cancel_flags(&self, task: TaskRef) {
        let header = task.header();
        let word = &header.waiter.word;
        if header.is_marked(word.why().at_end) && word.cancel_at_home() == Woke::Queue {
            self.make_ready(task);
        }
    }

    /// Checks the tasks of this worker whose cancel flags other threads have set.
    #[cold]
    pub(super) fn check_cancelled(&self) {
        for task in self.block.cancelled.take() {
            // Before the check: a canceller that sets a flag from now on sends the task anew.
            task.header().cancel_flags.take_note();
            self.check_cancel_flags(task);
        }
    }

    /// Ends the cancels of an ended task: no other thread uses it from here on.
    ///
    /// Waits a few instructions for a canceller that is about to send the task.
    pub(super) fn end_cancels(&self, task: TaskRef) {
        let header = task.header();
        if header.waiter.word.is_at_home() && header.cancel_flags.end() {
            self.await_canceller(task);
        }
    }

    #[cold]
    fn await_canceller(&self, task: TaskRef) {
        loop {
            self.check_cancelled();
            if !task.header().cancel_flags.is_noted() {
                return;
            }
            thread::yield_now();
        }
    }
}

/// Makes the home worker of a task check its cancel flags.
#[cold]
pub(super) fn check_at_home(task: TaskRef) {
    let home = task.header().home();
    let here = current::with_worker(|worker| {
        let here = worker.is_home_of(home);
        if here {
            worker.check_cancel_flags(task);
        }
        here
    });
    if here != Some(true) && task.header().cancel_flags.note() {
        Block::send_cancelled(home, task);
    }
}
