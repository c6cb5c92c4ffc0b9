//! The worker loop: picks the next task, runs it, and handles its stop.

use std::hint::cold_path;
use std::thread;
use std::time::Duration;

use crate::base::abort::{Bomb, say};
use crate::base::clock;
use crate::coroutine::stop::{Resumed, Stop};
use crate::scheduler::block::Block;
use crate::scheduler::budget::OPERATIONS;
use crate::scheduler::current;
use crate::scheduler::event::Event;
use crate::scheduler::panics;
use crate::scheduler::tuning::{STARTS, TICK_PICKS};
use crate::scheduler::worker::{Round, Side, Worker};
use crate::tasks::header::TaskRef;
use crate::tasks::task::Task;

impl Worker {
    /// Runs tasks until the runtime has ended.
    pub(crate) fn run(&self) {
        let entered = current::enter(self);
        // A panic of the runtime itself would leave tasks behind that borrow from each other, so it
        // aborts.
        let bomb = Bomb::of_runtime("a worker has panicked");
        // The caller may make its thread a worker in a destructor while it unwinds. Tasks must not
        // count its panic.
        let callers = panics::take_out();
        self.take_up_track();
        match &self.simulation {
            None => self.run_each(|| self.next()),
            Some(simulation) => self.run_each(|| self.next_simulated(simulation)),
        }
        panics::put_back(callers);
        bomb.defuse();
        drop(entered);
    }

    /// Runs what `next` returns, until the runtime has ended.
    #[inline(always)]
    fn run_each(&self, next: impl Fn() -> Option<TaskRef>) {
        loop {
            match next() {
                Some(task) => self.execute(task),
                None if self.rest() => {}
                None => break,
            }
        }
    }

    #[inline(always)]
    fn next(&self) -> Option<TaskRef> {
        self.count_pick();
        if !self.block.inbox.is_empty() {
            cold_path();
            self.take_inbox();
        }
        if !self.block.cancelled.is_empty() {
            cold_path();
            self.check_cancelled();
        }
        match self.next_in_round() {
            Some(task) => Some(task),
            None => {
                cold_path();
                self.next_from_others()
            }
        }
    }

    /// Counts a pick, and runs the tick if it is due.
    #[inline(always)]
    pub(super) fn count_pick(&self) {
        let picks = self.picks.get().wrapping_add(1);
        self.picks.set(picks);
        if picks == self.next_tick.get() {
            cold_path();
            self.next_tick.set(picks.wrapping_add(TICK_PICKS));
            self.tick();
        }
    }

    /// Takes the next task, alternating between started and unstarted tasks.
    ///
    /// A round of unstarted tasks has all tasks that wait when it begins. The round of started tasks
    /// that follows has the tasks that were ready by then. So a task that starts in the former and
    /// yields stays behind the tasks that it has spawned. A yielding task thus lets all tasks run that
    /// were ready or spawned before, and neither kind starves the other.
    ///
    /// A long round of unstarted tasks takes time. So tasks that the driver or a timer wakes in such
    /// a round move to the front of the queue, and take all but one of [`STARTS`] picks. Migratable
    /// tasks do not: they are queued with the unstarted ones.
    fn next_in_round(&self) -> Option<TaskRef> {
        // While no task waits to start there is nothing to alternate with.
        if self.round.get().is_over() && self.stealable.is_empty() {
            return self.local.pop();
        }
        cold_path();
        self.next_by_turns()
    }

    #[inline(never)]
    fn next_by_turns(&self) -> Option<TaskRef> {
        for _ in 0..4 {
            let round = self.round.get();
            let (round, task) = if round.woken > 0 && !self.picks.get().is_multiple_of(STARTS) {
                (Round { woken: round.woken - 1, ..round }, self.local.pop())
            } else if round.left > 0 {
                let task = match round.side {
                    Side::Started => self.local.pop(),
                    Side::Unstarted => self.next_unstarted(),
                };
                (Round { left: round.left - 1, ..round }, task)
            } else {
                (round, None)
            };
            if task.is_some() {
                self.round.set(round);
                return task;
            }
            self.round.set(self.round_after(round));
        }
        None
    }

    fn round_after(&self, round: Round) -> Round {
        let ready = round.behind + round.woken;
        if round.side == Side::Unstarted && ready > 0 {
            return Round { side: Side::Started, left: ready, behind: 0, woken: 0 };
        }
        match self.stealable.len() {
            0 => Round { side: Side::Started, left: self.local.len(), behind: 0, woken: 0 },
            some => Round { side: Side::Unstarted, left: some, behind: self.local.len(), woken: 0 },
        }
    }

    /// Takes a task that waits to start here.
    ///
    /// Returns `None` while a task that came earlier waits for a stack.
    pub(super) fn next_unstarted(&self) -> Option<TaskRef> {
        if self.lacks_stacks() {
            return None;
        }
        self.pop_stealable()
    }

    /// Takes a task that other threads put here, or where any worker may take it.
    #[inline(never)]
    pub(super) fn next_from_others(&self) -> Option<TaskRef> {
        if self.lacks_stacks() {
            return None;
        }
        if let Some(task) = self.pop_placed() {
            return Some(task);
        }
        self.take_shared();
        self.pop_stealable()
    }

    #[cold]
    pub(crate) fn take_inbox(&self) {
        self.arrivals_begin();
        self.block.inbox.take(|task| {
            self.block.counters.arrivals.add(1);
            self.make_ready(task);
        });
        self.arrivals_end();
    }

    /// Moves tasks that other workers placed here into the stealable queue, where they take part in
    /// the rounds.
    fn take_placed(&self) {
        if !self.block.placed.is_empty() {
            self.block.placed.steal_batch(&self.stealable);
        }
    }

    /// Takes this worker's share of the shared queue. For a worker that has nothing else to start.
    pub(crate) fn take_shared(&self) -> bool {
        let injector = &self.shared.injector;
        !injector.is_empty() && injector.steal_share(self.shared.blocks.len(), &self.stealable)
    }

    /// Takes a full batch of the shared queue.
    ///
    /// For a busy worker: idle workers would have emptied that queue already.
    fn take_from_shared(&self) {
        if !self.shared.injector.is_empty() {
            self.shared.injector.steal_batch(&self.stealable);
        }
    }

    /// Runs the tick: checks everything that the picks do not check.
    #[cold]
    fn tick(&self) {
        self.coarse.set(clock::coarse());
        self.publish_counts();
        self.take_from_shared();
        self.take_placed();
        self.help();
        self.check_events();
        if self.lacks_stacks() {
            self.retry_stackless();
        }
        self.share_stacks();
        self.check_shutdown();
    }

    /// Makes ready the tasks that the driver and the timers wake.
    ///
    /// In a round of unstarted tasks they run before it is over, and the tasks of the last tick first.
    fn check_events(&self) {
        let round = self.round.get();
        if round.woken > 0 {
            return;
        }
        let mark = self.local.mark();
        self.poll_driver(Some(Duration::ZERO));
        self.expire_due();
        if round.is_of_unstarted() {
            self.round.set(Round { woken: self.local.bring_forward(mark), ..round });
        }
    }

    /// Takes tasks from a worker that does not come to them, if nothing waits to start here.
    fn help(&self) {
        if self.has_peers && self.stealable.is_empty() && !self.lacks_stacks() {
            let blocks = &self.shared.blocks;
            let stuck = self.peer_watch.borrow_mut().look(clock::machine(), blocks, self.block.index);
            if stuck.is_some_and(|index| self.take_from(&blocks[index])) {
                self.tell_thieves();
            }
        }
    }

    /// Moves about half of the waiting tasks of another worker to this one.
    ///
    /// Returns true if any came. A worker at rest has been woken for the tasks that were placed there,
    /// and takes them itself.
    pub(crate) fn take_from(&self, block: &Block) -> bool {
        let before = self.stealable.len();
        let stolen = block.thief.steal_half(&self.stealable);
        self.may_migrate.set(self.may_migrate.get() || stolen);
        let came = stolen || (!block.is_resting() && block.placed.steal_batch(&self.stealable));
        self.block.counters.steals.add(u64::from(came));
        if came {
            self.record(Event::Steals(block.index));
        }
        // Other thieves may have taken some of them already.
        self.block.counters.stolen.add(self.stealable.len().saturating_sub(before) as u64);
        came
    }

    /// Waits in the driver, makes ready the tasks it found, and returns how many events it had.
    pub(crate) fn poll_driver(&self, timeout: Option<Duration>) -> usize {
        let mut ready = self.ready.borrow_mut();
        if let Err(error) = self.driver.borrow_mut().park(timeout, &mut ready) {
            panic!("the driver of worker {} cannot wait any more: {error}", self.block.index);
        }
        self.block.counters.polls.add(1);
        self.tracer.time_passes();
        self.take_up_track();
        let events = ready.len();
        self.block.counters.events.add(events as u64);
        self.wake_batch(ready.drain());
        events
    }

    #[inline(always)]
    fn execute(&self, task: TaskRef) {
        if self.searching.get() {
            cold_path();
            self.found_work();
        }
        if !task.header().is_started() {
            cold_path();
            if !self.start(task) {
                self.block.counters.unrun.add(1);
                return;
            }
        }
        self.resume(task);
    }

    #[inline(always)]
    fn resume(&self, task: TaskRef) {
        if self.observed.is_any() {
            cold_path();
            return self.resume_observed(task);
        }
        self.resume_as::<false>(task);
    }

    #[inline(never)]
    fn resume_observed(&self, task: TaskRef) {
        self.resume_as::<true>(task);
    }

    #[inline(always)]
    fn resume_as<const OBSERVED: bool>(&self, task: TaskRef) {
        if let Some(next) = self.local.peek() {
            next.header().coroutine.prefetch();
        }
        let header = task.header();
        if header.is_owed() {
            cold_path();
            panics::put_back(header.take_owed());
        }
        header.set_home(self.block.as_home());
        self.budget.set(OPERATIONS - 1);
        self.context().set_running(Some(task));
        let begin = if OBSERVED { self.run_begins(task) } else { None };
        // SAFETY: the task is this worker's now and not running, so no other thread touches its
        // coroutine. A started task was bound, is in no queue after its end, and its coroutine
        // stays in its header.
        let resumed = unsafe { header.coroutine.resume() };
        self.context().set_running(None);
        if OBSERVED {
            self.run_ends(task, begin, resumed);
        }
        if thread::panicking() {
            cold_path();
            header.set_owed(panics::take_out());
        }
        // Not by `stop`, whose result the compiler may make before it is looked at.
        match resumed {
            Resumed::ASLEEP => self.settle(task),
            Resumed::YIELDED => self.queue(task),
            _ => {
                cold_path();
                self.stops_rarely(task, resumed, OBSERVED)
            }
        }
    }

    /// Handles the end of a task, and of a run in which the worker took up a recorder.
    #[inline(never)]
    fn stops_rarely(&self, task: TaskRef, resumed: Resumed, is_observed: bool) {
        if !is_observed {
            self.record_stop(task, resumed);
        }
        match resumed.stop() {
            Some(Stop::Yielded) => self.queue(task),
            Some(Stop::Asleep) => self.settle(task),
            None => self.finish(task),
        }
    }

    fn finish(&self, task: TaskRef) {
        let header = task.header();
        // SAFETY: the task is this worker's, which does not resume it now.
        if !unsafe { header.coroutine.has_ended() } {
            ended_on_the_wrong_stack(task);
        }
        self.end_cancels(task);
        // SAFETY: the task is this worker's and has ended.
        self.take_back(task, unsafe { header.coroutine.take_stack() });
        // Before the task leaves the registry: from then on another task may have its address.
        self.block.run.end();
        let (at, slot) = header.registered();
        self.shared.blocks[at].registry.leave(slot);
        self.ended(task);
        if self.lacks_stacks() {
            self.retry_stackless();
        }
    }

    /// Counts a task as ended and gives up the runtime's count of it.
    pub(crate) fn ended(&self, task: TaskRef) {
        // SAFETY: the runtime's count is this worker's to give up, as the task is in no queue and
        // no registry.
        unsafe { task.release() };
        self.block.counters.tasks.finish();
    }
}

/// Ends the process when the worker resumed one task and gets back the end of another.
///
/// Some libraries of generators record for each thread which one runs. If tasks of one worker wait inside
/// theirs, that record names the generator of another task, and a generator returns to that task's stack.
#[cold]
fn ended_on_the_wrong_stack(task: TaskRef) -> ! {
    say(format_args!(
        "a worker that ran {} got back the end of another task: code that switches stacks by itself, such as a \
         generator of another library, has returned to the wrong task; do not wait inside generators of which \
         several tasks use one each, aborting",
        Task::counted(task)
    ));
    std::process::abort()
}
