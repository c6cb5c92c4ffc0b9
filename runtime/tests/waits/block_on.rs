//! Promises of `block_on`.

use std::cell::Cell;
use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::rest::until_others_sleep;
use fibra_runtime::{self as fibra, CancelToken, block_on, task};

const SHORT: Duration = Duration::from_millis(2);

/// Runs `check` in a task, and on a plain thread.
fn everywhere(check: impl Fn() + Send + Sync) {
    let _guard = hang_guard();
    runtime(1).run(&check);
    runtime(2).run(&check);
    thread::scope(|scope| scope.spawn(&check).join().unwrap());
}

fn in_a_task(check: impl Fn() + Send + Sync) {
    let _guard = hang_guard();
    runtime(1).run(&check);
    runtime(2).run(&check);
}

/// A future that is ready once it was opened.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);

impl Gate {
    fn open(&self) {
        let waker = {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn has_waker(&self) -> bool {
        self.0.lock().unwrap().1.is_some()
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Wakes itself so many times before it is ready.
fn giving_way(times: usize) -> impl Future<Output = ()> {
    let mut left = times;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Counts the drop of what it is in.
struct Dropped<'a>(&'a AtomicUsize);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_future_that_is_ready_gives_its_value() {
    everywhere(|| {
        assert_eq!(block_on(ready(7)), 7);
        assert_eq!(block_on(async { async { 20 }.await + async { 22 }.await }), 42);
    });
}

#[test]
fn a_future_may_borrow_and_stay_on_its_thread() {
    everywhere(|| {
        let count = Rc::new(Cell::new(0));
        let local = &count;
        block_on(async {
            local.set(local.get() + 1);
            giving_way(3).await;
            local.set(local.get() + 1);
        });
        assert_eq!(count.get(), 2);
    });
}

#[test]
fn a_thread_wakes_it() {
    everywhere(|| {
        let gate = Gate::default();
        let opener = gate.clone();
        let other = thread::spawn(move || {
            while !opener.has_waker() {
                thread::yield_now();
            }
            opener.open();
        });
        block_on(gate);
        other.join().unwrap();
    });
}

#[test]
fn a_task_wakes_it() {
    in_a_task(|| {
        let gate = Gate::default();
        let opener = gate.clone();
        let other = fibra::spawn(move || {
            while !opener.has_waker() {
                fibra::yield_now();
            }
            opener.open();
        });
        block_on(gate);
        other.join().unwrap();
    });
}

#[test]
fn a_task_and_a_thread_wake_each_other_thousands_of_times() {
    /// Turns go to the task with the right number.
    struct Turns(Mutex<(usize, Option<Waker>)>);
    impl Turns {
        async fn come(&self, until: usize) {
            poll_fn(|context| {
                let mut state = self.0.lock().unwrap();
                if state.0 >= until {
                    return Poll::Ready(());
                }
                state.1 = Some(context.waker().clone());
                Poll::Pending
            })
            .await;
        }

        fn go(&self, to: usize) {
            let waker = {
                let mut state = self.0.lock().unwrap();
                state.0 = to;
                state.1.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
    const ROUNDS: usize = 5000;
    let _guard = hang_guard();
    for workers in [1, 2] {
        let turns: Arc<[Turns; 2]> = Arc::new([(); 2].map(|()| Turns(Mutex::default())));
        let theirs = Arc::clone(&turns);
        let runtime = runtime(workers);
        let task = runtime.spawn(move || {
            for round in 1..=ROUNDS {
                block_on(theirs[0].come(round));
                theirs[1].go(round);
            }
        });
        for round in 1..=ROUNDS {
            turns[0].go(round);
            block_on(turns[1].come(round));
        }
        task.join().unwrap();
    }
}

#[test]
fn an_unpark_neither_wakes_it_nor_is_lost_in_it() {
    in_a_task(|| {
        let polls = Arc::new(AtomicUsize::new(0));
        let (gate, counted) = (Gate::default(), Arc::clone(&polls));
        let mut inner = gate.clone();
        let blocked = fibra::spawn(move || {
            block_on(poll_fn(|context| {
                counted.fetch_add(1, Ordering::SeqCst);
                Pin::new(&mut inner).poll(context)
            }));
            assert!(task::park_timeout(Duration::ZERO), "the token is still there");
            assert!(!task::park_timeout(Duration::ZERO), "and there is one");
        });
        while !gate.has_waker() {
            fibra::yield_now();
        }
        (0..10).for_each(|_| {
            blocked.task().unpark();
            fibra::sleep(Duration::from_micros(50));
        });
        assert_eq!(polls.load(Ordering::SeqCst), 1);
        gate.open();
        blocked.join().unwrap();
    });
}

#[test]
fn its_waker_gives_no_token_to_park() {
    in_a_task(|| {
        block_on(giving_way(3));
        let gate = Gate::default();
        let opener = gate.clone();
        fibra::spawn(move || opener.open());
        block_on(gate);
        assert!(!task::park_timeout(SHORT));
    });
}

#[test]
fn a_future_that_always_wakes_itself_starves_no_task() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let spinner = fibra::spawn(move || {
            block_on(poll_fn(|context| {
                context.waker().wake_by_ref();
                if stopped.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
            }));
        });
        fibra::sleep(SHORT);
        let turns: usize = (0..100).map(|_| usize::from(fibra::spawn(|| ()).join().is_ok())).sum();
        assert_eq!(turns, 100);
        assert!(!spinner.is_finished());
        stop.store(true, Ordering::SeqCst);
        spinner.join().unwrap();
    });
}

#[test]
fn a_loop_over_block_on_starves_no_task() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let spinner = fibra::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                block_on(ready(()));
            }
        });
        fibra::sleep(SHORT);
        stop.store(true, Ordering::SeqCst);
        spinner.join().unwrap();
    });
}

#[test]
fn giving_way_lets_all_others_run_before_the_next_poll() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let rounds = Rc::new(Cell::new(0));
        let counted = Rc::clone(&rounds);
        let other = fibra::spawn_local(move || {
            for _ in 0..50 {
                counted.set(counted.get() + 1);
                fibra::yield_now();
            }
        });
        let mut seen = 0;
        block_on(poll_fn(|context| {
            if seen > 0 {
                assert!(rounds.get() >= seen.min(50), "{} rounds in {seen} polls", rounds.get());
            }
            seen += 1;
            context.waker().wake_by_ref();
            if seen == 60 { Poll::Ready(()) } else { Poll::Pending }
        }));
        other.join().unwrap();
    });
}

#[test]
fn a_waker_may_be_kept_for_ever() {
    let kept = Mutex::new(Vec::new());
    let keep = || {
        block_on(poll_fn(|context| {
            kept.lock().unwrap().push(context.waker().clone());
            Poll::Ready(())
        }));
        let mut first = true;
        block_on(poll_fn(|context| {
            if !std::mem::take(&mut first) {
                return Poll::Ready(());
            }
            kept.lock().unwrap().push(context.waker().clone());
            let waker = context.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        }));
    };
    everywhere(keep);
    // The tasks, the threads and the runtimes are gone.
    let kept = kept.into_inner().unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| kept.iter().cloned().for_each(Waker::wake));
            scope.spawn(|| kept.iter().for_each(Waker::wake_by_ref));
        }
    });
}

#[test]
fn a_waker_of_before_does_not_wake_the_next_one() {
    everywhere(|| {
        let before = block_on(poll_fn(|context| Poll::Ready(context.waker().clone())));
        let gate = Gate::default();
        let opener = gate.clone();
        let other = thread::spawn(move || {
            while !opener.has_waker() {
                before.wake_by_ref();
                thread::yield_now();
            }
            (0..1000).for_each(|_| before.wake_by_ref());
            opener.open();
        });
        let mut gate = gate;
        let mut polls = 0;
        block_on(poll_fn(|context| {
            polls += 1;
            Pin::new(&mut gate).poll(context)
        }));
        assert!(polls <= 2, "{polls} polls for one wake");
        other.join().unwrap();
    });
}

#[test]
fn many_wakes_at_once_are_safe_and_none_is_lost() {
    everywhere(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
        let wakers: Vec<_> = (0..3)
            .map(|_| {
                let (count, waker) = (Arc::clone(&count), Arc::clone(&waker));
                thread::spawn(move || {
                    for _ in 0..500 {
                        count.fetch_add(1, Ordering::SeqCst);
                        let waker = waker.lock().unwrap().clone();
                        if let Some(waker) = waker {
                            waker.wake();
                        }
                    }
                })
            })
            .collect();
        block_on(poll_fn(|context| {
            *waker.lock().unwrap() = Some(context.waker().clone());
            if count.load(Ordering::SeqCst) == 1500 { Poll::Ready(()) } else { Poll::Pending }
        }));
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

#[test]
fn a_cancel_drops_the_future() {
    in_a_task(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&drops);
        let blocked = fibra::spawn(move || {
            let inner = Dropped(&counted);
            block_on(async {
                let _inner = inner;
                pending::<()>().await;
            });
        });
        until_others_sleep();
        blocked.cancel();
        assert!(blocked.join().unwrap_err().is_cancelled());
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_cancelled_task_polls_no_future_at_all() {
    in_a_task(|| {
        let blocked = fibra::spawn(|| {
            task::current().cancel();
            block_on(async { unreachable!("polled in a task that is cancelled") })
        });
        assert!(blocked.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_future_that_always_wakes_itself_can_be_cancelled() {
    in_a_task(|| {
        let spinner = fibra::spawn(|| block_on(giving_way(usize::MAX)));
        fibra::sleep(SHORT);
        spinner.cancel();
        assert!(spinner.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_timeout_and_a_token_and_a_race_end_it() {
    in_a_task(|| {
        let (begun, drops) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let never = || {
            begun.fetch_add(1, Ordering::SeqCst);
            let inner = Dropped(&drops);
            block_on(async {
                let _inner = inner;
                pending::<()>().await;
            });
        };
        assert!(fibra::timeout(SHORT, never).is_err());
        let token = CancelToken::new();
        let firing = token.clone();
        fibra::spawn(move || {
            fibra::sleep(SHORT);
            firing.cancel();
        });
        assert!(token.scope(never).is_err());
        // A loser that has not begun makes no future.
        fibra::race(never, || {
            while begun.load(Ordering::SeqCst) < 3 {
                fibra::yield_now();
            }
        });
        assert_eq!(drops.load(Ordering::SeqCst), 3);
        assert_eq!(fibra::timeout(Duration::from_secs(3600), || block_on(ready(1))), Ok(1));
    });
}

#[test]
fn a_panic_in_a_poll_passes_through() {
    everywhere(|| {
        let drops = AtomicUsize::new(0);
        let inner = Dropped(&drops);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            block_on(async {
                let _inner = inner;
                giving_way(2).await;
                std::panic::resume_unwind(Box::new("out of a future"));
            })
        }));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"out of a future"));
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        assert_eq!(block_on(ready(1)), 1);
    });
}

#[test]
fn a_future_may_block_on_another_and_the_wakes_of_the_outer_one_are_kept() {
    everywhere(|| {
        let outer = Gate::default();
        let opener = outer.clone();
        let inner = Gate::default();
        let both = async {
            let waits = poll_fn(|context| {
                let mut outer = outer.clone();
                assert!(Pin::new(&mut outer).poll(context).is_pending());
                let later = inner.clone();
                let (opener, other) = (opener.clone(), thread::spawn(move || later.open()));
                block_on(async {
                    // The outer one is woken while the task waits for the inner one.
                    opener.open();
                    inner.clone().await;
                });
                other.join().unwrap();
                Poll::Ready(())
            });
            waits.await;
            outer.clone().await;
            block_on(async { block_on(async { giving_way(3).await }) });
            giving_way(1).await;
        };
        block_on(both);
    });
}

#[test]
fn a_future_may_wait_as_ordinary_code_does() {
    in_a_task(|| {
        let sum = block_on(async {
            fibra::sleep(Duration::from_micros(50));
            fibra::spawn(|| 1).join().unwrap() + fibra::spawn(|| 2).await.unwrap()
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn where_a_suspension_is_forbidden_it_panics_only_if_it_has_to_sleep() {
    in_a_task(|| {
        let strict = fibra::spawn(|| {
            let _here = task::forbid_suspend();
            assert_eq!(block_on(ready(1)), 1);
            block_on(giving_way(1000));
            block_on(pending::<()>());
        });
        let error = strict.join().unwrap_err();
        assert!(error.to_string().contains("forbid_suspend"), "{error}");
    });
}

#[test]
fn it_waits_in_a_destructor_while_its_task_unwinds() {
    struct Farewell<'a>(&'a AtomicUsize);
    impl Drop for Farewell<'_> {
        fn drop(&mut self) {
            let gate = Gate::default();
            let opener = gate.clone();
            let other = fibra::spawn(move || opener.open());
            block_on(gate);
            block_on(other).unwrap();
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    in_a_task(|| {
        let farewells = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&farewells);
        let blocked = fibra::spawn(move || {
            let _farewell = Farewell(&counted);
            block_on(pending::<()>());
        });
        until_others_sleep();
        blocked.cancel();
        assert!(blocked.join().unwrap_err().is_cancelled());
        assert_eq!(farewells.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_thread_of_the_pool_blocks_on_a_future() {
    in_a_task(|| {
        let gate = Gate::default();
        let opener = gate.clone();
        let blocked = fibra::spawn_blocking(move || block_on(gate));
        while !opener.has_waker() {
            fibra::yield_now();
        }
        opener.open();
        blocked.join().unwrap();
    });
}

#[test]
fn a_task_that_changes_its_worker_is_found_by_its_waker() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let gates: Vec<Gate> = (0..200).map(|_| Gate::default()).collect();
        let waited = gates.clone();
        // SAFETY: the closure keeps nothing that belongs to a thread.
        let builder = unsafe { task::Builder::new().migratable() };
        let blocked = builder.spawn(move || waited.into_iter().for_each(block_on));
        for gate in gates {
            while !gate.has_waker() && !blocked.is_finished() {
                fibra::yield_now();
            }
            gate.open();
        }
        blocked.join().unwrap();
    });
}

#[test]
fn the_end_of_the_runtime_ends_it() {
    let _guard = hang_guard();
    let gate = Gate::default();
    let runtime = runtime(2);
    let blocked: Vec<_> = (0..10)
        .map(|_| {
            let gate = gate.clone();
            runtime.spawn(move || block_on(gate))
        })
        .collect();
    while !gate.has_waker() {
        thread::yield_now();
    }
    drop(runtime);
    assert!(blocked.into_iter().all(|task| task.join().is_err_and(|error| error.is_cancelled())));
    gate.open();
}
