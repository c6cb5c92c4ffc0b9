//! The figures of the network that fibra means to reach: `cargo run --release -p fibra-bench --bin figures`.
//!
//! | file | holds |
//! | --- | --- |
//! | `pairs.rs` | fibra's server and the event loop by hand, under the same load in turn |
//! | `alone.rs` | what a server does by itself: idle connections, system calls, a short sleep |

mod alone;
mod pairs;

use crate::campaign::{self, Campaign};
use crate::options::{Options, time};
use crate::servers::Server;
use crate::wire::Protocol;
use clap::Parser;
use pairs::{Pairs, median, quantile};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// How long each server is loaded before its figures count.
const WARMUP: Duration = Duration::from_millis(200);

/// Measures what fibra means to reach on the network, and says whether it does. Takes some three minutes.
#[derive(Parser)]
#[command(name = "figures", version, max_term_width = 100)]
struct Plan {
    /// How often fibra's server and the event loop by hand are compared; the medians count
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,

    /// Measured time for each server in each pair, such as 2 or 500ms. A shared machine changes its speed from one tenth of a
    /// second to the next: many short pairs tell more than few long ones
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    duration: Duration,
}

/// Plays the part this process was started for; as a user's program, measures and prints.
///
/// Returns the exit status: 0 when everything could be measured, met or missed; 1 otherwise; 130 after Ctrl-C.
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
    let one = pairs::compare(&mut campaign, servers, 1, plan.pairs)?;
    let some = pairs::compare(&mut campaign, servers, 64, plan.pairs)?;
    let many = pairs::compare(&mut campaign, servers, 1000, plan.pairs)?;
    println!("fibra against an event loop by hand, medians of {} pairs, and their middle halves", plan.pairs);
    compared(&one, &some, &many);
    println!("fibra alone");
    line("server with 1000 idle connections, % of a core", alone::idle(&campaign)?, 1.0);
    line("sleep(50 µs), median lateness, µs", alone::lateness()?, 150.0);
    for name in [pairs::FIBRA, pairs::BY_HAND] {
        match alone::calls_per_request(&mut campaign, name) {
            Ok(calls) if name == pairs::FIBRA => line("system calls per request, 64 connections", calls, 2.0),
            Ok(calls) => beside("of the loop by hand, system calls", calls),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(why) => println!("  system calls per request of {name}: skipped, {why}"),
        }
    }
    Ok(())
}

fn compared(one: &Pairs, some: &Pairs, many: &Pairs) {
    spread("server's CPU per request, 64 connections", &some.cpu, 1.05);
    spread("server's CPU per request, 1000 connections", &many.cpu, 1.05);
    spread("median latency, 1 connection", &one.latency, 0.6);
    spread("server's CPU per request, 1 connection", &one.cpu, 1.0);
    spread("p99 / p50 of fibra itself, 1000 connections", &many.tail, 1.3);
    beside("of the loop by hand, p99 / p50", median(&many.tail_by_hand));
}

/// Prints what the figure above is to be seen beside.
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
