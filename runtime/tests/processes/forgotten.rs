//! Whatever is forgotten, leaked, or panics a second time in safe code: nothing that a task borrows goes before it, and no
//! destructor runs twice. Made for AddressSanitizer, which sees what these tests can only touch.

use std::any::Any;
use std::cell::RefCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::rerun::{errors, is_child, rerun};
use fibra_runtime::{
    self as fibra, CancelToken, JoinHandle, TaskGroup, join, parallel_for, parallel_for_each, race, task,
    timeout,
};

const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(3600);

fn on_workers(test: impl Fn() + Send + Sync) {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        runtime(workers).run(&test);
    }
}

fn unwind(payload: &'static str) -> ! {
    resume_unwind(Box::new(payload))
}

fn caught<T>(f: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(f))
}

fn text_of(payload: Box<dyn Any + Send>) -> &'static str {
    *payload.downcast::<&str>().expect("a payload of these tests")
}

/// A place on a frame that tasks borrow: each loan touches it when it is dropped.
struct Lender {
    text: String,
    lent: AtomicUsize,
    returned: AtomicUsize,
}

struct Loan<'a>(&'a Lender);

impl Lender {
    fn new() -> Self {
        Lender { text: "on a frame".to_owned(), lent: AtomicUsize::new(0), returned: AtomicUsize::new(0) }
    }

    fn lend(&self) -> Loan<'_> {
        self.lent.fetch_add(1, Ordering::SeqCst);
        Loan(self)
    }

    fn is_even(&self) -> bool {
        self.lent.load(Ordering::SeqCst) == self.returned.load(Ordering::SeqCst)
    }
}

impl Loan<'_> {
    fn touch(&self) {
        assert_eq!(self.0.text, "on a frame");
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        /// What a destructor does last, also where a cancellation ends it at its yield.
        struct Return<'a>(&'a Loan<'a>);

        impl Drop for Return<'_> {
            fn drop(&mut self) {
                self.0.touch();
                self.0.0.returned.fetch_add(1, Ordering::SeqCst);
            }
        }

        let _last = Return(self);
        fibra::yield_now();
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        self.text.clear();
    }
}

/// Panics when it is dropped, unless that would end the process.
struct Panics<T>(T);

impl<T> Drop for Panics<T> {
    fn drop(&mut self) {
        fibra::yield_now();
        if !thread::panicking() {
            unwind("in a destructor");
        }
    }
}

#[test]
fn results_of_forgotten_handles_are_never_touched_again() {
    on_workers(|| {
        let lender = Lender::new();
        fibra::scope(|s| {
            (0..20).for_each(|_| mem::forget(s.spawn(|| lender.lend())));
            (0..20).for_each(|_| _ = Box::leak(Box::new(s.spawn(|| lender.lend()))));
        });
        assert_eq!((lender.lent.load(Ordering::SeqCst), lender.returned.load(Ordering::SeqCst)), (40, 0));
    });
}

#[test]
fn handles_may_go_round_among_the_children() {
    on_workers(|| {
        let lender = Lender::new();
        let panicked = caught(|| {
            fibra::scope(|s| {
                for number in 0..20 {
                    let first = s.spawn(|| lender.lend());
                    let second = s.spawn(move || {
                        if number % 3 == 0 {
                            unwind("with the handle of another");
                        }
                        first
                    });
                    match number % 4 {
                        // Left in the unclaimed result of the second.
                        0 => drop(second),
                        1 => second.cancel(),
                        2 => _ = s.spawn(move || second.join().map(|first| first.join())).join(),
                        _ => mem::forget(s.spawn(move || drop(second.join()))),
                    }
                }
            });
        });
        assert!(panicked.is_err(), "of some that have panicked the handles were dropped");
        assert!(lender.is_even());
    });
}

/// Runs what panics where that does not matter.
fn unwind_quietly(f: impl FnOnce()) {
    drop(caught(f));
}

#[test]
fn value_leaked_by_a_child_may_borrow() {
    on_workers(|| {
        let (lender, lock) = (Lender::new(), Mutex::new(0));
        fibra::scope(|s| {
            s.spawn(|| {
                let guard = Box::leak(Box::new(lock.lock().unwrap()));
                **guard += 1;
                let loan: &mut Loan<'_> = Box::leak(Box::new(lender.lend()));
                loan.touch();
                task::current().cancel();
                fibra::yield_now();
            });
        });
        assert!(lock.try_lock().is_err(), "the guard was leaked");
        assert_eq!(lender.returned.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_child_panics_in_a_destructor_while_its_parent_panics() {
    on_workers(|| {
        let lender = Lender::new();
        let result = caught(|| {
            fibra::scope(|s| {
                for number in 0..10 {
                    let loan = lender.lend();
                    s.spawn(move || {
                        let _loan = loan;
                        let _panics = Panics(());
                        if number % 2 == 0 {
                            fibra::sleep(SHORT);
                        }
                    });
                    // Its captures panic, whether it runs or not.
                    let panics = Panics(lender.lend());
                    s.spawn(move || drop(panics)).cancel();
                }
                let _panics = Panics(());
                unwind("the parent");
            })
        });
        assert_eq!(text_of(result.unwrap_err()), "the parent");
        assert!(lender.is_even());
    });
}

#[test]
fn an_inner_scope_panics_while_the_outer_one_is_cancelled() {
    on_workers(|| {
        for round in 0..50_u32 {
            let parent = fibra::spawn(move || {
                let lender = Lender::new();
                fibra::scope(|outer| {
                    for number in 0..4 {
                        let lender = &lender;
                        outer.spawn(move || {
                            let here = Lender::new();
                            fibra::scope(|inner| {
                                let loans = (lender.lend(), here.lend());
                                inner.spawn(move || {
                                    let _loans = loans;
                                    fibra::sleep(LONG);
                                });
                                if number % 2 == 0 {
                                    inner.spawn(|| unwind("a grandchild"));
                                    unwind("a child");
                                }
                            });
                        });
                    }
                    (0..round % 5).for_each(|_| fibra::yield_now());
                });
            });
            (0..round % 7).for_each(|_| fibra::yield_now());
            parent.cancel();
            assert!(parent.join().is_err());
        }
    });
}

#[test]
fn a_scope_in_a_destructor_waits_for_its_children_too() {
    struct Scoped<'a>(&'a Lender);
    impl Drop for Scoped<'_> {
        fn drop(&mut self) {
            let here = Lender::new();
            let panicked = caught(|| {
                fibra::scope(|s| {
                    let loans = (self.0.lend(), here.lend());
                    s.spawn(move || {
                        let _loans = loans;
                        fibra::sleep(SHORT);
                        unwind("a child of a destructor");
                    });
                    mem::forget(s.spawn(|| here.text.len()));
                    unwind("a scope of a destructor");
                });
            });
            assert_eq!(text_of(panicked.unwrap_err()), "a scope of a destructor");
            assert!(here.is_even());
        }
    }
    on_workers(|| {
        let lender = Lender::new();
        let cancelled = timeout(SHORT, || {
            let _scoped = Scoped(&lender);
            fibra::sleep(LONG);
        });
        assert!(cancelled.is_err());
        let panicked = caught(|| {
            let _scoped = Scoped(&lender);
            unwind("around it");
        });
        assert_eq!(text_of(panicked.unwrap_err()), "around it");
        assert!(lender.is_even());
    });
}

#[test]
fn both_halves_of_a_join_panic_and_their_captures_too() {
    on_workers(|| {
        for round in 0..100 {
            let lender = Lender::new();
            let first = (lender.lend(), Panics(()));
            let second = (lender.lend(), Panics(()));
            let result = caught(|| {
                join(
                    move || {
                        let _first = first;
                        (0..round % 4).for_each(|_| fibra::yield_now());
                        unwind("the first")
                    },
                    move || {
                        let _second = second;
                        (0..round % 3).for_each(|_| fibra::yield_now());
                        unwind("the second")
                    },
                )
            });
            assert_eq!(text_of(result.map(|((), ())| ()).unwrap_err()), "the first");
            assert!(lender.is_even());
        }
    });
}

#[test]
fn items_of_a_loop_may_be_leaked_and_may_panic_when_dropped() {
    on_workers(|| {
        let lender = Lender::new();
        let leaked = AtomicUsize::new(0);
        parallel_for_each((0..200).map(|_| lender.lend()), |loan| {
            loan.touch();
            if leaked.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
                mem::forget(loan);
            }
        });
        assert_eq!(lender.lent.load(Ordering::SeqCst), lender.returned.load(Ordering::SeqCst) + 100);
        let items = (0..200).map(|_| (lender.lend(), Panics(())));
        assert!(caught(|| parallel_for_each(items, |_item| fibra::yield_now())).is_err());
        assert_eq!(lender.lent.load(Ordering::SeqCst), lender.returned.load(Ordering::SeqCst) + 100);
        let owned = Panics(lender.lend());
        let looks = |_: usize| {
            owned.0.touch();
            fibra::yield_now();
        };
        parallel_for(0..200, looks);
        assert!(caught(|| drop(owned)).is_err());
    });
}

#[test]
fn the_loser_of_a_race_leaves_nothing_that_dangles() {
    on_workers(|| {
        for round in 0..50_u32 {
            let lender = Lender::new();
            let run = |value: &'static str| {
                let (kept, leaked) = (lender.lend(), lender.lend());
                let lender = &lender;
                move || {
                    mem::forget(leaked);
                    let kept = kept;
                    (0..round % 5).for_each(|_| fibra::yield_now());
                    if round % 3 == 0 {
                        unwind(value);
                    }
                    // Before the value is made: the compiler leaks a value when a local that is dropped after it unwinds.
                    drop(kept);
                    Panics(lender.lend())
                }
            };
            // The winner's value may panic as any does, the loser's while the race ends.
            unwind_quietly(|| drop(race(run("the first"), run("the second"))));
            assert!(lender.lent.load(Ordering::SeqCst) <= lender.returned.load(Ordering::SeqCst) + 2);
        }
    });
}

#[test]
fn a_group_may_be_forgotten_leaked_and_owned_by_its_own_members() {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        let alive = Arc::new(());
        let runtime = runtime(workers);
        runtime.run(|| {
            struct Member(#[expect(dead_code, reason = "it is kept")] Arc<TaskGroup<Member>>);
            let group = Arc::new(TaskGroup::new());
            for number in 0..6 {
                let (own, alive) = (Arc::clone(&group), Arc::clone(&alive));
                group.spawn(move || {
                    match number {
                        0 => fibra::sleep(LONG),
                        1 => own.cancel_all(),
                        2 => unwind("a member"),
                        _ => {}
                    }
                    // In the result: a circle that only the last join opens.
                    drop(alive);
                    Member(own)
                });
            }
            drop(group);
            let forgotten = TaskGroup::new();
            (0..3).for_each(|_| _ = forgotten.spawn(|| fibra::sleep(LONG)));
            mem::forget(forgotten);
            let dropped = TaskGroup::new();
            (0..3).for_each(|_| _ = dropped.spawn(|| Panics(())));
            fibra::yield_now();
            drop(dropped);
            let within = Arc::new(Mutex::new(Some(TaskGroup::new())));
            let own = Arc::clone(&within);
            let member = within.lock().unwrap().as_ref().unwrap().spawn(move || {
                drop(own.lock().unwrap().take());
                fibra::sleep(LONG);
            });
            while !member.is_finished() {
                fibra::yield_now();
            }
        });
        runtime.shutdown();
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}

#[test]
fn a_handle_may_be_forgotten_or_be_its_task_s_own_result() {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        runtime.run(|| {
            mem::forget(fibra::spawn(|| fibra::sleep(LONG)));
            mem::forget(fibra::spawn(|| Panics(())));
            mem::forget(fibra::spawn_local(|| unwind("locally")));
            struct Own(#[expect(dead_code, reason = "it is kept")] JoinHandle<Option<Own>>);
            let place = Arc::new(Mutex::new(None));
            let takes = Arc::clone(&place);
            let circle = fibra::spawn(move || {
                task::park();
                takes.lock().unwrap().take().map(Own)
            });
            let wakes = circle.task().clone();
            *place.lock().unwrap() = Some(circle);
            wakes.unpark();
            while !wakes.is_finished() {
                fibra::yield_now();
            }
        });
        runtime.shutdown();
    }
}

#[test]
fn a_token_outlives_nothing_that_it_would_touch() {
    on_workers(|| {
        let token = CancelToken::new();
        let panicked = caught(|| token.scope(|| -> () { unwind("in its scope") }));
        assert_eq!(text_of(panicked.unwrap_err()), "in its scope");
        let ended = timeout(SHORT, || _ = token.scope(|| fibra::sleep(LONG)));
        assert!(ended.is_err());
        let task = token.clone();
        let cancelled = fibra::spawn(move || task.scope(|| fibra::sleep(LONG)).is_err());
        fibra::yield_now();
        cancelled.cancel();
        assert!(cancelled.join().unwrap_err().is_cancelled());
        // All of those frames are gone.
        token.cancel();
        fibra::yield_now();
        mem::forget(token.child_token().drop_guard());
        let last = CancelToken::new();
        let inner = last.clone();
        let ended = last.scope(move || {
            let guard = inner.child_token().drop_guard();
            inner.cancel();
            drop(inner);
            mem::forget(guard);
            fibra::yield_now();
        });
        assert!(ended.is_err());
    });
}

#[test]
fn a_token_fired_by_a_destructor_of_its_own_scope_ends_nothing_else() {
    struct Fires<'a>(&'a CancelToken);
    impl Drop for Fires<'_> {
        fn drop(&mut self) {
            self.0.cancel();
            fibra::yield_now();
        }
    }
    on_workers(|| {
        let token = CancelToken::new();
        let panicked = caught(|| {
            token.scope(|| {
                let _fires = Fires(&token);
                unwind("before it was fired")
            })
        });
        assert_eq!(text_of(panicked.map(|ended| ended.unwrap_or(())).unwrap_err()), "before it was fired");
        assert!(!task::is_cancelled());
        fibra::yield_now();
    });
}

#[test]
fn panics_leave_no_deadline_and_no_shield_behind() {
    on_workers(|| {
        for _ in 0..10 {
            let panicked = caught(|| {
                timeout(SHORT, || {
                    task::shield(|| {
                        _ = timeout(LONG, || {
                            let _sleeps = Panics(());
                            fibra::sleep(SHORT * 2);
                        });
                    });
                })
            });
            assert_eq!(text_of(panicked.unwrap_err()), "in a destructor");
            assert!(!task::is_cancelled());
            fibra::sleep(SHORT);
        }
        let late = timeout(SHORT, || {
            unwind_quietly(|| task::shield(|| unwind("shielded")));
            fibra::sleep(LONG);
        });
        assert!(late.is_err(), "no shield is left");
    });
}

#[test]
fn values_that_panic_come_out_of_a_deadline_once() {
    on_workers(|| {
        let lender = Lender::new();
        let value = timeout(LONG, || Panics(lender.lend())).unwrap();
        assert!(caught(|| drop(value)).is_err());
        let late = timeout(SHORT, || {
            let _outer = lender.lend();
            // Caught, so that what comes next meets the deadline again.
            unwind_quietly(|| {
                let _inner = (lender.lend(), Panics(()));
                fibra::sleep(LONG);
            });
            unwind_quietly(|| drop(Panics(lender.lend())));
            fibra::sleep(LONG);
        });
        assert!(late.is_err());
        assert!(lender.is_even());
    });
}

#[test]
fn a_big_stack_is_given_back_whatever_unwinds_through_it() {
    let _guard = hang_guard();
    const BIG: usize = 512 << 10;
    // The task's own, and one more.
    let runtime = fibra::Runtime::builder().workers(1).max_stacks(4).build().unwrap();
    runtime.run(|| {
        for round in 0..50 {
            let lender = Lender::new();
            let result = timeout(SHORT / 4, || {
                caught(|| {
                    task::on_big_stack(BIG, || {
                        let _loan = lender.lend();
                        mem::forget(lender.lend());
                        task::on_big_stack(BIG, || match round % 3 {
                            0 => unwind("the inner one"),
                            1 => drop(Panics(lender.lend())),
                            _ => fibra::sleep(LONG),
                        });
                    })
                })
            });
            assert!(result.is_ok_and(|result| result.is_err()));
            assert_eq!(lender.lent.load(Ordering::SeqCst), lender.returned.load(Ordering::SeqCst) + 1);
        }
        fibra::spawn(|| ()).join().unwrap();
    });
}

thread_local! {
    static KEPT: RefCell<Vec<task::ForbidSuspend>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn a_forgotten_guard_forbids_its_task_alone() {
    on_workers(|| {
        let forbidden = fibra::spawn(|| {
            mem::forget(task::forbid_suspend());
            assert!(caught(fibra::yield_now).is_err());
            assert!(caught(|| fibra::sleep(SHORT)).is_err());
            let parked = fibra::spawn(task::park);
            let detached = parked.task().clone();
            assert!(caught(|| parked.join()).is_err());
            detached.cancel();
            assert!(caught(|| fibra::unblock(|| ())).is_err());
            assert!(caught(|| fibra::scope(|s| _ = s.spawn(|| unreachable!("not made")))).is_err());
            assert!(caught(|| race(|| (), || ())).is_err());
            // What need not wait goes on.
            assert_eq!(join(|| 1, || 2), (1, 2));
            parallel_for(0..100, |_| thread::sleep(Duration::from_micros(10)));
            assert_eq!(timeout(LONG, || 3), Ok(3));
            assert_eq!(task::on_big_stack(512 << 10, || 4), 4);
            fibra::scope(|_| ());
        });
        fibra::yield_now();
        forbidden.join().unwrap();
    });
}

#[test]
fn a_guard_may_outlive_its_task_in_a_thread_local() {
    on_workers(|| {
        fibra::spawn(|| KEPT.with_borrow_mut(|kept| kept.push(task::forbid_suspend()))).join().unwrap();
        fibra::spawn_local(|| KEPT.with_borrow_mut(|kept| kept.push(task::forbid_suspend()))).join().unwrap();
        fibra::yield_now();
        // Those of this worker; the others' are dropped with their threads.
        KEPT.with_borrow_mut(Vec::clear);
        fibra::yield_now();
    });
}

#[test]
fn a_scope_that_is_forbidden_to_wait_for_its_tasks_ends_the_process() {
    if is_child() {
        return runtime(1).run(|| {
            let text = String::from("borrowed");
            fibra::scope(|s| {
                s.spawn(|| println!("{text}"));
                mem::forget(task::forbid_suspend());
            });
        });
    }
    let _guard = hang_guard();
    let output = rerun("forgotten::a_scope_that_is_forbidden_to_wait_for_its_tasks_ends_the_process");
    let text = errors(&output);
    assert!(!output.status.success());
    assert!(text.contains("`forbid_suspend` forbids it") && text.contains("the tasks of a scope"), "{text}");
}

fibra::task_local! {
    static OWN: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn task_locals_may_be_forgotten_hold_their_own_task_and_panic() {
    on_workers(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        for round in 0..20 {
            let counts = Arc::clone(&dropped);
            let task = fibra::spawn(move || {
                struct Counts(Arc<AtomicUsize>);
                impl Drop for Counts {
                    fn drop(&mut self) {
                        fibra::scope(|s| _ = s.spawn(|| self.0.fetch_add(1, Ordering::SeqCst)));
                        unwind_quietly(|| unwind("in the destructor of a value"));
                    }
                }
                let values: [Box<dyn Any>; 3] =
                    [Box::new(task::current()), Box::new(Counts(counts)), Box::new(Panics(()))];
                OWN.with_borrow_mut(|own| own.extend(values));
                match round % 4 {
                    0 => unwind("a task with values"),
                    1 => OWN.with_borrow(|_| unwind("a task that borrows its value")),
                    2 => {
                        task::current().cancel();
                        fibra::yield_now();
                    }
                    _ => OWN.with_borrow_mut(|own| mem::forget(mem::take(own))),
                }
            });
            assert_eq!(task.join().is_err(), round % 4 != 3);
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 15);
    });
}
