//! The command line of `compare`.

use std::time::Duration;

use clap::Parser;
use regex_lite::Regex;

use crate::options::Outputs;

/// Asks fibra and its rivals equal questions, and says where fibra stands.
///
/// Prints a table for each subject, with the ratio of fibra to the best rival, and writes a page with charts.
/// All of it takes some twenty minutes. The machine should be quiet.
#[derive(Parser, Clone, Debug)]
#[command(name = "compare", version, max_term_width = 100)]
pub(super) struct Options {
    /// Only the questions, as `--list` prints them, in which one of these regular expressions is found
    #[arg(value_name = "REGEX")]
    pub(super) questions: Vec<Regex>,

    /// Only the entrants whose names one of these regular expressions matches as a whole
    #[arg(long, value_name = "REGEX")]
    pub(super) among: Vec<Regex>,

    /// Print the questions and the entrants of each, and end
    #[arg(long)]
    pub(super) list: bool,

    /// With how many workers each runtime is asked, one half of the comparison after the other
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) workers: Vec<u16>,

    /// How often each entrant is asked each question; the medians count
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,

    /// Seconds that all samples of one entrant for one question are to take together
    #[arg(long, value_name = "SECONDS", default_value = "0.6", value_parser = seconds)]
    pub(super) seconds: Duration,

    #[command(flatten)]
    pub(super) outputs: Outputs,
}

impl Options {
    /// How long one sample is to be.
    pub(super) fn sample(&self) -> Duration {
        self.seconds / self.rounds
    }

    pub(super) fn wants_question(&self, title: &str) -> bool {
        self.questions.is_empty() || self.questions.iter().any(|regex| regex.is_match(title))
    }

    pub(super) fn wants_entrant(&self, name: &str) -> bool {
        let whole = |regex: &Regex| regex.find_iter(name).any(|found| found.as_str() == name);
        self.among.is_empty() || self.among.iter().any(whole)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match seconds {
        0.001..=3600.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not between 0.001 and 3600".to_owned()),
    }
}

#[cfg(test)]
mod tests;
