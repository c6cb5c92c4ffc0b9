//! Spans that are held over a sleep.

use std::hint::black_box;
use std::mem;
use std::thread;
use std::time::Duration;

use fibra::{Runtime, task};
use tracing::{Instrument, Span, info, info_span, instrument};

use crate::common::hang_guard;
use crate::recorder::{Counts, WORKERS, counts, inside, record, spans_of};

fn runtime(workers: usize) -> Runtime {
    record();
    Runtime::builder().workers(workers).build().unwrap()
}

/// Lets other tasks run, in each way in turn.
fn wait(step: usize) {
    match step % 4 {
        0 => fibra::yield_now(),
        1 => fibra::sleep(Duration::from_micros(10)),
        2 => task::on_big_stack(1 << 18, fibra::yield_now),
        _ => fibra::unblock(|| ()),
    }
}

#[test]
fn a_span_held_over_a_sleep_keeps_its_parent() {
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            let bare = (0..50).map(|number| {
                fibra::spawn(move || {
                    for step in 0..20 {
                        wait(number + step);
                        assert_eq!(inside(), None);
                    }
                })
            });
            let held = (0..50).map(|number| {
                fibra::spawn(move || {
                    let outer = info_span!("outer");
                    let _outer = outer.enter();
                    for step in 0..20 {
                        wait(number + step);
                        assert_eq!(Span::current(), outer);
                        let inner = info_span!("inner").entered();
                        wait(number + step + 1);
                        assert_eq!(Span::current(), *inner);
                        info!("{workers} {number} {step}");
                    }
                })
            });
            bare.chain(held).collect::<Vec<_>>().into_iter().for_each(|task| task.join().unwrap());
            for (number, step) in (0..50).flat_map(|number| (0..20).map(move |step| (number, step))) {
                assert_eq!(spans_of(&format!("{workers} {number} {step}")), ["outer", "inner"]);
            }
        });
    }
}

#[instrument]
fn descend(depth: usize, task: usize) {
    wait(depth + task);
    let here = Span::current();
    if depth > 0 {
        descend(depth - 1, task);
    } else {
        info!("bottom {task}");
    }
    wait(depth + task);
    assert_eq!(Span::current(), here);
}

#[test]
fn instrumented_functions_nest_in_their_own_task_only() {
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            fibra::scope(|scope| (0..20).for_each(|task| drop(scope.spawn(move || descend(5, task)))));
            assert_eq!(inside(), None);
        });
        (0..20).for_each(|task| assert_eq!(spans_of(&format!("bottom {task}")), ["descend"; 6]));
    }
}

#[test]
fn spans_may_be_entered_twice_and_exited_in_any_order() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let other = fibra::spawn(|| (0..20).for_each(|_| fibra::yield_now()));
        let (first, second) = (info_span!("first"), info_span!("second"));
        let outer = first.enter();
        second.in_scope(|| {
            fibra::yield_now();
            assert_eq!(Span::current(), second);
            let again = first.enter();
            fibra::yield_now();
            drop(again);
            fibra::yield_now();
            assert_eq!(Span::current(), second);
            let inner = info_span!("third").entered();
            fibra::yield_now();
            drop(outer);
            fibra::yield_now();
            assert_eq!(Span::current(), *inner);
        });
        fibra::yield_now();
        assert_eq!(inside(), None);
        other.join().unwrap();
    });
}

#[test]
fn a_task_that_migrates_takes_its_spans_along() {
    let _guard = hang_guard();
    runtime(4).run(|| {
        let tasks = (0..8).map(|_| {
            // SAFETY: what lives over the suspensions has nothing of its thread: the guard of the span is followed.
            let builder = unsafe { task::Builder::new().migratable() };
            builder.spawn(|| {
                let span = info_span!("migrates");
                let guard = span.enter();
                let threads: Vec<_> = (0..200)
                    .map(|_| {
                        black_box((0..1_000).sum::<u64>());
                        fibra::yield_now();
                        assert_eq!(Span::current(), span);
                        thread::current().id()
                    })
                    .collect();
                drop(guard);
                assert_eq!(inside(), None);
                threads.windows(2).filter(|pair| pair[0] != pair[1]).count()
            })
        });
        // They may be lucky and stay, so only the spans are promised.
        let moves: usize = tasks.collect::<Vec<_>>().into_iter().map(|task| task.join().unwrap()).sum();
        println!("{moves} moves");
    });
    assert_eq!(counts("migrates").closes, 8);
}

#[test]
fn a_task_that_unwinds_inside_its_spans_leaves_none() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            fibra::yield_now();
            assert_eq!(inside(), Some("unwinds"));
        }
    }
    let _guard = hang_guard();
    runtime(1).run(|| {
        let body = |panics: bool| {
            move || {
                let _span = info_span!("unwinds").entered();
                let _waits = Waits;
                fibra::yield_now();
                assert!(!panics, "as asked");
                task::park();
            }
        };
        let (cancelled, panics) = (fibra::spawn(body(false)), fibra::spawn(body(true)));
        fibra::yield_now();
        cancelled.cancel();
        assert!(cancelled.join().unwrap_err().is_cancelled());
        assert!(panics.join().unwrap_err().is_panic());
        assert_eq!(inside(), None);
    });
    let Counts { enters, exits, closes } = counts("unwinds");
    assert!(enters == exits && closes == 2);
}

#[test]
fn a_forgotten_guard_holds_its_own_task_only() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let forgets = fibra::spawn(|| {
            let span = info_span!("forgotten");
            mem::forget(span.enter());
            fibra::yield_now();
            assert_eq!(inside(), Some("forgotten"));
            span
        });
        fibra::yield_now();
        assert_eq!(inside(), None);
        drop(forgets.join().unwrap());
        let closed_inside = fibra::spawn(|| {
            let span = info_span!("forgotten");
            mem::forget(span.enter());
            fibra::yield_now();
            drop(span);
            fibra::yield_now();
        });
        closed_inside.join().unwrap();
        assert_eq!(inside(), None);
    });
    assert_eq!(counts("forgotten").closes, 2);
}

#[test]
fn a_layer_sees_an_exit_and_an_enter_at_each_sleep() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let other = fibra::spawn(|| (0..30).for_each(|_| fibra::yield_now()));
        info_span!("counted").in_scope(|| (0..10).for_each(|_| fibra::yield_now()));
        other.join().unwrap();
    });
    assert_eq!(counts("counted"), Counts { enters: 11, exits: 11, closes: 1 });
}

#[test]
fn futures_keep_their_spans_apart() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let other = fibra::spawn(|| {
            let _span = info_span!("beside").entered();
            for _ in 0..20 {
                fibra::yield_now();
                assert_eq!(inside(), Some("beside"));
            }
        });
        let _span = info_span!("around").entered();
        let joins = async {
            let inner = fibra::spawn(|| (0..5).for_each(|_| fibra::yield_now()));
            assert_eq!(inside(), Some("future"));
            inner.await.unwrap();
            assert_eq!(inside(), Some("future"));
        };
        fibra::block_on(joins.instrument(info_span!("future")));
        assert_eq!(inside(), Some("around"));
        other.join().unwrap();
    });
}

#[test]
fn the_spans_of_the_thread_that_runs_are_its_own_again() {
    let _guard = hang_guard();
    record();
    let span = info_span!("thread");
    let _span = span.enter();
    let builder = || Runtime::builder().workers(1);
    let run = || {
        assert_eq!(Span::current(), span);
        assert_eq!(fibra::spawn(inside).join().unwrap(), None);
        fibra::yield_now();
        assert_eq!(Span::current(), span);
        mem::forget(info_span!("left").entered());
    };
    builder().run(run).unwrap();
    assert_eq!(Span::current(), span);
    let runtime = builder().build().unwrap();
    runtime.run(run);
    assert_eq!(Span::current(), span);
    assert_eq!(runtime.spawn(inside).join().unwrap(), None);
}

#[test]
fn a_thread_of_the_blocking_pool_keeps_no_span() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).max_blocking_threads(1);
    record();
    runtime
        .run(|| {
            let leaves = || mem::forget(info_span!("left on the pool").entered());
            fibra::spawn_blocking(leaves).join().unwrap();
            assert_eq!(fibra::spawn_blocking(inside).join().unwrap(), None);
            fibra::unblock(leaves);
            assert_eq!(fibra::unblock(inside), None);
        })
        .unwrap();
}

#[fibra::test]
fn the_body_of_a_test_has_spans_of_its_own() {
    record();
    let _span = info_span!("body").entered();
    let other = fibra::spawn(inside);
    fibra::yield_now();
    assert_eq!(inside(), Some("body"));
    assert_eq!(other.join().unwrap(), None);
}
