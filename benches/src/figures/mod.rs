//! The figures of the network that fibra means to reach: `cargo run --release -p fibra-bench --bin figures`.
//!
//! | file | holds |
//! | --- | --- |
//! | `pairs.rs` | fibra's server and the event loop written by hand, loaded in turns |
//! | `alone.rs` | a server alone: idle connections, system calls, a short sleep |

mod alone;
mod pairs;

use crate::campaign::{self, Campaign};
use crate::options::{Options, time};
use crate::report::units;
use crate::servers::Server;
use crate::wire::Protocol;
use clap::Parser;
use pairs::{Load, median, quantile};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// How long each server is loaded before its figures count.
const WARMUP: Duration = Duration::from_millis(200);

/// Requests a second, on so many connections, that are sent when they are due.
const RATES: [u32; 3] = [10_000, 30_000, 60_000];
const RATED: u32 = 64;

/// Measures what fibra means to reach on the network, and says whether it does. Takes some five minutes.
#[derive(Parser)]
#[command(name = "figures", version, max_term_width = 100)]
struct Plan {
    /// How often fibra's server and the event loop by hand are compared; the medians count
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,

    /// Measured time for each server in each pair, such as 2 or 500ms. A shared machine changes its speed
    /// from one tenth of a second to the next: many short pairs tell more than few long ones
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    duration: Duration,
}

/// Runs the role of this process; without one, measures and prints.
///
/// Returns the exit status: 0 when everything could be measured, met or missed; 1 otherwise; 130 after
/// Ctrl-C.
pub fn main(servers: &[Server]) -> ExitCode {
    campaign::play(servers, || match measure(&Plan::parse(), servers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => ExitCode::from(crate::interrupt::STATUS),
        Err(error) => {
            eprintln!("figures: {error}");
            ExitCode::FAILURE
        }
    })
}

fn measure(plan: &Plan, servers: &[Server]) -> io::Result<()> {
    let mut campaign = Campaign::new(Options::parse_from(["figures"]), Protocol::Tcp)?;
    campaign.options.warmup = WARMUP;
    campaign.options.duration = plan.duration;
    campaign.options.connections = alone::IDLE;
    campaign::check_open_files(alone::IDLE)?;
    println!("fibra against an event loop by hand, medians of {} pairs, and their middle halves", plan.pairs);
    compared(&mut campaign, servers, plan.pairs)?;
    println!("fibra alone");
    line("server with 1000 idle connections, % of a core", alone::idle(&campaign)?, 1.0);
    line("sleep(50 µs), median lateness, µs", alone::lateness()?, 150.0);
    for name in [pairs::FIBRA, pairs::BY_HAND] {
        match alone::calls_per_request(&mut campaign, name) {
            Ok(calls) if name == pairs::FIBRA => {
                line("system calls per request, 64 connections", calls, 1.95)
            }
            Ok(calls) => beside("of the loop by hand, system calls", calls),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(why) => println!("  system calls per request of {name}: skipped, {why}"),
        }
    }
    Ok(())
}

/// Prints the result of each load as soon as it is known.
fn compared(campaign: &mut Campaign, servers: &[Server], pairs: u32) -> io::Result<()> {
    let mut ask = |connections, rate| pairs::compare(campaign, servers, Load { connections, rate }, pairs);
    let thousand = ask(1000, None)?;
    spread("server's CPU per request, 1000 connections", &thousand.cpu, 1.04);
    spread("p99 / p50 of fibra itself, 1000 connections", &thousand.tail, 1.2);
    beside("of the loop by hand, p99 / p50", median(&thousand.tail_by_hand));
    for rate in RATES {
        let found = ask(RATED, Some(rate.into()))?;
        spread(&format!("server's CPU at {} requests a second", units::count(rate.into())), &found.cpu, 1.25);
    }
    Ok(())
}

/// Prints a figure to compare with the one above.
fn beside(what: &str, figure: f64) {
    println!("    {what:<46} {figure:>8.2}");
}

/// Prints the median of these figures, which is to be at most `aim`, and where the middle half of them lies.
fn spread(what: &str, figures: &[f64], aim: f64) {
    line(what, median(figures), aim);
    let [low, high] = [0.25, 0.75].map(|share| quantile(figures, share));
    println!("    {:<46} {low:>8.2} to {high:.2}", "half of the pairs");
}

/// Prints one figure, which is to be at most `aim`.
fn line(what: &str, figure: f64, aim: f64) {
    let met = if figure <= aim { "met" } else { "missed" };
    println!("  {what:<48} {figure:>8.2}   to be at most {aim:.2}: {met}");
}
