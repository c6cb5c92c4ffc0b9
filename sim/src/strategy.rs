//! Strategies: how a run decides.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use fastrand::Rng;
use fibra_runtime::wait::Asked;

use crate::script::Script;

/// Selects how a simulation orders its tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Schedule {
    /// First in, first out. No task is preempted. A task that is spawned comes in at the next switch.
    Fifo,
    /// At random, by the seed.
    Random,
    /// By random priorities that change at `depth - 1` random places: Burckhardt, Kothari, Musuvathi and
    /// Nagarakatte, *A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs* (ASPLOS 2010).
    ///
    /// A bug that needs `depth` operations in one order is found with a probability of at least one in
    /// `n * k ^ (depth - 1)`, for `n` tasks and `k` decisions. In an exploration, such as [`check_pct`](crate::check_pct), `k`
    /// is that of a first run. A single run takes 1,000 for it: later decisions change no priorities.
    Pct {
        /// The number of operations whose order makes the bug, from 1 on.
        depth: usize,
    },
    /// All orders with at most so many preemptions. An exploration runs each of them once, a single run the first of them,
    /// which is that of `Fifo`.
    Exhaustive {
        /// The number of preemptions, from 0 on.
        preemptions: usize,
    },
}

impl Schedule {
    /// Returns the text that repeats a run, with its seed. It was expected to have so many decisions.
    pub(crate) fn text(self, decisions: u64) -> String {
        match self {
            Schedule::Fifo | Schedule::Exhaustive { .. } => "fifo".to_owned(),
            Schedule::Random => "random".to_owned(),
            Schedule::Pct { depth } => format!("pct({depth},{decisions})"),
        }
    }
}

/// How many decisions a run is expected to have before the first has ended.
pub(crate) const EXPECTED: u64 = 1000;

/// Of so many points a random schedule preempts one.
const PREEMPTED: usize = 4;

/// Decides in one run.
#[derive(Default)]
pub(crate) enum Strategy {
    #[default]
    Fifo,
    Random(Rng),
    Pct(Priorities),
    Script(Script),
    Path(Path),
}

impl Strategy {
    /// Makes the strategy of a run from the text that tells it: [`Schedule::text`], or a script.
    pub(crate) fn read(text: &str, seed: u64) -> Result<Self, String> {
        let random = Rng::with_seed(seed);
        match (text, numbers_of_pct(text)) {
            ("fifo", _) => Ok(Strategy::Fifo),
            ("random", _) => Ok(Strategy::Random(random)),
            (_, Some((depth, decisions))) => Ok(Strategy::Pct(Priorities::new(random, depth, decisions))),
            _ => text.parse().map(Strategy::Script),
        }
    }

    /// Notes which task runs now, also where there was nothing to choose.
    pub(crate) fn note(&mut self, task: u32) {
        match self {
            Strategy::Pct(priorities) => priorities.last = Some(task),
            Strategy::Path(path) => path.last = Some(task),
            _ => {}
        }
    }

    /// Chooses an option of that decision. `tasks` has the numbers of the tasks.
    pub(crate) fn choose(&mut self, decision: u64, asked: Asked, tasks: &[u32]) -> usize {
        match self {
            Strategy::Fifo => 0,
            Strategy::Random(random) => match asked {
                Asked::Point if random.usize(..PREEMPTED) > 0 => 0,
                _ => random.usize(..tasks.len()),
            },
            Strategy::Pct(priorities) => priorities.choose(decision, asked, tasks),
            Strategy::Script(script) => {
                script.0.get(&decision).map_or(0, |choice| (*choice).min(tasks.len() - 1))
            }
            Strategy::Path(path) => path.choose(decision, asked, tasks),
        }
    }
}

fn numbers_of_pct(text: &str) -> Option<(usize, u64)> {
    let (depth, decisions) = text.strip_prefix("pct(")?.strip_suffix(')')?.split_once(',')?;
    Some((depth.parse().ok()?, decisions.parse().ok()?))
}

/// The priorities of the tasks of one run.
pub(crate) struct Priorities {
    random: Rng,
    /// Higher ones run first. Those of new tasks are positive.
    of: HashMap<u32, i64>,
    /// The decisions at which the task of the highest priority gets the lowest.
    changes: Vec<u64>,
    lowest: i64,
    /// The task that ran last.
    last: Option<u32>,
}

impl Priorities {
    fn new(mut random: Rng, depth: usize, decisions: u64) -> Self {
        let changes = (1..depth).map(|_| random.u64(..decisions.max(1))).collect();
        Priorities { random, of: HashMap::new(), changes, lowest: 0, last: None }
    }

    fn choose(&mut self, decision: u64, asked: Asked, tasks: &[u32]) -> usize {
        for task in tasks {
            self.of.entry(*task).or_insert_with(|| self.random.i64(1..i64::MAX));
        }
        // A task that yields waits for others: it must not run again before them for ever.
        if let Some(last) = self.last.filter(|last| asked == Asked::Pick && tasks.contains(last)) {
            self.lower(last);
        }
        let changes = self.changes.iter().filter(|change| **change == decision).count();
        for _ in 0..changes {
            self.lower(tasks[self.highest(tasks)]);
        }
        self.highest(tasks)
    }

    fn highest(&self, tasks: &[u32]) -> usize {
        (0..tasks.len()).max_by_key(|index| self.of[&tasks[*index]]).expect("some task is ready")
    }

    fn lower(&mut self, task: u32) {
        self.lowest -= 1;
        self.of.insert(task, self.lowest);
    }
}

/// A path through the tree of all decisions, and the place of the next one.
#[derive(Clone, Default)]
pub(crate) struct Path {
    decisions: Vec<Decision>,
    /// How many preemptions a run may have.
    limit: usize,
    /// How many this run has had.
    preemptions: usize,
    /// The task that ran last.
    last: Option<u32>,
}

#[derive(Clone, Copy)]
struct Decision {
    choice: usize,
    options: usize,
}

impl Path {
    pub(crate) fn new(limit: usize) -> Self {
        Path { limit, ..Path::default() }
    }

    /// A task that yields and goes on before the others counts as a preemption of these: so a loop of yields has an end.
    fn choose(&mut self, decision: u64, asked: Asked, tasks: &[u32]) -> usize {
        let preempts = |index: &usize| match asked {
            Asked::Point => *index > 0,
            Asked::Pick => Some(tasks[*index]) == self.last,
        };
        let is_free = |index: &usize| self.preemptions < self.limit || !preempts(index);
        let allowed: Vec<usize> = (0..tasks.len()).filter(is_free).collect();
        let (index, options) = (decision as usize, allowed.len());
        if index == self.decisions.len() {
            self.decisions.push(Decision { choice: 0, options });
        }
        let taken = &mut self.decisions[index];
        // A program that depends on more than its schedule may have fewer options now.
        taken.choice = taken.choice.min(options - 1);
        let choice = allowed[taken.choice];
        self.preemptions += usize::from(preempts(&choice));
        choice
    }

    /// Moves on to the next path. Returns `None` after the last one.
    pub(crate) fn next(mut self) -> Option<Self> {
        while let Some(last) = self.decisions.last_mut() {
            last.choice += 1;
            if last.choice < last.options {
                (self.preemptions, self.last) = (0, None);
                return Some(self);
            }
            self.decisions.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program with three decisions: a pick, a point, and a point that only one answer to the first leads to.
    fn visited(limit: usize) -> Vec<Vec<usize>> {
        let (mut path, mut runs) = (Some(Path::new(limit)), Vec::new());
        while let Some(mut run) = path {
            let mut choices =
                vec![run.choose(0, Asked::Pick, &[1, 2, 3]), run.choose(1, Asked::Point, &[1, 2])];
            if choices[0] == 1 {
                choices.push(run.choose(2, Asked::Point, &[1, 2]));
            }
            runs.push(choices);
            path = run.next();
        }
        runs
    }

    #[test]
    fn exhaustive_visits_each_interleaving_once() {
        let all =
            [[0, 0].as_slice(), &[0, 1], &[1, 0, 0], &[1, 0, 1], &[1, 1, 0], &[1, 1, 1], &[2, 0], &[2, 1]];
        assert_eq!(visited(2), all);
    }

    #[test]
    fn the_number_of_preemptions_is_limited() {
        let one = [[0, 0].as_slice(), &[0, 1], &[1, 0, 0], &[1, 0, 1], &[1, 1, 0], &[2, 0], &[2, 1]];
        assert_eq!(visited(1), one);
        assert_eq!(visited(0), [[0, 0].as_slice(), &[1, 0, 0], &[2, 0]]);
    }
}
