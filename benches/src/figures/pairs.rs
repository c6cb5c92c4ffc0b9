//! fibra's server and the event loop written by hand, loaded in turns.

use crate::campaign::Campaign;
use crate::report::Row;
use crate::servers::{Server, Target};
use std::io;

pub(super) const FIBRA: &str = "echo_server";
pub(super) const BY_HAND: &str = "echo_callbacks";

/// fibra's server in proportion to the event loop by hand, but for the tails, each pair's.
#[derive(Default)]
pub(super) struct Pairs {
    pub(super) cpu: Vec<f64>,
    /// The 99th percentile in proportion to the median, both of the same server: of fibra's, and of the one
    /// by hand, which tells what the machine and the load do to it.
    pub(super) tail: Vec<f64>,
    pub(super) tail_by_hand: Vec<f64>,
}

/// What both are asked: on so many connections, each as fast as replies come or all together so often in a
/// second.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) connections: u32,
    pub(super) rate: Option<f64>,
}

/// Loads both servers `count` times each. They take turns in going first.
pub(super) fn compare(
    campaign: &mut Campaign,
    servers: &[Server],
    asked: Load,
    count: u32,
) -> io::Result<Pairs> {
    campaign.options.connections = asked.connections;
    let mut pairs = Pairs::default();
    for number in 0..count {
        let ask = |name| load(campaign, servers, name, asked.rate);
        let (fibra, by_hand) = if number % 2 == 0 {
            let by_hand = ask(BY_HAND)?;
            (ask(FIBRA)?, by_hand)
        } else {
            (ask(FIBRA)?, ask(BY_HAND)?)
        };
        pairs.cpu.push(ratio(fibra.cpu_per_request(), by_hand.cpu_per_request())?);
        pairs.tail.push(ratio(fibra.latency(0.99), fibra.latency(0.5))?);
        pairs.tail_by_hand.push(ratio(by_hand.latency(0.99), by_hand.latency(0.5))?);
    }
    Ok(pairs)
}

fn load(campaign: &Campaign, servers: &[Server], name: &str, rate: Option<f64>) -> io::Result<Row> {
    let server = servers.iter().find(|server| server.name == name);
    let server = server.ok_or_else(|| io::Error::other(format!("there is no {name}")))?;
    let row = campaign.load(&Target::Ours(server), rate);
    campaign.interrupt.check()?;
    match row.errors.first() {
        Some(error) => Err(io::Error::other(format!("{name}: {error}"))),
        None => Ok(row),
    }
}

fn ratio(ours: Option<u64>, theirs: Option<u64>) -> io::Result<f64> {
    match (ours, theirs) {
        (Some(ours), Some(theirs @ 1..)) => Ok(ours as f64 / theirs as f64),
        _ => Err(io::Error::other("the system does not tell the usage of a process")),
    }
}

/// Returns the median; of two in the middle the greater.
pub(super) fn median(figures: &[f64]) -> f64 {
    quantile(figures, 0.5)
}

/// Returns the quantile of sorted figures.
pub(super) fn quantile(figures: &[f64], share: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests;
