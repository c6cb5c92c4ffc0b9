//! Promises of scopes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::at_end::AtEnd;
use crate::common::{hang_guard, runtime};
use crate::rest::until_others_sleep;
use crate::workers::on_workers;
use fibra_runtime::task::{self, ScopedJoinHandle};
use fibra_runtime::{self as fibra, Runtime};

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
fn a_builder_spawns_into_a_scope_as_in_std() {
    on_workers(|| {
        let mut number = 1;
        let child = fibra::scope(|s| {
            let builder = task::Builder::new().name("child");
            let child = builder.spawn_scoped(s, || {
                number += 1;
                task::current()
            });
            child.join().unwrap()
        });
        assert_eq!(number, 2);
        assert_eq!(child.name(), Some("child"));
    });
}

#[test]
fn a_child_is_spawned_inside_of_a_catch_as_in_std() {
    on_workers(|| {
        let sum = fibra::scope(|s| {
            let caught = catch_unwind(|| {
                s.spawn(|| 1);
                panic!("after the spawn");
            });
            assert!(caught.is_err());
            s.spawn(|| 2).join().unwrap() + catch_unwind(|| s.spawn(|| 3)).unwrap().join().unwrap()
        });
        assert_eq!(sum, 5);
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
fn a_scope_is_cancelled_after_its_closure_panicked() {
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

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

#[test]
fn a_scope_does_not_return_after_the_end_of_the_runtime_ended_its_child() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    static WITNESSED: AtomicBool = AtomicBool::new(false);
    static UNWOUND: AtomicBool = AtomicBool::new(false);
    static HELD: AtomicBool = AtomicBool::new(false);
    static BEHIND: AtomicBool = AtomicBool::new(false);
    fn parent() {
        fibra::scope(|s| {
            s.spawn(|| {
                BEGUN.store(true, Ordering::SeqCst);
                task::park();
            });
            // So that it begins on the other worker.
            wait_for(&BEGUN);
        });
    }
    let _guard = hang_guard();
    // And one whose child passes it on.
    for body in [parent as fn(), || fibra::scope(|s| drop(s.spawn(parent)))] {
        for flag in [&BEGUN, &WITNESSED, &UNWOUND, &HELD] {
            flag.store(false, Ordering::SeqCst);
        }
        let runtime = runtime(2);
        let parent = runtime.handle().spawn_on_worker(1, move || {
            body();
            BEHIND.store(true, Ordering::SeqCst);
        });
        wait_for(&BEGUN);
        // On the child's worker it unwinds when the child has ended.
        drop(runtime.handle().spawn_on_worker(0, || {
            let _tells = AtEnd(|| UNWOUND.store(true, Ordering::SeqCst));
            WITNESSED.store(true, Ordering::SeqCst);
            task::park();
        }));
        // And keeps the parent's worker from hearing of the end until then.
        drop(runtime.handle().spawn_on_worker(1, || {
            HELD.store(true, Ordering::SeqCst);
            wait_for(&UNWOUND);
        }));
        wait_for(&WITNESSED);
        wait_for(&HELD);
        drop(runtime);
        assert!(parent.join().unwrap_err().is_cancelled());
        assert!(!BEHIND.load(Ordering::SeqCst), "it went on behind the scope");
    }
}

/// Returns in a closure that the end of the runtime waits for, or in a task which it leaves alone, once it has begun.
fn until_the_end() {
    while fibra::spawn_blocking(|| ()).join().is_ok() {
        fibra::yield_now();
    }
}

/// A scope of three, each of which is at work until the runtime ends, and longer: it waits so that its worker hears of that. Tells how
/// many have done their work.
fn three_until_the_end(begun: &AtomicBool, wait: fn()) -> usize {
    let done = AtomicUsize::new(0);
    fibra::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                begun.store(true, Ordering::SeqCst);
                until_the_end();
                wait();
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    done.into_inner()
}

#[test]
fn where_nothing_can_be_unwound_the_children_do_their_work_at_the_end_of_the_runtime() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicUsize = AtomicUsize::new(0);
    fn done() {
        let moment = || fibra::sleep(Duration::from_millis(1));
        DONE.fetch_add(three_until_the_end(&BEGUN, moment), Ordering::SeqCst);
    }
    let _guard = hang_guard();
    for workers in [1, 2] {
        let behind_a_shield = || task::shield(done);
        let in_a_destructor = || {
            let _done = AtEnd(done);
            std::panic::resume_unwind(Box::new("on purpose"));
        };
        for body in [behind_a_shield as fn(), in_a_destructor] {
            BEGUN.store(false, Ordering::SeqCst);
            DONE.store(0, Ordering::SeqCst);
            let runtime = runtime(workers);
            drop(runtime.spawn(body));
            wait_for(&BEGUN);
            drop(runtime);
            assert_eq!(DONE.load(Ordering::SeqCst), 3);
        }
    }
}

#[test]
fn a_scope_in_a_destructor_on_the_pool_has_its_children_at_the_end_of_the_runtime() {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let _guard = hang_guard();
    for workers in [1, 2] {
        DONE.store(0, Ordering::SeqCst);
        let runtime = runtime(workers);
        let handle = runtime.handle();
        let closure = handle.spawn_blocking(move || {
            let _scope = AtEnd(|| {
                fibra::scope(|s| (0..3).for_each(|_| drop(s.spawn(|| DONE.fetch_add(1, Ordering::SeqCst)))));
            });
            // The end begins.
            drop(runtime);
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(closure.join().expect_err("it panicked").is_panic());
        assert_eq!(DONE.load(Ordering::SeqCst), 3);
    }
}

#[test]
fn off_a_task_a_scope_says_that_the_end_of_the_runtime_has_cut_its_children_short() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    let _guard = hang_guard();
    let runtime = runtime(1);
    let scope = runtime.spawn_blocking(|| {
        let ended = catch_unwind(|| three_until_the_end(&BEGUN, task::park));
        ended.map_err(|panic| *panic.downcast::<&str>().expect("a text"))
    });
    wait_for(&BEGUN);
    drop(runtime);
    let message = scope.join().expect("it ran").expect_err("its children were cancelled");
    assert!(message.contains("the end of the runtime"), "{message}");
}

#[test]
fn a_child_that_the_scope_has_cancelled_is_nothing_that_the_end_of_the_runtime_takes_away() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    let _guard = hang_guard();
    let runtime = runtime(1);
    let scope = runtime.spawn_blocking(|| {
        fibra::scope(|s| {
            let child = s.spawn(task::park);
            BEGUN.store(true, Ordering::SeqCst);
            until_the_end();
            while !child.is_finished() {
                thread::yield_now();
            }
            child.cancel();
        });
    });
    wait_for(&BEGUN);
    drop(runtime);
    scope.join().expect("nothing is lost");
}

#[test]
fn local_children_borrow_what_is_not_send_and_stay_here() {
    on_workers(|| {
        let (here, met) = (thread::current().id(), std::rc::Rc::new(std::cell::Cell::new(0)));
        fibra::scope(|scope| {
            for _ in 0..100 {
                scope.spawn_local(|| {
                    fibra::yield_now();
                    assert_eq!(thread::current().id(), here);
                    met.set(met.get() + 1);
                });
            }
            let counted = scope.spawn_local_as(task::Builder::new().name("local"), || met.clone());
            assert_eq!(counted.task().name(), Some("local"));
            assert!(std::rc::Rc::ptr_eq(&counted.join().unwrap(), &met));
        });
        assert_eq!(met.get(), 100);
    });
}

#[test]
fn off_a_worker_a_local_child_is_refused() {
    let _guard = hang_guard();
    let refused = catch_unwind(|| fibra::scope(|scope| drop(scope.spawn_local(|| ()))));
    assert!(refused.is_err());
}
