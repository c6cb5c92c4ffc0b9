//! Random numbers: Steele, Lea and Flood's SplitMix64, with one generator for each worker.
//!
//! They depend on no address and no global counter. So the seed of a runtime decides all numbers of
//! its workers.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// The distance of two states: the golden ratio of 2^64, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator of random numbers, of one thread.
pub(crate) struct Random(Cell<u64>);

impl Random {
    /// Makes generator number `stream` of those that `seed` gives.
    pub(crate) fn new(seed: u64, stream: usize) -> Self {
        Random(Cell::new(seed ^ mix(STEP.wrapping_mul(stream as u64 + 1))))
    }

    /// Returns a number below `bound`, uniform up to one in 2^32.
    pub(crate) fn below(&self, bound: usize) -> usize {
        self.0.set(self.0.get().wrapping_add(STEP));
        // The high half of the product, from the high half of the number.
        (((mix(self.0.get()) >> 32) * bound as u64) >> 32) as usize
    }
}

fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns a seed that differs from process to process and from call to call.
pub(crate) fn seed() -> u64 {
    RandomState::new().hash_one(STEP)
}

/// Returns a number below `bound` from the generator of the calling thread, which is no worker.
pub(crate) fn of_thread(bound: usize) -> usize {
    thread_local! {
        static RANDOM: Random = Random::new(seed(), 0);
    }
    RANDOM.with(|random| random.below(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(random: &Random) -> Vec<usize> {
        (0..100).map(|_| random.below(10)).collect()
    }

    #[test]
    fn a_seed_decides_what_each_worker_draws() {
        assert_eq!(draw(&Random::new(1, 0)), draw(&Random::new(1, 0)));
        assert_ne!(draw(&Random::new(1, 0)), draw(&Random::new(1, 1)));
        assert_ne!(draw(&Random::new(1, 0)), draw(&Random::new(2, 0)));
    }

    #[test]
    fn each_number_below_the_bound_comes_as_often() {
        let random = Random::new(7, 3);
        let mut counts = [0_u32; 6];
        (0..60_000).for_each(|_| counts[random.below(6)] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }
}
