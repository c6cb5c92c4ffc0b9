//! Numbers as people read them.

use indicatif::HumanCount;
use std::time::Duration;

/// A time in nanoseconds with three digits: `950 ns`, `12.3 µs`, `4.56 ms`, `7.89 s`.
#[must_use]
pub fn nanos(nanos: u64) -> String {
    let value = nanos as f64;
    // The limits are where three digits would round up into the next unit.
    let (value, unit) = match value {
        v if v < 999.5 => return format!("{nanos} ns"),
        v if v < 999.5e3 => (v / 1e3, "µs"),
        v if v < 999.5e6 => (v / 1e6, "ms"),
        v => (v / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A round time without its zeros.
pub(crate) fn short_time(nanos: u64) -> String {
    match nanos {
        n if n < 1_000 => format!("{n} ns"),
        n if n < 1_000_000 => format!("{} µs", n / 1_000),
        n if n < 1_000_000_000 => format!("{} ms", n / 1_000_000),
        n => format!("{} s", n / 1_000_000_000),
    }
}

/// A time that a user chose, as short as it goes: `5 s`, `1.5 s`, `300 ms`.
#[must_use]
pub fn time(time: Duration) -> String {
    let millis = time.as_millis();
    if millis < 1000 { format!("{millis} ms") } else { format!("{} s", millis as f64 / 1e3) }
}

/// A whole number with its thousands apart: `1,234,567`.
#[must_use]
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// How many there are in a second: `1,234,567`, and below ten with a digit, as in `0.4`, where it is not a
/// whole number.
#[must_use]
pub fn rate(rate: f64) -> String {
    let tenths = (rate * 10.0).round() as u64;
    match (tenths / 10, tenths % 10) {
        (whole @ 0..10, tenth @ 1..) => format!("{whole}.{tenth}"),
        _ => count(rate.round() as u64),
    }
}

/// A size with its unit: `512 B`, `3.25 MiB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 999.5 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{} {unit}", three_digits(value)) }
}

/// A share in whole percent.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A number with three digits, or more before the point.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests;
