//! The first run of a task: on which worker, on which stack.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::base::clock;
use crate::coroutine::stop::Body;
use crate::scheduler::block::Block;
use crate::scheduler::current;
use crate::scheduler::stack_queue::STACK_RETRY;
use crate::scheduler::tuning::{MARGIN_DETACHED, MARGIN_HELD};
use crate::scheduler::worker::Worker;
use crate::stack::handle::Stack;
use crate::tasks::header::{Nature, TaskRef};
use crate::tasks::join_error::JoinError;
use crate::tasks::raw;
use crate::tasks::task::Task;

/// How many tasks a worker with armed timers gives to workers at rest in each [`GIFT_SPAN`].
///
/// A gift costs as much as a hundred spawns. Where tasks end soon the rest of them stay.
const GIFTS: u32 = 4;
const GIFT_SPAN: Duration = Duration::from_millis(1);

/// How many taken-back tasks in a queue cause their removal.
const MANY_TAKEN_BACK: usize = 64;

impl Worker {
    /// Gives an unstarted task its stack and its home worker.
    ///
    /// Returns false if it does not run here now.
    #[inline(never)]
    pub(crate) fn start(&self, task: TaskRef) -> bool {
        if self.place_elsewhere(task) {
            return false;
        }
        self.tracer.time_passes();
        if self.lacks_stacks() {
            self.stackless.borrow_mut().push_back(task);
            return false;
        }
        match self.take_stack(task) {
            Ok(stack) => {
                self.lacking_since.set(None);
                self.start_on(stack, task, if self.is_unwanted(task) { never_entered } else { body })
            }
            Err(error) => {
                self.found_no_stack(task, error);
                false
            }
        }
    }

    /// Gives an unstarted task its stack. Returns false if its owner has taken it back: then it has ended.
    fn start_on(&self, stack: Stack, task: TaskRef, body: Body) -> bool {
        let is_claimed = claims(task);
        if is_claimed {
            self.bind(task, stack, body);
        } else {
            self.take_back(task, stack);
            self.ended(task);
        }
        is_claimed
    }

    /// Drops a task that its owner has taken back; returns false for other tasks.
    pub(crate) fn drops_taken_back(&self, task: TaskRef) -> bool {
        let is_taken_back = is_taken_back(task);
        if is_taken_back {
            self.ended(task);
        }
        is_taken_back
    }

    /// Counts a task of the stealable queue that was taken back, and drops all such tasks when they
    /// are many.
    ///
    /// Otherwise a worker that never comes to its queue would keep their memory.
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

    /// Returns true if the task is not to enter its body.
    fn is_unwanted(&self, task: TaskRef) -> bool {
        let header = task.header();
        (header.cancel_flags.is_cancelled() && !header.runs_in_any_case())
            || self.is_cancelled_for_shutdown(task)
    }

    /// Returns true if the end of the runtime came before the task's start.
    ///
    /// Sheltered tasks start anyway.
    fn is_cancelled_for_shutdown(&self, task: TaskRef) -> bool {
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

    /// Takes a stack for code of the running task that needs a big one.
    ///
    /// If there is none, it asks the other workers: later tries may find one.
    pub(crate) fn take_stack_of(&self, size: usize) -> io::Result<Stack> {
        self.stacks.borrow_mut().take_sized(size).inspect_err(|_| self.ask_for_stacks())
    }

    /// Leaves the queue for stacks, unless tasks wait here to start.
    pub(crate) fn stop_asking_for_stacks(&self) {
        if !self.lacks_stacks() {
            self.shared.stack_queue.leave(self.block.index);
        }
    }

    /// Gives a stack back. If other workers wait for it, this one waits behind them for the next.
    pub(crate) fn give_stack(&self, stack: Stack) {
        self.stacks.borrow_mut().give(stack);
        // Where nothing but the system limits stacks, a stack may be of no use to a worker that waits.
        if self.share_stacks() && self.shared.stacks.is_limited() {
            self.await_stack();
            self.lacking_since.set(None);
        }
        self.trim_owed.set(true);
    }

    /// Gives the unused stacks of this worker to the workers that wait for some.
    ///
    /// Returns true if it gave some, and none is left over.
    #[inline]
    pub(crate) fn share_stacks(&self) -> bool {
        self.shared.stack_queue.is_led_by_another(self.block.index) && self.give_up_stacks()
    }

    #[cold]
    fn give_up_stacks(&self) -> bool {
        let mut stacks = self.stacks.borrow_mut();
        let given = stacks.len();
        if given == 0 {
            return false;
        }
        stacks.empty();
        let now = clock::machine();
        let next = (0..given).map_while(|_| self.shared.stack_queue.next(now));
        let told = next.inspect(|index| self.shared.blocks[*index].unpark_if_parked()).count();
        told == given
    }

    fn bind(&self, task: TaskRef, stack: Stack, body: Body) {
        let header = task.header();
        header.set_started();
        let slot = self.block.registry.enter(task);
        header.set_registered(self.block.index, slot);
        header.coroutine.bind(stack, task.argument(), body);
    }

    pub(crate) fn take_back(&self, task: TaskRef, stack: Stack) {
        match task.header().on_reserve.get() {
            true => self.reserve.borrow_mut().give(stack),
            false => self.give_stack(stack),
        }
    }

    /// Sends an unstarted task to another worker if that keeps timers here on time, or balances the
    /// load.
    fn place_elsewhere(&self, task: TaskRef) -> bool {
        let header = task.header();
        // The worker that a task was placed at runs it.
        if !self.has_peers || header.nature.is_local() || ptr::eq(header.home(), self.block.as_home()) {
            return false;
        }
        // A thief may place it again for the sake of timers: it may be the giver, which takes it back from a worker that
        // does not come to it.
        let is_new = header.home().is_null();
        let other = self.peer_at_rest().or_else(|| is_new.then(|| self.less_loaded_peer(task)).flatten());
        let Some(other) = other else { return false };
        header.set_home(other.as_home());
        other.placed.push(task);
        // The fence of the store-load pair with that worker's park. If it is stuck in a task,
        // thieves take this one.
        fence(Ordering::SeqCst);
        other.unpark_if_parked();
        self.tell_thieves();
        true
    }

    /// Returns a worker at rest, if this one has armed timers: a task that computes would make them late.
    fn peer_at_rest(&self) -> Option<&Arc<Block>> {
        if self.wheel.is_empty() || !self.shared.idle.has_idle() {
            return None;
        }
        let peer = self.peers().find(|block| block.is_resting())?;
        let now = clock::machine();
        let (given, since) = match self.gifts.get() {
            (_, since) if now.saturating_duration_since(since) >= GIFT_SPAN => (0, now),
            gifts => gifts,
        };
        self.gifts.set((given + 1, since));
        (given < GIFTS).then_some(peer)
    }

    /// Returns a random other worker if it has less to do, and the task may be far from its spawner.
    ///
    /// Started tasks stay, so their start decides the balance. A task that is likely to outlive its
    /// spawner goes to the better of two workers. A task that is being joined runs here, where the
    /// joiner is.
    fn less_loaded_peer(&self, task: TaskRef) -> Option<&Arc<Block>> {
        let header = task.header();
        if header.nature == Nature::Forked || header.join.is_awaited() {
            return None;
        }
        let abandoned = header.join.is_detached() && !header.vtable.is_awaited;
        let margin = if abandoned { MARGIN_DETACHED } else { MARGIN_HELD };
        let other = self.peer(1 + self.random.below(self.shared.blocks.len() - 1));
        // Waiting tasks are load of a moment later. Without them a burst would go there as a whole.
        let has_less = self.block.registry.load() >= other.registry.load() + other.waiting() + margin;
        has_less.then_some(other)
    }

    /// Returns the other workers, beginning with the next one.
    pub(super) fn peers(&self) -> impl Iterator<Item = &Arc<Block>> {
        (1..self.shared.blocks.len()).map(|step| self.peer(step))
    }

    /// Returns the worker that comes so many steps after this one.
    fn peer(&self, step: usize) -> &Arc<Block> {
        let blocks = &self.shared.blocks;
        &blocks[(self.block.index + step) % blocks.len()]
    }

    /// Lets no task start here before the tasks that wait for a stack, and tries for them again soon.
    ///
    /// A task behind a refused one has waited as long.
    fn await_stack(&self) {
        let now = clock::machine();
        self.next_retry.set(now + STACK_RETRY);
        self.lacking_since.set(self.lacking_since.get().or(Some(now)));
        if !self.lacks_stack.replace(true) {
            self.keep_started();
        }
        self.ask_for_stacks();
    }

    /// Moves the started tasks from the stealable queue, which waits for stacks, to the local one.
    /// They may be the tasks that hold the stacks.
    fn keep_started(&self) {
        if !self.may_migrate.replace(false) {
            return;
        }
        for _ in 0..self.stealable.len() {
            let Some(task) = self.stealable.pop() else { break };
            if task.header().is_started() {
                self.block.counters.taken.add(1);
                self.local.push(task);
            } else {
                self.stealable.push(task);
            }
        }
        // Thieves may have come while those were out that are back.
        self.tell_thieves();
    }

    #[inline]
    pub(crate) fn lacks_stacks(&self) -> bool {
        self.lacks_stack.get()
    }

    /// Enters the queue for stacks, and wakes sleeping workers to look for stacks that they do not use.
    fn ask_for_stacks(&self) {
        self.shared.stack_queue.enter(self.block.index);
        self.peers().for_each(|block| block.unpark_if_parked());
    }

    /// Tries again for the tasks that wait for a stack: when one came back here or it is this worker's
    /// turn, and now and then.
    pub(crate) fn retry_stackless(&self) {
        let now = clock::machine();
        let is_due = now >= self.next_retry.get();
        let has_turn = || self.shared.stack_queue.admits(self.block.index, is_due, now);
        if self.stacks.borrow().has_any() || has_turn() {
            while self.retry_first() {}
        }
    }

    /// Tries for the first task that waits for a stack. Returns true if it waits no more, and the next
    /// one may find a stack as well.
    fn retry_first(&self) -> bool {
        let Some(task) = self.stackless.borrow_mut().pop_front() else {
            self.shared.stack_queue.leave(self.block.index);
            self.lacks_stack.set(false);
            return false;
        };
        if is_taken_back(task) {
            self.ended(task);
            return true;
        }
        match self.take_stack(task) {
            Ok(stack) => {
                self.shared.stack_queue.leave(self.block.index);
                if self.start_on(stack, task, body_in_turn) {
                    // The tasks behind it have only waited in the queue.
                    self.lacking_since.set(Some(clock::machine()));
                    self.local.push(task);
                }
                true
            }
            Err(error) => {
                self.found_no_stack(task, error);
                false
            }
        }
    }

    /// Lets the next task to start wait for a stack, or ends it before it ran when none came free for
    /// too long.
    fn found_no_stack(&self, task: TaskRef, error: io::Error) {
        // Waiting cannot help where the size fits into no address space.
        let is_hopeless = error.kind() != io::ErrorKind::OutOfMemory;
        if is_hopeless || self.is_cancelled_for_shutdown(task) || self.waited_enough() {
            self.end_unrun(task, error);
        } else {
            self.wait_first(task);
        }
    }

    /// Puts a task before all that wait for a stack.
    fn wait_first(&self, task: TaskRef) {
        self.stackless.borrow_mut().push_front(task);
        self.await_stack();
    }

    /// Returns true if no stack came free for too long.
    fn waited_enough(&self) -> bool {
        let since = self.lacking_since.get();
        since.is_some_and(|since| {
            clock::machine().saturating_duration_since(since) >= self.shared.config.stack_patience
        })
    }

    /// Ends a task for which there is no stack. Lets a forked one run, since its owner may wait for it.
    ///
    /// Either happens on a stack beyond the limits. The worker keeps one from its start on, so that
    /// tasks can end even if the system has no more memory.
    fn end_unrun(&self, task: TaskRef, error: io::Error) {
        let is_forked = task.header().nature == Nature::Forked;
        let stack = self.reserve.borrow_mut().take();
        match stack {
            Ok(stack) => {
                task.header().on_reserve.set(true);
                let body: Body = match is_forked {
                    true => body_in_turn,
                    false if self.is_cancelled_for_shutdown(task) => never_entered,
                    false => {
                        self.lacking.borrow_mut().push_back(error);
                        never_started
                    }
                };
                if self.start_on(stack, task, body) {
                    self.local.push(task);
                }
            }
            // Its owner may wait for it, and so never give its own stack back.
            Err(error) if is_forked => {
                _ = raw::take_back(task, || JoinError::not_started(&Task::counted(task), error));
                self.ended(task);
            }
            // Other tasks run on the reserve, and will give it back.
            Err(_) => self.wait_first(task),
        }
    }
}

/// Returns true if the owner of an unstarted task has taken it back.
#[inline]
fn is_taken_back(task: TaskRef) -> bool {
    let header = task.header();
    header.nature == Nature::Forked && header.cancel_flags.is_begun()
}

/// Claims an unstarted task for its start. Returns false if its owner has taken it back.
#[inline]
fn claims(task: TaskRef) -> bool {
    let header = task.header();
    header.nature != Nature::Forked || header.cancel_flags.begin()
}

/// Runs the first frame of a task.
fn body(task: NonNull<()>) {
    let task = TaskRef::of_argument(task);
    // SAFETY: the task has not run, and this is its own stack.
    unsafe { (task.header().vtable.run)(task) };
}

/// Runs the first frame of a task that got its stack early: it may have been cancelled meanwhile.
fn body_in_turn(task: NonNull<()>) {
    match current::with_worker(|worker| worker.is_unwanted(TaskRef::of_argument(task))) {
        Some(true) => never_entered(task),
        _ => body(task),
    }
}

/// Runs the first frame of a task that was cancelled before it started: drops its closure,
/// uncalled.
fn never_entered(task: NonNull<()>) {
    let task = TaskRef::of_argument(task);
    // Perhaps by the end of the runtime, which its worker noticed before it took the task.
    task.header().cancel_flags.set_cancelled_for_shutdown();
    let error = JoinError::cancelled(&Task::counted(task));
    // SAFETY: as in `body`.
    unsafe { (task.header().vtable.discard)(task, error) };
}

/// Runs the first frame of a task that found no stack of its own.
fn never_started(task: NonNull<()>) {
    let task = TaskRef::of_argument(task);
    let lacking = current::with_worker(|worker| worker.lacking.borrow_mut().pop_front()).flatten();
    let lacking = lacking.expect("an error is queued with each such task");
    let error = JoinError::not_started(&Task::counted(task), lacking);
    // SAFETY: as in `body`.
    unsafe { (task.header().vtable.discard)(task, error) };
}
