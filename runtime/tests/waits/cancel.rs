//! Promises of cancellation.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::at_end::AtEnd;
use crate::common::{hang_guard, runtime};
use crate::ending::ending;
use crate::rest::until_others_sleep;
use crate::workers::on_workers;
use fibra_runtime::wait::{self, Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal};
use fibra_runtime::{self as fibra, CancelToken, Runtime, Task, task};

const LONG: Duration = Duration::from_secs(3600);

/// Cancels a task that is asleep in `wait`, on one worker and on two, from the inside and from a thread; its destructors
/// run, and its handle says that it was cancelled.
fn is_a_cancellation_point(wait: fn()) {
    let _guard = hang_guard();
    for (workers, from_thread) in [(1, false), (1, true), (2, false), (2, true)] {
        let runtime = runtime(workers);
        let (begun, unwound) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (begin, unwind) = (Arc::clone(&begun), Arc::clone(&unwound));
        let sleeper = runtime.spawn(move || {
            let _at_end = AtEnd(|| unwind.store(true, Ordering::SeqCst));
            begin.store(true, Ordering::SeqCst);
            wait();
        });
        while !begun.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(1));
        let victim = sleeper.task().clone();
        match from_thread {
            true => victim.cancel(),
            false => runtime.run(move || victim.cancel()),
        }
        assert!(sleeper.join().unwrap_err().is_cancelled());
        assert!(unwound.load(Ordering::SeqCst));
    }
}

#[test]
fn sleep_is_a_cancellation_point() {
    is_a_cancellation_point(|| fibra::sleep(LONG));
}

#[test]
fn an_endless_sleep_is_a_cancellation_point() {
    is_a_cancellation_point(|| fibra::sleep(Duration::MAX));
}

#[test]
fn park_is_a_cancellation_point() {
    is_a_cancellation_point(task::park);
}

#[test]
fn park_with_a_timeout_is_a_cancellation_point() {
    is_a_cancellation_point(|| _ = task::park_timeout(LONG));
}

#[test]
fn join_is_a_cancellation_point() {
    is_a_cancellation_point(|| _ = fibra::spawn(|| fibra::sleep(LONG)).join());
}

#[test]
fn yield_now_is_a_cancellation_point() {
    is_a_cancellation_point(|| {
        loop {
            fibra::yield_now();
        }
    });
}

#[test]
fn a_sleep_until_the_past_is_a_cancellation_point() {
    is_a_cancellation_point(|| {
        loop {
            fibra::sleep_until(Instant::now());
        }
    });
}

#[test]
fn a_park_that_finds_its_token_is_a_cancellation_point() {
    is_a_cancellation_point(|| {
        loop {
            task::current().unpark();
            task::park();
        }
    });
}

#[test]
fn unblock_is_a_cancellation_point_until_its_closure_starts() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).max_blocking_threads(1).build().unwrap();
    runtime.run(|| {
        let busy = Arc::new(AtomicBool::new(true));
        let hold = Arc::clone(&busy);
        let hog = fibra::spawn_blocking(move || {
            while hold.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_micros(200));
            }
        });
        let entered = Arc::new(AtomicBool::new(false));
        let enter = Arc::clone(&entered);
        let waiting = fibra::spawn(move || fibra::unblock(|| enter.store(true, Ordering::SeqCst)));
        fibra::sleep(Duration::from_millis(2));
        waiting.task().cancel();
        assert!(waiting.join().unwrap_err().is_cancelled());
        busy.store(false, Ordering::SeqCst);
        hog.join().unwrap();
        fibra::unblock(|| ());
        assert!(!entered.load(Ordering::SeqCst));
    });
}

#[test]
fn an_unblock_with_a_started_closure_runs_to_its_end_first() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let [started, may_end, ended] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let (start, wait_for, end) = (Arc::clone(&started), Arc::clone(&may_end), Arc::clone(&ended));
        let waiting = fibra::spawn(move || {
            let local = [7_u8; 64];
            let sum = fibra::unblock(|| {
                start.store(true, Ordering::SeqCst);
                while !wait_for.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_micros(200));
                }
                end.store(true, Ordering::SeqCst);
                local.iter().map(|byte| u32::from(*byte)).sum::<u32>()
            });
            assert_eq!(sum, 448);
            fibra::yield_now();
        });
        while !started.load(Ordering::SeqCst) {
            fibra::sleep(Duration::from_micros(100));
        }
        waiting.task().cancel();
        // It has heard of that, and waits on.
        until_others_sleep();
        assert!(!waiting.is_finished());
        may_end.store(true, Ordering::SeqCst);
        assert!(waiting.join().unwrap_err().is_cancelled());
        assert!(ended.load(Ordering::SeqCst));
    });
}

#[test]
fn a_task_cancelled_before_it_started_never_enters_its_body() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let entered = Arc::new(AtomicBool::new(false));
        let enter = Arc::clone(&entered);
        let task = fibra::spawn(move || enter.store(true, Ordering::SeqCst));
        task.task().cancel();
        assert!(task.join().unwrap_err().is_cancelled());
        assert!(!entered.load(Ordering::SeqCst));
    });
}

#[test]
fn the_captures_of_a_task_that_never_ran_are_dropped_inside_that_task_and_may_sleep() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let dropped_in = Arc::new(std::sync::Mutex::new(None::<Task>));
        let place = Arc::clone(&dropped_in);
        let capture = AtEnd(move || {
            fibra::sleep(Duration::from_millis(1));
            *place.lock().unwrap() = task::try_current();
        });
        let task = fibra::spawn(move || drop(capture));
        let handle = task.task().clone();
        handle.cancel();
        assert!(task.join().unwrap_err().is_cancelled());
        assert_eq!(*dropped_in.lock().unwrap(), Some(handle));
    });
}

#[test]
fn destructors_that_run_in_a_cancellation_may_sleep_join_and_yield() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let steps = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&steps);
            let sleeper = fibra::spawn(move || {
                let _at_end = AtEnd(|| {
                    assert!(wait::unwinds_cancelled());
                    let begin = Instant::now();
                    fibra::sleep(Duration::from_millis(1));
                    assert!(
                        begin.elapsed() >= Duration::from_millis(1),
                        "the sleep of a destructor is a whole one"
                    );
                    fibra::spawn(|| fibra::sleep(Duration::from_micros(100))).join().unwrap();
                    fibra::yield_now();
                    fibra::unblock(|| count.fetch_add(1, Ordering::SeqCst));
                });
                fibra::sleep(LONG);
            });
            until_others_sleep();
            sleeper.task().cancel();
            sleeper.task().cancel();
            assert!(sleeper.join().unwrap_err().is_cancelled());
            assert_eq!(steps.load(Ordering::SeqCst), 1);
        });
    }
}

#[test]
fn a_task_that_catches_its_cancellation_meets_it_again() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let times = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&times);
        let stubborn = fibra::spawn(move || {
            for _ in 0..20 {
                assert!(panic::catch_unwind(|| fibra::sleep(LONG)).is_err());
                count.fetch_add(1, Ordering::SeqCst);
            }
            "ended as it liked"
        });
        until_others_sleep();
        stubborn.task().cancel();
        assert_eq!(stubborn.join().unwrap(), "ended as it liked");
        assert_eq!(times.load(Ordering::SeqCst), 20);
    });
}

#[test]
fn a_task_that_catches_its_cancellation_and_panics_has_panicked() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let task = fibra::spawn(|| {
            _ = panic::catch_unwind(|| fibra::sleep(LONG));
            panic::resume_unwind(Box::new("another reason"))
        });
        until_others_sleep();
        task.task().cancel();
        let error = task.join().map(drop).unwrap_err();
        assert!(error.is_panic());
        assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "another reason");
    });
}

#[test]
fn the_payload_of_one_task_s_cancellation_means_a_panic_in_another() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let thief = fibra::spawn(|| panic::catch_unwind(|| fibra::sleep(LONG)).unwrap_err());
        until_others_sleep();
        thief.task().cancel();
        let payload = thief.join().unwrap();
        let victim = fibra::spawn(move || panic::resume_unwind(payload));
        let error = victim.join().map(drop).unwrap_err();
        assert!(error.is_panic() && !error.is_cancelled());
    });
}

#[test]
fn a_cancelled_joiner_detaches_the_task_it_waits_for() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let joined = fibra::spawn(move || {
            task::park();
            end.store(true, Ordering::SeqCst);
        });
        let goes_on = joined.task().clone();
        let joiner = fibra::spawn(move || joined.join());
        until_others_sleep();
        joiner.task().cancel();
        assert!(joiner.join().unwrap_err().is_cancelled());
        goes_on.unpark();
        while !ended.load(Ordering::SeqCst) {
            fibra::sleep(Duration::from_micros(200));
        }
    });
}

struct Clock;

impl WaitStrategy for Clock {
    fn after_asleep(&self, _me: WakeHandle<'_>) -> Asleep {
        Asleep::Stay
    }

    fn before_awake(&self, _why: Waking) -> Withdrawal {
        Withdrawal::Withdrawn
    }
}

#[test]
fn a_shielded_sleep_is_not_ended_by_a_cancel_which_is_kept() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let sleeper = fibra::spawn(|| {
            let begin = Instant::now();
            let why = wait::sleep_shielded(&Clock, Some(begin + Duration::from_millis(5)));
            assert_eq!(why, Waking::TimedOut);
            assert!(begin.elapsed() >= Duration::from_millis(5));
            assert_eq!(wait::sleep(&Clock, None), Waking::Cancelled);
        });
        until_others_sleep();
        sleeper.task().cancel();
        sleeper.join().unwrap();
    });
}

/// The task is cancelled between the begin of the sleep and the moment at which it is off its stack.
struct CancelledOnTheWay;

impl WaitStrategy for CancelledOnTheWay {
    fn after_asleep(&self, _me: WakeHandle<'_>) -> Asleep {
        task::current().cancel();
        Asleep::Stay
    }

    fn before_awake(&self, _why: Waking) -> Withdrawal {
        Withdrawal::Withdrawn
    }
}

#[test]
fn a_cancel_on_the_way_to_a_sleep_at_the_end_of_a_task_ends_that_which_can_fail_alone() {
    on_workers(|| {
        let (tell, told) = std::sync::mpsc::channel();
        let last = AtEnd(move || {
            let soon = Some(Instant::now() + Duration::from_millis(5));
            let token = CancelToken::new();
            let other = token.scope(|| wait::sleep_or_cancel(&CancelledOnTheWay, soon)).unwrap();
            tell.send([other, wait::sleep_or_fail(&CancelledOnTheWay, None)]).unwrap();
        });
        ending(move || last);
        assert_eq!(fibra::unblock(move || told.recv()), Ok([Waking::TimedOut, Waking::Cancelled]));
    });
}

#[test]
fn a_task_cancels_itself_at_its_next_point() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let passed = Arc::new(AtomicBool::new(false));
        let pass = Arc::clone(&passed);
        let task = fibra::spawn(move || {
            task::current().cancel();
            pass.store(true, Ordering::SeqCst);
            wait::cancellation_point();
            unreachable!("the point unwinds");
        });
        assert!(task.join().unwrap_err().is_cancelled());
        assert!(passed.load(Ordering::SeqCst));
    });
}

#[test]
fn a_cancellation_that_nothing_meets_changes_nothing() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let task = fibra::spawn(|| {
            task::current().cancel();
            3
        });
        assert_eq!(task.join().unwrap(), 3);
    });
}

#[test]
fn a_cancel_is_no_panic_for_the_hook_and_none_for_the_thread() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        for _ in 0..100 {
            let sleeper = fibra::spawn(|| fibra::sleep(LONG));
            fibra::sleep(Duration::from_micros(50));
            sleeper.task().cancel();
            assert!(sleeper.join().unwrap_err().is_cancelled());
            assert!(!thread::panicking());
        }
    });
    assert!(
        panic::catch_unwind(AssertUnwindSafe(|| wait::unwind_cancelled())).is_err(),
        "off a task it panics"
    );
}

/// Tells what it is told when it is dropped.
struct Told(Arc<AtomicUsize>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.fetch_add(usize::from(wait::unwinds_cancelled()), Ordering::SeqCst);
    }
}

#[test]
fn destructors_that_end_a_cancelled_task_know_of_the_cancel() {
    fibra::task_local! { static LOCAL: std::cell::RefCell<Option<Told>> = const { std::cell::RefCell::new(None) }; }
    on_workers(|| {
        let told = Arc::new(AtomicUsize::new(0));
        let captured = Told(Arc::clone(&told));
        // On this worker, where nothing starts it before this task waits: the other worker could have run it to its end.
        let never = fibra::spawn_local(move || drop(captured));
        never.cancel();
        assert!(never.join().unwrap_err().is_cancelled());
        assert_eq!(told.load(Ordering::SeqCst), 1, "what it captured");
        for cancelled in [false, true] {
            let (local, result) = (Told(Arc::clone(&told)), Told(Arc::clone(&told)));
            let (ended, ends) = std::sync::mpsc::channel::<()>();
            let detached = Arc::new(AtomicBool::new(false));
            let is_detached = Arc::clone(&detached);
            drop(fibra::spawn(move || {
                // Had it ended before, its handle would drop the result, in another task.
                while !is_detached.load(Ordering::SeqCst) {
                    fibra::yield_now();
                }
                if cancelled {
                    task::current().cancel();
                }
                LOCAL.with(|place| *place.borrow_mut() = Some(local));
                (result, ended)
            }));
            detached.store(true, Ordering::SeqCst);
            while ends.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                fibra::yield_now();
            }
            let all = if cancelled { 3 } else { 1 };
            assert_eq!(told.load(Ordering::SeqCst), all, "its task-local and its result");
        }
    });
}

#[test]
fn a_cancel_ends_no_other_wait_of_destructors_at_the_end_of_a_task() {
    let waits: [fn(&CancelToken); 3] = [
        |_| task::park(),
        |token| assert!(token.scope(task::park).is_ok()),
        |token| assert!(token.scope(|| task::shield(task::park)).is_ok()),
    ];
    on_workers(|| {
        for wait in waits {
            let (ended, ends) = std::sync::mpsc::channel();
            let last = AtEnd(move || {
                wait(&CancelToken::new());
                ended.send(thread::panicking()).unwrap();
            });
            let name = ending(move || last);
            until_others_sleep();
            name.cancel();
            until_others_sleep();
            assert!(ends.try_recv().is_err(), "it waits on");
            name.unpark();
            assert_eq!(fibra::unblock(move || ends.recv()), Ok(false));
        }
    });
}
