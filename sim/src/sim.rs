//! A simulation of a program, and its report.

#![forbid(unsafe_code)]

use std::env;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use fibra::{attributes, time};
use fibra_runtime::{PanicLog, wait};

use crate::context;
use crate::net::network::Network;
use crate::net::{NO_MESSAGE, text_of};
use crate::oracle::{End, Oracle, Trace, name_of};
use crate::strategy::{EXPECTED, Path, Schedule, Strategy};

/// Overrides the seed.
pub(crate) const SEED: &str = "FIBRA_SIM_SEED";
/// Overrides the schedule.
pub(crate) const REPLAY: &str = "FIBRA_SIM_REPLAY";

/// Tells the random numbers of the network from others.
const NETWORK: u64 = 0x0a11_ce5e_7d05_7ea1;

/// A program, which a run that never ends keeps.
pub(crate) type Program = Arc<dyn Fn() + Send + Sync>;

/// Simulates runs of a program.
///
/// # Examples
/// ```
/// use fibra_sim::{Schedule, Sim};
/// let report = Sim::builder().seed(3).schedule(Schedule::Random).run(|| {
///     let child = fibra::spawn(|| 1);
///     assert_eq!(child.join().unwrap(), 1);
/// });
/// assert_eq!(report.seed(), 3);
/// ```
pub struct Sim(Builder);

/// Describes a simulation.
#[derive(Clone, Debug)]
pub struct Builder {
    seed: u64,
    pub(crate) schedule: Schedule,
    time_limit: Option<Duration>,
    max_steps: u64,
    determinism: bool,
    /// Whether the choices are recorded.
    pub(crate) records: bool,
    /// The test that each run is a part of, and how long a run may take in real time: after that the process ends.
    pub(crate) test: Option<(&'static str, Duration)>,
}

impl Sim {
    /// Starts to describe a simulation.
    pub fn builder() -> Builder {
        Builder {
            seed: 0,
            schedule: Schedule::Random,
            time_limit: None,
            max_steps: 10_000_000,
            determinism: false,
            records: false,
            test: None,
        }
    }

    /// Runs `program` in the simulation. Each call makes the same run.
    ///
    /// If tasks wait for each other's locks in a circle, nothing can end them: that run fails, and its thread, its stacks
    /// and its descriptors stay until the process ends. These are four, and those of its sockets. So it is with tasks
    /// that go on after the limit of steps has cancelled the main task, until the run has taken twice as many.
    ///
    /// The variables `FIBRA_SIM_SEED` and `FIBRA_SIM_REPLAY` of the environment override the seed and the schedule. The second
    /// has what a failure prints: the choices of a run, or the name of a schedule.
    ///
    /// # Panics
    /// Panics if the run fails: if the main task panics, or a task whose panic no join observes, if all
    /// tasks sleep for ever, or a limit is reached. Panics in a simulated program: a simulation does not simulate another.
    #[track_caller]
    pub fn run(&self, program: impl Fn() + Send + Sync + 'static) -> Report {
        self.try_run(program).unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// Runs `program` as [`run`](Sim::run) does.
    ///
    /// # Errors
    /// Returns the failure of the run.
    ///
    /// # Panics
    /// Panics in a simulated program, and if a variable of the environment has no meaning.
    #[track_caller]
    pub fn try_run(&self, program: impl Fn() + Send + Sync + 'static) -> Result<Report, Failure> {
        self.0.run_here(&(Arc::new(program) as Program))
    }
}

impl Builder {
    /// Sets the seed, which decides all random choices. 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets how tasks are ordered. [`Schedule::Random`] unless set.
    ///
    /// # Panics
    /// Panics if it is a [`Schedule::Pct`] of depth 0.
    #[track_caller]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        assert!(schedule != Schedule::Pct { depth: 0 }, "a schedule by priorities has a depth from 1 on");
        self.schedule = schedule;
        self
    }

    /// Limits the virtual time of a run. Unlimited unless set.
    ///
    /// # Panics
    /// Panics if `limit` is zero.
    #[track_caller]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        assert!(!limit.is_zero(), "a simulation with a time limit of zero cannot do anything");
        self.time_limit = Some(limit);
        self
    }

    /// Limits the steps of a run: the switches between tasks, and in builds with `--cfg fibra_sim` the points where one may
    /// be. Ten million unless set.
    ///
    /// # Panics
    /// Panics if `steps` is 0.
    #[track_caller]
    pub fn max_steps(mut self, steps: u64) -> Self {
        assert!(steps > 0, "a simulation without steps cannot do anything");
        self.max_steps = steps;
        self
    }

    /// Makes each run twice, and fails it where the second takes another course. Off unless set.
    pub fn check_determinism(mut self, check: bool) -> Self {
        self.determinism = check;
        self
    }

    /// Makes the simulation.
    pub fn build(self) -> Sim {
        Sim(self)
    }

    /// Makes the simulation and runs `program`, as [`Sim::run`] does.
    ///
    /// # Panics
    /// As [`Sim::run`].
    #[track_caller]
    pub fn run(self, program: impl Fn() + Send + Sync + 'static) -> Report {
        self.build().run(program)
    }

    /// Runs the program as the environment asks for, or else as this describes.
    #[track_caller]
    pub(crate) fn run_here(&self, program: &Program) -> Result<Report, Failure> {
        let seed = variable(SEED).unwrap_or(self.seed);
        let schedule = variable(REPLAY).unwrap_or_else(|| self.schedule.text(EXPECTED));
        let first = self.run_once(program, &schedule, None, seed);
        if self.determinism {
            first.check_equal(&self.run_once(program, &schedule, None, seed), &schedule)?;
        }
        first.into_result()
    }

    /// Runs the program once by that text of a strategy, or along that path. It has a thread of its own: thread-locals begin
    /// anew.
    #[track_caller]
    pub(crate) fn run_once(&self, program: &Program, text: &str, path: Option<Path>, seed: u64) -> Outcome {
        assert!(!context::is_simulated(), "a simulation was started inside a simulation");
        let strategy = path.map(Strategy::Path).map_or_else(|| Strategy::read(text, seed), Ok);
        let strategy = strategy.unwrap_or_else(|error| panic!("{error}"));
        let (ended, end) = mpsc::channel();
        let oracle = Arc::new_cyclic(|oracle: &Weak<Oracle>| {
            let oracle = Weak::clone(oracle);
            let fail = move |reason| _ = oracle.upgrade().map(|oracle| oracle.end_for(reason));
            let network = Network::new(seed ^ NETWORK, fail).expect("a simulation has descriptors");
            network.add_host("main");
            let recorded = (self.records, self.determinism);
            Oracle::new(strategy, seed, self.max_steps, recorded, ended, network)
        });
        let (run, program, limit) = (Arc::clone(&oracle), Arc::clone(program), self.time_limit);
        let thread = thread::spawn(move || {
            let end = simulate(&program, &run, seed, limit);
            // Before the end is told: then the caller may be the last that has the program.
            drop(program);
            run.end(end);
        });
        let patience = self.test.map_or(Duration::MAX, |(_, timeout)| timeout);
        let end = match end.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) => self.exit(seed, &oracle),
            end => end.expect("a run tells its end"),
        };
        if !end.is_stuck {
            thread.join().expect("a run catches its panics");
        }
        let mut run = oracle.lock();
        let is_panic = run.reason.is_none() && end.is_panic;
        let schedule = run.script.take().map_or_else(|| text.to_owned(), |script| script.to_string());
        let failure = run.reason.take().or(end.failure);
        Outcome {
            report: Report { seed, steps: run.steps, elapsed: end.elapsed, fingerprint: run.fingerprint },
            failure: failure.map(|reason| Failure { reason, seed, schedule, is_panic }),
            decisions: run.decisions,
            trace: run.trace.take(),
            path: run.take_path(),
            left: if end.is_stuck { oracle.network().descriptors() } else { 0 },
        }
    }

    /// Ends the process, since a run of a test does not end.
    fn exit(&self, seed: u64, oracle: &Oracle) -> ! {
        let ((name, timeout), waits) = (self.test.unwrap_or_default(), oracle.waits());
        attributes::exit_with(format!(
            "fibra: the test '{name}' fails:\na run has not ended within {timeout:?} of real time, with {SEED}={seed}; its tasks \
             are{waits}\n"
        ))
    }
}

/// Runs the program on this thread.
fn simulate(program: &Program, oracle: &Arc<Oracle>, seed: u64, limit: Option<Duration>) -> End {
    let _entered = context::enter(oracle);
    let log = Arc::clone(oracle);
    let hook = move |panic: &fibra::TaskPanic<'_>| log.note_panic(panic.task(), describe(panic));
    let (mut elapsed, unobserved) = (Duration::ZERO, PanicLog::default());
    let runtime = fibra::Runtime::builder().oracle(oracle.clone()).seed(seed);
    let network: Arc<dyn fibra_io::network::Network> = Arc::clone(oracle.network()) as _;
    let runtime = runtime.driver(fibra_io::simulated_driver(network));
    // A run that has ended may have left a task behind that holds its thread.
    let run = Arc::clone(oracle);
    let on_stall = move |stall: &fibra::Stall| {
        if !run.has_ended() {
            let told = format!("fibra: {stall}\n");
            eprint!("{told}");
        }
    };
    let runtime = runtime.on_task_panic(hook).panic_log(&unobserved).on_stall(on_stall);
    let result = catch_unwind(AssertUnwindSafe(|| {
        runtime.run(|| {
            // A rule of the network may run beside the tasks.
            wait::forbid_thread_waits("the simulation");
            oracle.begin();
            let begin = time::now();
            // Without a limit: beyond what the clock can tell.
            let end = fibra::timeout(limit.unwrap_or(Duration::MAX), || program());
            elapsed = time::now() - begin;
            end
        })
    }));
    // Code that is no cancellation point may have gone on beyond its limit.
    let is_late = limit.is_some_and(|limit| elapsed > limit);
    let mut is_panic = false;
    let failure = match result {
        Ok(Ok(Ok(()))) if !is_late => {
            let mut panics = unobserved.unobserved().filter(|(task, _)| !oracle.is_end_of_crash(*task));
            panics.next().map(|(_, told)| format!("no join observed a panic: {told}"))
        }
        Ok(Ok(_)) => Some(format!("the time limit of {:?} has passed", limit.unwrap_or_default())),
        Ok(Err(error)) => Some(format!("the simulation could not start: {error}")),
        Err(payload) => {
            let text = text_of(&*payload);
            let panic = oracle.panic_of_main(&text);
            is_panic = panic.is_some();
            panic.or(Some(text))
        }
    };
    End { elapsed, failure, is_panic, is_stuck: false }
}

/// Describes a panic.
fn describe(panic: &fibra::TaskPanic<'_>) -> String {
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    format!("{} panicked{place}: {}", name_of(panic.task()), panic.message().unwrap_or(NO_MESSAGE))
}

/// Reads a variable of the environment.
#[track_caller]
pub(crate) fn variable<T: FromStr<Err: fmt::Display>>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(error) => panic!("{name}: {error}"),
    }
}

/// What a run has shown.
pub(crate) struct Outcome {
    pub(crate) report: Report,
    pub(crate) failure: Option<Failure>,
    pub(crate) decisions: u64,
    trace: Option<Trace>,
    /// The path that it has taken, if it had one.
    pub(crate) path: Option<Path>,
    /// How many descriptors it has left behind, with its thread.
    pub(crate) left: usize,
}

impl Outcome {
    pub(crate) fn into_result(self) -> Result<Report, Failure> {
        self.failure.map_or(Ok(self.report), Err)
    }

    /// Compares a run with its repetition.
    fn check_equal(&self, again: &Outcome, schedule: &str) -> Result<(), Failure> {
        let (Some(first), Some(second)) = (&self.trace, &again.trace) else { return Ok(()) };
        if first.steps == second.steps && self.report.elapsed == again.report.elapsed {
            return Ok(());
        }
        let mut both = first.steps.iter().zip(&second.steps);
        let step = both.position(|(a, b)| a != b).unwrap_or(first.steps.len().min(second.steps.len()));
        let task = |trace: &Trace| match trace.steps.get(step) {
            Some(number) => format!("{}, number {number}", trace.names[*number as usize]),
            None => "no task".to_owned(),
        };
        let reason = format!(
            "the program is not deterministic: at step {step} the first run went on with {}, and the second with {}. Tasks are \
             numbered in the order of their first steps",
            task(first),
            task(second)
        );
        let (seed, schedule) = (self.report.seed, schedule.to_owned());
        Err(Failure { reason, seed, schedule, is_panic: false })
    }
}

/// Describes a run that did not fail.
#[derive(Clone, Debug)]
pub struct Report {
    seed: u64,
    steps: u64,
    elapsed: Duration,
    fingerprint: u64,
}

impl Report {
    /// Returns the seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of its steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the virtual time that the main task took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns a hash of the order in which tasks ran.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Describes a run that failed.
///
/// Its text has the reason, and one line with which the run is repeated.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) reason: String,
    pub(crate) seed: u64,
    pub(crate) schedule: String,
    /// The main task has panicked.
    pub(crate) is_panic: bool,
}

impl Failure {
    /// Returns why the run failed.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the schedule of the run, for [`replay`](crate::replay): its choices after it was shrunk, or else a name.
    pub fn schedule(&self) -> &str {
        &self.schedule
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { reason, seed, schedule, .. } = self;
        write!(f, "a simulated run failed: {reason}\nreplay with {SEED}={seed} {REPLAY}={schedule}")
    }
}

impl std::error::Error for Failure {}
