//! A simulation of a program, and its report.

#![forbid(unsafe_code)]

use std::any::Any;
use std::env;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use fibra::time;
use fibra_runtime::PanicLog;

use crate::context;
use crate::net::network::Network;
use crate::oracle::{End, Oracle};
use crate::script::Script;
use crate::strategy::{Schedule, Strategy};

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
        }
    }

    /// Runs `program` in the simulation. Each call makes the same run.
    ///
    /// If tasks wait for each other's locks in a circle, nothing can end them: that run fails, and its thread, its stacks
    /// and three descriptors stay until the process ends.
    ///
    /// The variables `FIBRA_SIM_SEED` and `FIBRA_SIM_REPLAY` of the environment override the seed and the schedule.
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
        let seed = variable(SEED).unwrap_or(self.0.seed);
        let script: Option<Script> = variable(REPLAY);
        let program: Program = Arc::new(program);
        let strategy = || match &script {
            Some(script) => Strategy::Script(script.clone()),
            None => Strategy::new(self.0.schedule, seed, None),
        };
        let first = self.0.run_once(&program, strategy(), seed);
        if self.0.determinism {
            let second = self.0.run_once(&program, strategy(), seed);
            first.check_equal(&second)?;
        }
        first.into_result()
    }
}

impl Builder {
    /// Sets the seed, which decides all random choices. 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets how tasks are ordered. [`Schedule::Random`] unless set.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
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

    /// Runs the program once, on a thread of its own: thread-locals begin anew.
    #[track_caller]
    pub(crate) fn run_once(&self, program: &Program, strategy: Strategy, seed: u64) -> Outcome {
        assert!(!context::is_simulated(), "a simulation was started inside a simulation");
        let (ended, end) = mpsc::channel();
        let network = Network::new(seed ^ NETWORK).expect("a simulation has descriptors");
        network.add_host("main");
        let oracle = Oracle::new(strategy, seed, self.max_steps, self.determinism, ended, network);
        let oracle = Arc::new(oracle);
        let told = Arc::downgrade(&oracle);
        oracle.network().on_panic(move |panic| {
            if let Some(oracle) = told.upgrade() {
                oracle.end_for(format!("a rule of the network panicked: {}", text_of(&*panic)));
            }
        });
        let (run, program, limit) = (Arc::clone(&oracle), Arc::clone(program), self.time_limit);
        let thread = thread::spawn(move || {
            let end = simulate(&program, &run, seed, limit);
            // Before the end is told: then the caller may be the last that has the program.
            drop(program);
            run.end(end);
        });
        let end = end.recv().expect("a run tells its end");
        if !end.is_stuck {
            thread.join().expect("a run catches its panics");
        }
        let mut run = oracle.lock();
        let ran_out = || format!("the run has taken more than {} steps", self.max_steps);
        let refused = run.reason.take();
        let failure = refused.or_else(|| run.ran_out.then(ran_out)).or(end.failure);
        let report = Report { seed, steps: run.steps, elapsed: end.elapsed, fingerprint: run.fingerprint };
        let (script, trace, decisions) = (run.script.clone(), run.trace.clone(), run.decisions);
        drop(run);
        Outcome {
            report,
            decisions,
            script,
            trace,
            failure,
            strategy: oracle.take_strategy(),
            is_stuck: end.is_stuck,
        }
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
    let failure = match result {
        Ok(Ok(Ok(()))) if !is_late => {
            let mut panics = unobserved.unobserved().filter(|(task, _)| !oracle.is_end_of_crash(*task));
            panics.next().map(|(_, told)| format!("no join observed a panic: {told}"))
        }
        Ok(Ok(_)) => Some(format!("the time limit of {:?} has passed", limit.unwrap_or_default())),
        Ok(Err(error)) => Some(format!("the simulation could not start: {error}")),
        Err(payload) => Some(oracle.panic_of_main().unwrap_or_else(|| text_of(&*payload))),
    };
    End { elapsed, failure, is_stuck: false }
}

/// Describes a panic.
fn describe(panic: &fibra::TaskPanic<'_>) -> String {
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    format!("{} panicked{place}: {}", name_of(panic.task()), panic.message().unwrap_or("no message"))
}

/// Names a task, without its id: that differs from run to run.
pub(crate) fn name_of(task: &fibra::Task) -> String {
    match (task.name(), task.spawned_at()) {
        (Some(name), _) => format!("task '{name}'"),
        (None, Some(place)) => format!("the task spawned at {place}"),
        (None, None) => "a task of the library".to_owned(),
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
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
    pub(crate) decisions: u64,
    pub(crate) script: Script,
    trace: Option<Vec<u32>>,
    pub(crate) failure: Option<String>,
    pub(crate) strategy: Strategy,
    /// Its thread and its descriptors are left behind.
    pub(crate) is_stuck: bool,
}

impl Outcome {
    pub(crate) fn into_result(self) -> Result<Report, Failure> {
        match self.failure {
            None => Ok(self.report),
            Some(reason) => Err(Failure { reason, seed: self.report.seed, script: self.script }),
        }
    }

    /// Compares a run with its repetition.
    fn check_equal(&self, again: &Outcome) -> Result<(), Failure> {
        let (Some(first), Some(second)) = (&self.trace, &again.trace) else { return Ok(()) };
        if first == second && self.report.elapsed == again.report.elapsed {
            return Ok(());
        }
        let step =
            first.iter().zip(second).position(|(a, b)| a != b).unwrap_or(first.len().min(second.len()));
        let task = |trace: &[u32]| match trace.get(step) {
            Some(number) => format!("task {number}"),
            None => "no task".to_owned(),
        };
        let reason = format!(
            "the program is not deterministic: at step {step} the first run went on with {}, and the second with {}. Tasks are \
             numbered in the order of their first steps",
            task(first),
            task(second)
        );
        Err(Failure { reason, seed: self.report.seed, script: self.script.clone() })
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
    pub(crate) script: Script,
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

    /// Returns the schedule of the run, for [`replay`](crate::replay).
    pub fn schedule(&self) -> String {
        self.script.to_string()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { reason, seed, script } = self;
        write!(f, "a simulated run failed: {reason}\nreplay with {SEED}={seed} {REPLAY}={script}")
    }
}

impl std::error::Error for Failure {}
