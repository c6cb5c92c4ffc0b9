//! Promises of `parallel_for`, `parallel_for_each` and `parallel_map`.

use std::cell::RefCell;
use std::collections::HashSet;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::counted::Counted;
use crate::rest::until_others_sleep;
use crate::workers::on_workers;
use fibra_runtime::{self as fibra, CancelToken, parallel_for, parallel_for_each, parallel_map, task};

fn counters(count: usize) -> Vec<AtomicU8> {
    (0..count).map(|_| AtomicU8::new(0)).collect()
}

fn each_once(counters: &[AtomicU8]) -> bool {
    counters.iter().all(|counter| counter.load(Ordering::Relaxed) == 1)
}

#[test]
fn each_number_has_its_turn_once() {
    on_workers(|| {
        for count in [0, 1, 2, 3, 10, 1000, 300_000] {
            let seen = counters(count);
            parallel_for(0..count, |n| _ = seen[n].fetch_add(1, Ordering::Relaxed));
            assert!(each_once(&seen));
        }
    });
}

#[test]
fn each_item_has_its_turn_once() {
    on_workers(|| {
        for count in [0, 1, 2, 3, 10, 1000, 300_000] {
            let seen = counters(count);
            parallel_for_each(&seen, |counter| _ = counter.fetch_add(1, Ordering::Relaxed));
            // One that does not know of its items.
            parallel_for_each(seen.iter().filter(|_| true), |counter| {
                _ = counter.fetch_sub(1, Ordering::Relaxed)
            });
            parallel_for_each(seen.iter().collect::<Vec<_>>(), |counter| {
                _ = counter.fetch_add(1, Ordering::Relaxed)
            });
            assert!(each_once(&seen));
        }
    });
}

#[test]
fn ranges_of_all_kinds_are_gone_through() {
    on_workers(|| {
        let sum = AtomicUsize::new(0);
        parallel_for(i8::MIN..i8::MAX, |n| {
            _ = sum.fetch_add(usize::from(n.unsigned_abs()), Ordering::Relaxed)
        });
        parallel_for(-3_i64..4, |n| _ = sum.fetch_add(n.unsigned_abs() as usize, Ordering::Relaxed));
        parallel_for(u64::MAX - 5..u64::MAX, |_| _ = sum.fetch_add(1, Ordering::Relaxed));
        #[expect(clippy::reversed_empty_ranges, reason = "this is what is tested")]
        parallel_for(7..3, |_| panic!("an empty range"));
        assert_eq!(sum.into_inner(), (1..=128).sum::<usize>() + (1..=126).sum::<usize>() + 12 + 5);
    });
}

#[test]
fn idle_workers_help() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let threads = Mutex::new(HashSet::new());
        let both = || threads.lock().unwrap().len() == 2;
        let work = |_| {
            threads.lock().unwrap().insert(thread::current().id());
            // Until the other one has come, there is work.
            for _ in 0..100 {
                if both() {
                    return;
                }
                thread::sleep(Duration::from_micros(100));
            }
        };
        parallel_for(0..10_000, work);
        assert!(both());
        threads.lock().unwrap().clear();
        parallel_for_each(0..10_000, work);
        assert!(both());
    });
}

#[test]
fn calls_that_wait_overlap() {
    on_workers(|| {
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |_| {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Were they to wait one after the other, none would come to its end.
            while most.load(Ordering::SeqCst) <= 4 {
                fibra::sleep(Duration::from_micros(200));
            }
            inside.fetch_sub(1, Ordering::SeqCst);
        };
        parallel_for(0..64, work);
        assert!(most.swap(0, Ordering::SeqCst) > 4);
        parallel_for_each(0..64, work);
        assert!(most.into_inner() > 4);
    });
}

#[test]
fn others_have_their_turn_beside_a_long_loop() {
    on_workers(|| {
        // Without the others' turn it would take a thousand years.
        let long = fibra::spawn(|| parallel_for(0..u64::MAX / 2, |n| _ = std::hint::black_box(n)));
        fibra::sleep(Duration::from_millis(2));
        long.task().cancel();
        assert!(long.join().unwrap_err().is_cancelled());
    });
}

/// A helper that the worker of its owner has not begun is taken back before the owner gives way. Otherwise each slice of
/// 200 µs would begin one more.
#[test]
fn a_long_loop_stays_in_few_tasks() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let tasks = Mutex::new(HashSet::new());
        let long = |milliseconds| {
            let end = Instant::now() + Duration::from_millis(milliseconds);
            parallel_for(0..u64::MAX / 2, |_| {
                tasks.lock().unwrap().insert(fibra::task::current().id());
                if Instant::now() >= end {
                    fibra::task::current().cancel();
                }
            });
        };
        fibra::scope(|scope| _ = scope.spawn(|| long(700)).join());
        assert!(tasks.lock().unwrap().len() <= 14, "{}", tasks.lock().unwrap().len());
    });
}

#[test]
fn a_loop_of_waiting_calls_goes_on_with_a_task_that_is_always_ready() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (inside, met) = (AtomicUsize::new(0), AtomicBool::new(false));
        fibra::scope(|scope| {
            scope.spawn(|| {
                while !met.load(Ordering::SeqCst) {
                    fibra::yield_now();
                }
            });
            parallel_for(0..4, |_| {
                if inside.fetch_add(1, Ordering::SeqCst) == 1 {
                    met.store(true, Ordering::SeqCst);
                }
                while !met.load(Ordering::SeqCst) {
                    fibra::sleep(Duration::from_millis(1));
                }
            });
        });
    });
}

/// Its tasks are more than the processors, and each of them runs only now and then: no task makes
/// new ones in between.
#[test]
fn a_long_loop_of_many_tasks_ends_when_it_is_cancelled() {
    let _guard = hang_guard();
    runtime(8).run(|| {
        let long = fibra::spawn(|| parallel_for(0..u64::MAX / 2, |n| _ = std::hint::black_box(n)));
        let each = fibra::spawn(|| parallel_for_each(0..u64::MAX / 2, |n| _ = std::hint::black_box(n)));
        fibra::sleep(Duration::from_millis(400));
        for long in [long, each] {
            long.task().cancel();
            assert!(long.join().unwrap_err().is_cancelled());
        }
    });
}

/// Its destructor is not cut short by the cancel of the loop.
#[test]
fn the_iterator_of_a_loop_that_is_cancelled_may_wait_in_its_destructor() {
    struct Waits(u32);

    impl Iterator for Waits {
        type Item = u32;

        fn next(&mut self) -> Option<u32> {
            fibra::yield_now();
            self.0 += 1;
            Some(self.0)
        }
    }

    impl Drop for Waits {
        fn drop(&mut self) {
            fibra::yield_now();
            self.0 = 0;
        }
    }

    on_workers(|| {
        for turns in (0..300).step_by(7) {
            let long = fibra::spawn(|| parallel_for_each(Waits(0), |_| fibra::yield_now()));
            (0..turns).for_each(|_| fibra::yield_now());
            long.task().cancel();
            assert!(long.join().unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn a_panic_comes_out_after_all_calls_have_ended() {
    on_workers(|| {
        let inside = AtomicUsize::new(0);
        let work = |n| {
            inside.fetch_add(1, Ordering::SeqCst);
            if n % 100 == 37 {
                inside.fetch_sub(1, Ordering::SeqCst);
                resume_unwind(Box::new("on purpose"));
            }
            fibra::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
        };
        for _ in 0..20 {
            let result = catch_unwind(AssertUnwindSafe(|| parallel_for(0..1000, work)));
            assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "on purpose");
            assert_eq!(inside.load(Ordering::SeqCst), 0);
            let result = catch_unwind(AssertUnwindSafe(|| parallel_for_each(0..1000, work)));
            assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "on purpose");
            assert_eq!(inside.load(Ordering::SeqCst), 0);
        }
    });
}

#[test]
fn a_panic_of_the_iterator_comes_out() {
    on_workers(|| {
        let items = (0..1000).map(|n| if n == 500 { resume_unwind(Box::new("iterator")) } else { n });
        let result = catch_unwind(AssertUnwindSafe(|| parallel_for_each(items, |_| fibra::yield_now())));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "iterator");
    });
}

/// Three tasks: one pulls, and the other two wait for their turn. The last of them gets no help and
/// is cancelled there.
#[test]
fn a_helper_that_is_cancelled_while_it_waits_for_its_turn_ends_the_loop() {
    on_workers(|| {
        let [three_are_in, third, rest] = [(); 3].map(|()| CancelToken::new());
        let (pulls, done, helper) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(None));
        let items = iter::from_fn(|| {
            let n = pulls.fetch_add(1, Ordering::SeqCst);
            match n {
                2 => {
                    three_are_in.cancel();
                    third.cancelled();
                }
                3 => rest.cancelled(),
                _ => {}
            }
            (n < 1000).then_some(n)
        });
        let work = |n| {
            match n {
                0 | 1 => three_are_in.cancelled(),
                2 => *helper.lock().unwrap() = Some(task::current()),
                _ => {}
            }
            done.fetch_add(1, Ordering::SeqCst);
        };
        fibra::scope(|scope| {
            let long = scope.spawn(|| parallel_for_each(items, work));
            three_are_in.cancelled();
            until_others_sleep();
            third.cancel();
            until_others_sleep();
            let helper = helper.lock().unwrap().take().expect("the third item is done");
            helper.cancel();
            while !helper.is_finished() {
                fibra::sleep(Duration::from_micros(100));
            }
            rest.cancel();
            assert!(long.join().unwrap_err().is_cancelled());
        });
        assert_eq!(done.into_inner(), 3, "no further item");
    });
}

/// Counts its end, which waits.
struct Dropped<'a>(&'a AtomicUsize);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        fibra::yield_now();
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn an_item_that_comes_when_the_loop_was_cancelled_is_dropped_whole() {
    on_workers(|| {
        let [pulls, dropped] = [(); 2].map(|()| AtomicUsize::new(0));
        let [is_pulling, goes_on, never] = [(); 3].map(|()| CancelToken::new());
        let items = iter::from_fn(|| {
            // The helper, which is cancelled with the loop.
            if pulls.fetch_add(1, Ordering::SeqCst) == 1 {
                is_pulling.cancel();
                task::shield(|| goes_on.cancelled());
            }
            Some(Dropped(&dropped))
        });
        fibra::scope(|scope| {
            let long = scope.spawn(|| {
                parallel_for_each(items, |_item| never.cancelled());
            });
            is_pulling.cancelled();
            long.cancel();
            until_others_sleep();
            goes_on.cancel();
            assert!(long.join().unwrap_err().is_cancelled());
        });
        assert_eq!((pulls.into_inner(), dropped.into_inner()), (2, 2));
    });
}

static CLONE_UNWINDS: AtomicBool = AtomicBool::new(false);

struct Heirloom;

impl Clone for Heirloom {
    fn clone(&self) -> Self {
        if CLONE_UNWINDS.swap(false, Ordering::SeqCst) {
            resume_unwind(Box::new("clone"));
        }
        Heirloom
    }
}

fibra::task_local! {
    #[inherit]
    static HEIRLOOM: RefCell<Heirloom> = RefCell::new(Heirloom);
}

/// What each has to do has no end.
#[test]
fn a_clone_for_a_helper_that_panics_ends_the_loop() {
    on_workers(|| {
        HEIRLOOM.with(|_| ());
        let tasks = Mutex::new(HashSet::new());
        let work = |_| {
            {
                let mut tasks = tasks.lock().unwrap();
                if tasks.insert(task::current().id()) && tasks.len() == 3 {
                    CLONE_UNWINDS.store(true, Ordering::SeqCst);
                }
            }
            fibra::sleep(Duration::from_micros(100));
        };
        let loops: [&dyn Fn(); 2] =
            [&|| parallel_for(0..usize::MAX, work), &|| parallel_for_each(0..usize::MAX, work)];
        for endless in loops {
            let result = catch_unwind(AssertUnwindSafe(endless));
            assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "clone");
            tasks.lock().unwrap().clear();
        }
    });
}

#[test]
fn cancelled_at_any_moment_it_leaves_nothing_behind() {
    struct Inside;
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    impl Inside {
        fn new() -> Self {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            Inside
        }
    }
    impl Drop for Inside {
        fn drop(&mut self) {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
    on_workers(|| {
        for round in 0..700_u32 {
            let parent = fibra::spawn(move || match round % 2 {
                0 => parallel_for(0..1000, |_| {
                    let _inside = Inside::new();
                    fibra::yield_now();
                }),
                _ => parallel_for_each((0..1000).map(|_| Inside::new()), |_inside| fibra::yield_now()),
            });
            for _ in 0..round % 11 {
                fibra::yield_now();
            }
            parent.task().cancel();
            _ = parent.join();
            assert_eq!(INSIDE.load(Ordering::SeqCst), 0);
        }
    });
}

#[test]
fn loops_nest() {
    on_workers(|| {
        let seen = counters(10_000);
        parallel_for(0..100, |row| {
            parallel_for(0..100, |column| _ = seen[row * 100 + column].fetch_add(1, Ordering::Relaxed));
        });
        assert!(each_once(&seen));
    });
}

#[test]
fn a_blocking_iterator_keeps_no_item_back() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        runtime(workers).run(|| {
            let done = AtomicUsize::new(0);
            // Each item comes only after the one before was done.
            let items = (0..200).inspect(|n| {
                while done.load(Ordering::SeqCst) < *n {
                    fibra::yield_now();
                }
            });
            parallel_for_each(items.filter(|_| true), |_| _ = done.fetch_add(1, Ordering::SeqCst));
            assert_eq!(done.into_inner(), 200);
        });
    }
}

#[test]
fn off_a_task_it_is_a_plain_loop() {
    let seen = counters(1000);
    parallel_for(0..1000_usize, |n| _ = seen[n].fetch_add(1, Ordering::Relaxed));
    assert!(each_once(&seen));
    parallel_for_each(&seen, |counter| _ = counter.fetch_sub(1, Ordering::Relaxed));
    assert!(seen.iter().all(|counter| counter.load(Ordering::Relaxed) == 0));
}

#[test]
fn mapped_values_have_the_order_of_the_items() {
    on_workers(|| {
        for count in [0_usize, 1, 10, 30_000] {
            let texts = parallel_map((0..count).filter(|n| n % 3 > 0), |n| n.to_string());
            assert!(texts.into_iter().eq((0..count).filter(|n| n % 3 > 0).map(|n| n.to_string())));
        }
        let waits = parallel_map([3, 1, 2], |n| {
            (0..n).for_each(|_| fibra::yield_now());
            n
        });
        assert_eq!(waits, [3, 1, 2]);
    });
    assert_eq!(parallel_map(["a", "plain", "loop"], str::len), [1, 5, 4], "off a task");
}

#[test]
fn a_panic_of_a_mapped_call_comes_out_and_drops_the_values() {
    on_workers(|| {
        let alive = AtomicUsize::new(0);
        let map = || {
            parallel_map(0..100, |n| match n {
                50 => resume_unwind(Box::new("of 50")),
                _ => Counted::new(&alive),
            })
        };
        let payload = catch_unwind(AssertUnwindSafe(map)).err().expect("one call panics");
        assert_eq!(payload.downcast_ref(), Some(&"of 50"));
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    });
}
