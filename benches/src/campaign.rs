//! The order of events: every server in its turn, a second look at one of them, the report.

use crate::generator;
use crate::interrupt::{self, Interrupt};
use crate::options::Options;
use crate::process::Machine;
use crate::progress::Show;
use crate::report::{self, CrossCheck, Report, Row};
use crate::role::{Places, Role};
use crate::run::{self, Finished};
use crate::servers::{Running, Server};
use crate::sys;
use crate::wire::{Client, Order};
use clap::{CommandFactory, Parser, error::ErrorKind};
use std::io;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Descriptors that a process needs besides its connections.
const SPARE_FILES: u64 = 64;

/// How long the second look lasts at the most, and its warm-up.
const CROSS_CHECK: Duration = Duration::from_secs(2);
const CROSS_WARMUP: Duration = Duration::from_millis(300);

/// Plays the part this process was started for: by a user the orchestrator, by the orchestrator one of the others.
///
/// Returns the exit status: 0, or 1 if anything went wrong with any server, 2 for a wrong command line, 130 after
/// Ctrl-C.
pub fn main(servers: &[Server]) -> ExitCode {
    play(servers, || orchestrate(servers))
}

/// Plays the part this process was started for, which for a user's program is `as_user`.
pub(crate) fn play(servers: &[Server], as_user: impl FnOnce() -> ExitCode) -> ExitCode {
    match Role::assume() {
        Some(Role::Generator) => generator::main(),
        Some(Role::Server(name)) => match servers.iter().find(|server| server.name == name) {
            Some(server) => (server.main)(),
            None => ExitCode::FAILURE,
        },
        None => as_user(),
    }
}

fn orchestrate(servers: &[Server]) -> ExitCode {
    let options = Options::parse();
    let known: Vec<_> = servers.iter().map(|server| server.name).collect();
    if let Err(why) = options.check(&known) {
        Options::command().error(ErrorKind::ValueValidation, why).exit();
    }
    let conduct = || {
        check_open_files(options.connections)?;
        let report = Campaign::new(options.clone())?.conduct(servers);
        let written = report::publish(&report, &options);
        Ok::<_, io::Error>(match (report.interrupted, report.is_clean() && written) {
            (true, _) => ExitCode::from(interrupt::STATUS),
            (false, true) => ExitCode::SUCCESS,
            (false, false) => ExitCode::FAILURE,
        })
    };
    conduct().unwrap_or_else(|error| {
        eprintln!("load: {error}");
        ExitCode::FAILURE
    })
}

pub(crate) fn check_open_files(connections: u32) -> io::Result<()> {
    let limit = sys::raise_open_files()?;
    let needed = u64::from(connections) + SPARE_FILES;
    if limit >= needed {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{connections} connections need {needed} open files, and the hard limit (RLIMIT_NOFILE, see `ulimit -Hn`) is \
         {limit}"
    )))
}

/// A server to be loaded.
pub(crate) enum Target<'a> {
    Ours(&'a Server),
    Outside(&'a str),
}

impl Target<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Ours(server) => server.name,
            Self::Outside(address) => address,
        }
    }

    fn about(&self) -> &str {
        match self {
            Self::Ours(server) => server.about,
            Self::Outside(_) => "given by address",
        }
    }

    fn start(&self, cpu: Option<usize>) -> io::Result<Running> {
        match self {
            Self::Ours(server) => Running::start(server.name, cpu),
            Self::Outside(address) => Running::outside(address),
        }
    }
}

/// A machine and a load, under which servers are put one by one.
pub(crate) struct Campaign {
    pub(crate) options: Options,
    pub(crate) places: Places,
    pub(crate) interrupt: Interrupt,
}

impl Campaign {
    pub(crate) fn new(options: Options) -> io::Result<Self> {
        let mut places = Places::choose();
        // A server outside is wherever it is.
        places.server = places.server.filter(|_| options.address.is_none());
        Ok(Self { options, places, interrupt: Interrupt::listen()? })
    }

    fn conduct(&self, servers: &[Server]) -> Report {
        let started = SystemTime::now();
        let mut rows = Vec::new();
        let targets = self.targets(servers);
        for target in &targets {
            if !self.interrupt.is_set() {
                rows.push(self.load(target));
            }
        }
        let cross_check = self.cross_check(&targets, &rows);
        Report {
            started,
            options: self.options.clone(),
            machine: Machine::describe(),
            places: (self.places.server, self.places.generator),
            rows,
            cross_check,
            interrupted: self.interrupt.is_set(),
        }
    }

    fn targets<'a>(&'a self, servers: &'a [Server]) -> Vec<Target<'a>> {
        if let Some(address) = &self.options.address {
            return vec![Target::Outside(address)];
        }
        let chosen = &self.options.server;
        let wanted = |server: &&Server| chosen.is_empty() || chosen.iter().any(|name| name == server.name);
        servers.iter().filter(wanted).map(Target::Ours).collect()
    }

    /// Loads one server as the options say.
    pub(crate) fn load(&self, target: &Target<'_>) -> Row {
        let options = &self.options;
        let finished = self.run(target, target.name(), Client::Fibra, options.warmup, options.duration);
        Row::new(target.name(), target.about(), options, finished, self.interrupt.is_set())
    }

    /// Starts the server, runs one client on it, and ends it.
    fn run(
        &self,
        target: &Target<'_>,
        title: &str,
        client: Client,
        warmup: Duration,
        duration: Duration,
    ) -> Finished {
        let server = target.start(self.places.server);
        let finished =
            server.and_then(|mut server| self.run_on(&mut server, title, client, warmup, duration));
        finished.unwrap_or_else(|error| Finished {
            errors: vec![format!("it could not be loaded: {error}")],
            ..Finished::default()
        })
    }

    /// Runs one client on a server that listens.
    pub(crate) fn run_on(
        &self,
        server: &mut Running,
        title: &str,
        client: Client,
        warmup: Duration,
        duration: Duration,
    ) -> io::Result<Finished> {
        let order = self.order(server, client, warmup, duration);
        let mut show = Show::new(title, &order);
        let finished = run::run(&order, server, self.places.generator, &mut show, &self.interrupt);
        let word = finished.as_ref().map_or_else(ToString::to_string, Row::summary);
        show.finish(&word);
        finished
    }

    fn order(&self, server: &Running, client: Client, warmup: Duration, duration: Duration) -> Order {
        let options = &self.options;
        Order {
            address: server.address,
            client,
            connections: options.connections as usize,
            size: options.size as usize,
            pipeline: options.pipeline as usize,
            rate: options.rate,
            warmup,
            duration,
            timeout: options.timeout,
            server: server.id(),
        }
    }

    /// Repeats the last row for a moment with the client that is not written with fibra.
    fn cross_check(&self, targets: &[Target<'_>], rows: &[Row]) -> Option<CrossCheck> {
        let (target, row) = targets.last().zip(rows.last())?;
        if self.options.no_cross_check || self.interrupt.is_set() || !row.errors.is_empty() {
            return None;
        }
        let duration = self.options.duration.min(CROSS_CHECK);
        let warmup = self.options.warmup.min(CROSS_WARMUP);
        let finished = self.run(target, "cross-check", Client::Plain, warmup, duration);
        let second =
            Row::new(target.name(), target.about(), &self.options, finished, self.interrupt.is_set());
        (!self.interrupt.is_set()).then(|| CrossCheck::new(row, second))
    }
}
