//! The five tests, generic over the primitives and over what runs them. Each says whether what it protects
//! stayed intact.
//!
//! What they do is what the tests of Preshing's cpp11-on-multicore do: so many threads, so much work between.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use super::kit::{Crowd, Event, Kit, Mutex, ReadWrite, Recursive};
use super::office::Office;

/// How many take part, but for the philosophers.
const CROWD: usize = 4;

const PHILOSOPHERS: usize = 5;

/// A count that a lock protects: that it is an atomic costs nothing, since it is never changed in one step.
#[derive(Default)]
struct Count(AtomicU64);

/// Random numbers, and the work between the steps of a test: a number is a unit of it.
struct Random(u64);

/// All lock, count and unlock.
pub(super) fn mutex<K: Kit, C: Crowd>(crowd: &C, rounds: u32) -> bool {
    let (mutex, count) = (K::Mutex::new(), Count::default());
    crowd.run(CROWD, |_| (0..rounds).for_each(|_| mutex.with(|| count.add(1))));
    count.get() == CROWD as u64 * u64::from(rounds)
}

/// All lock up to three times, count where they hold the lock, and unlock as they like.
pub(super) fn recursive<K: Kit, C: Crowd>(crowd: &C, rounds: u32) -> bool {
    let (mutex, count, expected) = (K::Recursive::new(), Count::default(), AtomicU64::new(0));
    crowd.run(CROWD, |number| {
        let (mut random, mut held, mut counted) = (Random::new(number), Vec::new(), 0);
        for _ in 0..rounds {
            random.work(4);
            let depth = random.biased(4);
            held.truncate(depth);
            let patient = random.below(2) == 0;
            while held.len() < depth {
                match patient {
                    true => held.push(mutex.lock()),
                    false => match mutex.try_lock() {
                        Some(guard) => held.push(guard),
                        None => break,
                    },
                }
            }
            if !held.is_empty() {
                count.add(number as u64 + 1);
                counted += number as u64 + 1;
            }
        }
        drop(held);
        expected.fetch_add(counted, Relaxed);
    });
    count.get() == expected.into_inner()
}

/// One kicks the others awake; the last of them that is awake is the next one to kick.
pub(super) fn event<K: Kit, C: Crowd>(crowd: &C, rounds: u32) -> bool {
    let events: [K::Event; CROWD] = std::array::from_fn(|_| K::Event::new());
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
pub(super) fn read_write<K: Kit, C: Crowd>(crowd: &C, rounds: u32) -> bool {
    let (lock, intact) = (K::ReadWrite::new(), AtomicBool::new(true));
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

/// Five think a little and eat a while; no two neighbours eat together.
pub(super) fn philosophers<K: Kit, C: Crowd>(crowd: &C, rounds: u32) -> bool {
    let (office, intact) = (Office::<K::Semaphore>::new(PHILOSOPHERS), AtomicBool::new(true));
    let eats: [AtomicBool; PHILOSOPHERS] = Default::default();
    crowd.run(PHILOSOPHERS, |seat| {
        let mut random = Random::new(seat);
        for _ in 0..rounds {
            random.work_up_to(100);
            office.begin_eating(seat);
            eats[seat].store(true, SeqCst);
            let beside = [seat + 1, seat + PHILOSOPHERS - 1].map(|other| other % PHILOSOPHERS);
            if beside.iter().any(|&other| eats[other].load(SeqCst)) {
                intact.store(false, Relaxed);
            }
            random.work_up_to(5000);
            eats[seat].store(false, SeqCst);
            office.end_eating(seat);
        }
    });
    intact.into_inner()
}

impl Count {
    fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed) + more, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
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

    fn work_up_to(&mut self, most: usize) {
        let units = self.below(most + 1);
        self.work(units);
    }
}
