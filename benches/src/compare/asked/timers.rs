//! The question about many tasks that sleep at the same time.

use std::time::Instant;

use super::super::{Enter, Tasks};
use super::Started;
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::timers::lateness::{Begin, Log};
use crate::compare::timers::question::Question;

impl<T: Tasks, E: Enter> Rival<Question> for Started<T, E> {
    fn answer(&self, _: Question, tasks: u64) -> Answer {
        self.entrance.ask(job!({
            let log = Log::of(tasks);
            let sleeper = |number: usize| {
                let log = log.clone();
                job!({
                    let begin = Instant::now();
                    wait!(T::sleep(Log::duration(number)));
                    log.wake(number, begin);
                })
            };
            let begin = Begin::now();
            let handles: Vec<_> = (0..tasks as usize).map(|number| T::spawn(sleeper(number))).collect();
            join_all!(T, handles);
            begin.end(&log)
        }))
    }
}
