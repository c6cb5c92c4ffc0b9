//! Virtual time: when the worker of a paused clock moves it.
//!
//! The clock moves to the next timer when no task is ready and nothing else can wake one. It stands
//!
//! * while a [`Hold`](crate::time::Hold) is taken: by the program, by each task on the blocking pool, and by listeners
//!   to signals;
//! * while a task waits for the system, a socket for example, or for a closure on the blocking pool, except in a simulation;
//! * while a task waits for a stack.
//!
//! Meanwhile the worker waits by the machine's clock, until the next timer at the longest. If all of
//! that time passes in one wait, the timer has come. Waits that something ends are not added up: a
//! timeout that a task sets after such a wait would end too early.
//!
//! If all tasks sleep, no timer is armed and nothing else can wake one, they sleep for ever. Then the
//! worker notes what each of them waits for, and cancels the main tasks. `run` panics with that list.

use std::time::{Duration, Instant};

use crate::base::abort::say;
use crate::base::clock;
use crate::scheduler::waits::describe;
use crate::scheduler::worker::Worker;
use crate::tasks::task::Task;

impl Worker {
    /// Moves a paused clock to the next timer, if nothing but time can wake a task.
    ///
    /// Returns true if there may be work.
    pub(super) fn jump(&self) -> bool {
        clock::is_paused() && self.jump_if_still()
    }

    #[cold]
    fn jump_if_still(&self) -> bool {
        if self.shared.virtual_time.stands() || self.lacks_stacks() {
            return false;
        }
        if self.simulation.is_some() {
            // Its sockets lead to each other, and what they have sent may have come.
            self.poll_driver(Some(Duration::ZERO));
        } else if !self.sleep_for_tasks() {
            return false;
        }
        // After the look at the holds, whose owners wake first.
        if self.has_work() || !self.shared.injector.is_empty() {
            return true;
        }
        match self.next_event() {
            Some(at) => {
                self.move_clock(at);
                true
            }
            None => self.end_deadlock(),
        }
    }

    /// Moves the paused clock forward, and fires the timers that are due then.
    pub(crate) fn move_clock(&self, at: Instant) {
        clock::move_to(at);
        self.expire_timers();
    }

    /// Returns when a timer of that deadline fires.
    pub(crate) fn firing_time(&self, deadline: Instant) -> Option<Instant> {
        self.wheel.firing_time(deadline)
    }

    /// Returns when the next timer is due, or in a simulation what is under way arrives.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let arrival = self.driver.borrow().next_arrival();
        self.wheel.next_deadline().into_iter().chain(arrival).min()
    }

    /// Notes that a park is over, and that no task has run since `begin`: the timer that it was to end for may have come.
    pub(super) fn note_waited(&self, timer: Option<Instant>, begin: Instant) {
        if clock::is_paused()
            && let Some(at) = timer
            && clock::machine().saturating_duration_since(begin) >= at.saturating_duration_since(clock::now())
        {
            clock::move_to(at);
        }
    }

    /// Returns true if the clock stood for a hold that is gone. Checked again once the worker counts as parked.
    pub(super) fn may_jump(&self) -> bool {
        clock::is_paused() && self.shared.virtual_time.stood()
    }

    /// Returns true if all other tasks sleep, but for those that ask this as well. Called by a task.
    pub(crate) fn is_settled(&self) -> bool {
        // Wakers of futures are foreign code, and must not suspend the task here: the worker calls them, and not the task.
        let task = self.context().running();
        self.context().set_running(None);
        self.poll_driver(Some(Duration::ZERO));
        self.context().set_running(task);
        self.take_inbox();
        self.check_cancelled();
        let starts = self.lacks_stacks()
            || !(self.stealable.is_empty()
                && self.block.placed.is_empty()
                && self.shared.injector.is_empty());
        !starts && self.local.len() < self.settling.get()
    }

    /// Returns true if only time and other tasks can wake the tasks here. A task that a thread has woken and not queued yet
    /// counts as one that the thread may wake.
    fn sleep_for_tasks(&self) -> bool {
        let mut all = true;
        // SAFETY: this is the only worker of the runtime, and it runs no task now.
        self.block.registry.walk(|task| all &= unsafe { task.sleeps_for_tasks() });
        all
    }

    /// Notes a deadlock and cancels the main tasks. Returns true if that made work.
    fn end_deadlock(&self) -> bool {
        let mains: Vec<Task> =
            self.shared.tasks().into_iter().filter(|task| task.header().is_main()).collect();
        let is_cancelled = self.shared.virtual_time.has_deadlock() && !mains.is_empty();
        // The end of the runtime has cancelled the tasks here, or the deadlock the main tasks.
        if self.told.get() || is_cancelled {
            self.tell_stuck();
            return false;
        }
        // Without a main task the owner of the runtime may end it, which cancels all tasks.
        if !mains.is_empty() {
            self.shared.virtual_time.set_deadlock(self.describe_waits());
            mains.iter().for_each(Task::cancel);
        }
        self.has_work()
    }

    /// Tells that no cancel has ended a deadlock: the simulation, if this is one, or once the user.
    fn tell_stuck(&self) {
        match &self.simulation {
            Some(simulation) => simulation.oracle.stuck(self.describe_waits()),
            None if self.told_stuck.replace(true) => {}
            None => say(format_args!(
                "all tasks sleep, no cancel ends what they wait for, and nothing is left that could wake one:{}",
                self.describe_waits()
            )),
        }
    }

    fn describe_waits(&self) -> String {
        describe(&self.shared, self.shared.tasks())
    }
}
