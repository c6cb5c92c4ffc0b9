//! Promises of stacks: limits, reuse at full depth, both kinds of guard.

mod common;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{hang_guard, runtime};
use fibra_runtime::{self as fibra, Builder, Runtime, StackGuards, task};

/// Longer than any machine is busy.
const LONG: Duration = Duration::from_secs(3600);

/// What there has to be on a stack beside what a test uses: its colour, first frames, and what the deepest frame calls, which is
/// nothing more than a yield.
const LITTLE_ROOM: usize = 3 * 1024;

/// The same where that may be any wait.
const ROOM: usize = 8 * 1024;

/// The part of a stack that is no guard; small ones get twice what was asked for.
const fn usable(stack_size: usize) -> usize {
    let mapped = if stack_size <= 32 * 1024 { 2 * stack_size } else { stack_size };
    mapped - 16 * 1024
}

fn address_here() -> usize {
    let here = 0_u8;
    black_box(&raw const here) as usize
}

/// Recurses until `depth` bytes are in use, calls `at_the_bottom`, and checks on the way back that all frames are whole.
fn recurse(top: usize, depth: usize, at_the_bottom: &mut dyn FnMut()) -> usize {
    let fill = top.wrapping_mul(31).wrapping_add(depth) as u8;
    let frame = black_box([fill; 256]);
    let frames = if top - address_here() < depth {
        recurse(top, depth, at_the_bottom) + 1
    } else {
        at_the_bottom();
        1
    };
    assert!(black_box(&frame).iter().all(|byte| *byte == fill), "a frame was overwritten");
    frames
}

fn use_nearly_all_of(stack_size: usize, at_the_bottom: &mut dyn FnMut()) -> usize {
    recurse(address_here(), usable(stack_size) - ROOM, at_the_bottom)
}

#[test]
fn twenty_thousand_tasks_share_eight_stacks_at_full_depth() {
    const SIZE: usize = 32 * 1024;
    const TASKS: usize = 20_000;
    let _guard = hang_guard();
    let builder = Runtime::builder().workers(2).max_stacks(8).stack_size(SIZE);
    let runtime = builder.stack_patience(LONG).build().unwrap();
    let mut tops = BTreeSet::new();
    for batch in 0..TASKS / 1000 {
        let tasks: Vec<_> = (0..1000)
            .map(|number| {
                runtime.spawn(move || {
                    let yields = (batch + number) % 16 == 0;
                    recurse(address_here(), usable(SIZE) - LITTLE_ROOM, &mut || {
                        if yields {
                            fibra::yield_now()
                        }
                    });
                    address_here()
                })
            })
            .collect();
        tops.extend(tasks.into_iter().map(|task| task.join().unwrap()));
    }
    // Addresses of one stack lie together, those of two nearly a stack apart at the least.
    let tops: Vec<usize> = tops.into_iter().collect();
    let stacks = 1 + tops.windows(2).filter(|pair| pair[1] - pair[0] > SIZE / 2).count();
    assert!((2..=8).contains(&stacks), "{stacks} stacks: {tops:x?}");
}

#[test]
fn both_kinds_of_guard_give_whole_stacks() {
    let _guard = hang_guard();
    for guards in [StackGuards::Auto, StackGuards::Protect] {
        let runtime =
            Runtime::builder().workers(2).stack_guards(guards).stack_size(64 * 1024).build().unwrap();
        runtime.run(|| {
            let tasks: Vec<_> = (0..200)
                .map(|_| {
                    fibra::spawn(|| {
                        use_nearly_all_of(64 * 1024, &mut || fibra::sleep(Duration::from_millis(1)))
                    })
                })
                .collect();
            tasks.into_iter().for_each(|task| assert!(task.join().unwrap() > 10));
        });
    }
}

#[test]
fn a_task_may_have_a_stack_of_its_own_size() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let sizes = [16 * 1024, 20_000, 1 << 20, 8 << 20];
        let tasks = sizes.map(|size| {
            let deep = move || use_nearly_all_of(size, &mut fibra::yield_now);
            task::Builder::new().stack_size(size).spawn(deep)
        });
        tasks.into_iter().for_each(|task| _ = task.join().unwrap());
    });
}

#[test]
fn a_stack_that_fits_no_address_space_is_an_error_that_says_so() {
    let _guard = hang_guard();
    let error = Runtime::builder().workers(1).stack_size(usize::MAX).build().map(drop).unwrap_err();
    assert!(error.to_string().contains("address space"), "{error}");
    runtime(1).run(|| {
        let error = task::Builder::new().stack_size(usize::MAX).spawn(|| ()).join().unwrap_err();
        assert!(error.is_not_started(), "{error}");
        assert!(error.io_error().unwrap().to_string().contains("address space"), "{error}");
        fibra::spawn(|| ()).join().unwrap();
    });
}

/// Fills a runtime of eight stacks with tasks that sleep until told; one stack is the caller's.
fn fill(hold: &Arc<AtomicBool>) -> Vec<fibra::JoinHandle<()>> {
    let (count, held) = (Arc::new(AtomicUsize::new(0)), (0..7).map(|_| Arc::clone(hold)));
    let tasks: Vec<_> = held
        .map(|hold| {
            let count = Arc::clone(&count);
            fibra::spawn(move || {
                count.fetch_add(1, Ordering::SeqCst);
                while hold.load(Ordering::SeqCst) {
                    fibra::sleep(Duration::from_millis(1));
                }
            })
        })
        .collect();
    while count.load(Ordering::SeqCst) < 7 {
        fibra::sleep(Duration::from_micros(100));
    }
    tasks
}

fn eight_stacks(workers: usize) -> Builder {
    Runtime::builder().workers(workers).max_stacks(8)
}

#[test]
fn a_task_that_finds_no_stack_waits_for_one() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        eight_stacks(workers).stack_patience(LONG).build().unwrap().run(|| {
            let hold = Arc::new(AtomicBool::new(true));
            let holders = fill(&hold);
            let waiting: Vec<_> = (0..50).map(|number| fibra::spawn(move || number)).collect();
            fibra::sleep(Duration::from_millis(50));
            assert!(waiting.iter().all(|task| !task.is_finished()));
            hold.store(false, Ordering::SeqCst);
            for (number, task) in (0..).zip(waiting) {
                assert_eq!(task.join().unwrap(), number);
            }
            holders.into_iter().for_each(|task| task.join().unwrap());
        });
    }
}

#[test]
fn a_task_for_which_no_stack_comes_free_ends_un_run_and_names_the_limit() {
    let _guard = hang_guard();
    eight_stacks(2).build().unwrap().run(|| {
        struct SleepsInDrop(Arc<AtomicBool>);
        impl Drop for SleepsInDrop {
            fn drop(&mut self) {
                assert!(task::try_current().is_some());
                fibra::sleep(Duration::from_millis(1));
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let hold = Arc::new(AtomicBool::new(true));
        let holders = fill(&hold);
        let dropped = Arc::new(AtomicBool::new(false));
        let capture = SleepsInDrop(Arc::clone(&dropped));
        let lacking = fibra::spawn(move || drop(capture));
        let error = lacking.join().unwrap_err();
        assert!(error.is_not_started() && !error.is_panic() && !error.is_cancelled());
        let text = error.io_error().unwrap().to_string();
        assert!(text.contains("max_stacks") && text.contains('8'), "{text}");
        assert!(error.to_string().contains("could not start"), "{error}");
        assert!(std::error::Error::source(&error).is_some());
        assert!(dropped.load(Ordering::SeqCst), "the destructor of the capture has run, in a task");
        hold.store(false, Ordering::SeqCst);
        holders.into_iter().for_each(|task| task.join().unwrap());
        let after: Vec<_> = (0..100).map(|_| fibra::spawn(|| ())).collect();
        after.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn a_runtime_without_free_stacks_can_be_ended() {
    let _guard = hang_guard();
    let runtime = eight_stacks(2).build().unwrap();
    let handles = runtime.run(|| {
        let holders = fill(&Arc::new(AtomicBool::new(true)));
        let waiting = (0..50).map(|_| fibra::spawn(|| fibra::sleep(Duration::MAX)));
        holders.into_iter().chain(waiting).collect::<Vec<_>>()
    });
    let begin = Instant::now();
    drop(runtime);
    println!("ended within {:?}", begin.elapsed());
    handles.into_iter().for_each(|handle| assert!(handle.join().is_err()));
}

#[test]
fn a_stack_freed_on_one_worker_serves_a_task_of_another() {
    let _guard = hang_guard();
    let builder = Runtime::builder().workers(4).max_stacks(5).stack_patience(LONG);
    let runtime = builder.build().unwrap();
    runtime.run(|| {
        for round in 0..100_u64 {
            let tasks: Vec<_> = (0..40)
                .map(|i| fibra::spawn(move || fibra::sleep(Duration::from_micros(i + round))))
                .collect();
            tasks.into_iter().for_each(|task| task.join().unwrap());
        }
    });
}

/// Fifty stacks lie warm at worker 0, which never rests; worker 1 wants forty.
fn warm_stacks_serve_a_starving_worker(idle_workers: usize) {
    let _guard = hang_guard();
    let builder = Runtime::builder().workers(2 + idle_workers).max_stacks(64);
    // A word that no worker takes would be left again and again: patience is not what feeds.
    let runtime = builder.stack_patience(Duration::from_secs(20)).build().unwrap();
    let handle = runtime.handle();
    let met = Arc::new(AtomicUsize::new(0));
    let meet = |met: Arc<AtomicUsize>| {
        move || {
            met.fetch_add(1, Ordering::SeqCst);
            while met.load(Ordering::SeqCst) < 50 {
                fibra::yield_now();
            }
        }
    };
    let first: Vec<_> = (0..50).map(|_| handle.spawn_on_worker(0, meet(Arc::clone(&met)))).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let busy = handle.spawn_on_worker(0, move || {
        while !stopped.load(Ordering::SeqCst) {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(1) {
                std::hint::spin_loop();
            }
            fibra::yield_now();
        }
    });
    first.into_iter().for_each(|task| task.join().unwrap());
    let started = Arc::new(AtomicUsize::new(0));
    let park = |started: Arc<AtomicUsize>| {
        move || {
            started.fetch_add(1, Ordering::SeqCst);
            task::park();
        }
    };
    let parked: Vec<_> = (0..40).map(|_| handle.spawn_on_worker(1, park(Arc::clone(&started)))).collect();
    while started.load(Ordering::SeqCst) + parked.iter().filter(|task| task.is_finished()).count() < 40 {
        thread::sleep(Duration::from_millis(1));
    }
    parked.iter().for_each(|task| task.task().unpark());
    let refused = parked.into_iter().filter_map(|task| task.join().err()).count();
    stop.store(true, Ordering::SeqCst);
    busy.join().unwrap();
    assert_eq!(refused, 0);
}

#[test]
fn the_warm_stacks_of_a_busy_worker_serve_a_starving_one() {
    warm_stacks_serve_a_starving_worker(0);
}

#[test]
fn the_warm_stacks_of_a_busy_worker_serve_a_starving_one_beside_one_that_idles() {
    warm_stacks_serve_a_starving_worker(1);
}

#[test]
fn a_spawn_beyond_max_tasks_answers_with_the_limit_and_drops_its_closure_here() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).max_tasks(10).build().unwrap();
    runtime.run(|| {
        let sleepers: Vec<_> = (0..9).map(|_| fibra::spawn(|| fibra::sleep(Duration::MAX))).collect();
        let here = Arc::new(());
        let captured = Arc::clone(&here);
        let refused = fibra::spawn(move || drop(captured));
        assert!(refused.is_finished());
        assert_eq!(Arc::strong_count(&here), 1);
        let error = refused.join().unwrap_err();
        assert!(error.is_not_started());
        let text = error.io_error().unwrap().to_string();
        assert!(text.contains("max_tasks") && text.contains("10"), "{text}");
        assert!(fibra::spawn_local(|| ()).join().unwrap_err().is_not_started());
        sleepers.iter().for_each(|sleeper| sleeper.task().cancel());
        sleepers.into_iter().for_each(|sleeper| assert!(sleeper.join().unwrap_err().is_cancelled()));
        fibra::spawn(|| ()).join().unwrap();
    });
}

#[test]
fn a_task_that_was_joined_counts_no_more() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).max_tasks(1).build().unwrap();
    for round in 0..10_000 {
        assert_eq!(runtime.spawn(move || round).join().unwrap(), round);
        assert_eq!(runtime.run(|| round), round);
    }
}

#[test]
fn a_task_of_a_scope_that_has_ended_counts_no_more() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(2).max_tasks(2).build().unwrap();
    runtime.run(|| {
        for _ in 0..1000 {
            let ran = AtomicBool::new(false);
            task::scope(|scope| _ = scope.spawn(|| ran.store(true, Ordering::SeqCst)));
            assert!(ran.into_inner());
        }
    });
}

#[test]
fn a_backlog_of_tasks_that_have_not_run_needs_no_stacks() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).max_stacks(2).build().unwrap();
    let sum = runtime.run(|| {
        let tasks: Vec<_> = (0..100_000_u64).map(|number| fibra::spawn(move || number)).collect();
        tasks.into_iter().map(|task| task.join().unwrap()).sum::<u64>()
    });
    assert_eq!(sum, 4_999_950_000);
}
