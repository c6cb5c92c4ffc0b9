//! Takes profiles: looks at all tasks some times a second.

#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::HashMap;
use std::mem;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use fibra_runtime::task::{TaskDump, TaskState};
use fibra_runtime::{Handle, Task, clock};

use crate::interner::Interner;
use crate::profile::{Place, Profile};
use crate::unwinder::{install, unwinder};

/// The most stacks of sleepers that are walked at one look.
const MOST_SLEEPERS: usize = 1000;

/// The most threads that are sampled at one look, each of which takes as long as some ten walks.
const MOST_THREADS: usize = 32;

/// How many names of tasks a profile tells apart.
const MOST_NAMES: usize = 10_000;

/// The part of the time that looks may take.
const SHARE: u32 = 20;

/// How long a profile or a trace goes on after it has been stopped, at the most.
const ROUND: Duration = Duration::from_millis(100);

/// Takes a profile of all tasks of a runtime, 19 looks a second: where they run, and where they wait for what.
///
/// See [`Profiler::run`] for what it does.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::time::Duration;
///
/// let runtime = fibra::Runtime::builder().workers(1).build()?;
/// runtime.handle().run(|| fibra::spawn(|| fibra::sleep(Duration::from_secs(3600))));
/// let profile = fibra_insight::profile(&runtime.handle(), Duration::from_millis(100));
/// assert!(profile.to_folded().contains("[suspended: sleep]"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn profile(runtime: &Handle, duration: Duration) -> Profile {
    Profiler::new().run(runtime, duration)
}

/// Says how a profile is taken.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::task::TaskState;
/// use std::time::Duration;
///
/// let runtime = fibra::Runtime::builder().workers(1).build()?;
/// runtime.handle().run(|| fibra::spawn(fibra::task::park));
/// let cpu = fibra_insight::Profiler::new().rate(100).state(TaskState::Running);
/// // No task runs, so there is nothing in it.
/// assert_eq!(cpu.run(&runtime.handle(), Duration::from_millis(50)).to_folded(), "");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Profiler {
    pub(crate) rate: u32,
    pub(crate) state: Option<TaskState>,
}

impl Default for Profiler {
    fn default() -> Self {
        Profiler { rate: Profiler::RATE, state: None }
    }
}

impl Profiler {
    /// How many looks a second there are, unless set: no divisor of the rates at which programs do things.
    pub(crate) const RATE: u32 = 19;
    pub(crate) const MOST_RATE: u32 = 1000;

    /// Returns one with 19 looks a second, at all tasks.
    pub fn new() -> Self {
        Profiler::default()
    }

    /// Sets how many looks a second there are, at the most; 1 to 1000.
    pub fn rate(mut self, rate: u32) -> Self {
        self.rate = rate.clamp(1, Self::MOST_RATE);
        self
    }

    /// Takes samples of tasks in one state only; with [`TaskState::Running`] it is a profile of the processor's time.
    pub fn state(mut self, state: TaskState) -> Self {
        self.state = Some(state);
        self
    }

    /// Takes the profile, which takes `duration`. Blocks the calling thread, also if it is a worker.
    ///
    /// So a task calls it by [`unblock`](fibra_runtime::unblock). No task or worker takes part: it goes on while all
    /// workers compute.
    ///
    /// A sample stands for the time since the look before it. The stack of a sleep is walked once. A look walks at most
    /// 1,000 sleepers whose stacks are not known, those first that have gone without for longest, and samples at most 32
    /// threads. The time of the others is added to their next sample, so sums over tasks are right. Looks take at most 5 %
    /// of one processor: after a long one, the next comes later than the rate says.
    ///
    /// Ready tasks have no stack. Unstarted tasks in the queues of the workers are not in the profile.
    pub fn run(&self, runtime: &Handle, duration: Duration) -> Profile {
        self.run_until(runtime, duration, || false)
    }

    /// Takes the profile; ends with a look soon after `is_stopped` returns true.
    pub(crate) fn run_until(
        &self,
        runtime: &Handle,
        duration: Duration,
        is_stopped: impl Fn() -> bool,
    ) -> Profile {
        install();
        let (wall, begin) = (clock::wall(), clock::machine());
        let period = Duration::from_secs(1) / self.rate;
        let mut looks = Looks::new(self.state);
        let (mut last, mut pause) = (begin, period);
        loop {
            sleep(last, pause.min(duration - (last - begin)), &is_stopped);
            let now = clock::machine();
            looks.look(runtime, now - last);
            if now - begin >= duration || is_stopped() {
                return looks.into_profile(wall, now - begin, period);
            }
            let spent = clock::machine() - now;
            (last, pause) = (now, period.max(spent * SHARE));
        }
    }
}

/// Sleeps until that time after `begin`, or until `is_stopped` returns true.
pub(crate) fn sleep(begin: Instant, time: Duration, is_stopped: impl Fn() -> bool) {
    loop {
        let left = time.saturating_sub(clock::machine() - begin);
        if left.is_zero() || is_stopped() {
            return;
        }
        thread::sleep(left.min(ROUND));
    }
}

/// What the looks so far have found.
#[derive(Default)]
struct Looks {
    state: Option<TaskState>,
    count: u64,
    /// The tasks of the latest look, by their ids.
    known: HashMap<u64, Known>,
    tasks: Interner<String>,
    waits: Interner<String>,
    stacks: Interner<Vec<usize>>,
    places: Interner<Place>,
    /// The time that tasks have spent at each place.
    times: Vec<Duration>,
}

/// What is known of a task.
#[derive(Default)]
struct Known {
    task: usize,
    /// The latest look that has seen it.
    seen: u64,
    /// What is to be added to its next sample.
    owed: Duration,
    /// Its latest sleep: the epoch, and the number of the place.
    sleep: Option<(u64, usize)>,
}

impl Looks {
    fn new(state: Option<TaskState>) -> Self {
        let mut looks = Looks { state, ..Looks::default() };
        // What stands for nothing has the number 0.
        looks.waits.number(String::new());
        looks.stacks.number(Vec::new());
        looks
    }

    /// Looks at all tasks, `time` after the look before.
    fn look(&mut self, runtime: &Handle, time: Duration) {
        self.count += 1;
        let (mut sleepers, mut threads) = (Vec::new(), Vec::new());
        for task in runtime.tasks() {
            let (state, epoch) = task.glance();
            if state == TaskState::Ended || !self.wants(state) {
                continue;
            }
            let new = || {
                let name = self.tasks.number_or(name(&task), MOST_NAMES, "(other)".into());
                Known { task: name, ..Known::default() }
            };
            let known = self.known.entry(task.id()).or_insert_with(new);
            known.seen = self.count;
            let number = known.task;
            match (state, known.sleep) {
                (_, Some((same, place))) if Some(same) == epoch => self.times[place] += time,
                (TaskState::Suspended | TaskState::Running | TaskState::Blocking, _) => {
                    known.owed += time;
                    let list = if epoch.is_some() { &mut sleepers } else { &mut threads };
                    list.push((known.owed, task));
                }
                _ => _ = self.add(number, state, "", Vec::new(), time),
            }
        }
        let mut walked = longest_owed(sleepers, MOST_SLEEPERS);
        walked.extend(longest_owed(threads, MOST_THREADS));
        runtime.look_at(walked).iter().for_each(|dump| self.keep(dump));
        self.forget(self.count);
    }

    /// Returns false for a task whose state is not asked for.
    fn wants(&self, state: TaskState) -> bool {
        self.state.is_none_or(|wanted| wanted == state)
    }

    /// Keeps what a walk has found.
    fn keep(&mut self, dump: &TaskDump) {
        let Some(mut known) = self.known.remove(&dump.task().id()) else { return };
        let wait = dump.waits_for().map_or("", |waits_for| &waits_for.kind);
        let stack = dump.addresses().collect();
        let place = self.add(known.task, dump.state(), wait, stack, mem::take(&mut known.owed));
        known.sleep = dump.epoch().map(|epoch| (epoch, place));
        self.known.insert(dump.task().id(), known);
    }

    /// Forgets the tasks that were not seen since that look. What is owed to them is added without a stack.
    fn forget(&mut self, look: u64) {
        let forgotten: Vec<_> = self.known.extract_if(|_, known| known.seen < look).collect();
        for (_, known) in forgotten.iter().filter(|(_, known)| !known.owed.is_zero()) {
            self.add(known.task, TaskState::Suspended, "", Vec::new(), known.owed);
        }
    }

    /// Adds to the time at a place, and returns the number of the place.
    fn add(&mut self, task: usize, state: TaskState, wait: &str, stack: Vec<usize>, time: Duration) -> usize {
        let (wait, stack) = (self.waits.number(wait.into()), self.stacks.number(stack));
        let number = self.places.number(Place { task, state, wait, stack });
        self.times.resize(self.places.values().len(), Duration::ZERO);
        self.times[number] += time;
        number
    }

    fn into_profile(mut self, begin: SystemTime, duration: Duration, period: Duration) -> Profile {
        self.forget(u64::MAX);
        let mut addresses = Interner::default();
        for stack in self.stacks.values() {
            stack.iter().enumerate().for_each(|(index, address)| _ = addresses.number((*address, index > 0)));
        }
        let functions = unwinder().resolve(addresses.values());
        let samples = self.places.values().iter().copied().zip(mem::take(&mut self.times));
        let samples = samples.filter(|(place, _)| self.wants(place.state)).collect();
        Profile {
            begin,
            duration,
            period,
            samples,
            functions: addresses.values().iter().map(|(address, _)| *address).zip(functions).collect(),
            tasks: self.tasks,
            waits: self.waits,
            stacks: self.stacks,
        }
    }
}

/// Returns that many tasks, those to which most is owed.
fn longest_owed(mut tasks: Vec<(Duration, Task)>, most: usize) -> Vec<Task> {
    if tasks.len() > most {
        tasks.select_nth_unstable_by_key(most, |(owed, _)| Reverse(*owed));
    }
    tasks.into_iter().take(most).map(|(_, task)| task).collect()
}

/// Returns the name of a task, or where it was spawned.
fn name(task: &Task) -> String {
    match (task.name(), task.spawn_location()) {
        (Some(name), _) => name.into(),
        (None, Some(place)) => place.to_string(),
        (None, None) => "a task of the library".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_without_an_end_can_be_stopped() {
        let runtime = fibra_runtime::Runtime::builder().workers(1).build().unwrap();
        let profile = Profiler::new().run_until(&runtime.handle(), Duration::MAX, || true);
        assert_eq!(profile.to_folded(), "");
    }
}
