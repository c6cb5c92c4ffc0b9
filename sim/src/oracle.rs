//! One run: asks its strategy, counts the steps, and records the choices.

#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use fibra::{Handle, Task, attributes};
use fibra_runtime::wait::{self, Asked};

use crate::answers;
use crate::net::network::Network;
use crate::script::Script;
use crate::strategy::{Path, Strategy};

/// Tells the random numbers of the program from those of the schedule.
const PROGRAM: u64 = 0x5eed_0f7e_57a1_1e55;

/// How a run has ended.
pub(crate) struct End {
    /// The virtual time that the main task took.
    pub(crate) elapsed: Duration,
    pub(crate) failure: Option<String>,
    /// It is a panic of the main task.
    pub(crate) is_panic: bool,
    /// Its tasks sleep for ever, and so does its thread.
    pub(crate) is_stuck: bool,
}

/// The oracle of one run.
pub(crate) struct Oracle {
    run: Mutex<Run>,
    network: Arc<Network>,
}

/// The state of one run.
#[derive(Default)]
pub(crate) struct Run {
    strategy: Strategy,
    /// The random numbers of the program.
    pub(crate) random: Rng,
    pub(crate) steps: u64,
    /// How often there was more than one task to choose.
    pub(crate) decisions: u64,
    max_steps: u64,
    /// Why the run fails, whatever its main task does: a refused call, its steps, or the panic of a host's body or of a rule.
    pub(crate) reason: Option<String>,
    /// Describes the tasks until the run has ended.
    runtime: Option<Handle>,
    /// The main task, until it is cancelled for the steps that the run has taken.
    main: Option<Task>,
    main_id: u64,
    /// The panics of tasks by their ids, in their order.
    panics: Vec<(u64, String)>,
    /// The tasks that a crash of their host has ended with a panic.
    ends_of_crashes: HashSet<u64>,
    /// Takes the end of the run, once.
    ended: Option<Sender<End>>,
    /// The numbers of the tasks, by their ids: in the order in which they first appeared.
    numbers: HashMap<u64, u32>,
    /// The id of the task that runs, or has run last. It has spawned the tasks that come up for the first time.
    last: u64,
    /// The numbers of the tasks of one question.
    ready: Vec<u32>,
    /// The choices, if they are recorded.
    pub(crate) script: Option<Script>,
    /// The tasks that were chosen, if they are recorded, and a hash of their numbers.
    pub(crate) trace: Option<Trace>,
    pub(crate) fingerprint: u64,
}

/// The tasks that a run has chosen.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<u32>,
    /// The names of the tasks, by their numbers.
    pub(crate) names: Vec<String>,
}

impl Oracle {
    pub(crate) fn new(
        strategy: Strategy,
        seed: u64,
        max_steps: u64,
        (records, traced): (bool, bool),
        ended: Sender<End>,
        network: Network,
    ) -> Self {
        let run = Run {
            strategy,
            random: Rng::with_seed(seed ^ PROGRAM),
            max_steps,
            ended: Some(ended),
            script: records.then(Script::default),
            trace: traced.then(Trace::default),
            // The start of the hash of Fowler, Noll and Vo.
            fingerprint: 0xcbf2_9ce4_8422_2325,
            ..Run::default()
        };
        Oracle { run: Mutex::new(run), network: Arc::new(network) }
    }

    pub(crate) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the run. Called by its main task, which a run that takes too many steps cancels.
    pub(crate) fn begin(&self) {
        answers::begin();
        let (main, mut run) = (fibra::task::current(), self.lock());
        (run.main_id, run.main, run.runtime) = (main.id(), Some(main), Some(Handle::current()));
    }

    /// Notes the panic of a task, which may catch it. A task that a crash ends may panic, where it finds another one of its host
    /// cancelled before it.
    pub(crate) fn note_panic(&self, task: &Task, told: String) {
        let host = self.network.tasks().host_of(task.id());
        let is_crash = !self.network.is_up(host);
        let mut run = self.lock();
        if is_crash {
            run.ends_of_crashes.insert(task.id());
        } else {
            run.panics.push((task.id(), told));
        }
    }

    /// Returns true if the panic of a task was a part of a crash, which fails no run.
    pub(crate) fn is_end_of_crash(&self, task: u64) -> bool {
        self.lock().ends_of_crashes.contains(&task)
    }

    /// Ends the run, since a panic has ended the body of a host, which runs in this task.
    pub(crate) fn end_for_panic(&self, body: &Task) {
        let run = self.lock();
        let panic = run.panics.iter().rfind(|(task, _)| *task == body.id()).map(|(_, told)| told.clone());
        drop(run);
        if let Some(told) = panic {
            self.end_for(told);
        }
    }

    /// Ends the run as a failure for that reason.
    pub(crate) fn end_for(&self, reason: String) {
        let mut run = self.lock();
        run.reason.get_or_insert(reason);
        let main = run.main.take();
        drop(run);
        if let Some(main) = main {
            main.cancel();
        }
    }

    /// Returns what was told of the main task's panic with that message. It may have caught others.
    pub(crate) fn panic_of_main(&self, message: &str) -> Option<String> {
        let run = self.lock();
        let mut panics = run.panics.iter().filter(|(task, _)| *task == run.main_id);
        panics.rfind(|(_, told)| told.ends_with(message)).map(|(_, told)| told.clone())
    }

    /// Describes what the tasks wait for. Called by another thread.
    pub(crate) fn waits(&self) -> String {
        let runtime = self.lock().runtime.clone();
        runtime.map(|runtime| attributes::waits(&runtime, runtime.started_tasks())).unwrap_or_default()
    }

    /// Tells how the run has ended.
    pub(crate) fn end(&self, end: End) {
        let mut run = self.lock();
        // What is dropped here is dropped without the lock.
        let (_runtime, ended) = (run.runtime.take(), run.ended.take());
        drop(run);
        if let Some(ended) = ended {
            ended.send(end).expect("each run is waited for");
        }
    }

    /// Returns true once the end has been told.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended.is_none()
    }

    /// Fails the run and keeps its thread: the tasks cannot be unwound, and what they borrow must stay.
    pub(crate) fn end_stuck(&self, failure: String) -> ! {
        self.end(End { elapsed: Duration::ZERO, failure: Some(failure), is_panic: false, is_stuck: true });
        loop {
            thread::park();
        }
    }
}

impl wait::Oracle for Oracle {
    fn choose(&self, asked: Asked, ready: &[u64], task: &dyn Fn(usize) -> Task) -> usize {
        let mut run = self.lock();
        run.number(ready, task, &self.network);
        let choice = run.choose(asked, ready);
        let (steps, most) = (run.steps, run.max_steps);
        drop(run);
        let told = || format!("the run has taken more than {most} steps");
        if steps > most.saturating_mul(2) {
            self.end_stuck(told());
        }
        if steps == most.saturating_add(1) {
            self.end_for(told());
        }
        choice
    }

    fn stuck(&self, waits: String) {
        let panics: String =
            self.lock().panics.iter().map(|(_, told)| format!("\nbefore that, {told}")).collect();
        self.end_stuck(format!("all tasks sleep for ever:{waits}{panics}"));
    }
}

impl Run {
    /// Takes the path that the run has taken, if it had one.
    pub(crate) fn take_path(&mut self) -> Option<Path> {
        match mem::take(&mut self.strategy) {
            Strategy::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Numbers the tasks of a question.
    fn number(&mut self, ready: &[u64], task: &dyn Fn(usize) -> Task, network: &Network) {
        let Run { numbers, last, trace, .. } = self;
        self.ready.clear();
        self.ready.extend(ready.iter().enumerate().map(|(index, id)| {
            let next = numbers.len() as u32;
            *numbers.entry(*id).or_insert_with(|| {
                network.tasks().inherit(*last, *id);
                trace.iter_mut().for_each(|trace| trace.names.push(name_of(&task(index))));
                next
            })
        }));
    }

    /// Chooses one of the tasks that are numbered.
    fn choose(&mut self, asked: Asked, ready: &[u64]) -> usize {
        let numbers = mem::take(&mut self.ready);
        let choice = self.decide(asked, &numbers);
        self.strategy.note(numbers[choice]);
        self.note(numbers[choice]);
        self.last = ready[choice];
        self.ready = numbers;
        choice
    }

    /// Chooses among the tasks with these numbers. Where there is one, there is no decision.
    fn decide(&mut self, asked: Asked, numbers: &[u32]) -> usize {
        if numbers.len() == 1 {
            return 0;
        }
        let choice = self.strategy.choose(self.decisions, asked, numbers);
        if let Some(script) = self.script.as_mut().filter(|_| choice > 0) {
            script.0.insert(self.decisions, choice);
        }
        self.decisions += 1;
        choice
    }

    fn note(&mut self, task: u32) {
        self.steps += 1;
        self.fingerprint = (self.fingerprint ^ u64::from(task)).wrapping_mul(0x0100_0000_01b3);
        if let Some(trace) = &mut self.trace {
            trace.steps.push(task);
        }
    }
}

/// Names a task, without its id: that differs from run to run.
pub(crate) fn name_of(task: &Task) -> String {
    match (task.name(), task.spawn_location()) {
        (Some(name), _) => format!("task '{name}'"),
        (None, Some(place)) => format!("the task spawned at {place}"),
        (None, None) => "a task of the library".to_owned(),
    }
}
