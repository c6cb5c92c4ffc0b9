//! The one generic function for each kind of tasks. The sleepers are left asleep: the process ends with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::question::Question;
use crate::compare::entrant::Rival;
use crate::compare::question::{Answer, Measure};
use crate::compare::worlds::{Awaiting, Awaits, Blocking, Blocks, Enter, EnterAsync};
use crate::process::Usage;

/// Beyond the end of the process.
const FAR: Duration = Duration::from_secs(3600);

/// How long those who were the last to begin have to fall asleep.
const MOMENT: Duration = Duration::from_millis(50);

impl<T: Blocking, E: Enter> Rival<Question> for Blocks<T, E> {
    fn answer(&self, _: Question, operations: u64) -> Answer {
        let door = &self.door;
        measure(operations, |count| {
            door.ask(move || {
                let sleeper = || {
                    let count = Arc::clone(&count);
                    move || {
                        count.fetch_add(1, Relaxed);
                        T::sleep(FAR);
                    }
                };
                // SAFETY: nothing lives over the sleep.
                (0..operations).for_each(|_| drop(unsafe { T::spawn(sleeper()) }));
                while count.load(Relaxed) < operations {
                    T::sleep(Duration::from_millis(1));
                }
                T::sleep(MOMENT);
            });
        })
    }
}

impl<T: Awaiting, E: EnterAsync> Rival<Question> for Awaits<T, E> {
    fn answer(&self, _: Question, operations: u64) -> Answer {
        let door = &self.door;
        measure(operations, |count| {
            door.ask(async move {
                for _ in 0..operations {
                    let count = Arc::clone(&count);
                    T::detach(T::spawn(async move {
                        count.fetch_add(1, Relaxed);
                        T::sleep(FAR).await;
                    }));
                }
                while count.load(Relaxed) < operations {
                    T::sleep(Duration::from_millis(1)).await;
                }
                T::sleep(MOMENT).await;
            });
        })
    }
}

/// What is resident when so many sleep, beyond what was before.
fn measure(tasks: u64, fall_asleep: impl FnOnce(Arc<AtomicU64>)) -> Answer {
    // The first threads and whatever else there is but once.
    thread::sleep(MOMENT);
    let before = resident();
    fall_asleep(Arc::new(AtomicU64::new(0)));
    let bytes = resident().saturating_sub(before) as f64 / tasks as f64;
    Answer { elapsed: Duration::ZERO, figures: vec![(Measure::Memory, bytes)], is_timed: false }
}

fn resident() -> u64 {
    Usage::of(std::process::id()).expect("the system tells").resident
}
