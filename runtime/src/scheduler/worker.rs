//! One worker: a thread, the tasks that are bound to it, and the loop that runs them.
//!
//! | file | holds |
//! | --- | --- |
//! | `run.rs` | the loop: the next task, its run, and what its stop means |
//! | `start.rs` | the first run of a task: where, on which stack |
//! | `stack_queue.rs` | the workers that wait for a stack |
//! | `rest.rs` | a worker without work: search, poll, park |
//! | `polling.rs` | decides whether to poll before a park |
//! | `looks.rs` | what a thief saw of the other workers' queues |
//! | `block.rs` | what other threads may reach of a worker |
//! | `inbox.rs` | tasks that other threads woke or spawned for it; pure, modelled |
//! | `home_worker.rs` | wakes and cancels of tasks that stay on it |
//! | `cancelled.rs` | tasks whose cancel flags it is to check; modelled |
//! | `park_state.rs` | whether it has to be woken; pure, modelled |
//! | `registry.rs` | the tasks bound to it |
//! | `task_table.rs` | its table, which a debugger can walk as well |
//! | `budget.rs` | the operation budget |
//! | `counters.rs`, `histogram.rs` | what it counts and measures |
//! | `observed.rs`, `samples.rs` | what it notes of single runs and wakes, by choice |
//! | `trace.rs`, `event.rs`, `event_ring.rs` | what it records for a trace; the ring is modelled |
//! | `simulated.rs` | which task runs next in a simulation |
//! | `jumps.rs` | when a paused clock moves |
//! | `tuning.rs` | how often it checks its sources, and when it sends tasks elsewhere |

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hint::cold_path;
use std::io;
use std::num::{NonZeroU64, NonZeroUsize};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use crate::base::clock;
use crate::base::payload::guarded;
use crate::base::random::Random;
use crate::scheduler::block::Block;
use crate::scheduler::counters::Counters;
use crate::scheduler::driver;
use crate::scheduler::driver::{Driver, Id, Ready};
use crate::scheduler::event::Event;
use crate::scheduler::looks::{Looks, PeerWatch};
use crate::scheduler::oracle::Simulation;
use crate::scheduler::polling::Polling;
use crate::scheduler::queue;
use crate::scheduler::queue::{Local, Stealable};
use crate::scheduler::samples::{Observed, Samples, Tracer};
use crate::scheduler::shared;
use crate::scheduler::shared::Shared;
use crate::scheduler::tuning;
use crate::stack::pool;
use crate::stack::pool::Pool;
use crate::tasks::context::Context;
use crate::tasks::header::{Nature, TaskRef};
use crate::timer::ring::NodeRef;
use crate::timer::wheel::Wheel;
use crate::waiter::word::Woke;

#[cfg(test)]
mod tests;

/// How many ids a worker reserves at once, so that a spawn touches no shared counter.
pub(super) const IDS: u64 = 1024;

/// The two kinds of ready task that alternate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Started,
    Unstarted,
}

/// Tells which kind of task the current round runs.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) side: Side,
    /// How many picks are left in the round.
    pub(super) left: usize,
    /// In a round of unstarted tasks: how many started ones were ready when it began.
    pub(super) behind: usize,
    /// In a round of unstarted tasks: how many tasks at the front of the local queue were woken in it.
    pub(super) woken: usize,
}

impl Round {
    /// Returns true if no task is left in it, nor behind it.
    pub(super) fn is_over(self) -> bool {
        self.left | self.behind | self.woken == 0
    }

    /// Returns true in a round of unstarted tasks.
    pub(super) fn is_of_unstarted(self) -> bool {
        self.side == Side::Unstarted && self.left > 0
    }
}

/// Holds what only the worker's own thread touches.
pub(crate) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) block: Arc<Block>,
    pub(super) local: Local,
    pub(super) stealable: Stealable,
    pub(super) wheel: Wheel,
    pub(super) stacks: RefCell<Pool>,
    /// Stacks for the destructors of tasks that found no stack. One is warm from the start.
    pub(super) reserve: RefCell<pool::Pool>,
    pub(super) driver: RefCell<Box<dyn Driver>>,
    pub(super) driver_handle: Arc<dyn Any + Send + Sync>,
    pub(super) driver_id: Id,
    pub(super) ready: RefCell<Ready>,
    /// The part of this worker that modules below the scheduler see.
    context: Context,
    pub(super) random: Random,
    /// There are other workers.
    pub(super) has_peers: bool,
    /// What is noted of each run and wake.
    pub(super) observed: Observed,
    pub(super) samples: Samples,
    pub(super) tracer: Tracer,
    /// How many operations the running task has before the one at which it yields. Negative from that one on.
    pub(super) budget: Cell<i64>,
    pub(super) picks: Cell<u32>,
    /// The coarse clock, as it was at the last tick or at the end of the last rest.
    pub(super) coarse: Cell<u32>,
    /// The pick at which the next tick is due.
    pub(super) next_tick: Cell<u32>,
    /// Forked tasks that were taken back since the stealable queue was last searched for them.
    pub(super) taken_back: Cell<usize>,
    pub(super) round: Cell<Round>,
    pub(super) ids: Cell<(NonZeroU64, NonZeroU64)>,
    /// How many tasks were given to workers at rest in the present span of time, and its begin.
    pub(super) gifts: Cell<(u32, Instant)>,
    /// Tasks that wait for a stack, in order.
    pub(super) stackless: RefCell<VecDeque<TaskRef>>,
    /// No task starts: some wait for a stack, or other workers may take one first.
    pub(super) lacks_stack: Cell<bool>,
    /// When this worker ran out of stacks.
    pub(super) lacking_since: Cell<Option<Instant>>,
    /// Started tasks may be in `stealable`.
    pub(super) may_migrate: Cell<bool>,
    /// The errors of tasks in `local` that end before they ran, in their order.
    pub(super) lacking: RefCell<VecDeque<io::Error>>,
    /// When the next attempt to find a stack for a waiting task is due.
    pub(super) next_retry: Cell<Instant>,
    pub(super) polling: Polling,
    pub(super) looks: RefCell<Looks>,
    pub(super) peer_watch: RefCell<PeerWatch>,
    pub(super) searching: Cell<bool>,
    /// When to look at cold stacks next, and whether there may be any.
    pub(super) next_trim: Cell<Instant>,
    pub(super) trim_owed: Cell<bool>,
    /// The tasks bound to this worker were told of the shutdown.
    pub(super) told: Cell<bool>,
    /// What decides on the next task, in a simulation.
    pub(super) simulation: Option<Box<Simulation>>,
    /// How many tasks wait in `settle` or `advance`, which are ready all the time.
    pub(crate) settling: Cell<usize>,
    /// A deadlock that no cancel ends was told.
    pub(super) told_stuck: Cell<bool>,
}

impl Worker {
    /// Makes worker `index` of `shared`, on its own thread. `stealable` is the queue that its block's thief steals from.
    pub(crate) fn new(shared: Arc<Shared>, index: usize, stealable: queue::Stealable) -> io::Result<Self> {
        let block = Arc::clone(&shared.blocks[index]);
        let parts = guarded("the driver's factory", || shared.config.driver.make())??;
        block.set_unparker(parts.driver.unparker());
        let begin = clock::now();
        block.set_thread(begin);
        let stacks = shared.stacks.pool();
        let mut reserve = shared.reserve.pool();
        let warm = reserve.take()?;
        reserve.give(warm);
        Ok(Worker {
            local: queue::Local::new(),
            stealable,
            wheel: Wheel::new(begin),
            stacks: RefCell::new(stacks),
            reserve: RefCell::new(reserve),
            driver: RefCell::new(parts.driver),
            driver_handle: parts.handle,
            driver_id: parts.id,
            ready: RefCell::new(Ready::new()),
            context: Context::new(Arc::clone(&shared.live)),
            has_peers: shared.blocks.len() > 1,
            observed: Observed::new(shared.config.watched, block.histograms.is_some()),
            samples: Samples::default(),
            tracer: Tracer::default(),
            budget: Cell::new(0),
            picks: Cell::new(0),
            coarse: Cell::new(clock::coarse()),
            next_tick: Cell::new(tuning::TICK_PICKS),
            taken_back: Cell::new(0),
            round: Cell::new(Round { side: Side::Started, left: 0, behind: 0, woken: 0 }),
            ids: Cell::new((NonZeroU64::MIN, NonZeroU64::MIN)),
            gifts: Cell::new((0, clock::machine())),
            stackless: RefCell::new(VecDeque::new()),
            lacks_stack: Cell::new(false),
            lacking_since: Cell::new(None),
            may_migrate: Cell::new(false),
            lacking: RefCell::new(VecDeque::new()),
            next_retry: Cell::new(clock::machine()),
            polling: Polling::new(shared.config.polling),
            looks: RefCell::new(Looks::new(shared.blocks.len())),
            peer_watch: RefCell::new(PeerWatch::new(index)),
            searching: Cell::new(false),
            next_trim: Cell::new(clock::machine()),
            trim_owed: Cell::new(false),
            told: Cell::new(false),
            simulation: shared.config.oracle.as_ref().map(|oracle| Box::new(Simulation::new(oracle))),
            settling: Cell::new(0),
            told_stuck: Cell::new(false),
            random: Random::new(shared.config.seed, index),
            block,
            shared,
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn driver_handle(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.driver_handle
    }

    #[inline]
    pub(crate) fn driver_id(&self) -> driver::Id {
        self.driver_id
    }

    /// Returns the part of this worker that modules below the scheduler see.
    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Takes one operation from the running task's budget. Returns true when it is used up.
    #[inline]
    pub(crate) fn charge(&self) -> bool {
        self.budget.set(self.budget.get() - 1);
        self.is_overdrawn()
    }

    /// Returns true when the running task's budget is used up.
    #[inline]
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.budget.get() < 0
    }

    /// Makes the next pick run the tick: the running task has held the worker for long.
    pub(crate) fn hasten_tick(&self) {
        self.next_tick.set(self.picks.get().wrapping_add(1));
    }

    /// Notes the picks since the last call and the gauges, at each tick and rest: a pick has no instruction to spare.
    pub(super) fn publish_counts(&self) {
        let counters = &self.block.counters;
        let counted = counters.picks.get() as u32;
        counters.picks.add(u64::from(self.picks.get().wrapping_sub(counted)));
        counters.gauges.ready.set(self.local.len() as u64);
        counters.gauges.awaiting_stack.set(self.stackless.borrow().len() as u64);
        counters.gauges.timers.set(self.wheel.len() as u64);
        counters.gauges.timer_lateness.set(self.wheel.lateness());
        counters.gauges.stacks.set(self.stacks.borrow().len() as u64);
    }

    /// Returns what the worker counts.
    pub(crate) fn counters(&self) -> &Counters {
        &self.block.counters
    }

    /// Returns the coarse clock, as this worker knows it.
    #[inline]
    pub(crate) fn coarse(&self) -> u32 {
        self.coarse.get()
    }

    /// Returns a number that tells this worker from all others alive.
    pub(crate) fn place(&self) -> NonZeroUsize {
        NonNull::from(&*self.block).addr()
    }

    /// Returns true if there is another worker.
    #[inline]
    pub(crate) fn has_peers(&self) -> bool {
        self.has_peers
    }

    /// Returns true if a started task is ready here.
    pub(crate) fn has_ready(&self) -> bool {
        !self.local.is_empty()
    }

    /// Returns true if nothing is ready here and there is another worker.
    pub(crate) fn may_spin(&self) -> bool {
        self.has_peers && !self.has_work()
    }

    /// Returns the id of the next task spawned here.
    #[inline]
    pub(crate) fn next_id(&self) -> NonZeroU64 {
        let (next, end) = self.ids.get();
        if next == end {
            let first = shared::reserve_ids(IDS);
            self.ids.set((first.saturating_add(1), first.saturating_add(IDS)));
            return first;
        }
        self.ids.set((next.saturating_add(1), end));
        next
    }

    /// Queues a task that was spawned on this worker and has not run.
    pub(crate) fn spawned(&self, task: TaskRef) {
        self.block.counters.tasks.spawn();
        if self.observed.is_noted() {
            self.note_spawned(task);
        }
        match task.header().nature {
            Nature::Local => {
                task.header().set_home(self.block.as_home());
                self.local.push(task);
            }
            _ => self.push_stealable(task),
        }
    }

    /// Makes sure that another worker checks here, in case this worker is held up.
    #[inline]
    pub(crate) fn tell_thieves(&self) {
        if self.has_peers
            && let Some(index) = self.shared.idle.after_spawn()
        {
            self.shared.blocks[index].unpark();
        }
    }

    /// Sets the running task's timer for the sleep that it has begun.
    pub(crate) fn arm_timer(&self, task: TaskRef, deadline: Instant) {
        task.header().set_timed(true);
        // SAFETY: the node lies in the task, which is bound to this worker and does not end while
        // its timer is armed: its timer is disarmed on this worker before it becomes ready.
        let timer = unsafe { NodeRef::new(task.timer()) };
        self.wheel.insert(timer, deadline);
    }

    /// Queues a task of this worker that was woken.
    #[inline]
    pub(crate) fn make_ready(&self, task: TaskRef) {
        if task.header().is_timed() {
            self.disarm_timer(task);
        }
        if self.observed.is_noted() {
            self.note_ready(task);
        }
        self.queue(task);
    }

    #[inline(never)]
    pub(super) fn disarm_timer(&self, task: TaskRef) {
        let header = task.header();
        header.set_timed(false);
        self.wheel.remove(&header.timer);
    }

    /// Queues a task of this worker that is ready.
    #[inline]
    pub(super) fn queue(&self, task: TaskRef) {
        let header = task.header();
        // Stealable tasks wait while a task waits for a stack.
        if header.nature == Nature::Migratable && !header.is_owed() && !self.lacks_stacks() {
            cold_path();
            self.may_migrate.set(true);
            return self.push_stealable(task);
        }
        self.local.push(task);
    }

    #[inline(never)]
    pub(super) fn push_stealable(&self, task: TaskRef) {
        self.stealable.push(task);
        self.tell_thieves();
    }

    /// Fires the timers that are due. Reads the clock only if there are any.
    #[inline]
    pub(super) fn expire_due(&self) {
        if !self.wheel.is_empty() {
            self.expire_timers();
        }
    }

    #[inline(never)]
    pub(super) fn expire_timers(&self) {
        self.tracer.cause.set(Some(Event::TimerWakes));
        self.wheel.expire(clock::now(), |node| {
            // SAFETY: `arm_timer` gave the wheel this pointer. The task is asleep, or woken and on
            // its way to this worker, which disarms before anything else. So the task has not
            // ended.
            let task = unsafe { TaskRef::of_timer(node.as_ptr()) };
            self.block.counters.timers.add(1);
            let word = &task.header().waiter.word;
            // Armed until now, so the sleep has not ended: this worker disarms before any sleep
            // ends.
            if word.expire(word.epoch()) == Woke::Queue {
                self.make_ready(task);
            }
        });
        self.tracer.cause.set(None);
    }

    /// Queues a sleeping task that the caller, on this worker's thread, was told to queue.
    #[inline(always)]
    pub(crate) fn wake(&self, task: TaskRef) {
        let home = task.header().home();
        if self.is_home_of(home) {
            return self.make_ready(task);
        }
        cold_path();
        self.record(Event::Wakes(task.header().id.get()));
        Block::deliver(home, task);
    }

    /// Takes from the stealable queue, and counts it for thieves.
    ///
    /// Drops tasks that were taken back, without a count: a loop that takes its helper back and
    /// forks it anew leaves its work to thieves.
    pub(super) fn pop_stealable(&self) -> Option<TaskRef> {
        loop {
            let task = self.stealable.pop()?;
            if !self.drops_taken_back(task) {
                self.block.counters.taken.add(1);
                return Some(task);
            }
        }
    }

    /// Takes a task that another worker placed here, and counts it for thieves.
    pub(super) fn pop_placed(&self) -> Option<TaskRef> {
        if self.block.placed.is_empty() {
            return None;
        }
        let task = self.block.placed.pop()?;
        self.block.counters.taken.add(1);
        Some(task)
    }
}
