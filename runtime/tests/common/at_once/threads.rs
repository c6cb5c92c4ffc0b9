//! Races between two threads, where nothing but its own deadline ends a wait.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::counted::count_here;
use super::{End, Row, Tally};

/// Where two threads meet, over and over.
#[derive(Default)]
struct Meeting(AtomicUsize);

impl Meeting {
    /// The `number`th time, from 1.
    fn come(&self, number: usize) {
        self.0.fetch_add(1, Ordering::SeqCst);
        while self.0.load(Ordering::SeqCst) < 2 * number {
            hint::spin_loop();
            thread::yield_now();
        }
    }
}

impl<T: Send + Sync + 'static, H: 'static> Row<T, H> {
    /// Plays rounds in which one thread waits and another notifies it when about the time runs out.
    pub(super) fn play_in_threads(&self, rounds: usize) -> Tally {
        match self.is_timed && !self.always_in_company && !self.is_for_tasks {
            true => {
                self.in_batches(End::Token, rounds, |seed, things| self.play_batch_in_threads(seed, things))
            }
            false => Tally::default(),
        }
    }

    fn play_batch_in_threads(&self, seed: u64, things: &[Arc<T>]) -> Tally {
        let (meeting, total) = (Meeting::default(), Mutex::new(Tally::default()));
        let timeout = |number: usize| Duration::from_micros(number as u64 * 7 % 30);
        thread::scope(|threads| {
            threads.spawn(|| {
                count_here();
                for (number, thing) in things.iter().enumerate() {
                    let held = (self.hold)(thing);
                    meeting.come(3 * number + 1);
                    // A thread is woken some fifty microseconds after its deadline.
                    let moment =
                        Instant::now() + timeout(number) + Duration::from_micros((seed + number as u64) % 70);
                    while Instant::now() < moment {
                        hint::spin_loop();
                    }
                    (self.notify)(thing, held);
                    meeting.come(3 * number + 2);
                    meeting.come(3 * number + 3);
                }
            });
            for (number, thing) in things.iter().enumerate() {
                meeting.come(3 * number + 1);
                let took = (self.wait)(thing, Some(Instant::now() + timeout(number)));
                meeting.come(3 * number + 2);
                (self.settle)(thing, usize::from(!took && !self.serves_all));
                meeting.come(3 * number + 3);
                *total.lock().unwrap() += Tally::of(took);
            }
        });
        total.into_inner().unwrap()
    }
}
