//! Tokens that end scopes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use fibra_runtime::task::Cancelled;
use fibra_runtime::{self as fibra, CancelToken, task, timeout};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(3600);

fn in_task(workers: usize, promise: impl FnOnce() + Send) {
    let _guard = hang_guard();
    runtime(workers).run(promise);
}

#[test]
fn a_scope_ends_when_its_token_is_cancelled() {
    for workers in [1, 2] {
        in_task(workers, || {
            let token = CancelToken::new();
            let heeds = token.clone();
            let scoped = fibra::spawn(move || heeds.scope(|| fibra::sleep(LONG)).is_err());
            fibra::sleep(SHORT);
            assert!(!scoped.is_finished());
            token.cancel();
            assert!(scoped.join().unwrap());
            assert!(token.is_cancelled());
        });
    }
}

#[test]
fn a_scope_that_returns_keeps_its_value() {
    in_task(1, || {
        let token = CancelToken::new();
        assert_eq!(token.scope(|| 7), Ok(7));
        token.cancel();
        assert_eq!(token.scope(|| 8), Ok(8), "nothing is interrupted that does not wait");
        assert!(token.scope(fibra::yield_now).is_err());
        fibra::yield_now();
    });
}

#[test]
fn children_hear_their_parents_and_not_the_other_way_round() {
    let root = CancelToken::new();
    let (left, right) = (root.child_token(), root.child_token());
    let leaf = left.child_token();
    left.cancel();
    assert!(leaf.is_cancelled() && !root.is_cancelled() && !right.is_cancelled());
    root.cancel();
    assert!(right.is_cancelled() && root.child_token().is_cancelled());
}

#[test]
fn a_long_line_of_tokens_is_cancelled_and_dropped() {
    in_task(1, || {
        let root = CancelToken::new();
        let mut last = root.child_token();
        for _ in 0..100_000 {
            last = last.child_token();
        }
        root.cancel();
        assert!(last.is_cancelled());
        drop(root);
        drop(last);
    });
}

#[test]
fn tasks_and_threads_wait_for_a_token() {
    in_task(2, || {
        let token = CancelToken::new();
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let token = token.clone();
                fibra::spawn(move || token.cancelled())
            })
            .collect();
        let waiting = token.clone();
        let thread = thread::spawn(move || waiting.cancelled());
        assert!(!token.cancelled_timeout(SHORT));
        token.cancel();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        fibra::unblock(|| thread.join().unwrap());
        assert!(token.cancelled_timeout(Duration::ZERO));
    });
}

#[test]
fn the_outermost_that_was_hit_is_raised() {
    in_task(1, || {
        let (outer, inner) = (CancelToken::new(), CancelToken::new());
        let (fires_outer, fires_inner) = (outer.clone(), inner.clone());
        let firing = fibra::spawn(move || {
            fires_inner.cancel();
            fires_outer.cancel();
        });
        let result = outer.scope(|| inner.scope(|| fibra::sleep(LONG)));
        assert!(result.is_err());
        firing.join().unwrap();
        let result = CancelToken::new().scope(|| inner.scope(|| fibra::sleep(LONG)));
        assert!(matches!(result, Ok(Err(_))));
    });
}

#[test]
fn tokens_and_timeouts_nest() {
    in_task(1, || {
        let token = CancelToken::new();
        let late = token.scope(|| timeout(SHORT, || fibra::sleep(LONG)));
        assert!(matches!(late, Ok(Err(_))));
        let firing = {
            let token = token.clone();
            fibra::spawn(move || token.cancel())
        };
        let ended = timeout(LONG, || token.scope(|| timeout(LONG, || fibra::sleep(LONG))));
        assert!(matches!(ended, Ok(Err(_))));
        firing.join().unwrap();
    });
}

#[test]
fn a_race_and_a_join_behind_a_shield_are_ended_by_a_token_in_there() {
    in_task(2, || {
        let bodies: [fn(); 2] =
            [|| _ = fibra::race(task::park, task::park), || _ = fibra::join(task::park, task::park)];
        for body in bodies {
            let token = CancelToken::new();
            let ended = fibra::scope(|s| {
                s.spawn(|| {
                    fibra::sleep(Duration::from_millis(2));
                    token.cancel();
                });
                task::shield(|| token.scope(body))
            });
            assert!(ended.is_err());
        }
    });
}

#[test]
fn a_guard_cancels_unless_it_is_disarmed() {
    let token = CancelToken::new();
    let guard = token.clone().drop_guard();
    assert_eq!(guard.disarm(), token);
    assert!(!token.is_cancelled());
    drop(token.clone().drop_guard());
    assert!(token.is_cancelled());
}

/// The token is fired while its scope begins, sleeps, wakes and ends.
#[test]
fn a_fire_at_any_moment_ends_this_scope_and_no_other() {
    for workers in [1, 2, 4] {
        in_task(workers, || {
            let ended = Arc::new(AtomicU32::new(0));
            let pairs: Vec<_> = (0..3000_u64)
                .map(|round| {
                    let token = CancelToken::new();
                    let (heeds, ended) = (token.clone(), Arc::clone(&ended));
                    let scoped = fibra::spawn(move || {
                        let result = heeds.scope(|| {
                            fibra::sleep(Duration::from_micros(round % 90));
                            fibra::yield_now();
                        });
                        ended.fetch_add(u32::from(result.is_err()), Ordering::Relaxed);
                        // Whatever came late: nothing outside of the scope is ended by it.
                        fibra::sleep(Duration::from_micros(20));
                        fibra::yield_now();
                        assert!(!task::is_cancelled());
                    });
                    let firing = fibra::spawn(move || {
                        fibra::sleep(Duration::from_micros(round * 7 % 100));
                        token.cancel();
                    });
                    (scoped, firing)
                })
                .collect();
            for (scoped, firing) in pairs {
                firing.join().unwrap();
                scoped.join().unwrap();
            }
        });
    }
}

#[test]
fn a_cancelled_scope_becomes_an_io_error_that_can_be_told_from_others() {
    in_task(1, || {
        let token = CancelToken::new();
        token.cancel();
        let scoped = || -> io::Result<()> { Ok(token.scope(task::park)?) };
        let error = scoped().unwrap_err();
        // Not `Interrupted`, after which `read_exact` and the like try again, nor `TimedOut`, as a deadline.
        assert_eq!(error.kind(), io::ErrorKind::Other);
        assert!(error.get_ref().is_some_and(|inner| inner.is::<Cancelled>()), "{error:?}");
        assert_eq!(error.to_string(), "the token of the scope was cancelled");
        let cancelled: Cancelled = error.downcast().unwrap();
        assert_eq!(Err(cancelled), token.scope(task::park));
        let late: io::Error = timeout(Duration::ZERO, task::park).unwrap_err().into();
        assert!(late.kind() == io::ErrorKind::TimedOut && late.downcast::<Cancelled>().is_err());
    });
}
