//! The question about what a sleeping task keeps resident. The sleepers are left asleep: the process ends
//! with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::super::{Enter, Tasks};
use super::Host;
use crate::compare::entrant::Rival;
use crate::compare::memory::{FAR, MOMENT, measure, question::Question};
use crate::compare::question::Answer;

impl<T: Tasks, E: Enter> Rival<Question> for Host<T, E> {
    fn answer(&self, _: Question, operations: u64) -> Answer {
        measure(operations, |count: Arc<AtomicU64>| {
            self.entrance.ask(job!({
                for _ in 0..operations {
                    let count = Arc::clone(&count);
                    T::detach(T::spawn(job!({
                        count.fetch_add(1, Relaxed);
                        wait!(T::sleep(FAR));
                    })));
                }
                while count.load(Relaxed) < operations {
                    wait!(T::sleep(Duration::from_millis(1)));
                }
                wait!(T::sleep(MOMENT));
            }));
        })
    }
}
