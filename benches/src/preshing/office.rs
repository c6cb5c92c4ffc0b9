//! The box office of the dining philosophers, without a lock: all their states are one word.
//!
//! Preshing's lock-reduced solution. Each philosopher has a number: 0 thinks, 1 eats, any other waits, and
//! must not eat before a neighbour with a lower one. To eat, a philosopher takes one more than the higher of
//! its neighbours; a philosopher that stops eating lowers the numbers that depended on its own alone,
//! outwards on both sides. A philosopher whose number becomes 1 is let in by the semaphore at its seat.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

use super::kit::Semaphore;

/// Bits of the word for each seat.
const BITS: usize = 4;

/// The states of all, and where philosophers that must not eat yet wait.
pub(super) struct Office<S> {
    states: AtomicU64,
    bouncers: Vec<S>,
}

/// The word, taken apart.
#[derive(Clone, Copy)]
struct States {
    word: u64,
    seats: usize,
}

impl<S: Semaphore> Office<S> {
    pub(super) fn new(seats: usize) -> Self {
        assert!((2..1 << BITS).contains(&seats), "so many states have no room in the word");
        Office { states: AtomicU64::new(0), bouncers: (0..seats).map(|_| S::new()).collect() }
    }

    pub(super) fn begin_eating(&self, seat: usize) {
        let before = self.change(|states| {
            assert_eq!(states.at(seat), 0, "who asks to eat was thinking");
            states.set(seat, states.highest_beside(seat) + 1);
        });
        if before.highest_beside(seat) > 0 {
            self.bouncers[seat].wait();
        }
    }

    pub(super) fn end_eating(&self, seat: usize) {
        let mut let_in = [None; 2];
        self.change(|states| {
            assert_eq!(states.at(seat), 1, "who stops eating ate");
            states.set(seat, 0);
            let mut steps = [1, states.seats - 1];
            // The lower number first: its step may lower the second one.
            steps.sort_by_key(|&step| states.at(states.beside(seat, step)));
            let_in = steps.map(|step| {
                let neighbour = states.beside(seat, step);
                states.come_nearer(neighbour, 1, step).then_some(neighbour)
            });
        });
        let_in.into_iter().flatten().for_each(|seat| self.bouncers[seat].post());
    }

    /// Changes the states in one step, and returns what they were.
    fn change(&self, mut change: impl FnMut(&mut States)) -> States {
        let seats = self.bouncers.len();
        let changed = |word| {
            let mut states = States { word, seats };
            change(&mut states);
            Some(states.word)
        };
        // Release and Acquire: pair with each other, so that a philosopher that eats sees what its neighbours
        // did while they ate.
        let word = self.states.fetch_update(AcqRel, Acquire, changed);
        States { word: word.expect("there is always a next state"), seats }
    }
}

impl States {
    fn at(self, seat: usize) -> u64 {
        self.word >> (seat * BITS) & ((1 << BITS) - 1)
    }

    fn set(&mut self, seat: usize, state: u64) {
        self.word ^= (self.at(seat) ^ state) << (seat * BITS);
    }

    fn beside(self, seat: usize, step: usize) -> usize {
        (seat + step) % self.seats
    }

    fn highest_beside(self, seat: usize) -> u64 {
        self.at(self.beside(seat, 1)).max(self.at(self.beside(seat, self.seats - 1)))
    }

    /// Brings the one at `seat` from `state + 1` to `state` if its neighbour further on lets it, and then
    /// that one's turn comes, and so on outwards. True if it came nearer.
    fn come_nearer(&mut self, seat: usize, state: u64, step: usize) -> bool {
        let next = self.beside(seat, step);
        if self.at(seat) != state + 1 || self.at(next) == state {
            return false;
        }
        self.set(seat, state);
        if self.at(next) > state {
            self.come_nearer(next, state + 1, step);
        }
        true
    }
}
