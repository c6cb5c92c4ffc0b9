//! The one generic function for each kind of tasks.

use std::time::Instant;

use super::lateness::{Begin, Log};
use super::question::Question;
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::{Awaiting, Awaits, Blocking, Blocks, Enter, EnterAsync};

impl<T: Blocking, E: Enter> Rival<Question> for Blocks<T, E> {
    fn answer(&self, _: Question, operations: u64) -> Answer {
        self.door.ask(move || sleep::<T>(operations))
    }
}

impl<T: Awaiting, E: EnterAsync> Rival<Question> for Awaits<T, E> {
    fn answer(&self, _: Question, operations: u64) -> Answer {
        self.door.ask(sleep_async::<T>(operations))
    }
}

fn sleep<T: Blocking>(tasks: u64) -> Answer {
    let log = Log::of(tasks);
    let sleeper = |number: usize| {
        let log = log.clone();
        move || {
            let begin = Instant::now();
            T::sleep(Log::duration(number));
            log.wake(number, begin);
        }
    };
    let begin = Begin::now();
    // SAFETY: what lives over the sleep are a time and an `Arc`, which is `Send`.
    let handles: Vec<_> = (0..tasks as usize).map(|number| unsafe { T::spawn(sleeper(number)) }).collect();
    handles.into_iter().for_each(T::join);
    begin.end(&log)
}

async fn sleep_async<T: Awaiting>(tasks: u64) -> Answer {
    let log = Log::of(tasks);
    let sleeper = |number: usize| {
        let log = log.clone();
        async move {
            let begin = Instant::now();
            T::sleep(Log::duration(number)).await;
            log.wake(number, begin);
        }
    };
    let begin = Begin::now();
    let handles: Vec<_> = (0..tasks as usize).map(|number| T::spawn(sleeper(number))).collect();
    for handle in handles {
        T::join(handle).await;
    }
    begin.end(&log)
}
