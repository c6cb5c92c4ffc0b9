//! The choices of a run as text.
//!
//! A run is a row of decisions, each with a number of options. Option 0 is the default: the running task
//! goes on, or the first ready one runs. A script lists the decisions that went otherwise.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The version of the text, which begins with it. Builds with points of preemption number their decisions otherwise.
pub(crate) const VERSION: &str = if cfg!(fibra_sim) { "1p" } else { "1" };

/// The decisions of a run that did not take option 0, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Script(pub(crate) BTreeMap<u64, usize>);

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}:")?;
        for (index, (step, choice)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{step}={choice}")?;
        }
        Ok(())
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (version, choices) = text
            .split_once(':')
            .ok_or_else(|| format!("\"{text}\" is no schedule: it does not begin with a version"))?;
        if version != VERSION {
            return Err(format!(
                "the schedule \"{text}\" is of version {version}, and this build reads version {VERSION}; builds with \
                 `--cfg fibra_sim` have a \"p\" there"
            ));
        }
        let entry = |entry: &str| {
            let (step, choice) = entry.split_once('=')?;
            Some((step.parse().ok()?, choice.parse().ok()?))
        };
        let choices = choices.split(',').filter(|entry| !entry.is_empty());
        let read = |text: &str| entry(text).ok_or_else(|| format!("\"{text}\" is no choice of a schedule"));
        choices.map(read).collect::<Result<_, _>>().map(Script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_as_it_was_written() {
        for choices in [vec![], vec![(3, 1)], vec![(3, 1), (70, 12)]] {
            let script = Script(choices.into_iter().collect());
            assert_eq!(script.to_string().parse(), Ok(script));
        }
    }

    #[test]
    fn other_versions_and_nonsense_are_refused() {
        let refusal = |text: &str| text.parse::<Script>().unwrap_err();
        assert!(refusal("2:3=1").contains("version 2, and this build reads version 1"));
        assert!(refusal("3=1").contains("does not begin with a version"));
        assert!(refusal(&format!("{VERSION}:3=x")).contains("no choice"));
    }
}
