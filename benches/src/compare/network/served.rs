//! How a server is asked: it is started anew for each sample, loaded, and ended.

use std::io;
use std::process;
use std::time::Duration;

use clap::Parser;

use super::question::Question;
use crate::campaign::{self, Campaign};
use crate::compare::entrant::Rival;
use crate::compare::question::{Answer, Measure};
use crate::options::Options;
use crate::report::Row;
use crate::servers::Target;
use crate::wire::Protocol;

/// How long a server is loaded before its figures count.
const WARMUP: Duration = Duration::from_millis(150);

/// The names under which this program plays an entrant's servers; empty where it has none.
pub(super) struct Served {
    echo: &'static str,
    http: &'static str,
}

impl Served {
    pub(super) fn start(echo: &'static str, http: &'static str) -> Box<dyn Rival<Question>> {
        Box::new(Served { echo, http })
    }

    fn load(&self, question: Question, duration: Duration) -> io::Result<Answer> {
        let Question { protocol, connections } = question;
        campaign::check_open_files(connections)?;
        let options = Options { connections, warmup: WARMUP, duration, ..Options::parse_from(["compare"]) };
        let name = if protocol == Protocol::Http { self.http } else { self.echo };
        let row = Campaign::unseen(options, protocol).load(&Target::Played(name), None);
        match row.errors.first() {
            Some(error) => Err(io::Error::other(error.clone())),
            None => figures(&row)
                .ok_or_else(|| io::Error::other("nothing was answered, or its usage is not told")),
        }
    }
}

impl Rival<Question> for Served {
    fn answer(&self, question: Question, millis: u64) -> Answer {
        self.load(question, Duration::from_millis(millis)).unwrap_or_else(|why| {
            // These last words of the process are told when the entrant is left out.
            eprintln!("{why}");
            process::exit(1)
        })
    }
}

fn figures(row: &Row) -> Option<Answer> {
    let figures = [
        (Measure::Cpu, row.cpu_per_request()?),
        (Measure::Latency, row.latency(0.5)?),
        (Measure::LatencyTail, row.latency(0.99)?),
    ];
    let figures = figures.map(|(measure, figure)| (measure, figure as f64));
    Some(Answer { elapsed: row.totals.elapsed, figures: figures.into(), is_timed: false })
}
