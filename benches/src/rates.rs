//! The rates at which requests are sent: one, or a ladder of them.

use std::str::FromStr;

/// The most rungs of a ladder.
const MOST: usize = 64;

/// Requests per second, as they were given: `50000`, `10k,20k,50k`, or `10k..160k`, which doubles from rung
/// to rung.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates(Vec<f64>);

impl Rates {
    /// The rungs, in the order in which they are climbed.
    pub(crate) fn rungs(&self) -> &[f64] {
        &self.0
    }
}

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rungs = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                Some((low, high)) => rungs.extend(doubled(rate(low)?, rate(high)?)),
                None => rungs.push(rate(part)?),
            }
        }
        match rungs.len() {
            0 => Err("the first rate of a ladder is the lowest".into()),
            1..=MOST => Ok(Self(rungs)),
            _ => Err(format!("at most {MOST} rates")),
        }
    }
}

/// `low`, twice that, and so on as far as `high`, which is the last in any case.
fn doubled(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let below =
        std::iter::successors(Some(low), |rate| Some(rate * 2.0)).take_while(move |&rate| rate < high);
    below.chain((low <= high).then_some(high))
}

fn rate(text: &str) -> Result<f64, String> {
    let (digits, scale) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => (text, 1.0),
    };
    let number: f64 = digits.parse().map_err(|_| "a number was expected, such as 5000 or 5k")?;
    let rate = number * scale;
    if (0.1..=100e6).contains(&rate) { Ok(rate) } else { Err("from 0.1 to 100000000".into()) }
}

#[cfg(test)]
mod tests;
