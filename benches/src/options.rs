//! The command line.

use crate::rates::Rates;
use crate::servers::{Address, Command, Server};
use crate::sizes::Sizes;
use crate::sys;
use crate::wire::Protocol;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Loads servers and compares them.
///
/// Without arguments: starts the three example servers that echo over TCP, one after the other, each in a
/// process of its own, drives them with the same load, prints a table and writes a page with the latency
/// curves.
#[derive(Debug, Parser)]
#[command(
    name = "load",
    version,
    max_term_width = 100,
    args_override_self = true,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) options: Options,

    #[command(subcommand)]
    pub(crate) instead: Option<Instead>,
}

/// What `load` does besides loading.
#[derive(Debug, Subcommand)]
pub(crate) enum Instead {
    /// Makes one report of the logs that several generators have written with --log
    ///
    /// Rows of the same server and the same load are put together: replies and rates are summed, and
    /// percentiles are those of all the latencies.
    Merge(Merge),
}

/// Which logs to merge, and where to.
#[derive(Clone, Debug, Args)]
pub(crate) struct Merge {
    /// Logs in the interval format of HdrHistogram, version 2
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// Where the report goes besides the terminal.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct Outputs {
    /// Writes everything that was found to this file, for machines
    #[arg(long, value_name = "FILE", value_parser = files())]
    pub json: Option<PathBuf>,

    /// Writes the page to this file [default: fibra-load/report.html in target or in the temporary folder, of
    /// compare in fibra-compare]
    #[arg(long, value_name = "FILE", value_parser = files())]
    pub html: Option<PathBuf>,
}

/// Which servers are loaded, and how.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// One of the servers that are carried: echo_threads, echo_callbacks, echo_server, udp_echo, http_server.
    /// May be given more than once, like the two that follow [default: all that speak the protocol]
    #[arg(long, value_name = "NAME", help_heading = "Servers")]
    pub server: Vec<String>,

    /// A server that runs already
    #[arg(long, value_name = "[NAME=]HOST:PORT", value_parser = address, help_heading = "Servers")]
    pub address: Vec<Address>,

    /// A server to be started, by a shell, as in `exec COMMAND`. What reads {address} in the command, or
    /// {port}, is replaced by a free address of 127.0.0.1 on which it is to listen; without that, the
    /// server's first line must be "listening on ADDRESS"
    #[arg(long, value_name = "NAME=COMMAND", value_parser = command, help_heading = "Servers")]
    pub command: Vec<Command>,

    /// What is spoken: echo over tcp or udp, where every byte must come back; or http [default: as --server
    /// does, or tcp]
    #[arg(long, value_name = "PROTOCOL", help_heading = "Load")]
    pub protocol: Option<Protocol>,

    /// What HTTP asks for
    #[arg(long, value_name = "PATH", default_value = "/plaintext", value_parser = path, help_heading = "Load")]
    pub path: String,

    /// Connections, all of them open from the beginning to the end; with --churn, how many there are at a
    /// time
    #[arg(
        long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=20_000),
        help_heading = "Load"
    )]
    pub connections: u32,

    /// More connections, which are open as well and on which nothing is ever said
    #[arg(
        long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000),
        help_heading = "Load"
    )]
    pub idle: u32,

    /// A connection for each request: connect, ask, take the reply, close. Latency is all of that but the
    /// last
    #[arg(long, conflicts_with = "pipeline", help_heading = "Load")]
    pub churn: bool,

    /// Bytes of what is echoed, such as 64 or 16k; or a mixture with weights, such as 64:9,16k:1
    #[arg(long, value_name = "BYTES", default_value = "64", help_heading = "Load")]
    pub size: Sizes,

    /// Requests that each connection sends at a time, before it waits for the replies to all of them
    #[arg(
        long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024),
        help_heading = "Load"
    )]
    pub pipeline: u32,

    /// Requests per second over all connections, sent when they are due whatever the server does; latency
    /// then counts from that time. Several are a ladder, climbed with each server: 10k,20k,50k, or 10k..80k,
    /// which doubles. Without it every connection asks again as soon as it has its reply
    #[arg(long, value_name = "N[,N...]", help_heading = "Load")]
    pub rate: Option<Rates>,

    /// Measured time for each server (and each rate), such as 5, 500ms or 2m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time, help_heading = "Load")]
    pub duration: Duration,

    /// Time before the measurement in which the load runs already
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time_or_none, help_heading = "Load")]
    pub warmup: Duration,

    /// How long a server may be silent before a connection, or a datagram, counts as timed out
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time, help_heading = "Load")]
    pub timeout: Duration,

    /// The processor of the generator [default: the first that is allowed on another core than the server's;
    /// else the second]
    #[arg(long, value_name = "CPU", help_heading = "Load")]
    pub core: Option<usize>,

    /// Does without the second look by a client that is not written with fibra; there is none for udp, http
    /// and --churn
    #[arg(long, help_heading = "Report")]
    pub no_cross_check: bool,

    /// Writes the latencies to this file, as HdrHistogram does; `load merge` makes one report of several such
    /// logs
    #[arg(long, value_name = "FILE", value_parser = files(), help_heading = "Report")]
    pub log: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

impl Options {
    /// What is spoken.
    pub(crate) fn protocol(&self, known: &[Server]) -> Protocol {
        let named = self.server.first().and_then(|name| known.iter().find(|server| server.name == name));
        self.protocol.or(named.map(|server| server.protocol)).unwrap_or(Protocol::Tcp)
    }

    /// The rates at which each server is loaded; `None` is a closed loop.
    pub(crate) fn rates(&self) -> Vec<Option<f64>> {
        match &self.rate {
            Some(rates) => rates.rungs().iter().copied().map(Some).collect(),
            None => vec![None],
        }
    }

    /// What clap cannot see: values that do not go together.
    ///
    /// # Errors
    ///
    /// One sentence that says which.
    pub fn check(&self, known: &[Server]) -> Result<(), String> {
        let protocol = self.protocol(known);
        for name in &self.server {
            match known.iter().find(|server| server.name == name) {
                Some(server) if server.protocol == protocol => {}
                Some(server) => return Err(format!("'{name}' speaks {}, not {protocol}", server.protocol)),
                None => {
                    let names: Vec<_> = known.iter().map(|server| server.name).collect();
                    return Err(format!("there is no server '{name}'; there are {}", names.join(", ")));
                }
            }
        }
        if let Some(core) = self.core {
            check_core(core)?;
        }
        if protocol == Protocol::Udp {
            self.check_datagrams()?;
        }
        let bytes = self.size.largest() as u64 * u64::from(self.pipeline) * u64::from(self.connections);
        if bytes > MOST_BYTES {
            let needed = crate::report::units::bytes(bytes);
            return Err(format!(
                "--size times --pipeline times --connections is {needed}; at most 1 GiB is held"
            ));
        }
        Ok(())
    }

    fn check_datagrams(&self) -> Result<(), String> {
        if self.churn || self.idle > 0 {
            return Err("udp has no connections: --churn and --idle do not go with it".into());
        }
        match (DATAGRAM.contains(&self.size.smallest()), DATAGRAM.contains(&self.size.largest())) {
            (true, true) => Ok(()),
            _ => Err(format!("a datagram has from {} to {} bytes here", DATAGRAM.start(), DATAGRAM.end())),
        }
    }
}

fn check_core(core: usize) -> Result<(), String> {
    let allowed = sys::allowed_cpus();
    match allowed.contains(&core) {
        true => Ok(()),
        false => {
            let allowed: Vec<_> = allowed.iter().map(usize::to_string).collect();
            Err(format!("processor {core} cannot be had; allowed are: {}", allowed.join(", ")))
        }
    }
}

/// Requests held at one time, and as much again for their replies.
const MOST_BYTES: u64 = 1 << 30;

/// Bytes of a datagram: its name, by which its reply is known, at the least; what IPv4 can carry at the most.
const DATAGRAM: std::ops::RangeInclusive<usize> = 8..=65_507;

fn address(text: &str) -> Result<Address, String> {
    let (name, place) = text.split_once('=').unwrap_or((text, text));
    match place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        true if !name.is_empty() && !name.contains('/') => {
            Ok(Address { name: name.into(), place: place.into() })
        }
        _ => Err("HOST:PORT was expected, or NAME=HOST:PORT".into()),
    }
}

fn command(text: &str) -> Result<Command, String> {
    match text.split_once('=') {
        Some((name, line)) if !name.is_empty() && !name.contains([' ', '/']) && !line.trim().is_empty() => {
            Ok(Command { name: name.into(), line: line.into() })
        }
        _ => Err("NAME=COMMAND was expected".into()),
    }
}

fn path(text: &str) -> Result<String, String> {
    match text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.into()),
        false => Err("a path begins with / and has no spaces".into()),
    }
}

/// Takes the name of a file. The table is on standard output already.
pub(crate) fn files() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("standard output is for the table; a file was expected"),
        false => Ok(path),
    })
}

pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let time = time_or_none(text)?;
    if time.is_zero() { Err("it must be more than nothing".into()) } else { Ok(time) }
}

fn time_or_none(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("'{unit}' is no unit of time; ms, s, m and h are")),
    };
    let number: f64 = digits.trim().parse().map_err(|_| "a number was expected, such as 5, 0.5s or 500ms")?;
    let time = Duration::try_from_secs_f64(number * scale).map_err(|error| error.to_string())?;
    if time > LONGEST { Err("a day is the longest".into()) } else { Ok(time) }
}

const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests;
