//! What all workers of the simulated runtime share, and the spawner outside.

use std::cell::Cell;
use std::iter;
use std::rc::Rc;
use std::sync::Arc;

use fibra_runtime::{self as fibra, Runtime};

use crate::block::Block;
use crate::clock::{Clock, Pace};
use crate::costs::{ENTRY, RISE, SPAWN, WAKE};
use crate::idle::{Idle, Sight};
use crate::line::Line;
use crate::load::{Load, Plan};
use crate::park_state::Found;
use crate::queue;
use crate::tally::{Counts, Tally};
use crate::task::TaskRef;
use crate::worker::Worker;

pub(crate) struct Model {
    pub(crate) clock: Clock,
    pub(crate) tally: Tally,
    pub(crate) blocks: Box<[Arc<Block>]>,
    pub(crate) injector: queue::Shared,
    idle: Idle,
    /// How many are counted as parked: what a look for one of them in the list steps over.
    parked: Cell<u64>,
    drivers: Vec<Driver>,
    /// The lines of each block, of the idle protocol, of the common queue.
    block_lines: Vec<Line>,
    idle_line: Line,
    injector_line: Line,
}

/// The sleep of one worker.
#[derive(Default)]
struct Driver {
    asleep: Cell<bool>,
    /// Its park was broken; stays until the next.
    notified: Cell<bool>,
}

impl Model {
    fn new(queues: &[queue::Stealable], pace: Pace) -> Model {
        let (workers, actors) = (queues.len(), queues.len() + 1);
        let line = || Line::new(actors);
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "`looks.rs` wants an Arc; all actors are on one thread"
        )]
        let block = |(index, queue): (usize, &queue::Stealable)| Arc::new(Block::new(index, queue.thief()));
        Model {
            clock: Clock::new(actors, pace),
            tally: Tally::default(),
            blocks: queues.iter().enumerate().map(block).collect(),
            injector: queue::Shared::new(),
            idle: Idle::new(workers),
            parked: Cell::new(0),
            drivers: (0..workers).map(|_| Driver::default()).collect(),
            block_lines: (0..workers).map(|_| line()).collect(),
            idle_line: line(),
            injector_line: line(),
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// What it costs to read what a worker shows to others.
    pub(crate) fn reading(&self, actor: usize, index: usize) -> u64 {
        self.block_lines[index].read(actor, self.now())
    }

    pub(crate) fn write_block(&self, actor: usize, index: usize) {
        self.clock.spend(actor, self.block_lines[index].write(actor, self.now()));
    }

    /// Reads what all others show.
    pub(crate) fn scan(&self, actor: usize) {
        let others = (0..self.workers()).filter(|index| *index != actor);
        self.clock.spend(actor, others.map(|index| self.reading(actor, index)).sum());
    }

    pub(crate) fn is_injector_empty(&self, actor: usize) -> bool {
        self.clock.spend(actor, self.injector_line.read(actor, self.now()));
        self.injector.is_empty()
    }

    pub(crate) fn write_injector(&self, actor: usize) {
        self.clock.spend(actor, self.injector_line.write(actor, self.now()));
    }

    pub(crate) fn try_search(&self, actor: usize) -> bool {
        self.clock.spend(actor, self.idle_line.write(actor, self.now()));
        let entered = self.idle.try_search();
        if entered {
            self.tally.begins_search();
        }
        entered
    }

    pub(crate) fn end_search(&self, actor: usize) -> bool {
        self.clock.spend(actor, self.idle_line.write(actor, self.now()));
        self.tally.ends_search();
        self.idle.end_search()
    }

    pub(crate) fn park(&self, actor: usize, searching: bool, sight: Sight) -> bool {
        self.lock_idle(actor, 0);
        self.parked.set(self.parked.get() + 1);
        if searching {
            self.tally.ends_search();
        }
        self.idle.park(actor, searching, sight)
    }

    /// False if a producer has made it a searcher.
    pub(crate) fn unpark(&self, actor: usize) -> bool {
        self.lock_idle(actor, self.parked.get() * ENTRY);
        let itself = self.idle.unpark(actor);
        if itself {
            self.parked.set(self.parked.get() - 1);
        }
        itself
    }

    fn lock_idle(&self, actor: usize, held: u64) {
        let wait = self.idle_line.write(actor, self.now());
        self.idle_line.hold(held, self.now());
        self.clock.spend(actor, wait + held);
    }

    /// As `Worker::tell_thieves`.
    pub(crate) fn tell_thieves(&self, actor: usize) {
        if self.workers() > 1 {
            self.wake_one(actor, Idle::after_spawn);
        }
    }

    fn wake_one(&self, actor: usize, pick: fn(&Idle) -> Option<usize>) {
        self.clock.spend(actor, self.idle_line.read(actor, self.now()));
        let Some(index) = pick(&self.idle) else { return };
        self.parked.set(self.parked.get() - 1);
        self.tally.begins_search();
        self.lock_idle(actor, 0);
        self.break_park(actor, index);
    }

    /// As `Block::unpark_if_parked`.
    pub(crate) fn unpark_if_parked(&self, actor: usize, index: usize) {
        if self.blocks[index].state.is_parked() {
            self.break_park(actor, index);
        }
    }

    /// As `Block::unpark`, and what the driver does then.
    fn break_park(&self, actor: usize, index: usize) {
        if self.blocks[index].state.unpark() == Found::Awake {
            return;
        }
        self.tally.note(|counts| counts.wakes += 1);
        self.clock.spend(actor, WAKE);
        let driver = &self.drivers[index];
        driver.notified.set(true);
        if driver.asleep.replace(false) {
            self.tally.wakes_up(self.now());
            self.clock.rouse(index, self.now() + RISE);
        }
    }

    /// Sleeps in the driver until that time, or until its park is broken. False where the time was up.
    pub(crate) fn sleep(&self, actor: usize, until: Option<u64>) -> bool {
        let driver = &self.drivers[actor];
        if driver.notified.take() {
            return true;
        }
        driver.asleep.set(true);
        self.tally.falls_asleep(self.now());
        self.clock.sleep(actor, until);
        if driver.asleep.replace(false) {
            self.tally.wakes_up(self.now());
            self.clock.spend(actor, RISE);
        }
        driver.notified.take()
    }

    /// The spawner outside: spawns each task at its time, one after the other.
    fn inject(&self, tasks: Vec<(u64, TaskRef)>) {
        let outside = self.workers();
        for (at, task) in tasks {
            if at > self.now() {
                self.clock.sleep(outside, Some(at));
            }
            self.clock.spend(outside, SPAWN);
            self.write_injector(outside);
            task.header().born.set(self.now());
            self.injector.push(task);
            self.wake_one(outside, Idle::after_global);
        }
    }

    /// All workers are parked; none searches or watches.
    fn is_at_rest(&self) -> bool {
        let asleep = self.drivers.iter().all(|driver| driver.asleep.get());
        let nobody_searches = self.idle.try_search() && self.idle.end_search();
        asleep && nobody_searches && self.idle.after_spawn().is_some()
    }
}

/// What came of a run.
pub(crate) struct Outcome {
    pub(crate) workers: usize,
    pub(crate) counts: Counts,
    /// Whether all workers slept in the end, and none was counted as searching or watching.
    pub(crate) at_rest: bool,
    /// By home worker, how many tasks there were in the end.
    pub(crate) homes: Vec<usize>,
}

impl Outcome {
    /// By how much it took longer than if all workers had computed all the time.
    pub(crate) fn stretch(&self) -> f64 {
        (self.counts.last * self.workers as u64) as f64 / self.counts.useful as f64
    }
}

/// Runs a load on so many simulated workers until all are idle.
pub(crate) fn simulate(workers: usize, pace: Pace, load: &Load) -> Outcome {
    let simulation = || {
        let queues: Vec<_> = (0..workers).map(|_| queue::Stealable::of(workers)).collect();
        let model = Rc::new(Model::new(&queues, pace));
        let Plan { tasks, events, injected } = load.plan(workers);
        let mut actors: Vec<_> = iter::zip(queues, events)
            .enumerate()
            .map(|(index, (queue, events))| {
                let model = Rc::clone(&model);
                fibra::spawn_local(move || {
                    model.clock.enter();
                    Worker::new(model, index, queue, events).run()
                })
            })
            .collect();
        let outside = Rc::clone(&model);
        actors.push(fibra::spawn_local(move || {
            outside.clock.enter();
            outside.inject(injected);
            outside.clock.leave()
        }));
        model.clock.run(actors.iter().map(|actor| actor.task().clone()));
        Outcome {
            workers,
            counts: model.tally.counts(tasks),
            at_rest: model.is_at_rest(),
            homes: model.blocks.iter().map(|block| block.load()).collect(),
        }
    };
    Runtime::builder().workers(1).run(simulation).expect("a runtime")
}
