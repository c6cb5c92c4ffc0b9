//! One run: a generator loads one server and is watched to its last event.

use crate::child::{self, Child};
use crate::generator;
use crate::interrupt::Interrupt;
use crate::progress::Show;
use crate::role::Role;
use crate::servers::Running;
use crate::wire::{Event, Order, Outcome, Progress, STOP};
use std::io::{self, Write};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at the server and at Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// The time that a generator may take beyond its plan.
const SLACK: Duration = Duration::from_secs(5);

/// The time that a generator has after a stop.
const STOP_SLACK: Duration = Duration::from_secs(2);

/// Between the loss of the connections and the moment the server's end can be seen.
const DEATH_SLACK: Duration = Duration::from_millis(300);

/// The outcome of a run.
#[derive(Default)]
pub(crate) struct Finished {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) timeline: Vec<Progress>,
    /// The faults of the processes themselves.
    pub(crate) errors: Vec<String>,
}

/// A generator at work.
struct Generator {
    child: Child,
    stdin: ChildStdin,
    events: Receiver<Event>,
}

impl Generator {
    fn start(order: &Order, cpu: Option<usize>) -> io::Result<Self> {
        let mut child = Child::start(&mut Role::Generator.command(cpu)?)?;
        let (mut stdin, stdout) = (child.take_stdin()?, child.take_stdout()?);
        writeln!(stdin, "{}", serde_json::to_string(order)?)?;
        Ok(Self { child, stdin, events: child::listen(stdout)? })
    }
}

/// Carries out `order` against `server` and shows how it goes.
pub(crate) fn run(
    order: &Order,
    server: &mut Running,
    cpu: Option<usize>,
    show: &mut Show,
    interrupt: &Interrupt,
) -> io::Result<Finished> {
    // The silent connections have theirs before the others.
    let connecting = generator::patience(order.idle) + generator::patience(order.connections);
    let patience = connecting + order.warmup + order.duration + order.timeout + SLACK;
    let generator = Generator::start(order, cpu)?;
    let deadline = Instant::now() + patience;
    let mut watch = Watch {
        generator,
        server,
        interrupt,
        deadline,
        timeout: order.timeout,
        asking: false,
        stopping: false,
        died: None,
    };
    let mut finished = Finished::default();
    if let Err(error) = watch.listen_to_the_end(show, &mut finished)
        && !watch.stopping
    {
        finished.errors.push(error);
    }
    let lost = finished.outcome.as_ref().is_some_and(|outcome| outcome.totals.faults.lost > 0);
    if let Some(how) = watch.cause_of_death(lost) {
        finished.errors.push(format!("the server died in the middle ({how})"));
    }
    Ok(finished)
}

/// Watches a run: both processes, the clock and Ctrl-C.
struct Watch<'a> {
    generator: Generator,
    server: &'a mut Running,
    interrupt: &'a Interrupt,
    /// When a generator that has not come to its end is given up.
    deadline: Instant,
    timeout: Duration,
    /// Whether the connections are there.
    asking: bool,
    stopping: bool,
    /// How the server ended, if it did.
    died: Option<String>,
}

impl Watch<'_> {
    /// Reads the generator's events to the last. An error says why the last did not come.
    fn listen_to_the_end(&mut self, show: &mut Show, finished: &mut Finished) -> Result<(), String> {
        loop {
            let begun = Instant::now();
            let event = self.generator.events.recv_timeout(LOOK);
            // Time in which this process was stopped, as by Ctrl-Z, is no time in which the generator kept
            // silent.
            self.deadline += begun.elapsed().saturating_sub(LOOK);
            match event {
                Ok(Event::Progress(progress)) => {
                    show.update(&progress);
                    finished.timeline.push(progress);
                }
                Ok(Event::Done(outcome)) => {
                    finished.outcome = Some(*outcome);
                    return Ok(());
                }
                Ok(Event::Connected(_)) => self.asking = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let words = last_words(&mut self.generator.child);
                    return Err(format!("the generator ended by itself: {words}"));
                }
            }
            self.look_around()?;
        }
    }

    fn look_around(&mut self) -> Result<(), String> {
        let now = Instant::now();
        if self.interrupt.is_set() && !self.stopping {
            self.stopping = true;
            // A generator that is gone already needs no telling.
            let _ = writeln!(self.generator.stdin, "{STOP}");
            // A generator that still connects has nothing to say.
            self.deadline = if self.asking { now + STOP_SLACK } else { now };
        }
        if self.died.is_none() {
            self.died = self.server.obituary();
            if self.died.is_some() {
                self.deadline = self.deadline.min(now + self.timeout + STOP_SLACK);
            }
        }
        if now >= self.deadline { Err("the generator did not come to an end in time".into()) } else { Ok(()) }
    }

    /// Returns how the server ended, if it did. Lost connections may precede its end by a moment.
    fn cause_of_death(&mut self, lost: bool) -> Option<String> {
        let patience = if lost && self.server.id().is_some() { DEATH_SLACK } else { Duration::ZERO };
        let deadline = Instant::now() + patience;
        loop {
            let died = self.died.take().or_else(|| self.server.obituary());
            if died.is_some() || Instant::now() >= deadline {
                return died;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns the complaints of a generator that has closed its output and ends soon.
fn last_words(child: &mut Child) -> String {
    thread::sleep(LOOK);
    child.obituary().unwrap_or_else(|| "without a word".into())
}
