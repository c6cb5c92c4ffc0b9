//! Promises of task-locals.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::rest::until_others_sleep;
use fibra_runtime::{self as fibra, task, task_local};

const WORKERS: [usize; 3] = [1, 2, 4];

task_local! {
    static COUNT: Cell<u32> = Cell::new(1);
    static WORDS: RefCell<Vec<&'static str>> = RefCell::new(vec!["first"]);
    /// Has a destructor, and is tied to its thread.
    static SHARED: Rc<Cell<u32>> = Rc::new(Cell::new(0));
    #[inherit]
    static REQUEST: Cell<u64> = Cell::new(0);
    /// Several attributes, in any order.
    #[inherit]
    #[doc(hidden)]
    pub(crate) static NAME: RefCell<String> = RefCell::new(String::new())
}

#[test]
fn each_task_has_its_own_value() {
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            let tasks: Vec<_> = (0..100)
                .map(|number| {
                    fibra::spawn(move || {
                        assert_eq!(COUNT.get(), 1);
                        for step in 0..10 {
                            COUNT.set(number + step);
                            SHARED.with(|shared| shared.set(number + step));
                            fibra::yield_now();
                            assert_eq!(COUNT.get(), number + step);
                            assert_eq!(SHARED.with(|shared| shared.get()), number + step);
                        }
                    })
                })
                .collect();
            tasks.into_iter().for_each(|task| task.join().unwrap());
            assert_eq!(COUNT.get(), 1);
        });
    }
}

#[test]
fn cells_are_set_taken_and_replaced_in_place() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        assert_eq!(COUNT.replace(5), 1);
        assert_eq!(COUNT.take(), 5);
        assert_eq!(COUNT.get(), 0);
        WORDS.with_borrow_mut(|words| words.push("second"));
        assert_eq!(WORDS.with_borrow(Vec::len), 2);
        assert_eq!(WORDS.replace(vec!["other"]), ["first", "second"]);
        assert_eq!(WORDS.take(), ["other"]);
        WORDS.set(vec!["set"]);
        assert_eq!(WORDS.with_borrow(|words| words[0]), "set");
    });
}

#[test]
fn set_does_not_run_the_initializer() {
    task_local! {
        static CELL: Cell<u8> = panic!("not wanted");
        static REF_CELL: RefCell<u8> = panic!("not wanted");
    }
    let _guard = hang_guard();
    let check = || {
        CELL.set(1);
        REF_CELL.set(2);
        assert_eq!((CELL.get(), REF_CELL.take()), (1, 2));
    };
    check();
    runtime(1).run(check);
}

#[test]
fn a_value_is_made_at_its_first_use_and_once() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    task_local! { static LAZY: usize = MADE.fetch_add(1, Ordering::SeqCst) }
    let _guard = hang_guard();
    runtime(1).run(|| {
        fibra::spawn(|| ()).join().unwrap();
        assert_eq!(MADE.load(Ordering::SeqCst), 0);
        fibra::spawn(|| (0..5).for_each(|_| LAZY.with(|_| ()))).join().unwrap();
        assert_eq!(MADE.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn an_initializer_may_suspend_while_others_do_the_same() {
    task_local! {
        static SLOW: (u64, Box<u64>) = {
            fibra::sleep(Duration::from_millis(1));
            fibra::yield_now();
            let id = task::current().id();
            (id, Box::new(id))
        };
    }
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            let check = || {
                SLOW.with(|(id, boxed)| {
                    fibra::yield_now();
                    assert_eq!((*id, **boxed), (task::current().id(), *id));
                });
            };
            let tasks: Vec<_> = (0..200).map(|_| fibra::spawn(check)).collect();
            tasks.into_iter().for_each(|task| task.join().unwrap());
        });
    }
}

#[test]
fn with_may_suspend_while_more_values_are_made() {
    task_local! { static NUMBERS: [Cell<u32>; 8] = Default::default() }
    let _guard = hang_guard();
    runtime(2).run(|| {
        NUMBERS.with(|numbers| {
            numbers[7].set(7);
            COUNT.set(2);
            WORDS.with_borrow(|words| {
                SHARED.with(|shared| shared.set(1));
                fibra::sleep(Duration::from_millis(1));
                assert_eq!(words.len(), 1);
            });
            assert_eq!(numbers[7].get(), 7);
        });
    });
}

#[test]
fn an_initializer_that_panics_leaves_the_key_as_it_was() {
    static TRIES: AtomicUsize = AtomicUsize::new(0);
    task_local! {
        static FRAGILE: u8 = match TRIES.fetch_add(1, Ordering::SeqCst) {
            0 => panic::resume_unwind(Box::new("not yet")),
            _ => 7,
        };
    }
    let _guard = hang_guard();
    runtime(1).run(|| {
        assert!(panic::catch_unwind(|| FRAGILE.with(|_| ())).is_err());
        assert_eq!(FRAGILE.with(|value| *value), 7);
    });
}

#[test]
fn an_initializer_that_needs_its_own_value_panics_and_says_so() {
    task_local! { static ITSELF: u8 = ITSELF.with(|value| *value) }
    let _guard = hang_guard();
    let check = || {
        for _ in 0..2 {
            let payload = panic::catch_unwind(|| ITSELF.with(|value| *value)).unwrap_err();
            assert!(payload.downcast::<&str>().unwrap().contains("initializer"));
        }
    };
    check();
    runtime(1).run(check);
}

#[test]
fn an_initializer_that_is_cancelled_leaves_nothing() {
    task_local! { static NEVER: u8 = { fibra::sleep(Duration::MAX); 1 } }
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            let task = fibra::spawn(|| NEVER.with(|value| *value));
            until_others_sleep();
            task.task().cancel();
            assert!(task.join().unwrap_err().is_cancelled());
        });
    }
}

#[test]
fn only_what_is_marked_is_inherited() {
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            COUNT.set(9);
            REQUEST.set(17);
            NAME.set("asker".to_owned());
            assert_eq!(fibra::spawn(|| NAME.take()).join().unwrap(), "asker");
            let seen = || (COUNT.get(), REQUEST.get());
            assert_eq!(fibra::spawn(seen).join().unwrap(), (1, 17));
            assert_eq!(fibra::spawn_local(seen).join().unwrap(), (1, 17));
            assert_eq!(fibra::spawn_blocking(seen).join().unwrap(), (1, 17));
            assert_eq!(fibra::Handle::current().spawn(seen).join().unwrap(), (1, 17));
            assert_eq!(fibra::scope(|s| s.spawn(seen).join().unwrap()), (1, 17));
            let grandchild = fibra::spawn(move || {
                REQUEST.set(18);
                fibra::spawn(seen).join().unwrap()
            });
            assert_eq!(grandchild.join().unwrap(), (1, 18));
            assert_eq!(seen(), (9, 17));
        });
    }
}

#[test]
fn inherited_local_has_the_value_at_the_spawn() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let before = fibra::spawn(|| REQUEST.get());
        REQUEST.set(1);
        let after = fibra::spawn(|| REQUEST.get());
        REQUEST.set(2);
        assert_eq!((before.join().unwrap(), after.join().unwrap()), (0, 1));
    });
}

#[test]
fn a_runtime_s_first_task_inherits_from_the_thread() {
    let _guard = hang_guard();
    REQUEST.set(5);
    COUNT.set(5);
    let runtime = runtime(1);
    assert_eq!(runtime.run(|| (COUNT.get(), REQUEST.get())), (1, 5));
    assert_eq!(runtime.spawn(|| REQUEST.get()).join().unwrap(), 5);
    let here = fibra::Runtime::builder().workers(1).run(|| (COUNT.get(), REQUEST.get())).unwrap();
    assert_eq!(here, (1, 5));
    assert_eq!((COUNT.get(), REQUEST.get()), (5, 5));
}

#[test]
fn a_task_that_a_thread_makes_has_one_clone() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    fn count() {
        CLONES.fetch_add(1, Ordering::SeqCst);
    }
    let clones_for = |make: &dyn Fn()| {
        make();
        CLONES.swap(0, Ordering::SeqCst)
    };
    let _guard = hang_guard();
    TRACKED.set(Some(Tracked::new(&Arc::default(), count, nothing)));
    let runtime = runtime(1);
    let handle = runtime.handle();
    assert_eq!(clones_for(&|| runtime.run(nothing)), 1);
    assert_eq!(clones_for(&|| handle.run(nothing)), 1);
    assert_eq!(clones_for(&|| runtime.spawn(nothing).join().unwrap()), 1);
    assert_eq!(clones_for(&|| runtime.spawn_blocking(nothing).join().unwrap()), 1);
    assert_eq!(clones_for(&|| fibra::Runtime::builder().workers(1).run(nothing).unwrap()), 1);
}

/// Counts its clones and its drops, and may do something in both.
struct Tracked {
    alive: Arc<AtomicUsize>,
    in_clone: fn(),
    in_drop: fn(),
}

impl Tracked {
    fn new(alive: &Arc<AtomicUsize>, in_clone: fn(), in_drop: fn()) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Tracked { alive: Arc::clone(alive), in_clone, in_drop }
    }
}

impl Clone for Tracked {
    fn clone(&self) -> Self {
        (self.in_clone)();
        Tracked::new(&self.alive, self.in_clone, self.in_drop)
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        (self.in_drop)();
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

task_local! {
    #[inherit]
    static TRACKED: RefCell<Option<Tracked>> = RefCell::new(None);
    #[inherit]
    static SECOND: RefCell<Option<Tracked>> = RefCell::new(None);
}

fn nothing() {}

fn unwind() {
    if !thread::panicking() {
        panic::resume_unwind(Box::new("unwound"));
    }
}

#[test]
fn split_job_inherits_locals_as_a_spawned_task() {
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            let (alive, me) = (Arc::new(AtomicUsize::new(0)), task::current());
            COUNT.set(9);
            REQUEST.set(17);
            // Each clone and each drop of a clone waits.
            TRACKED.set(Some(Tracked::new(&alive, fibra::yield_now, fibra::yield_now)));
            let check = || {
                let count = if task::current() == me { 9 } else { 1 };
                assert_eq!((COUNT.get(), REQUEST.get()), (count, 17));
                fibra::sleep(Duration::from_micros(50));
            };
            let taken = || {
                assert!(task::current() != me);
                fibra::join(check, check);
                me.unpark();
            };
            fibra::join(task::park, taken);
            fibra::parallel_for(0..20, |_| check());
            fibra::parallel_for_each(0..20, |_| check());
            assert_eq!(alive.load(Ordering::SeqCst), 1, "clones go with the work");
        });
    }
}

#[test]
fn a_clone_that_panics_unwinds_the_spawner_before_any_work() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (alive, ran) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        TRACKED.set(Some(Tracked::new(&alive, unwind, nothing)));
        let run = || ran.fetch_add(1, Ordering::SeqCst);
        assert!(panic::catch_unwind(AssertUnwindSafe(|| fibra::join(run, run))).is_err());
        assert_eq!((ran.into_inner(), alive.load(Ordering::SeqCst)), (0, 1));
    });
}

#[test]
fn inherited_values_are_dropped_also_where_the_task_never_runs() {
    let _guard = hang_guard();
    for workers in WORKERS {
        let alive = Arc::new(AtomicUsize::new(0));
        runtime(workers).run(|| {
            TRACKED.set(Some(Tracked::new(&alive, nothing, nothing)));
            let tasks: Vec<_> = (0..50).map(|_| fibra::spawn(|| fibra::sleep(Duration::MAX))).collect();
            assert_eq!(alive.load(Ordering::SeqCst), 51);
            tasks.iter().for_each(|task| task.task().cancel());
            tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
            assert_eq!(alive.load(Ordering::SeqCst), 1);
            let ended = runtime(1).handle();
            assert!(ended.spawn(|| ()).join().unwrap_err().is_cancelled());
            assert!(ended.spawn_blocking(|| ()).join().unwrap_err().is_cancelled());
            assert_eq!(alive.load(Ordering::SeqCst), 1);
        });
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_clone_may_suspend_and_its_panic_is_the_spawner_s() {
    let _guard = hang_guard();
    for workers in WORKERS {
        let alive = Arc::new(AtomicUsize::new(0));
        runtime(workers).run(|| {
            TRACKED.set(Some(Tracked::new(&alive, || fibra::sleep(Duration::from_micros(100)), nothing)));
            (0..20)
                .for_each(|_| fibra::spawn(|| assert!(TRACKED.with_borrow(Option::is_some))).join().unwrap());
            SECOND.set(Some(Tracked::new(&alive, unwind, nothing)));
            assert!(panic::catch_unwind(|| fibra::spawn(|| ())).is_err());
            assert!(panic::catch_unwind(|| fibra::scope(|s| _ = s.spawn(|| ()))).is_err());
            assert_eq!(alive.load(Ordering::SeqCst), 2);
        });
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn values_are_dropped_in_their_task_before_its_result_is_there() {
    let _guard = hang_guard();
    for workers in WORKERS {
        let alive = Arc::new(AtomicUsize::new(0));
        runtime(workers).run(|| {
            for _ in 0..200 {
                let value = Tracked::new(&alive, nothing, fibra::yield_now);
                fibra::spawn(move || TRACKED.set(Some(value))).join().unwrap();
                assert_eq!(alive.load(Ordering::SeqCst), 0);
            }
            let value = Tracked::new(&alive, nothing, nothing);
            let id = fibra::spawn(move || TRACKED.set(Some(value))).join();
            assert!(id.is_ok() && alive.load(Ordering::SeqCst) == 0);
        });
    }
}

#[test]
fn the_last_value_made_is_dropped_first() {
    struct Says(&'static str);
    static SAID: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    impl Drop for Says {
        fn drop(&mut self) {
            assert!(task::try_current().is_some());
            SAID.lock().unwrap().push(self.0);
        }
    }
    task_local! {
        static ONE: Says = Says("one");
        static TWO: Says = Says("two");
        static THREE: Says = Says("three");
    }
    let _guard = hang_guard();
    runtime(1).run(|| {
        let touch = || {
            TWO.with(|_| ());
            ONE.with(|_| ());
            THREE.with(|_| ());
        };
        fibra::spawn(touch).join().unwrap();
    });
    assert_eq!(*SAID.lock().unwrap(), ["three", "one", "two"]);
}

#[test]
fn destructors_may_suspend_panic_and_use_other_keys() {
    task_local! {
        static RICH: Uses = Uses;
        static MADE_LATE: RefCell<Option<Tracked>> = RefCell::new(None);
    }
    static ALIVE: Mutex<Option<Arc<AtomicUsize>>> = Mutex::new(None);
    struct Uses;
    impl Drop for Uses {
        fn drop(&mut self) {
            fibra::sleep(Duration::from_micros(100));
            assert!(RICH.try_with(|_| ()).is_err());
            let alive = ALIVE.lock().unwrap().clone().unwrap();
            MADE_LATE.set(Some(Tracked::new(&alive, nothing, fibra::yield_now)));
            unwind();
        }
    }
    let _guard = hang_guard();
    for workers in WORKERS {
        let alive = Arc::new(AtomicUsize::new(0));
        *ALIVE.lock().unwrap() = Some(Arc::clone(&alive));
        runtime(workers).run(|| {
            for _ in 0..50 {
                assert_eq!(fibra::spawn(|| RICH.with(|_| 3)).join().unwrap(), 3);
                assert_eq!(alive.load(Ordering::SeqCst), 0);
            }
        });
        // A plain thread drops it at its end as well.
        thread::spawn(|| RICH.with(|_| ())).join().unwrap();
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_cancelled_task_s_values_are_dropped_in_peace() {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    struct Sleeps;
    impl Drop for Sleeps {
        fn drop(&mut self) {
            fibra::sleep(Duration::from_millis(1));
            task::check_cancelled();
            DONE.fetch_add(1, Ordering::SeqCst);
        }
    }
    task_local! { static SLEEPS: Sleeps = Sleeps }
    let _guard = hang_guard();
    for workers in WORKERS {
        DONE.store(0, Ordering::SeqCst);
        runtime(workers).run(|| {
            let body = || SLEEPS.with(|_| fibra::sleep(Duration::MAX));
            let tasks: Vec<_> = (0..50).map(|_| fibra::spawn(body)).collect();
            until_others_sleep();
            tasks.iter().for_each(|task| task.task().cancel());
            tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
        });
        assert_eq!(DONE.load(Ordering::SeqCst), 50);
    }
}

#[test]
fn the_destructor_of_an_unclaimed_result_finds_fresh_values() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    struct Asks;
    impl Drop for Asks {
        fn drop(&mut self) {
            assert_eq!(COUNT.replace(50), 1);
            SEEN.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _guard = hang_guard();
    for workers in WORKERS {
        SEEN.store(0, Ordering::SeqCst);
        runtime(workers).run(|| {
            let body = || {
                // Until its handle is dropped: that drops the result of an ended task as well.
                task::park();
                COUNT.set(2);
                Asks
            };
            for _ in 0..100 {
                let handle = fibra::spawn(body);
                let unclaimed = handle.task().clone();
                drop(handle);
                unclaimed.unpark();
            }
            while SEEN.load(Ordering::SeqCst) < 100 {
                fibra::sleep(Duration::from_millis(1));
            }
        });
    }
}

#[test]
fn threads_of_the_pool_keep_nothing_of_a_task() {
    let _guard = hang_guard();
    let runtime = fibra::Runtime::builder().workers(1).max_blocking_threads(1).build().unwrap();
    runtime.run(|| {
        for _ in 0..3 {
            assert_eq!(fibra::spawn_blocking(|| COUNT.replace(4)).join().unwrap(), 1);
        }
    });
}

#[test]
fn a_plain_thread_has_values_and_drops_them_at_its_end() {
    let _guard = hang_guard();
    let alive = Arc::new(AtomicUsize::new(0));
    let value = Tracked::new(&alive, nothing, nothing);
    thread::spawn(move || {
        TRACKED.set(Some(value));
        assert_eq!(COUNT.replace(3), 1);
        assert_eq!(COUNT.get(), 3);
    })
    .join()
    .unwrap();
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn after_the_end_of_a_thread_s_values_there_are_none() {
    static ANSWER: Mutex<Option<bool>> = Mutex::new(None);
    struct AsksLate;
    impl Drop for AsksLate {
        fn drop(&mut self) {
            *ANSWER.lock().unwrap() = Some(COUNT.try_with(|_| ()).is_err());
        }
    }
    thread_local! { static LATE: AsksLate = const { AsksLate } }
    let _guard = hang_guard();
    // Destructors of thread-locals run in the order of their registration, or in the opposite one.
    let first = thread::spawn(|| {
        LATE.with(|_| ());
        COUNT.set(1);
    });
    first.join().unwrap();
    let one = ANSWER.lock().unwrap().take();
    let second = thread::spawn(|| {
        COUNT.set(1);
        LATE.with(|_| ());
    });
    second.join().unwrap();
    let other = ANSWER.lock().unwrap().take();
    assert!(one == Some(true) || other == Some(true), "{one:?} {other:?}");
}

#[test]
fn values_live_on_over_a_big_stack() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        COUNT.set(2);
        task::on_big_stack(1 << 20, || COUNT.set(COUNT.get() + 1));
        assert_eq!(COUNT.get(), 3);
    });
}

#[test]
fn a_value_s_panic_is_caught_in_the_storm_of_cancels() {
    let _guard = hang_guard();
    for workers in WORKERS {
        let alive = Arc::new(AtomicUsize::new(0));
        runtime(workers).run(|| {
            let body = |alive: Arc<AtomicUsize>| {
                move || {
                    TRACKED.set(Some(Tracked::new(&alive, nothing, || {
                        fibra::yield_now();
                        unwind();
                    })));
                    let result = panic::catch_unwind(AssertUnwindSafe(|| fibra::sleep(Duration::MAX)));
                    COUNT.set(2);
                    result.unwrap_or_else(|payload| panic::resume_unwind(payload));
                }
            };
            for _ in 0..10 {
                let tasks: Vec<_> = (0..50).map(|_| fibra::spawn(body(Arc::clone(&alive)))).collect();
                until_others_sleep();
                tasks.iter().for_each(|task| task.task().cancel());
                tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
            }
        });
    }
}

fn _keys_are_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<task::TaskLocal<Rc<Cell<u32>>>>();
    check::<task::Builder>();
}
