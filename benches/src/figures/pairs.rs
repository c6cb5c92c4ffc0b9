//! fibra's server and the event loop by hand, under the same load in turn.

use crate::campaign::Campaign;
use crate::report::Row;
use crate::servers::{Server, Target};
use std::io;

pub(super) const FIBRA: &str = "echo_server";
pub(super) const BY_HAND: &str = "echo_callbacks";

/// fibra's server in proportion to the event loop by hand, but for the tails.
pub(super) struct Medians {
    pub(super) cpu: f64,
    pub(super) latency: f64,
    /// The 99th percentile in proportion to the median, both of the same server: of fibra's, and of the one by hand, which tells
    /// what the machine and the load do to it.
    pub(super) tail: f64,
    pub(super) tail_by_hand: f64,
}

/// Loads both with so many connections, `pairs` times each.
pub(super) fn compare(
    campaign: &mut Campaign,
    servers: &[Server],
    connections: u32,
    pairs: u32,
) -> io::Result<Medians> {
    campaign.options.connections = connections;
    let (mut cpu, mut latency, mut tail, mut tail_by_hand) = (vec![], vec![], vec![], vec![]);
    for _ in 0..pairs {
        let by_hand = load(campaign, servers, BY_HAND)?;
        let fibra = load(campaign, servers, FIBRA)?;
        cpu.push(ratio(fibra.cpu_per_request(), by_hand.cpu_per_request())?);
        latency.push(ratio(fibra.latency(0.5), by_hand.latency(0.5))?);
        tail.push(ratio(fibra.latency(0.99), fibra.latency(0.5))?);
        tail_by_hand.push(ratio(by_hand.latency(0.99), by_hand.latency(0.5))?);
    }
    let [cpu, latency, tail, tail_by_hand] = [cpu, latency, tail, tail_by_hand].map(median);
    Ok(Medians { cpu, latency, tail, tail_by_hand })
}

fn load(campaign: &Campaign, servers: &[Server], name: &str) -> io::Result<Row> {
    let server = servers.iter().find(|server| server.name == name);
    let server = server.ok_or_else(|| io::Error::other(format!("there is no {name}")))?;
    let row = campaign.load(&Target::Ours(server), None);
    match row.errors.first() {
        _ if campaign.interrupt.is_set() => Err(io::ErrorKind::Interrupted.into()),
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

/// The middle one, of two in the middle the greater.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_moved_by_one_bad_run() {
        assert_eq!(median(vec![1.0, 900.0, 1.1, 0.9, 1.2]), 1.1);
        assert_eq!(median(vec![3.0]), 3.0);
    }
}
