//! The first run of a task: on which worker, on which stack.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::base::clock;
use crate::coroutine::stop::Body;
use crate::scheduler::current;
use crate::scheduler::tuning::{MARGIN_DETACHED, MARGIN_HELD};
use crate::scheduler::worker::Worker;
use crate::stack::handle::Stack;
use crate::tasks::header::{Nature, TaskRef};
use crate::tasks::join_error::JoinError;
use crate::tasks::raw;
use crate::tasks::task::Task;

/// While a task waits for a stack to come back its worker, or the task itself, tries again so often.
pub(crate) const FEED: Duration = Duration::from_millis(2);

/// Taken back tasks in a queue from which on they are dropped.
const MANY_TAKEN_BACK: usize = 64;

impl Worker {
    /// Gives an un-started task its stack and its home. False if it does not run here now.
    #[inline(never)]
    pub(crate) fn start(&self, task: TaskRef) -> bool {
        if self.drops_taken_back(task) || self.place_elsewhere(task) {
            return false;
        }
        match self.take_stack(task) {
            Ok(stack) if !claims(task) => {
                self.give_stack(stack);
                self.ended(task);
                false
            }
            Ok(stack) => {
                if !self.is_starving() {
                    self.shortage.set(None);
                }
                self.bind(task, stack, if self.is_unwanted(task) { never_entered } else { body });
                true
            }
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                self.starve(task);
                false
            }
            // No wait would mend it: the size fits into no address space.
            Err(error) => {
                self.end_unrun(task, error);
                false
            }
        }
    }

    /// Lets go of a task that its owner has taken back; false if that is not so.
    fn drops_taken_back(&self, task: TaskRef) -> bool {
        let is_taken_back = is_taken_back(task);
        if is_taken_back {
            self.ended(task);
        }
        is_taken_back
    }

    /// Counts a task of the stealable queue that was taken back, and drops all such tasks when they are many. A worker
    /// that never comes to its queue would keep their memory otherwise.
    pub(crate) fn note_taken_back(&self) {
        let count = self.taken_back.get() + 1;
        self.taken_back.set(count);
        if count < MANY_TAKEN_BACK || count < self.stealable.len() / 2 {
            return;
        }
        self.taken_back.set(0);
        for _ in 0..self.stealable.len() {
            let Some(task) = self.stealable.pop() else { break };
            if !self.drops_taken_back(task) {
                self.stealable.push(task);
            }
        }
        // Thieves may have come while those were out that are back.
        if !self.stealable.is_empty() {
            self.tell_thieves();
        }
    }

    /// True if the task is not to enter its body.
    fn is_unwanted(&self, task: TaskRef) -> bool {
        let header = task.header();
        (header.marks.is_cancelled() && !header.runs_in_any_case()) || self.is_overtaken(task)
    }

    /// True if the end of the runtime came before the task's start. Somebody counts on one that is sheltered.
    fn is_overtaken(&self, task: TaskRef) -> bool {
        self.shared.is_ending() && !task.header().is_sheltered()
    }

    #[inline(always)]
    fn take_stack(&self, task: TaskRef) -> io::Result<Stack> {
        let mut stacks = self.stacks.borrow_mut();
        match task.header().stack_size() {
            None => stacks.take(),
            Some(size) => stacks.take_sized(size),
        }
    }

    /// A stack for code of the running task that needs a big one. Where there is none the others are asked: later tries may
    /// find one.
    pub(crate) fn take_stack_of(&self, size: usize) -> io::Result<Stack> {
        self.stacks.borrow_mut().take_sized(size).inspect_err(|_| self.unpark_others())
    }

    /// Gives such a stack back.
    pub(crate) fn give_stack(&self, stack: Stack) {
        let mut stacks = self.stacks.borrow_mut();
        stacks.give(stack);
        if stacks.answer() {
            self.unpark_others();
        }
        self.trim_owed.set(true);
        self.came_back.set(true);
    }

    fn bind(&self, task: TaskRef, stack: Stack, body: Body) {
        let header = task.header();
        header.set_started();
        // SAFETY: the registry of this worker.
        let slot = unsafe { self.block.registry.enter(task) };
        header.set_registered(self.block.index, slot);
        header.coroutine.bind(stack, task.argument(), body);
    }

    /// Gives a task its stack before its turn comes.
    pub(crate) fn bind_in_turn(&self, task: TaskRef, stack: Stack) {
        self.bind(task, stack, body_in_turn);
    }

    pub(crate) fn take_back(&self, task: TaskRef, stack: Stack) {
        match task.header().on_reserve.get() {
            true => {
                self.reserve.borrow_mut().give(stack);
                self.came_back.set(true);
            }
            false => self.give_stack(stack),
        }
    }

    /// Started tasks stay, so where they start decides the balance. A task that is likely to outlive its spawner goes to
    /// the better of two workers; one that is being joined runs here, where the joiner is.
    fn place_elsewhere(&self, task: TaskRef) -> bool {
        let header = task.header();
        let workers = self.shared.blocks.len();
        if workers == 1
            || header.nature.is_local()
            || header.nature == Nature::Forked
            || header.join.is_awaited()
        {
            return false;
        }
        // It is placed once: whoever takes it then runs it.
        if !header.home().is_null() {
            return false;
        }
        let abandoned = header.join.is_detached() && !header.vtable.is_awaited;
        let margin = if abandoned { MARGIN_DETACHED } else { MARGIN_HELD };
        let other = &self.shared.blocks[self.other_worker(workers)];
        // What waits there is its load of a moment later; without it a burst would go there as a whole.
        if self.block.registry.load() < other.registry.load() + other.waiting() + margin {
            return false;
        }
        header.set_home(other.as_home());
        other.placed.push(task);
        // The fence of the store-load pair with the other's park. Should it be stuck in a task, thieves see to this one.
        fence(Ordering::SeqCst);
        other.unpark_if_parked();
        self.tell_thieves();
        true
    }

    /// Some worker that is not this one, by chance.
    fn other_worker(&self, workers: usize) -> usize {
        let step = 1 + self.random.below(workers - 1);
        (self.block.index + step) % workers
    }

    /// Puts a task that found no stack aside. Nothing starts before it.
    fn starve(&self, task: TaskRef) {
        self.starved.borrow_mut().push_back(task);
        self.note_shortage();
        self.ask_for_stacks();
    }

    /// Notes that a task waits for a stack. One that follows a refused one has waited behind that, and so as long.
    fn note_shortage(&self) {
        if self.starving.replace(true) {
            return;
        }
        self.shortage.set(self.shortage.get().or_else(|| Some(clock::now())));
        self.keep_started();
    }

    /// Moves the started tasks from the stealable queue, which waits for stacks, to the local one. They may be the very
    /// ones that have the stacks.
    fn keep_started(&self) {
        if !self.may_migrate.replace(false) {
            return;
        }
        for _ in 0..self.stealable.len() {
            let Some(task) = self.stealable.pop() else { break };
            if task.header().is_started() {
                self.count_taken();
                self.local.push(task);
            } else {
                self.stealable.push(task);
            }
        }
        // Thieves may have come while those were out that are back.
        self.tell_thieves();
    }

    #[inline]
    pub(crate) fn is_starving(&self) -> bool {
        self.starving.get()
    }

    fn ask_for_stacks(&self) {
        self.next_feed.set(clock::now() + FEED);
        self.unpark_others();
    }

    /// Has sleeping workers look for stacks that they do not use, or for one that came back for them.
    pub(crate) fn unpark_others(&self) {
        let others = self.shared.blocks.iter().filter(|block| block.index != self.block.index);
        others.for_each(|block| block.unpark_if_parked());
    }

    /// Tries again for the first of those that found no stack, when one came back here, or now and then.
    pub(crate) fn feed_starved(&self) {
        if self.came_back.replace(false) || clock::now() >= self.next_feed.get() {
            self.feed_first();
        }
    }

    /// Tries for the first one; ends it un-run when no stack came free for too long.
    pub(crate) fn feed_first(&self) {
        let Some(task) = self.starved.borrow().front().copied() else { return self.starving.set(false) };
        if is_taken_back(task) {
            self.unstarve();
            return self.ended(task);
        }
        match self.take_stack(task) {
            Ok(stack) if !claims(task) => {
                self.give_stack(stack);
                self.unstarve();
                self.ended(task);
            }
            Ok(stack) => {
                self.bind_in_turn(task, stack);
                self.unstarve();
                // Those behind it have waited for their turn only.
                self.shortage.set(Some(clock::now()));
                self.local.push(task);
            }
            Err(error) if self.is_overtaken(task) || self.waited_enough() => {
                self.unstarve();
                self.end_unrun(task, error);
            }
            Err(_) => self.ask_for_stacks(),
        }
    }

    /// Takes the first one out.
    fn unstarve(&self) {
        let mut starved = self.starved.borrow_mut();
        starved.pop_front();
        self.starving.set(!starved.is_empty());
    }

    /// True if no stack came free for too long.
    fn waited_enough(&self) -> bool {
        let since = self.shortage.get();
        since.is_some_and(|since| {
            clock::now().saturating_duration_since(since) >= self.shared.config.stack_patience
        })
    }

    /// Ends a task for which there is no stack. Lets a forked one run, since its owner may wait for it.
    ///
    /// Either happens on a stack beyond the limits. One of these is kept since the worker started, so that there is an end
    /// also where the system itself has no more memory.
    fn end_unrun(&self, task: TaskRef, error: io::Error) {
        let is_forked = task.header().nature == Nature::Forked;
        let stack = self.reserve.borrow_mut().take();
        match stack {
            Ok(stack) if !claims(task) => {
                self.reserve.borrow_mut().give(stack);
                self.ended(task);
            }
            Ok(stack) => {
                task.header().on_reserve.set(true);
                if is_forked {
                    self.bind_in_turn(task, stack);
                } else if self.is_overtaken(task) {
                    self.bind(task, stack, never_entered);
                } else {
                    self.bind(task, stack, never_started);
                    self.lacking.borrow_mut().push_back(error);
                }
                self.local.push(task);
            }
            // Its owner may wait for it, and so never give back the stack that the owner has.
            Err(error) if is_forked => {
                _ = raw::take_back(task, || JoinError::not_started(&Task::counted(task), error));
                self.ended(task);
            }
            // Others are on it, and will give it back.
            Err(_) => {
                self.starved.borrow_mut().push_front(task);
                self.note_shortage();
                self.next_feed.set(clock::now() + FEED);
            }
        }
    }
}

/// True if the owner of an un-started task has taken it back.
#[inline]
fn is_taken_back(task: TaskRef) -> bool {
    let header = task.header();
    header.nature == Nature::Forked && header.marks.is_begun()
}

/// Claims an un-started task for its start. False if its owner has taken it back.
#[inline]
fn claims(task: TaskRef) -> bool {
    let header = task.header();
    header.nature != Nature::Forked || header.marks.begin()
}

/// The first frame of a task.
fn body(task: NonNull<()>) {
    let task = TaskRef::of_argument(task);
    // SAFETY: the task has not run, and this is its own stack.
    unsafe { (task.header().vtable.run)(task) };
}

/// The first frame of a task whose stack came before its turn: it may have been cancelled meanwhile.
fn body_in_turn(task: NonNull<()>) {
    match current::with_worker(|worker| worker.is_unwanted(TaskRef::of_argument(task))) {
        Some(true) => never_entered(task),
        _ => body(task),
    }
}

/// The first frame of a task that was cancelled before it started: its closure is dropped, not called.
fn never_entered(task: NonNull<()>) {
    let task = TaskRef::of_argument(task);
    // Perhaps by the end of the runtime, which its worker noticed before it took the task.
    task.header().marks.set_overtaken();
    let error = JoinError::cancelled(&Task::counted(task));
    // SAFETY: as in `body`.
    unsafe { (task.header().vtable.discard)(task, error) };
}

/// The first frame of a task that found no stack of its own.
fn never_started(task: NonNull<()>) {
    let task = TaskRef::of_argument(task);
    let lacking = current::with_worker(|worker| worker.lacking.borrow_mut().pop_front()).flatten();
    let lacking = lacking.expect("an error is queued with each such task");
    let error = JoinError::not_started(&Task::counted(task), lacking);
    // SAFETY: as in `body`.
    unsafe { (task.header().vtable.discard)(task, error) };
}
