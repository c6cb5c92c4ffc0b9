//! A simulated worker: the decisions of `worker/run.rs` and `worker/start.rs`, function by function, with what they cost.
//!
//! Left out are short polls, a lack of stacks, and the end.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::block::Block;
use crate::costs::{MOVE, PICK, SPAWN, duration};
use crate::looks::{Looks, PeerWatch};
use crate::model::Model;
use crate::queue::{Local, Shared, Stealable};
use crate::task::{Job, TaskRef};
use crate::tuning::{MARGIN_DETACHED, MARGIN_HELD, STARTS, TICK_PICKS};

/// What a worker's driver will find ready, and when.
pub(crate) type Events = BinaryHeap<Reverse<(u64, usize)>>;

pub(crate) struct Worker {
    pub(crate) model: Rc<Model>,
    pub(crate) index: usize,
    pub(crate) local: Local,
    pub(crate) stealable: Stealable,
    /// Events of this worker, by the place of their task in `known`.
    pub(crate) events: RefCell<Events>,
    pub(crate) known: RefCell<Vec<TaskRef>>,
    pub(crate) looks: RefCell<Looks>,
    peer_watch: RefCell<PeerWatch>,
    pub(crate) searching: Cell<bool>,
    picks: Cell<u32>,
    next_tick: Cell<u32>,
    /// How many un-started tasks are left in their turn, and how many started ones in the one that follows.
    unstarted: Cell<usize>,
    started: Cell<usize>,
    /// How many tasks at the front of the local queue were woken in this turn.
    woken: Cell<usize>,
    /// What the simulation calls time 0.
    epoch: Instant,
}

impl Worker {
    pub(crate) fn new(
        model: Rc<Model>,
        index: usize,
        stealable: Stealable,
        events: Vec<(u64, TaskRef)>,
    ) -> Worker {
        let times = events.iter().enumerate().map(|(place, (at, _))| Reverse((*at, place)));
        Worker {
            index,
            local: Local::new(),
            stealable,
            events: RefCell::new(times.collect()),
            known: RefCell::new(events.into_iter().map(|(_, task)| task).collect()),
            looks: RefCell::new(Looks::new(model.workers())),
            peer_watch: RefCell::new(PeerWatch::new(index)),
            searching: Cell::new(false),
            picks: Cell::new(0),
            next_tick: Cell::new(TICK_PICKS),
            unstarted: Cell::new(0),
            started: Cell::new(0),
            woken: Cell::new(0),
            epoch: Instant::now(),
            model,
        }
    }

    pub(crate) fn run(&self) -> ! {
        loop {
            match self.next() {
                Some(task) => self.execute(task),
                None => self.rest(),
            }
        }
    }

    fn next(&self) -> Option<TaskRef> {
        self.spend(PICK);
        let picks = self.picks.get().wrapping_add(1);
        self.picks.set(picks);
        if picks == self.next_tick.get() {
            self.next_tick.set(picks.wrapping_add(TICK_PICKS));
            self.take(|injector, into| injector.steal_batch(into));
            self.take_placed();
            self.help();
            self.check_events();
        }
        self.next_in_round().or_else(|| self.next_from_others())
    }

    fn next_in_round(&self) -> Option<TaskRef> {
        for _ in 0..4 {
            let source = match () {
                () if self.woken.get() > 0 && !self.picks.get().is_multiple_of(STARTS) => Some(&self.woken),
                () if self.unstarted.get() > 0 => Some(&self.unstarted),
                () if self.started.get() > 0 && self.woken.get() == 0 => Some(&self.started),
                () => None,
            };
            if let Some(left) = source {
                left.set(left.get() - 1);
                let starts = std::ptr::eq(left, &self.unstarted);
                let task = if starts { self.pop_stealable() } else { self.local.pop() };
                if task.is_some() {
                    return task;
                }
                left.set(0);
            }
            if self.unstarted.get() == 0 {
                match self.started.get() + self.woken.replace(0) {
                    0 => {
                        self.unstarted.set(self.stealable.len());
                        self.started.set(self.local.len());
                    }
                    started => self.started.set(started),
                }
            }
        }
        None
    }

    fn check_events(&self) {
        if self.woken.get() > 0 {
            return;
        }
        let mark = self.local.mark();
        self.poll_driver();
        if self.unstarted.get() > 0 {
            self.woken.set(self.local.bring_forward(mark));
        }
    }

    fn next_from_others(&self) -> Option<TaskRef> {
        if !self.block().placed.is_empty() {
            self.model.write_block(self.index, self.index);
            if let Some(task) = self.block().placed.pop() {
                self.count_taken();
                return Some(task);
            }
        }
        self.take_shared();
        self.pop_stealable()
    }

    fn pop_stealable(&self) -> Option<TaskRef> {
        if self.stealable.is_empty() {
            return None;
        }
        self.model.write_block(self.index, self.index);
        let task = self.stealable.pop()?;
        self.count_taken();
        Some(task)
    }

    fn count_taken(&self) {
        self.block().taken.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn take_shared(&self) -> bool {
        let workers = self.model.workers();
        self.take(|injector, into| injector.steal_share(workers, into))
    }

    fn take(&self, steal: impl FnOnce(&Shared, &Stealable) -> bool) -> bool {
        if self.model.is_injector_empty(self.index) {
            return false;
        }
        self.model.write_injector(self.index);
        let before = self.stealable.len();
        let came = steal(&self.model.injector, &self.stealable);
        if came {
            self.model.tally.note(|counts| counts.batches += 1);
            self.model.tally.helps(self.now());
            self.spend(MOVE * (self.stealable.len() - before) as u64);
            self.model.write_block(self.index, self.index);
        }
        came
    }

    fn take_placed(&self) {
        if !self.block().placed.is_empty() {
            self.model.write_block(self.index, self.index);
            self.block().placed.steal_batch(&self.stealable);
        }
    }

    fn help(&self) {
        if self.model.workers() > 1 && self.stealable.is_empty() {
            let stuck = self.peer_watch.borrow_mut().look(self.instant(), &self.model.blocks, self.index);
            if stuck.is_some_and(|index| self.steal_from(&self.model.blocks[index])) {
                self.model.tell_thieves(self.index);
            }
        }
    }

    fn execute(&self, task: TaskRef) {
        if self.searching.get() {
            self.found_work();
        }
        if !task.header().started.get() {
            if self.place_elsewhere(task) {
                return;
            }
            self.model.tally.starts(task, self.now());
            self.block().load.fetch_add(1, Ordering::Relaxed);
        }
        self.resume(task);
    }

    fn resume(&self, task: TaskRef) {
        let job = task.header().job.replace(Job::Compute(0));
        match job {
            Job::Compute(length) => self.compute(length),
            Job::Spawn { children, waits } => {
                children.into_iter().for_each(|child| self.spawn(child));
                if waits {
                    // Its own part is over, but it stays at home here.
                    return self.model.tally.ends(task, self.now());
                }
            }
            Job::Serve { length, mut times } => {
                if let Some(at) = times.pop() {
                    *task.header().job.borrow_mut() = Job::Serve { length, times };
                    let place = self.known.borrow().len();
                    self.known.borrow_mut().push(task);
                    self.events.borrow_mut().push(Reverse((at.max(self.now()), place)));
                    return self.compute(length);
                }
                // A connection that is done stays open.
                return self.model.tally.ends(task, self.now());
            }
        }
        self.block().load.fetch_sub(1, Ordering::Relaxed);
        self.model.tally.ends(task, self.now());
    }

    fn compute(&self, length: u64) {
        self.spend(length);
        self.model.tally.note(|counts| counts.useful += length);
    }

    fn spawn(&self, task: TaskRef) {
        self.spend(SPAWN);
        self.model.write_block(self.index, self.index);
        self.block().counts.spawn();
        task.header().born.set(self.now());
        self.stealable.push(task);
        self.model.tell_thieves(self.index);
    }

    fn place_elsewhere(&self, task: TaskRef) -> bool {
        let workers = self.model.workers();
        if workers == 1 || task.header().placed.get() {
            return false;
        }
        let step = 1 + task.header().id % (workers - 1);
        let other = &self.model.blocks[(self.index + step) % workers];
        self.spend(self.model.reading(self.index, other.index));
        let margin = if task.header().held { MARGIN_HELD } else { MARGIN_DETACHED };
        if self.block().load() < other.load() + other.waiting() + margin {
            return false;
        }
        task.header().placed.set(true);
        self.model.write_block(self.index, other.index);
        other.placed.push(task);
        self.model.unpark_if_parked(self.index, other.index);
        self.model.tell_thieves(self.index);
        true
    }

    pub(crate) fn block(&self) -> &Block {
        &self.model.blocks[self.index]
    }

    pub(crate) fn spend(&self, time: u64) {
        self.model.clock.spend(self.index, time);
    }

    pub(crate) fn now(&self) -> u64 {
        self.model.now()
    }

    pub(crate) fn instant(&self) -> Instant {
        self.epoch + duration(self.now())
    }
}
