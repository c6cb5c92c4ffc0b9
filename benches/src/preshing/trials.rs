//! The three tests, generic over the primitives and over what runs them. Each says whether what it protects
//! stayed intact.
//!
//! What they do is what the tests of Preshing's cpp11-on-multicore do: so many threads, so much work between.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use super::kit::{Crowd, Event, Mutex, ReadWrite};

/// How many tasks or threads take part.
const CROWD: usize = 4;

/// Random numbers, and the work between the steps of a test: a number is a unit of it.
struct Random(u64);

/// All lock, count and unlock.
pub(super) fn mutex<M: Mutex, C: Crowd>(crowd: &C, rounds: u32) -> bool {
    // An atomic costs nothing here, since it is never changed in one step.
    let (mutex, count) = (M::new(), AtomicU64::new(0));
    let add_one = || count.store(count.load(Relaxed) + 1, Relaxed);
    crowd.run(CROWD, |_| (0..rounds).for_each(|_| mutex.with(add_one)));
    count.into_inner() == CROWD as u64 * u64::from(rounds)
}

/// One kicks the others awake; the last of them that is awake is the next one to kick.
pub(super) fn event<E: Event, C: Crowd>(crowd: &C, rounds: u32) -> bool {
    let events: [E; CROWD] = std::array::from_fn(|_| E::new());
    let (missing, intact) = (AtomicI64::new(0), AtomicBool::new(true));
    crowd.run(CROWD, |number| {
        let (mut random, mut kicks) = (Random::new(number), number == 0);
        for _ in 0..rounds {
            if kicks {
                missing.store(CROWD as i64, SeqCst);
                (0..CROWD).filter(|&other| other != number).for_each(|other| events[other].set());
            } else {
                events[number].wait();
            }
            let before = missing.fetch_sub(1, SeqCst);
            intact.fetch_and(before >= 1, Relaxed);
            kicks = before == 1;
            let units = random.biased(10);
            random.work(units);
        }
    });
    intact.into_inner()
}

/// Three of four look for eight numbers in a row, one writes others there.
pub(super) fn read_write<R: ReadWrite, C: Crowd>(crowd: &C, rounds: u32) -> bool {
    let (lock, intact) = (R::new(), AtomicBool::new(true));
    let row: [AtomicUsize; 8] = std::array::from_fn(AtomicUsize::new);
    crowd.run(CROWD, |number| {
        let mut random = Random::new(number);
        for _ in 0..rounds {
            if random.below(4) == 0 {
                let first = random.below(1 << 20);
                lock.write(|| {
                    row.iter().enumerate().rev().for_each(|(place, cell)| cell.store(first + place, Relaxed));
                });
            } else {
                let rises = lock.read(|| {
                    let first = row[0].load(Relaxed);
                    row.iter().enumerate().all(|(place, cell)| cell.load(Relaxed) == first + place)
                });
                if !rises {
                    intact.store(false, Relaxed);
                }
            }
        }
    });
    intact.into_inner()
}

impl Random {
    fn new(seed: usize) -> Self {
        Random(0x9E37_79B9_7F4A_7C15 ^ (seed as u64 + 1))
    }

    /// Marsaglia's xorshift.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    /// Below `end`, small numbers more often.
    fn biased(&mut self, end: usize) -> usize {
        let part = self.below(1 << 20) as f64 / f64::from(1 << 20);
        (part * part * end as f64) as usize
    }

    fn work(&mut self, units: usize) {
        (0..units).for_each(|_| _ = black_box(self.next()));
    }
}
