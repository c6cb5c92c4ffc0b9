//! The questions for tasks that block.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::question::{PIECES, Question, TASKS, TURNS};
use super::work::{Hold, Work};
use crate::compare::entrant::Rival;
use crate::compare::question::Answer;
use crate::compare::worlds::{Blocking, Blocks, Enter};

impl<T: Blocking, E: Enter> Rival<Question> for Blocks<T, E> {
    fn answer(&self, question: Question, _: u64) -> Answer {
        let workers = self.workers;
        let elapsed = self.door.ask(move || match question {
            Question::Born => do_born::<T>(|_| ()),
            Question::Stuck => do_born::<T>(Work::outlast),
            Question::Started => do_started::<T>(workers as u64),
        });
        elapsed.into()
    }
}

fn do_born<T: Blocking>(meanwhile: impl FnOnce(&Work)) -> Duration {
    let work = Arc::new(Work::new());
    let task = || {
        let work = Arc::clone(&work);
        move || work.work()
    };
    let begin = Instant::now();
    // SAFETY: it does not suspend itself.
    let handles: Vec<_> = (0..PIECES).map(|_| unsafe { T::spawn(task()) }).collect();
    meanwhile(&work);
    handles.into_iter().for_each(T::join);
    work.elapsed_since(begin)
}

/// Other workers are held until the tasks have started on this one, which then have all the work.
fn do_started<T: Blocking>(workers: u64) -> Duration {
    let (work, hold) = (Arc::new(Work::new()), Arc::new(Hold::here()));
    let holder = || {
        let hold = Arc::clone(&hold);
        move || hold.hold()
    };
    let task = || {
        let (work, hold) = (Arc::clone(&work), Arc::clone(&hold));
        move || {
            if !hold.is_here() {
                return;
            }
            while !hold.is_over() {
                T::yield_now();
            }
            while work.work_on() {
                T::yield_now();
            }
        }
    };
    // SAFETY: what lives over a yield are `Arc`s, which are `Send`.
    let mut handles: Vec<_> = (1..workers).map(|_| unsafe { T::spawn(holder()) }).collect();
    hold.wait_for(workers - 1);
    // SAFETY: as above.
    handles.extend((0..TASKS).map(|_| unsafe { T::spawn(task()) }));
    (0..TURNS).for_each(|_| T::yield_now());
    let begin = hold.end();
    handles.into_iter().for_each(T::join);
    work.elapsed_since(begin)
}
