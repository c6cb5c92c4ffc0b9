//! What the attributes `#[fibra::test]` and `#[fibra::main]` expand to calls of.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::process::{self, ExitCode, Termination};
use std::time::Duration;

use fibra_runtime::{Handle, JoinError, PanicLog, Task, TaskPanic, sleep, task};

use crate::runtime::Builder;
pub use crate::runtime::run_on as main;

/// How long a body may run, unless the test sets it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// How long the unwinding of a body, and then that of its tasks, may take.
const LAST: Duration = Duration::from_secs(5);

/// How often, and how far apart, a test looks whether the tasks that its body has left have ended.
const LOOKS: u32 = 200;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The exit code of a process with a test that does not end; that of a harness whose tests fail.
const EXIT_CODE: i32 = 101;

/// Describes a test, whose body runs as a task.
#[derive(Debug)]
pub struct Test {
    name: &'static str,
    builder: Builder,
    timeout: Duration,
    should_panic: bool,
}

impl Test {
    /// Describes a test that runs on such a runtime.
    pub fn new(name: &'static str, builder: Builder) -> Self {
        Test { name, builder, timeout: TIMEOUT, should_panic: false }
    }

    /// Sets how long the body may run, in real time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Says that the harness expects a panic. So a test that fails for another reason returns.
    pub fn should_panic(mut self) -> Self {
        self.should_panic = true;
        self
    }

    /// Runs the test.
    ///
    /// # Panics
    /// Panics if the test fails.
    pub fn run<T: Termination + 'static>(self, body: fn() -> T) -> ExitCode {
        let Test { name, builder, timeout, should_panic } = self;
        let log = PanicLog::default();
        // The harness captures what is printed by these means, on the threads of the runtime as well.
        let builder = builder.on_task_panic(say_panic).on_stall(|stall| say(format!("fibra: {stall}\n")));
        let builder = builder.on_deadlock(|deadlock| say(format!("fibra: {deadlock}\n")));
        let runtime = builder.panic_log(&log).thread_name(name).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("the runtime could not be started: {error}"));
        let handle = runtime.handle();
        let task = task::Builder::main_of(&handle).name(name);
        let task = task.spawn_on(&handle, move || (body().report(), leaked(|_| true)));

        let mut failures = Vec::new();
        let ended = task.join_timeout(timeout).or_else(|task| {
            let waits = waits(&handle, handle.started_tasks());
            failures.push(format!(
                "it has not ended within {timeout:?}, so it is cancelled; its tasks are{waits}"
            ));
            let asleep =
                "all tasks sleep, and no timer, descriptor or call on the blocking pool is to wake one";
            failures.extend(handle.wait_graph().all_asleep().then(|| asleep.to_owned()));
            task.cancel();
            task.join_timeout(LAST)
        });
        let ended = ended.unwrap_or_else(|_| exit(name, &failures, &handle));
        let deadlock = handle.take_deadlock();
        failures.extend(
            deadlock.map(|waits| format!("all tasks sleep, and nothing is left to wake one:{waits}")),
        );
        let (mut code, mut panic) = (ExitCode::SUCCESS, None);
        match ended.map_err(JoinError::try_into_panic) {
            Ok((returned, leaked)) => {
                code = returned;
                // Not by the task, which would hold its worker while stacks are named.
                failures.extend(leaked.map(|tasks| describe_leaked(&handle, tasks)));
            }
            Err(Ok(payload)) => panic = Some(payload),
            Err(Err(error)) => failures.push(error.to_string()),
        }
        if !runtime.shutdown_timeout(LAST).is_empty() {
            exit(name, &failures, &handle);
        }
        failures
            .extend(log.unobserved().map(|(_, panic)| format!("a panic was observed by no join: {panic}")));
        if !failures.is_empty() {
            eprint!("{}", report(name, &failures));
            match should_panic {
                true => return ExitCode::SUCCESS,
                false => _ = panic.get_or_insert_with(|| Box::new("the test has failed")),
            }
        }
        panic.map_or(code, |panic| resume_unwind(panic))
    }
}

fn say_panic(panic: &TaskPanic<'_>) {
    say(format!("fibra: {} panicked\n", panic.task()));
    panic.call_previous_hook();
}

/// Gives the tasks that the body has left time to end, and returns those that do not.
///
/// Only those count that `counts` selects. The caller sleeps between looks as any task does, so tasks that are ready run before
/// each, however busy the machine is.
pub fn leaked(counts: impl Fn(&Task) -> bool) -> Option<Vec<Task>> {
    let (runtime, own) = (Handle::current(), task::current());
    let mut looks = 0..LOOKS;
    loop {
        let mut left = left(&runtime, &own);
        left.retain(&counts);
        if left.is_empty() && runtime.unstarted_tasks() == 0 {
            return None;
        }
        if looks.next().is_none() {
            return Some(left);
        }
        sleep(BETWEEN_LOOKS);
    }
}

/// Describes tasks that a body has left.
pub fn describe_leaked(runtime: &Handle, tasks: Vec<Task>) -> String {
    format!("its body has returned, and a second later these tasks are left{}", waits(runtime, tasks))
}

/// Returns the tasks beside that of the body, without those that the library has spawned for itself.
fn left(runtime: &Handle, body: &Task) -> Vec<Task> {
    let mut tasks = runtime.started_tasks();
    tasks.retain(|task| task != body && task.spawn_location().is_some());
    tasks
}

/// Describes what tasks wait for.
pub fn waits(runtime: &Handle, tasks: Vec<Task>) -> String {
    let unstarted = match runtime.unstarted_tasks() {
        0 => String::new(),
        unstarted => format!("\n  {unstarted} that have not started"),
    };
    format!(":{}{unstarted}", runtime.describe_waits(tasks))
}

fn report(name: &str, failures: &[String]) -> String {
    format!("fibra: the test '{name}' fails:\n{}\n", failures.join("\n"))
}

/// Ends the process, since the tasks of a test do not end.
fn exit(name: &str, failures: &[String], runtime: &Handle) -> ! {
    let waits = waits(runtime, runtime.started_tasks());
    exit_with(report(name, failures) + &format!("it does not end; {LAST:?} later its tasks are{waits}\n"))
}

/// Ends the process of a test that does not end, with that report.
pub fn exit_with(report: String) -> ! {
    // Not through the capture of the harness, which would be lost.
    _ = io::stderr().write_all(report.as_bytes());
    process::exit(EXIT_CODE)
}

/// Writes a report by one call, to what the harness captures.
fn say(report: String) {
    eprint!("{report}");
}
