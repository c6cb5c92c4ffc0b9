//! What the simulated runtimes are given to do.

use crate::costs::MICRO;
use crate::random::Random;
use crate::task::{Job, TaskRef};

/// How long tasks compute.
#[derive(Clone, Copy)]
pub(crate) enum Lengths {
    All(u64),
    /// Exponentially distributed around this mean.
    Around(u64),
    /// One in so many is long.
    Mixed {
        short: u64,
        long: u64,
        one_in: u64,
    },
}

/// Where tasks come from. Counts are per worker, so that the ideal is the same time for every number of workers.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// One task on one worker spawns all of them in a row, and waits for them or not.
    BornOnOne { each: usize, lengths: Lengths, held: bool },
    /// A thread from outside spawns all of them in a row.
    AllAtOnce { each: usize, lengths: Lengths },
    /// A thread from outside spawns them in bursts of so many for each worker.
    Bursts { each: usize, bursts: usize, every: u64, lengths: Lengths },
    /// The same, a few at a time, each at some moment of a short span: while workers park and rise for those before.
    Groups { groups: usize, of: usize, within: u64, every: u64, lengths: Lengths },
    /// Each worker hears of events at random times, so many on the average, and spawns a task for each.
    Events { each: usize, every: u64, lengths: Lengths },
    /// All workers hear of one event, and then one of them of all that come, and spawns a task for each.
    Lone { spawns: usize, every: u64, lengths: Lengths },
    /// Connections that come in at one worker, each a task that stays.
    Connections { each: usize, every: u64 },
}

/// A load, made for so many workers.
pub(crate) struct Plan {
    pub(crate) tasks: u64,
    /// By worker: when its driver has which task ready.
    pub(crate) events: Vec<Vec<(u64, TaskRef)>>,
    /// What the thread from outside spawns, and when.
    pub(crate) injected: Vec<(u64, TaskRef)>,
}

/// Makes tasks, and draws random numbers, equal in each run.
struct Maker {
    made: usize,
    random: Random,
}

impl Load {
    pub(crate) fn plan(&self, workers: usize) -> Plan {
        let mut maker = Maker { made: 0, random: Random::new() };
        let mut events = vec![Vec::new(); workers];
        let mut injected = Vec::new();
        match *self {
            Load::BornOnOne { each, lengths, held } => {
                let children = maker.tasks(each * workers, held, lengths);
                events[0].push((0, maker.make(false, Job::Spawn { children, waits: true })));
            }
            Load::AllAtOnce { each, lengths } => {
                injected.extend(maker.tasks(each * workers, true, lengths).into_iter().map(|task| (0, task)));
            }
            Load::Bursts { each, bursts, every, lengths } => {
                for burst in 0..bursts {
                    let tasks = maker.tasks(each * workers, true, lengths);
                    injected.extend(tasks.into_iter().map(|task| (burst as u64 * every, task)));
                }
            }
            Load::Groups { groups, of, within, every, lengths } => {
                for group in 0..groups {
                    let mut times: Vec<_> = (0..of).map(|_| maker.random.below(within)).collect();
                    times.sort_unstable();
                    let times = times.into_iter().map(|time| group as u64 * every + time);
                    injected.extend(times.zip(maker.tasks(of, true, lengths)));
                }
            }
            Load::Events { each, every, lengths } => {
                for heard in &mut events {
                    let mut at = 0;
                    heard.extend((0..each).map(|_| {
                        at += maker.random.exponential(every);
                        (at, maker.spawner(lengths))
                    }));
                }
            }
            Load::Lone { spawns, every, lengths } => {
                events.iter_mut().for_each(|heard| heard.push((0, maker.spawner(lengths))));
                events[0].extend((1..=spawns as u64).map(|spawn| (spawn * every, maker.spawner(lengths))));
            }
            Load::Connections { each, every } => {
                for connection in 0..each * workers {
                    let begun = connection as u64 * every;
                    let times = (1..=3).rev().map(|turn| begun + turn * 1000 * MICRO).collect();
                    let children = vec![maker.make(false, Job::Serve { length: 5 * MICRO, times })];
                    events[0].push((begun, maker.make(false, Job::Spawn { children, waits: false })));
                }
            }
        }
        Plan { tasks: maker.made as u64, events, injected }
    }
}

impl Maker {
    fn make(&mut self, held: bool, job: Job) -> TaskRef {
        self.made += 1;
        TaskRef::make(self.made, held, job)
    }

    fn tasks(&mut self, count: usize, held: bool, lengths: Lengths) -> Vec<TaskRef> {
        (0..count)
            .map(|_| {
                let length = self.length(lengths);
                self.make(held, Job::Compute(length))
            })
            .collect()
    }

    /// A task that spawns a detached task, and ends.
    fn spawner(&mut self, lengths: Lengths) -> TaskRef {
        let children = self.tasks(1, false, lengths);
        self.make(false, Job::Spawn { children, waits: false })
    }

    fn length(&mut self, lengths: Lengths) -> u64 {
        match lengths {
            Lengths::All(length) => length,
            Lengths::Around(mean) => self.random.exponential(mean),
            Lengths::Mixed { short, long, one_in } => match self.random.below(one_in) {
                0 => long,
                _ => short,
            },
        }
    }
}
