//! The question about many tasks that sleep at once.

use std::time::Instant;

use super::super::{Enter, Tasks};
use super::Host;
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::timers::lateness::{Begin, Wakes};
use crate::compare::timers::question::Question;

impl<T: Tasks, E: Enter> Rival<Question> for Host<T, E> {
    fn answer(&self, _: Question, tasks: u64) -> Answer {
        self.entrance.ask(job!({
            let wakes = Wakes::of(tasks);
            let sleeper = |number: usize| {
                let wakes = wakes.clone();
                job!({
                    let begin = Instant::now();
                    wait!(T::sleep(Wakes::duration(number)));
                    wakes.wake(number, begin);
                })
            };
            let begin = Begin::now();
            let handles: Vec<_> = (0..tasks as usize).map(|number| T::spawn(sleeper(number))).collect();
            join_all!(T, handles);
            begin.end(&wakes)
        }))
    }
}
