//! Each wait of the runtime is notified and ended at the same moment, by a cancel, by a scope around it, or by its own
//! deadline: nothing is lost, and nothing leaks.

#[path = "common/at_once/mod.rs"]
mod at_once;
#[expect(dead_code, reason = "these tests use a part of it")]
mod common;
#[path = "common/tokens.rs"]
mod tokens;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use at_once::Row;
use at_once::pinned::until;
use common::hang_guard;
use fibra_runtime::wait::{self, Waking};
use fibra_runtime::{self as fibra, CancelToken, JoinHandle, Task, TaskGroup, task};
use tokens::Tokens;

const LONG: Duration = Duration::from_secs(60);

fn play<T: Send + Sync + 'static, H: 'static>(row: Row<T, H>) {
    let _alone = at_once::alone();
    let _guard = hang_guard();
    at_once::play(row, |builder| builder);
}

fn rest(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

#[test]
fn rule_4_a_token_is_lost_neither_to_a_cancel_nor_to_a_deadline() {
    play(Row::new(
        Tokens::new,
        |tokens, until| match tokens.acquire(until) {
            Waking::Notified => true,
            Waking::TimedOut => false,
            Waking::Cancelled => wait::unwind_cancelled(),
        },
        |tokens, ()| tokens.release(),
        |tokens, left| {
            assert_eq!(tokens.free(), left);
            (0..left).for_each(|_| assert_eq!(tokens.acquire(None), Waking::Notified));
            assert!(!tokens.has_waiters());
        },
    ));
}

#[test]
fn rule_4_a_sleep_behind_a_shield_is_ended_by_its_deadline_only() {
    let row = Row::new(
        Tokens::new,
        |tokens, until| wait::sleep_shielded(&tokens.strategy(), until) == Waking::Notified,
        |tokens, ()| tokens.release(),
        |tokens, _| assert!(!tokens.has_waiters()),
    );
    play(Row { lasts: 1, ..row.of_a_lock().alone() });
}

/// The time of a sleep, which differs from one to the next.
#[derive(Default)]
struct Naps(AtomicUsize);

#[test]
fn the_end_of_a_sleep() {
    let row = Row::new(
        Naps::default,
        |naps, _| {
            let time = Duration::from_micros(naps.0.fetch_add(37, Ordering::Relaxed) as u64 % 100);
            let begin = Instant::now();
            fibra::sleep(time);
            assert!(begin.elapsed() >= time, "it is a whole one");
            true
        },
        |_, ()| (),
        |_, _| (),
    );
    play(Row { is_timed: false, both_win: false, ..row.serving_all().alone() });
}

/// A place to park at.
#[derive(Default)]
struct Parking {
    /// The parked task, until it goes.
    task: Mutex<Option<Task>>,
    given: AtomicBool,
    /// A token was there for another park.
    left: AtomicBool,
}

/// Leaves, by whatever way, and looks for a token that was given and not used.
struct Leaves<'a> {
    parking: &'a Parking,
    is_unparked: bool,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        drop(self.parking.task.lock().unwrap().take());
        if self.parking.given.load(Ordering::SeqCst) && !self.is_unparked {
            self.parking.left.store(task::park_timeout(LONG), Ordering::SeqCst);
        }
    }
}

#[test]
fn an_unpark() {
    let row = Row::new(
        Parking::default,
        |parking, until| {
            let mut leaves = Leaves { parking, is_unparked: false };
            *parking.task.lock().unwrap() = Some(task::current());
            leaves.is_unparked = match until {
                None => {
                    task::park();
                    true
                }
                Some(until) => task::park_timeout(rest(until)),
            };
            leaves.is_unparked
        },
        |parking, ()| {
            if let Some(parked) = &*parking.task.lock().unwrap() {
                parking.given.store(true, Ordering::SeqCst);
                parked.unpark();
            }
        },
        |parking, left| {
            let [given, left_over] =
                [&parking.given, &parking.left].map(|flag| usize::from(flag.swap(false, Ordering::SeqCst)));
            assert_eq!(given, 1 - left + left_over, "of each unpark comes the end of one park");
        },
    );
    play(Row { is_for_tasks: true, ..row.alone() });
}

/// A task that ends when it is unparked, and the right to its value.
struct Joined(Task, Mutex<Option<JoinHandle<Box<usize>>>>);

impl Joined {
    fn new() -> Self {
        let parked = fibra::spawn(|| {
            task::park();
            Box::new(7)
        });
        Joined(parked.task().clone(), Mutex::new(Some(parked)))
    }

    fn take(&self) -> Option<JoinHandle<Box<usize>>> {
        self.1.lock().unwrap().take()
    }
}

#[test]
fn the_end_of_a_task_that_is_joined() {
    let row = Row::new(
        Joined::new,
        |joined, until| {
            let handle = joined.take().expect("one joins it");
            match until {
                None => handle.join().is_ok(),
                Some(until) => match handle.join_timeout(rest(until)) {
                    Ok(result) => result.is_ok(),
                    Err(handle) => {
                        *joined.1.lock().unwrap() = Some(handle);
                        false
                    }
                },
            }
        },
        |joined, ()| joined.0.unpark(),
        |joined, _| match joined.take() {
            Some(handle) => assert_eq!(*handle.join().unwrap(), 7, "a late joiner finds it"),
            None => until(|| joined.0.is_finished()),
        },
    );
    play(Row { is_for_tasks: true, lasts: 1, ..row.alone() });
}

/// A group of two tasks that end when they are unparked, one after the other.
struct Members {
    group: TaskGroup<Box<usize>>,
    parked: [Task; 2],
    next: AtomicUsize,
}

impl Members {
    fn new() -> Self {
        let group = TaskGroup::new();
        let parked = [1, 2].map(|number| {
            group.spawn(move || {
                task::park();
                Box::new(number)
            })
        });
        Members { group, parked, next: AtomicUsize::new(0) }
    }

    fn end_one(&self) {
        self.parked[self.next.fetch_add(1, Ordering::SeqCst)].unpark();
    }
}

#[test]
fn the_end_of_a_member_of_a_group() {
    let row = Row::new(
        Members::new,
        |members, until| match until {
            None => members.group.join_next().is_some_and(|result| result.is_ok()),
            Some(until) => {
                let next = members.group.join_next_timeout(rest(until));
                next.is_ok_and(|next| next.expect("there are two").is_ok())
            }
        },
        |members, ()| members.end_one(),
        |members, left| {
            (0..left).for_each(|_| drop(members.group.join_next().expect("it is left").unwrap()));
            assert!(members.group.try_join_next().is_none());
        },
    );
    play(Row { is_for_tasks: true, lasts: 1, ..row });
}

#[test]
fn the_place_of_a_member_of_a_group_with_a_limit() {
    let row = Row::new(
        || {
            let group = TaskGroup::with_limit(1);
            let parked = group.spawn(task::park);
            (group, parked)
        },
        |(group, _), _| {
            group.spawn(|| ());
            true
        },
        |(_, parked), ()| parked.unpark(),
        |(group, _), _| {
            group.spawn(|| ());
            assert!(group.join_all().into_iter().all(|result| result.is_ok()));
        },
    );
    play(Row { is_for_tasks: true, is_timed: false, lasts: 1, ..row.serving_all() });
}

#[test]
fn the_cancel_of_a_token() {
    let row = Row::new(
        CancelToken::new,
        |token, until| match until {
            None => {
                token.cancelled();
                true
            }
            Some(until) => token.cancelled_timeout(rest(until)),
        },
        |token, ()| token.cancel(),
        |token, _| assert!(token.is_cancelled()),
    );
    play(row.once_for_all());
}

#[test]
fn the_cancel_of_a_token_above() {
    let row = Row::new(
        || {
            let above = CancelToken::new();
            (above.child_token(), above)
        },
        |(token, _), until| match until {
            None => {
                token.child_token().cancelled();
                true
            }
            Some(until) => token.child_token().cancelled_timeout(rest(until)),
        },
        |(_, above), ()| above.cancel(),
        |(token, _), _| assert!(token.is_cancelled()),
    );
    play(row.once_for_all());
}

#[test]
fn the_end_of_code_that_blocks() {
    let row = Row::new(
        AtomicUsize::default,
        |ran, _| {
            fibra::unblock(|| ran.fetch_add(1, Ordering::SeqCst));
            true
        },
        |_, ()| (),
        |ran, left| assert_eq!(ran.swap(0, Ordering::SeqCst), 1 - left, "it runs to its end, or not at all"),
    );
    play(Row { is_timed: false, both_win: false, rounds: 1000, ..row.alone() });
}
