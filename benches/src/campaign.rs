//! A campaign: loads each server, repeats one row with the plain client, and reports.

use crate::generator;
use crate::interrupt::{self, Interrupt};
use crate::log;
use crate::options::{CommandLine, Instead, Options};
use crate::process::Machine;
use crate::progress::Show;
use crate::report::{self, CrossCheck, Report, Row, Source, units};
use crate::role::{self, Places, Role};
use crate::run::{self, Finished};
use crate::servers::{Running, Server, Target};
use crate::sys;
use crate::terminal::complain;
use crate::wire::{Client, Order, Protocol};
use clap::{CommandFactory, Parser, error::ErrorKind};
use std::io;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Descriptors that a process needs besides its connections.
const SPARE_FILES: u64 = 64;

/// How long the second look lasts at the most, and its warm-up.
const CROSS_CHECK: Duration = Duration::from_secs(2);
const CROSS_WARMUP: Duration = Duration::from_millis(300);

/// Runs the role of this process: the orchestrator for a user, another role for the orchestrator.
///
/// Returns the exit status: 0, or 1 if anything went wrong with any server, 2 for a wrong command line, 130
/// after Ctrl-C.
pub fn main(servers: &[Server]) -> ExitCode {
    play(servers, || orchestrate(servers))
}

/// Runs the role of this process; without one, runs `as_user`.
pub(crate) fn play(servers: &[Server], as_user: impl FnOnce() -> ExitCode) -> ExitCode {
    match Role::assume() {
        Some(Role::Generator) => generator::main(),
        Some(Role::Command(line)) => role::become_command(&line),
        Some(Role::Server(name)) => match servers.iter().find(|server| server.name == name) {
            Some(server) => (server.main)(),
            None => ExitCode::FAILURE,
        },
        #[cfg(feature = "rivals")]
        Some(Role::Comparer) => ExitCode::FAILURE,
        None => as_user(),
    }
}

fn orchestrate(servers: &[Server]) -> ExitCode {
    let CommandLine { options, instead } = CommandLine::parse();
    if let Err(why) = options.check(servers) {
        CommandLine::command().error(ErrorKind::ValueValidation, why).exit();
    }
    let (outputs, log) = match &instead {
        Some(Instead::Merge(merge)) => (merge.outputs.clone(), None),
        None => (options.outputs.clone(), options.log.clone()),
    };
    if !report::can_publish("load", &outputs, log.as_deref()) {
        return ExitCode::FAILURE;
    }
    let outcome = match instead {
        Some(Instead::Merge(merge)) => log::merge(&merge.files),
        None => conduct(options, servers),
    };
    match outcome {
        Ok(report) => {
            let written = report::publish(&report, &outputs, log.as_deref());
            match (report.interrupted, report.is_clean() && written) {
                (true, _) => ExitCode::from(interrupt::STATUS),
                (false, true) => ExitCode::SUCCESS,
                (false, false) => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            complain(format_args!("load: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn conduct(options: Options, servers: &[Server]) -> io::Result<Report> {
    check_open_files(options.connections + options.idle)?;
    let protocol = options.protocol(servers);
    Ok(Campaign::new(options, protocol)?.conduct(servers))
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

/// A machine and a load, for one server after another.
pub(crate) struct Campaign {
    pub(crate) options: Options,
    pub(crate) protocol: Protocol,
    pub(crate) places: Places,
    pub(crate) interrupt: Interrupt,
    show: fn(&str, &Order) -> Show,
}

/// The settings of a run beside the options.
#[derive(Clone, Copy)]
struct Leg<'a> {
    title: &'a str,
    client: Client,
    rate: Option<f64>,
    warmup: Duration,
    duration: Duration,
}

impl Campaign {
    pub(crate) fn new(options: Options, protocol: Protocol) -> io::Result<Self> {
        let places = Places::choose(options.core);
        Ok(Self { options, protocol, places, interrupt: Interrupt::listen()?, show: Show::new })
    }

    /// One of which nothing is seen, and which is interrupted by the end of its process alone.
    #[cfg(feature = "rivals")]
    pub(crate) fn unseen(options: Options, protocol: Protocol) -> Self {
        let places = Places::choose(options.core);
        Self { options, protocol, places, interrupt: Interrupt::default(), show: |_, _| Show::nothing() }
    }

    fn conduct(&self, servers: &[Server]) -> Report {
        let started = SystemTime::now();
        let mut rows = Vec::new();
        let targets = self.targets(servers);
        for (place, target) in targets.iter().enumerate() {
            for rate in self.options.rates() {
                if !self.interrupt.is_set() {
                    rows.push(Row { place, ..self.load(target, rate) });
                }
            }
        }
        let cross_check = self.cross_check(&targets, &rows);
        // A server outside is wherever it is.
        let ours = targets.iter().any(|target| !matches!(target, Target::Outside(_)));
        Report {
            started,
            source: Source::Run {
                options: Box::new(self.options.clone()),
                protocol: self.protocol,
                machine: Machine::describe(),
            },
            places: (self.places.server.filter(|_| ours), self.places.generator),
            rows,
            cross_check,
            interrupted: self.interrupt.is_set(),
        }
    }

    /// Returns the servers that the user has named, or else the examples that speak the protocol.
    fn targets<'a>(&'a self, servers: &'a [Server]) -> Vec<Target<'a>> {
        let Options { server: names, command, address, .. } = &self.options;
        let none_named = names.is_empty() && command.is_empty() && address.is_empty();
        let wanted = |server: &&Server| match none_named {
            true => server.protocol == self.protocol,
            false => names.iter().any(|name| name == server.name),
        };
        let ours = servers.iter().filter(wanted).map(Target::Ours);
        ours.chain(command.iter().map(Target::Command)).chain(address.iter().map(Target::Outside)).collect()
    }

    /// Loads one server as the options say, at one rate of those that they name.
    pub(crate) fn load(&self, target: &Target<'_>, rate: Option<f64>) -> Row {
        let Options { warmup, duration, .. } = self.options;
        let title = match rate {
            Some(rate) => format!("{} {}/s", target.name(), units::rate(rate)),
            None => target.name().to_owned(),
        };
        self.run(target, Leg { title: &title, client: Client::Fibra, rate, warmup, duration })
    }

    /// Starts the server, runs one client on it, and ends it.
    fn run(&self, target: &Target<'_>, leg: Leg<'_>) -> Row {
        let server = target.start(self.protocol, self.places.server, &self.interrupt);
        let finished = server.and_then(|mut server| self.run_on(&mut server, leg));
        let finished = finished.unwrap_or_else(|error| match error.kind() {
            io::ErrorKind::Interrupted => Finished::default(),
            _ => Finished { errors: vec![format!("it could not be loaded: {error}")], ..Finished::default() },
        });
        let interrupted = self.interrupt.is_set();
        Row::new(target.name(), target.about(), &self.options, self.protocol, leg.rate, finished, interrupted)
    }

    /// Runs the fibra client for so long on a server that listens.
    pub(crate) fn watch(
        &self,
        server: &mut Running,
        title: &str,
        duration: Duration,
    ) -> io::Result<Finished> {
        self.run_on(
            server,
            Leg { title, client: Client::Fibra, rate: None, warmup: Duration::ZERO, duration },
        )
    }

    fn run_on(&self, server: &mut Running, leg: Leg<'_>) -> io::Result<Finished> {
        let order = self.order(server, leg);
        let mut show = (self.show)(leg.title, &order);
        let finished = run::run(&order, server, self.places.generator, &mut show, &self.interrupt);
        let word = finished.as_ref().map_or_else(ToString::to_string, Row::summary);
        show.finish(&word);
        finished
    }

    fn order(&self, server: &Running, leg: Leg<'_>) -> Order {
        let options = &self.options;
        Order {
            address: server.address,
            host: server.host.clone(),
            client: leg.client,
            protocol: self.protocol,
            path: options.path.clone(),
            connections: options.connections as usize,
            idle: options.idle as usize,
            churn: options.churn,
            sizes: options.size.clone(),
            pipeline: options.pipeline as usize,
            rate: leg.rate,
            warmup: leg.warmup,
            duration: leg.duration,
            timeout: options.timeout,
            server: server.id(),
        }
    }

    /// Repeats the last row for a moment with the client that is not written with fibra, which speaks echo
    /// over streams.
    fn cross_check(&self, targets: &[Target<'_>], rows: &[Row]) -> Option<CrossCheck> {
        let (target, row) = targets.last().zip(rows.last())?;
        let Options { no_cross_check, churn, warmup, duration, .. } = self.options;
        let can = self.protocol == Protocol::Tcp && !churn;
        if no_cross_check || !can || self.interrupt.is_set() || !row.errors.is_empty() {
            return None;
        }
        let second = self.run(
            target,
            Leg {
                title: "cross-check",
                client: Client::Plain,
                rate: row.asked,
                warmup: warmup.min(CROSS_WARMUP),
                duration: duration.min(CROSS_CHECK),
            },
        );
        (!self.interrupt.is_set()).then(|| CrossCheck::new(row, second))
    }
}
