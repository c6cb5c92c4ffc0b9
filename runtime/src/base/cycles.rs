//! A counter that is quicker to read than the clock, for measurements of single runs.
//!
//! It is the processor's time-stamp counter where the kernel trusts that counter as its own clock: then it runs at one
//! rate, and all processors agree on it. Elsewhere it is the clock.

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::base::clock;

/// How long the counter's rate is measured for.
const MEASURED: Duration = Duration::from_millis(1);

/// Counts time.
#[derive(Clone, Copy)]
pub(crate) enum Cycles {
    /// The processor's counter. A count takes so many nanoseconds, times 2^32.
    Processor(u64),
    /// Nanoseconds since then.
    Clock(Instant),
}

impl Cycles {
    /// Returns the counter of this machine. The first call takes a millisecond.
    pub(crate) fn of_machine() -> Self {
        static CYCLES: OnceLock<Cycles> = OnceLock::new();
        *CYCLES.get_or_init(|| match is_steady() {
            true => Cycles::Processor(measure()),
            false => Cycles::Clock(clock::machine()),
        })
    }

    #[inline]
    pub(crate) fn read(self) -> u64 {
        match self {
            Cycles::Processor(_) => processor(),
            Cycles::Clock(origin) => clock::nanos(clock::machine().saturating_duration_since(origin)),
        }
    }

    /// Returns how many nanoseconds a number of counts takes.
    #[inline]
    pub(crate) fn nanos(self, counts: u64) -> u64 {
        match self {
            Cycles::Processor(rate) => ((u128::from(counts) * u128::from(rate)) >> 32) as u64,
            Cycles::Clock(_) => counts,
        }
    }
}

fn is_steady() -> bool {
    let source = || fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    cfg!(target_arch = "x86_64") && source().is_ok_and(|name| name.trim() == "tsc")
}

/// Returns the nanoseconds of a count, times 2^32.
fn measure() -> u64 {
    let (begin, first) = (clock::machine(), processor());
    loop {
        let (now, last) = (clock::machine(), processor());
        if now - begin >= MEASURED {
            return ((u128::from(clock::nanos(now - begin)) << 32)
                / u128::from(last.wrapping_sub(first).max(1))) as u64;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn processor() -> u64 {
    // SAFETY: every processor of this architecture has the instruction, and the kernel's clock uses it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn processor() -> u64 {
    unreachable!("the clock is used")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn counts_are_nanoseconds_by_the_clock() {
        let cycles = Cycles::of_machine();
        let (begin, first) = (clock::machine(), cycles.read());
        thread::sleep(Duration::from_millis(20));
        let (last, time) = (cycles.read(), clock::nanos(clock::machine() - begin));
        let counted = cycles.nanos(last - first);
        assert!(counted >= 19_000_000 && counted <= time + time / 100, "{counted} of {time}");
    }
}
