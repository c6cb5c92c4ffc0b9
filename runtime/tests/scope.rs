//! Promises of scopes.

#[path = "common/at_end.rs"]
mod at_end;
mod common;
#[path = "common/rest.rs"]
mod rest;
#[path = "common/workers.rs"]
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use at_end::AtEnd;
use common::hang_guard;
use fibra_runtime::task::{self, ScopedJoinHandle};
use fibra_runtime::{self as fibra, Runtime};
use rest::until_others_sleep;
use workers::on_workers;

#[test]
fn children_borrow_and_are_waited_for() {
    on_workers(|| {
        let mut numbers = vec![0_usize; 100];
        fibra::scope(|s| {
            for (index, number) in numbers.iter_mut().enumerate() {
                s.spawn(move || {
                    fibra::yield_now();
                    *number = index;
                });
            }
        });
        assert!(numbers.iter().enumerate().all(|(index, number)| index == *number));
    });
}

#[test]
fn results_are_joined_and_may_borrow() {
    on_workers(|| {
        let text = String::from("borrowed");
        let found = fibra::scope(|s| s.spawn(|| text.as_str()).join().unwrap());
        assert_eq!(found, "borrowed");
    });
}

#[test]
fn children_spawn_into_the_scope_to_any_depth() {
    fn descend<'scope>(s: &'scope fibra::task::Scope<'scope, '_>, ended: &'scope AtomicUsize, depth: usize) {
        if depth > 0 {
            s.spawn(move || descend(s, ended, depth - 1));
        }
        let nested = s.spawn(move || {
            fibra::yield_now();
            ended.fetch_add(1, Ordering::Relaxed)
        });
        if depth.is_multiple_of(2) {
            nested.join().unwrap();
        }
    }
    on_workers(|| {
        let ended = AtomicUsize::new(0);
        fibra::scope(|s| descend(s, &ended, 20));
        assert_eq!(ended.into_inner(), 21);
    });
}

#[test]
fn of_several_panics_one_is_reported_when_all_have_ended() {
    on_workers(|| {
        let ended = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            fibra::scope(|s| {
                for _ in 0..10 {
                    s.spawn(|| {
                        fibra::yield_now();
                        ended.fetch_add(1, Ordering::Relaxed);
                        std::panic::resume_unwind(Box::new("child"));
                    });
                }
                std::panic::resume_unwind(Box::new("parent"));
            });
        }));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "parent");
        assert_eq!(ended.into_inner(), 10);
    });
}

#[test]
fn an_unjoined_panic_is_reported_at_the_end() {
    on_workers(|| {
        let others = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            fibra::scope(|s| {
                s.spawn(|| panic!("on purpose"));
                for _ in 0..10 {
                    s.spawn(|| {
                        fibra::sleep(Duration::from_millis(2));
                        others.fetch_add(1, Ordering::Relaxed)
                    });
                }
            });
        }));
        assert!(result.is_err());
        assert_eq!(others.into_inner(), 10);
    });
}

#[test]
fn a_joined_panic_is_the_joiners() {
    on_workers(|| {
        fibra::scope(|s| assert!(s.spawn(|| panic!("on purpose")).join().unwrap_err().is_panic()));
    });
}

#[test]
fn children_are_waited_for_when_the_closure_panics() {
    on_workers(|| {
        let ended = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            fibra::scope(|s| {
                s.spawn(|| {
                    fibra::sleep(Duration::from_millis(3));
                    ended.store(1, Ordering::Relaxed);
                });
                panic!("on purpose");
            });
        }));
        assert!(result.is_err());
        assert_eq!(ended.into_inner(), 1);
    });
}

#[test]
fn a_cancelled_parent_cancels_its_children_and_waits() {
    on_workers(|| {
        struct Count<'a>(&'a AtomicUsize);
        impl Drop for Count<'_> {
            fn drop(&mut self) {
                fibra::sleep(Duration::from_millis(1));
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        static UNWOUND: AtomicUsize = AtomicUsize::new(0);
        UNWOUND.store(0, Ordering::Relaxed);
        let parent = fibra::spawn(|| {
            let here = AtomicUsize::new(0);
            fibra::scope(|s| {
                for _ in 0..20 {
                    s.spawn(|| {
                        let _count = Count(&here);
                        UNWOUND.fetch_add(1, Ordering::Relaxed);
                        task::park();
                    });
                }
            });
        });
        while UNWOUND.load(Ordering::Relaxed) < 20 {
            fibra::yield_now();
        }
        parent.task().cancel();
        assert!(parent.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_forgotten_handle_leaves_the_scope_sound() {
    on_workers(|| {
        let value = AtomicUsize::new(0);
        fibra::scope(|s| std::mem::forget(s.spawn(|| value.fetch_add(1, Ordering::Relaxed))));
        assert_eq!(value.into_inner(), 1);
    });
}

#[test]
fn a_child_that_comes_after_the_cancellation_is_cancelled_too() {
    on_workers(|| {
        let parent = fibra::spawn(|| {
            fibra::scope(|s| {
                s.spawn(move || {
                    let _late = AtEnd(|| _ = s.spawn(task::park));
                    task::park();
                });
            });
        });
        until_others_sleep();
        parent.task().cancel();
        assert!(parent.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_scope_whose_closure_panicked_still_hears_a_cancellation() {
    on_workers(|| {
        let parent = fibra::spawn(|| {
            fibra::scope(|s| {
                s.spawn(task::park);
                panic!("on purpose");
            })
        });
        until_others_sleep();
        parent.task().cancel();
        assert!(parent.join().is_err());
    });
}

/// What becomes of a scope one of whose children finds no task or no stack left, by the limit that says so. That one's handle
/// is given to `end`.
fn with_one_that_cannot_start(end: fn(ScopedJoinHandle<'_, ()>)) -> [(Result<(), String>, &'static str); 2] {
    let _guard = hang_guard();
    let builder = || Runtime::builder().workers(1).stack_patience(Duration::from_millis(5));
    [(builder().max_tasks(2), "max_tasks"), (builder().max_stacks(2), "max_stacks")].map(
        |(builder, limit)| {
            let scope = || {
                fibra::scope(|s| {
                    let first = s.spawn(task::park).task().clone();
                    // Dropped with the closure, which does not run.
                    let unparks = AtEnd(move || first.unpark());
                    end(s.spawn(move || drop(unparks)));
                });
            };
            let ended = builder.build().expect("a runtime").run(|| catch_unwind(scope));
            (ended.map_err(|panic| *panic.downcast().expect("a text")), limit)
        },
    )
}

#[test]
fn a_child_that_could_not_start_is_reported_at_the_end() {
    for (ended, limit) in with_one_that_cannot_start(|_dropped| ()) {
        let message = ended.unwrap_err();
        assert!(message.contains("could not start") && message.contains(limit), "{message}");
    }
}

#[test]
fn one_that_could_not_start_is_the_joiners_and_nobodys_if_it_was_cancelled() {
    let joined = with_one_that_cannot_start(|child| assert!(child.join().unwrap_err().is_not_started()));
    let cancelled = with_one_that_cannot_start(|child| child.cancel());
    for (ended, limit) in joined.into_iter().chain(cancelled) {
        assert_eq!(ended, Ok(()), "{limit}");
    }
}
