//! What the suites of other runtimes ask of a shared task, one whose end and result many wait for, asked of our means. A
//! task has one owner of its result, its `JoinHandle`; what makes many of it is a cell, a token or a watched value.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::common::{give_way, guarded, in_tasks, runtime, until};
use fibra_runtime::{self as fibra, CancelToken, Task, task, timeout};
use fibra_sync::{ManualResetEvent, OnceCell, watch};

const SHORT: Duration = Duration::from_millis(3);
const LONG: Duration = Duration::from_secs(3600);

/// The task panicked or was cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ended;

/// A task with many holders: each may wait for its result, and the last one that goes cancels it.
struct Shared<T: Send + Sync + 'static> {
    outcome: Arc<OnceCell<Result<T, Ended>>>,
    holders: Arc<CancelsAtEnd>,
}

/// Cancels the task when its last holder goes. An ended task ignores that.
struct CancelsAtEnd(Task);

impl Drop for CancelsAtEnd {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Captured by the task, so that it is dropped however that ends, also if it never ran.
struct Fills<T: Send + Sync + 'static>(Arc<OnceCell<Result<T, Ended>>>);

impl<T: Send + Sync + 'static> Fills<T> {
    fn with(&self, value: T) {
        assert!(self.0.set(Ok(value)).is_ok(), "it is filled once");
    }
}

impl<T: Send + Sync + 'static> Drop for Fills<T> {
    fn drop(&mut self) {
        _ = self.0.set(Err(Ended));
    }
}

impl<T: Send + Sync + 'static> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared { outcome: Arc::clone(&self.outcome), holders: Arc::clone(&self.holders) }
    }
}

fn share<T: Send + Sync + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Shared<T> {
    let outcome = Arc::new(OnceCell::new());
    let fills = Fills(Arc::clone(&outcome));
    let body = fibra::spawn(move || fills.with(f()));
    Shared { outcome, holders: Arc::new(CancelsAtEnd(body.task().clone())) }
}

impl<T: Send + Sync + 'static> Shared<T> {
    fn wait(&self) -> &Result<T, Ended> {
        self.outcome.wait()
    }

    fn task(&self) -> &Task {
        &self.holders.0
    }
}

/// A shared task that ends when it is unparked.
fn waiting_for_its_unpark() -> Shared<usize> {
    share(|| {
        task::park();
        5
    })
}

#[test]
fn each_holder_has_the_result_whenever_it_asks() {
    in_tasks(|| {
        let first = waiting_for_its_unpark();
        let before = first.clone();
        drop(first.clone());
        first.task().unpark();
        assert_eq!(*first.wait(), Ok(5));
        let after = first.clone();
        drop(first);
        for holder in [before, after] {
            // As often as it likes.
            (0..2).for_each(|_| assert_eq!(*holder.wait(), Ok(5)));
        }
    });
}

#[test]
fn a_holder_that_is_replaced_leaves_both_tasks_to_their_holders() {
    in_tasks(|| {
        let one = share(|| 5);
        let mut other = one.clone();
        assert_eq!(*other.wait(), Ok(5));
        other = share(|| 42);
        let third = other.clone();
        assert_eq!(*one.wait(), Ok(5));
        assert_eq!(*other.wait(), Ok(42));
        assert_eq!(*third.wait(), Ok(42));
    });
}

#[test]
fn the_last_holder_that_goes_cancels_the_task() {
    in_tasks(|| {
        let mut held = waiting_for_its_unpark();
        let (outcome, task) = (Arc::clone(&held.outcome), held.task().clone());
        let copy = held.clone();
        let moved = copy;
        drop(held.clone());
        held = waiting_for_its_unpark();
        assert!(outcome.wait_timeout(SHORT).is_none() && !task.is_finished(), "one holds it still");
        drop(moved);
        assert_eq!(*outcome.wait(), Err(Ended));
        assert!(!held.task().is_finished(), "this is another one's");
    });
}

#[test]
fn an_end_and_its_last_holder_at_once_leave_an_outcome() {
    in_tasks(|| {
        for round in 0..1000 {
            let held = share(move || (0..round % 4).for_each(|_| fibra::yield_now()));
            let outcome = Arc::clone(&held.outcome);
            (0..round % 3).for_each(|_| give_way());
            drop(held);
            let told = *outcome.wait();
            assert_eq!(*outcome.wait(), told);
        }
    });
}

#[test]
fn a_panic_is_reported_to_later_callers_and_ends_no_wait() {
    in_tasks(|| {
        let shared = share(|| -> i32 { std::panic::resume_unwind(Box::new("error")) });
        let waiters = [(); 4].map(|()| {
            let shared = shared.clone();
            fibra::spawn(move || *shared.wait())
        });
        waiters.into_iter().for_each(|waiter| assert_eq!(waiter.join().unwrap(), Err(Ended)));
        (0..2).for_each(|_| assert_eq!(*shared.wait(), Err(Ended)));
    });
}

#[test]
fn many_wait_for_one_result_in_tasks_and_in_threads() {
    in_tasks(|| {
        let shared = waiting_for_its_unpark();
        let (waiting, sum) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let adds = || {
            let (shared, waiting, sum) = (shared.clone(), Arc::clone(&waiting), Arc::clone(&sum));
            move || {
                waiting.fetch_add(1, SeqCst);
                sum.fetch_add(shared.wait().unwrap(), SeqCst);
            }
        };
        let tasks: Vec<_> = (0..100).map(|_| fibra::spawn(adds())).collect();
        let threads: Vec<_> = (0..3).map(|_| thread::spawn(adds())).collect();
        until(|| waiting.load(SeqCst) == 103);
        shared.task().unpark();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        fibra::unblock(|| threads.into_iter().for_each(|thread| thread.join().unwrap()));
        assert_eq!(sum.load(SeqCst), 103 * 5);
    });
}

#[test]
fn a_waiter_that_leaves_leaves_the_others_waiting() {
    in_tasks(|| {
        let shared = waiting_for_its_unpark();
        let begun = Arc::new(AtomicUsize::new(0));
        let waits = || {
            let (shared, begun) = (shared.clone(), Arc::clone(&begun));
            fibra::spawn(move || {
                begun.fetch_add(1, SeqCst);
                shared.wait().unwrap()
            })
        };
        let (stays, goes) = (waits(), waits());
        until(|| begun.load(SeqCst) == 2);
        assert!(shared.outcome.wait_timeout(SHORT).is_none());
        assert!(timeout(SHORT, || shared.wait().is_ok()).is_err());
        goes.cancel();
        assert!(goes.join().unwrap_err().is_cancelled());
        assert!(!shared.task().is_finished() && !stays.is_finished());
        shared.task().unpark();
        assert_eq!(stays.join().unwrap(), 5);
        assert_eq!(timeout(LONG, || shared.wait().is_ok()), Ok(true));
    });
}

#[test]
fn an_end_at_the_deadline_of_its_waiters_is_seen_by_all_sooner_or_later() {
    in_tasks(|| {
        for round in 0..300_u64 {
            let shared = share(move || fibra::sleep(Duration::from_micros(round % 60)));
            let waiters = [20, 30, 40].map(|micros| {
                let shared = shared.clone();
                fibra::spawn(move || {
                    let in_time = shared.outcome.wait_timeout(Duration::from_micros(micros)).copied();
                    assert!(in_time.is_none_or(|outcome| outcome.is_ok()));
                    assert!(shared.wait().is_ok());
                })
            });
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        }
    });
}

/// A guard that a task captures is gone with it, however it ends.
#[test]
fn many_wait_for_an_end_without_a_result() {
    let bodies: [fn(); 3] = [|| (), || std::panic::resume_unwind(Box::new("error")), task::park];
    in_tasks(|| {
        for body in bodies {
            for before_its_start in [false, true] {
                let ended = CancelToken::new();
                let tells = ended.clone().drop_guard();
                let begun = Arc::new(AtomicBool::new(false));
                let begins = Arc::clone(&begun);
                let held = fibra::spawn(move || {
                    let _tells = tells;
                    begins.store(true, SeqCst);
                    body();
                });
                let waiters = [(); 4].map(|()| {
                    let ended = ended.clone();
                    fibra::spawn(move || ended.cancelled())
                });
                until(|| before_its_start || begun.load(SeqCst));
                held.cancel();
                // The result has no owner any more.
                drop(held);
                waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
                assert!(ended.cancelled_timeout(Duration::ZERO));
            }
        }
    });
}

#[test]
fn watchers_hear_of_the_progress_of_a_task_and_of_its_end() {
    in_tasks(|| {
        for ends_by_a_panic in [false, true] {
            let (progress, watched) = watch::channel(0);
            let watchers = [(); 4].map(|()| {
                let mut watched = watched.clone();
                fibra::spawn(move || {
                    let half = watched.wait_for(|percent| *percent >= 50).map(|percent| *percent);
                    assert!(half.unwrap() >= 50);
                    while watched.changed().is_ok() {}
                    *watched.borrow()
                })
            });
            let worker = fibra::spawn(move || {
                for percent in 1..=100 {
                    progress.send(percent).unwrap();
                    fibra::yield_now();
                }
                if ends_by_a_panic {
                    std::panic::resume_unwind(Box::new("after all was done"));
                }
            });
            watchers.into_iter().for_each(|watcher| assert_eq!(watcher.join().unwrap(), 100));
            assert_eq!(worker.join().is_err(), ends_by_a_panic);
        }
    });
}

#[test]
fn a_result_of_a_runtime_that_has_ended_is_an_error() {
    guarded(|| {
        let began = Arc::new(ManualResetEvent::new(false));
        let begins = Arc::clone(&began);
        let runtime = runtime(2);
        let shared = runtime.run(|| {
            share(move || {
                begins.set();
                task::park();
            })
        });
        began.wait();
        let asks = shared.clone();
        let asking = thread::spawn(move || *asks.wait());
        drop(runtime);
        assert_eq!(asking.join().unwrap(), Err(Ended));
        assert_eq!(*shared.wait(), Err(Ended), "also afterwards");
    });
}
