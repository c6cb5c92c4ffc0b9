//! The questions about work that is born on one worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::{Enter, Job, Tasks};
use super::Host;
use crate::compare::balance::question::{PIECES, Question, TASKS, TURNS};
use crate::compare::balance::work::{Hold, Work};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;

impl<T: Tasks, E: Enter> Rival<Question> for Host<T, E> {
    fn answer(&self, question: Question, _: u64) -> Answer {
        let elapsed = match question {
            Question::Born => self.entrance.ask(do_born::<T>(|_| ())),
            Question::Stuck => self.entrance.ask(do_born::<T>(Work::outlast)),
            Question::Started => self.entrance.ask(do_started::<T>(self.workers as u64)),
        };
        elapsed.into()
    }
}

fn do_born<T: Tasks>(meanwhile: fn(&Work)) -> impl Job<Duration> {
    job!({
        let work = Arc::new(Work::new());
        let task = |_| {
            let work = Arc::clone(&work);
            job!({ work.work() })
        };
        let begin = Instant::now();
        let handles: Vec<_> = (0..PIECES).map(task).map(T::spawn).collect();
        meanwhile(&work);
        join_all!(T, handles);
        work.elapsed_since(begin)
    })
}

/// Other workers are held until the tasks have started on this one, which then have all the work.
fn do_started<T: Tasks>(workers: u64) -> impl Job<Duration> {
    job!({
        let (work, hold) = (Arc::new(Work::new()), Arc::new(Hold::here()));
        let holder = |_| {
            let hold = Arc::clone(&hold);
            job!({ hold.hold() })
        };
        let task = |_| {
            let (work, hold) = (Arc::clone(&work), Arc::clone(&hold));
            job!({
                if !hold.is_here() {
                    return;
                }
                while !hold.is_over() {
                    wait!(T::yield_now());
                }
                while work.work_on() {
                    wait!(T::yield_now());
                }
            })
        };
        let mut handles: Vec<_> = (1..workers).map(holder).map(T::spawn).collect();
        // The youngest task of a worker of tokio can be taken by no other.
        handles.push(T::spawn(job!({})));
        hold.wait_for(workers - 1);
        handles.extend((0..TASKS).map(task).map(T::spawn));
        for _ in 0..TURNS {
            wait!(T::yield_now());
        }
        let begin = hold.end();
        join_all!(T, handles);
        work.elapsed_since(begin)
    })
}
