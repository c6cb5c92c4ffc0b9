//! What the simulated runtimes are given to do.

use std::iter;

use crate::costs::MICRO;
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
    /// Each worker hears of events at random times, so many on the average, and spawns a task for each.
    Events { each: usize, every: u64, lengths: Lengths },
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

/// Makes tasks, and draws what is random, the same each time.
struct Maker {
    made: usize,
    seed: u64,
}

impl Load {
    pub(crate) fn plan(&self, workers: usize) -> Plan {
        let mut maker = Maker { made: 0, seed: 1 };
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
            Load::Events { each, every, lengths } => {
                for heard in &mut events {
                    let mut at = 0;
                    heard.extend(
                        iter::repeat_with(|| {
                            at += maker.exponential(every);
                            let children = maker.tasks(1, false, lengths);
                            (at, maker.make(false, Job::Spawn { children, waits: false }))
                        })
                        .take(each),
                    );
                }
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

    fn length(&mut self, lengths: Lengths) -> u64 {
        match lengths {
            Lengths::All(length) => length,
            Lengths::Around(mean) => self.exponential(mean),
            Lengths::Mixed { short, long, one_in } => match self.random() % one_in {
                0 => long,
                _ => short,
            },
        }
    }

    fn exponential(&mut self, mean: u64) -> u64 {
        let even = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - even).ln() * mean as f64) as u64
    }

    /// SplitMix64, of G. L. Steele, D. Lea and C. H. Flood.
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
