//! The same for tasks that wait by `await`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::question::{PIECES, Question, TASKS, TURNS};
use super::work::{Hold, Work};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::{Awaiting, Awaits, EnterAsync};

impl<T: Awaiting, E: EnterAsync> Rival<Question> for Awaits<T, E> {
    fn answer(&self, question: Question, _: u64) -> Answer {
        let elapsed = match question {
            Question::Born => self.door.ask(do_born::<T>(|_| ())),
            Question::Stuck => self.door.ask(do_born::<T>(Work::outlast)),
            Question::Started => self.door.ask(do_started::<T>(self.workers as u64)),
        };
        elapsed.into()
    }
}

async fn do_born<T: Awaiting>(meanwhile: fn(&Work)) -> Duration {
    let work = Arc::new(Work::new());
    let task = || {
        let work = Arc::clone(&work);
        async move { work.work() }
    };
    let begin = Instant::now();
    let handles: Vec<_> = (0..PIECES).map(|_| T::spawn(task())).collect();
    meanwhile(&work);
    for handle in handles {
        T::join(handle).await;
    }
    work.elapsed_since(begin)
}

async fn do_started<T: Awaiting>(workers: u64) -> Duration {
    let (work, hold) = (Arc::new(Work::new()), Arc::new(Hold::here()));
    let holder = || {
        let hold = Arc::clone(&hold);
        async move { hold.hold() }
    };
    let task = || {
        let (work, hold) = (Arc::clone(&work), Arc::clone(&hold));
        async move {
            if !hold.is_here() {
                return;
            }
            while !hold.is_over() {
                T::yield_now().await;
            }
            while work.work_on() {
                T::yield_now().await;
            }
        }
    };
    let mut handles: Vec<_> = (1..workers).map(|_| T::spawn(holder())).collect();
    // The youngest task of a worker of tokio can be taken by no other.
    handles.push(T::spawn(async {}));
    hold.wait_for(workers - 1);
    handles.extend((0..TASKS).map(|_| T::spawn(task())));
    for _ in 0..TURNS {
        T::yield_now().await;
    }
    let begin = hold.end();
    for handle in handles {
        T::join(handle).await;
    }
    work.elapsed_since(begin)
}
