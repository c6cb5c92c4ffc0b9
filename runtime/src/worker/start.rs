//! The first run of a task: on which worker, on which stack.

use std::io;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::Worker;
use crate::coroutine::{Coroutine, Suspender};
use crate::stack::Stack;
use crate::task::{JoinError, Nature, Task, TaskRef};

/// How many more tasks than another worker this one may have before it sends an un-started task there.
const MARGIN_DETACHED: usize = 1;
/// The same for a task whose handle somebody keeps: it may well be joined in a moment.
const MARGIN_HELD: usize = 8;

/// A task that found no stack waits this long for one to come back before it ends un-run.
const PATIENCE: Duration = Duration::from_secs(1);

impl Worker {
    /// Gives an un-started task its stack and its home. False if it does not run here now.
    pub(super) fn start(&self, task: TaskRef) -> bool {
        if self.place_elsewhere(task) {
            return false;
        }
        match self.take_stack(task) {
            Ok(stack) => {
                let cancelled = task.header().is_cancelled() || self.shared.is_ending();
                self.bind(task, stack, if cancelled { never_entered } else { body });
                true
            }
            Err(_) => {
                self.starve(task);
                false
            }
        }
    }

    fn take_stack(&self, task: TaskRef) -> io::Result<Stack> {
        let mut stacks = self.stacks.borrow_mut();
        match task.header().stack_size() {
            None => stacks.take(),
            Some(size) => stacks.take_sized(size),
        }
    }

    fn bind(&self, task: TaskRef, stack: Stack, body: fn(TaskRef, &Suspender)) {
        let header = task.header();
        header.set_started();
        header.extent.set(stack.extent());
        header.registered.set(self.block.index);
        header.slot.set(self.block.registry.enter(task));
        // SAFETY: an un-started task is the one's who took it out of a queue.
        unsafe { *header.coroutine.get() = Some(Coroutine::new(stack, task, body)) };
    }

    pub(super) fn take_back(&self, task: TaskRef, stack: Stack) {
        let pool = if task.header().on_reserve.get() { &self.reserve } else { &self.stacks };
        pool.borrow_mut().give(stack);
        self.trim_owed.set(true);
    }

    /// Started tasks stay, so where they start decides the balance. A task that is likely to outlive its spawner goes to
    /// the better of two workers; one that is being joined runs here, where the joiner is.
    fn place_elsewhere(&self, task: TaskRef) -> bool {
        let header = task.header();
        let workers = self.shared.blocks.len();
        if workers == 1 || header.nature == Nature::Local || header.join.is_awaited() {
            return false;
        }
        // It is placed once: whoever takes it then runs it.
        if !header.home().is_null() {
            return false;
        }
        let margin = if header.join.is_detached() { MARGIN_DETACHED } else { MARGIN_HELD };
        let other = &self.shared.blocks[self.other_worker(workers, task)];
        if self.block.registry.load() < other.registry.load() + margin {
            return false;
        }
        header.set_home(other);
        other.placed.push(task);
        // The fence of the store-load pair with the other's park. Should it be stuck in a task, thieves see to this one.
        fence(Ordering::SeqCst);
        other.unpark_if_parked();
        self.tell_thieves();
        true
    }

    /// Some worker that is not this one, another for each task.
    fn other_worker(&self, workers: usize, task: TaskRef) -> usize {
        let step = 1 + (task.header().id as usize) % (workers - 1);
        (self.block.index + step) % workers
    }

    /// Puts a task that found no stack aside. Nothing starts before it.
    fn starve(&self, task: TaskRef) {
        let now = Instant::now();
        self.starved.borrow_mut().push_back((task, now));
        if self.starved_since.get().is_none() {
            self.starved_since.set(Some(now));
        }
        self.ask_for_stacks();
    }

    /// Others may sleep over warm stacks that nobody uses. The failed take has left word; this makes them look.
    fn ask_for_stacks(&self) {
        let others = self.shared.blocks.iter().filter(|block| block.index != self.block.index);
        others.for_each(|block| block.unpark_if_parked());
    }

    /// Tries again for the first of those that found no stack; ends it un-run when none came free for too long.
    pub(super) fn feed_starved(&self) {
        let Some((task, since)) = self.starved.borrow().front().copied() else {
            return self.starved_since.set(None);
        };
        match self.take_stack(task) {
            Ok(stack) => {
                self.take_back(task, stack);
                self.unstarve(Instant::now());
                self.local.push(task);
            }
            Err(error) if self.shared.is_ending() || self.waited_enough(since) => {
                self.unstarve(self.starved_since.get().unwrap_or(since));
                self.end_unrun(task, error);
            }
            Err(_) => self.ask_for_stacks(),
        }
    }

    /// Takes the first one out; `fed` is when a stack was last found.
    fn unstarve(&self, fed: Instant) {
        let mut starved = self.starved.borrow_mut();
        starved.pop_front();
        self.starved_since.set(if starved.is_empty() { None } else { Some(fed) });
    }

    fn waited_enough(&self, since: Instant) -> bool {
        self.starved_since.get().is_some_and(|fed| fed.max(since).elapsed() >= PATIENCE)
    }

    /// Ends a task for which there is no stack. Its closure's destructors run on one beyond the limits.
    fn end_unrun(&self, task: TaskRef, error: io::Error) {
        let stack = self.reserve.borrow_mut().take();
        match stack {
            Ok(stack) => {
                task.header().on_reserve.set(true);
                task.header().failure.set(Some(Box::new(error)));
                self.bind(task, stack, if self.shared.is_ending() { never_entered } else { never_started });
                self.local.push(task);
            }
            // The system itself has no more memory: wait for some.
            Err(_) => self.starve(task),
        }
    }
}

/// A task's first frame.
fn body(task: TaskRef, suspender: &Suspender) {
    task.header().set_suspender(suspender);
    // SAFETY: the task has not run, and this is its own stack.
    unsafe { (task.header().vtable.run)(task) };
}

/// The same for a task that was cancelled before it started: its closure is dropped, not entered.
fn never_entered(task: TaskRef, suspender: &Suspender) {
    task.header().set_suspender(suspender);
    let error = JoinError::cancelled(&Task::counted(task));
    // SAFETY: as in `body`.
    unsafe { (task.header().vtable.discard)(task, error) };
}

/// The same for a task that found no stack of its own.
fn never_started(task: TaskRef, suspender: &Suspender) {
    task.header().set_suspender(suspender);
    let lacking = task.header().failure.take().expect("set before the task was bound");
    let error = JoinError::not_started(&Task::counted(task), *lacking);
    // SAFETY: as in `body`.
    unsafe { (task.header().vtable.discard)(task, error) };
}
