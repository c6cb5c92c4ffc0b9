//! Asks one question of all entrants, in rounds. Each round asks every entrant once, so that a drift of the
//! machine hits all alike.
//!
//! This runs in a process of its own, which takes one [`Order`] and says [`Event`]s.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contests;
use super::entrant::{Contest, Contestant, Started};
use super::question::{Measure, Size};
use crate::child::{self, say};

/// How many times as many operations the next trial has, at most, while it is sought how many fill a sample.
const GROWTH: f64 = 50.0;

/// A trial that took this share of the time that a sample shall take says how many operations it needs.
const TELLING: f64 = 0.2;

/// The order of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) workers: usize,
    pub(super) rounds: u32,
    pub(super) sample: Duration,
    pub(super) wanted: Vec<Wanted>,
}

/// A question, and the entrants that are asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Wanted {
    pub(super) title: String,
    pub(super) entrants: Vec<String>,
}

/// An event of a measuring process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Event {
    /// A sample begins.
    Asking { title: String, entrant: String },
    /// A question is answered.
    Answered { title: String, series: Vec<Series> },
}

/// The samples of one entrant in one measure, in the order of the rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Series {
    pub(super) entrant: String,
    pub(super) measure: Measure,
    pub(super) samples: Vec<f64>,
}

/// An entrant that is being asked.
struct Candidate<'a> {
    contestant: &'a Contestant,
    started: Started,
    operations: u64,
}

/// Measures as the line on the standard input says.
pub(super) fn main() -> ExitCode {
    child::obey("", measure)
}

fn measure(order: Order) -> io::Result<()> {
    let contests = contests(order.workers);
    for wanted in &order.wanted {
        let contest = contests.iter().find(|contest| contest.title() == wanted.title);
        let contest = contest.ok_or_else(|| io::Error::other(format!("no question '{}'", wanted.title)))?;
        let series = ask(contest, wanted, &order)?;
        say(&Event::Answered { title: wanted.title.clone(), series })?;
        if contest.is_alone {
            // What it left behind needs no tidying up.
            std::process::exit(0);
        }
    }
    Ok(())
}

fn ask(contest: &Contest, wanted: &Wanted, order: &Order) -> io::Result<Vec<Series>> {
    let asked = |contestant: &&Contestant| wanted.entrants.iter().any(|name| name == contestant.name);
    let asking = |contestant: &Contestant| {
        say(&Event::Asking { title: wanted.title.clone(), entrant: contestant.name.to_owned() })
    };
    let mut candidates = Vec::new();
    for contestant in contest.entrants.iter().filter(asked) {
        asking(contestant)?;
        let started = contestant.start();
        let operations = calibrate(&started, contest, order.sample);
        candidates.push(Candidate { contestant, started, operations });
    }
    let mut series = Vec::new();
    for round in 0..order.rounds as usize {
        // No entrant always follows one particular entrant.
        let first = round % candidates.len().max(1);
        let (later, earlier) = candidates.split_at(first);
        for candidate in earlier.iter().chain(later) {
            asking(candidate.contestant)?;
            let answer = (candidate.started)(candidate.operations);
            let sample = |(measure, figure)| {
                let entrant = candidate.contestant.name.to_owned();
                Series { entrant, measure, samples: vec![figure] }
            };
            join(&mut series, answer.measures(candidate.operations).into_iter().map(sample));
        }
    }
    Ok(series)
}

/// Finds how many operations fill a sample. Warms up the entrant, too.
fn calibrate(started: &Started, contest: &Contest, sample: Duration) -> u64 {
    let (at_least, mut operations) = match contest.size {
        Size::Filling { at_least, operations } => (at_least, operations),
        Size::Fixed(operations) => {
            if !contest.is_alone {
                started(operations);
            }
            return operations;
        }
        // A sample by the clock has its own warm-up.
        Size::Lasting(least) => return sample.max(least).as_millis() as u64,
    };
    let (least, sample) = (operations, sample.max(at_least).as_secs_f64());
    loop {
        let elapsed = started(operations).elapsed.as_secs_f64().max(1e-9);
        let wanted = operations as f64 * (sample / elapsed).min(GROWTH);
        operations = (wanted as u64).max(least);
        if elapsed >= TELLING * sample {
            return operations;
        }
    }
}

/// Adds samples to those of the entrant in the measure.
pub(super) fn join(series: &mut Vec<Series>, found: impl IntoIterator<Item = Series>) {
    for more in found {
        let same = |known: &&mut Series| known.entrant == more.entrant && known.measure == more.measure;
        match series.iter_mut().find(same) {
            Some(known) => known.samples.extend(more.samples),
            None => series.push(more),
        }
    }
}
