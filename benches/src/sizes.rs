//! How long requests are: all alike, or a mixture.

use crate::report::units;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The longest request that can be asked for.
const LONGEST: u32 = 16 << 20;

/// Sizes in bytes with their weights: `64`, or `64:9,16k:1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes(Vec<(u32, u32)>);

impl Sizes {
    /// Returns the size of request `number` of `connection`.
    ///
    /// It depends on these two alone. Sizes are mixed by their weights.
    pub(crate) fn of(&self, connection: u32, number: u32) -> usize {
        if let [(size, _)] = self.0[..] {
            return size as usize;
        }
        let total: u64 = self.0.iter().map(|&(_, weight)| u64::from(weight)).sum();
        // The finalizer of splitmix64 (Steele, Lea, Flood, 2014).
        let mut noise = (u64::from(connection) << 32 | u64::from(number)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        noise = (noise ^ (noise >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        noise = (noise ^ (noise >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mut left = (noise ^ (noise >> 31)) % total;
        for &(size, weight) in &self.0 {
            match left.checked_sub(u64::from(weight)) {
                Some(rest) => left = rest,
                None => return size as usize,
            }
        }
        self.largest()
    }

    pub(crate) fn largest(&self) -> usize {
        self.0.iter().map(|&(size, _)| size as usize).max().unwrap_or(0)
    }

    pub(crate) fn smallest(&self) -> usize {
        self.0.iter().map(|&(size, _)| size as usize).min().unwrap_or(0)
    }

    /// The sizes with their weights.
    pub(crate) fn parts(&self) -> &[(u32, u32)] {
        &self.0
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.0.iter().map(|&(_, weight)| u64::from(weight)).sum();
        for (place, &(size, weight)) in self.0.iter().enumerate() {
            let gap = if place == 0 { "" } else { ", " };
            write!(f, "{gap}{}", units::bytes(size.into()))?;
            if self.0.len() > 1 {
                write!(f, " ({})", units::percent(f64::from(weight) / total as f64))?;
            }
        }
        Ok(())
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |part: &str| {
            let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
            let weight = weight.parse().ok().filter(|weight| (1..=1_000_000).contains(weight));
            Ok((bytes(size)?, weight.ok_or("a weight is a whole number from 1 to 1000000")?))
        };
        text.split(',').map(part).collect::<Result<_, String>>().map(Self)
    }
}

fn bytes(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        unit => return Err(format!("'{unit}' is no unit of size; k and M are")),
    };
    let number: u32 = digits.trim().parse().map_err(|_| "a whole number was expected, such as 64 or 16k")?;
    let size = number.checked_mul(scale).filter(|size| (1..=LONGEST).contains(size));
    size.ok_or_else(|| "from 1 byte to 16M".into())
}

#[cfg(test)]
mod tests;
