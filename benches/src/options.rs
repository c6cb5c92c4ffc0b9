//! The command line.

use clap::Parser;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Loads echo servers and compares them.
///
/// Without arguments: starts the three example servers, one after the other, each in a process of its own, drives them
/// with the same load, prints a table and writes a page with the latency curves.
#[derive(Clone, Debug, Parser, Serialize)]
#[command(name = "load", version, max_term_width = 100, args_override_self = true)]
pub struct Options {
    /// A server that runs already, instead of the three: it must send every byte back
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "server")]
    pub address: Option<String>,

    /// Only this one of echo_threads, echo_callbacks and echo_server; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub server: Vec<String>,

    /// Connections, all of them open from the beginning to the end
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub connections: u32,

    /// Measured time for each server, such as 5, 500ms or 2m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub duration: Duration,

    /// Bytes of a request, and of its reply, such as 64 or 16k
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = bytes)]
    pub size: u32,

    /// Requests that each connection keeps on their way
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub pipeline: u32,

    /// Requests per second over all connections, sent when they are due whatever the server does; latency then counts
    /// from that time. Without it every connection asks again as soon as it has its reply
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Time before the measurement in which the load runs already
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time_or_none)]
    pub warmup: Duration,

    /// How long a server may be silent before a connection counts as timed out
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub timeout: Duration,

    /// Does without the second look by a client that is not written with fibra
    #[arg(long)]
    pub no_cross_check: bool,

    /// Writes everything that was found to this file, for machines
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Writes the page to this file [default: target/fibra-load/report.html, or the same in the temporary folder]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Options {
    /// What clap cannot see: values that do not go together.
    ///
    /// # Errors
    ///
    /// One sentence that says which.
    pub fn check(&self, known: &[&str]) -> Result<(), String> {
        if let Some(name) = self.server.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("there is no server '{name}'; there are {}", known.join(", ")));
        }
        let bytes = u64::from(self.size) * u64::from(self.pipeline) * u64::from(self.connections);
        if bytes > MOST_BYTES {
            let needed = crate::report::units::bytes(bytes);
            return Err(format!(
                "--size times --pipeline times --connections is {needed}; at most 1 GiB is held"
            ));
        }
        Ok(())
    }
}

/// Requests held at one time, and as much again for their replies.
const MOST_BYTES: u64 = 1 << 30;

fn time(text: &str) -> Result<Duration, String> {
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

fn bytes(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        unit => return Err(format!("'{unit}' is no unit of size; k and M are")),
    };
    let number: u32 = digits.trim().parse().map_err(|_| "a whole number was expected, such as 64 or 16k")?;
    let size = number.checked_mul(scale).filter(|size| (1..=16 << 20).contains(size));
    size.ok_or_else(|| "from 1 byte to 16M".into())
}

fn rate(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number was expected")?;
    if (0.1..=100e6).contains(&number) { Ok(number) } else { Err("from 0.1 to 100000000".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("5"), Ok(Duration::from_secs(5)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("0.5m"), Ok(Duration::from_secs(30)));
        assert_eq!(time_or_none("0"), Ok(Duration::ZERO));
        for wrong in ["0", "-1s", "x", "", "5 parsecs", "2000h", "inf", "NaN"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("64"), Ok(64));
        assert_eq!(bytes("16k"), Ok(16 << 10));
        for wrong in ["0", "17M", "4G", "99999999999", "-1", ""] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        let options = Options::parse_from(["load", "--server", "nobody"]);
        assert!(options.check(&["somebody"]).is_err_and(|why| why.contains("somebody")));
        let options = Options::parse_from(["load", "--size", "16M", "--connections", "1000"]);
        assert!(options.check(&[]).is_err_and(|why| why.contains("1 GiB")));
        assert!(Options::try_parse_from(["load", "--server", "a", "--address", "b:1"]).is_err());
    }
}
