//! Storms: thousands of tasks unwind at once, by cancellations and by panics of their own, many of them asleep in their
//! destructors, while innocent tasks beside them switch. No innocent ever notices: none sees a panic that is not its own,
//! no mutex of its is poisoned. Every destructor runs once, and sees the panic that runs it.

mod common;
#[expect(dead_code, reason = "also for tests that end runtimes in other ways")]
#[path = "common/ledger.rs"]
mod ledger;
#[path = "common/rerun.rs"]
mod rerun;
#[expect(dead_code, reason = "also for tests that look at it from outside")]
#[path = "common/tokens.rs"]
mod tokens;
#[path = "common/weather.rs"]
mod weather;

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{hang_guard, runtime};
use fibra_runtime::structured::Either;
use fibra_runtime::{self as fibra, CancelToken, JoinError, JoinHandle, TaskGroup, task, timeout};
use rerun::{errors, is_child, rerun};
use weather::{LONG, Unwinds, Weather, brief, in_weather};

/// Tasks of a storm where each has a task to itself.
const MANY: usize = 2000;

/// Rounds of a storm where each has a handful of tasks.
const ROUNDS: usize = 300;

/// Spawns a task that may be stolen before its start, or, every third, at each switch.
fn spawn_any<T: Send + 'static>(number: usize, f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match number % 3 {
        0 => fibra::spawn(f),
        1 => task::Builder::new().name("stays").spawn(f),
        // SAFETY: what the storms' tasks keep over a switch is tied to no thread.
        _ => unsafe { task::Builder::new().migratable() }.spawn(f),
    }
}

/// Runs `round` in `ROUNDS` tasks, and checks what became of each.
fn rounds<T: Send + 'static>(
    weather: &Arc<Weather>,
    round: fn(&Arc<Weather>, usize) -> T,
    check: impl Fn(usize, Result<T, JoinError>),
) {
    let spawn = |number| {
        let weather = Arc::clone(weather);
        spawn_any(number, move || round(&weather, number))
    };
    let tasks: Vec<_> = (0..ROUNDS).map(spawn).collect();
    tasks.into_iter().enumerate().for_each(|(number, task)| check(number, task.join()));
}

/// Ends by nothing but an unwinding, with a destructor that waits.
fn sleep_and_unwind(unwinds: Unwinds) {
    unwinds.enter();
    fibra::sleep(LONG);
}

#[test]
fn tasks_that_unwind_and_wait_meanwhile_lose_nothing() {
    let _guard = hang_guard();
    in_weather(|weather| {
        let spawn = |number: usize| {
            let (outer, inner) = (weather.unwinds(number), weather.unwinds(number / 7));
            let weather = Arc::clone(weather);
            spawn_any(number, move || {
                outer.enter();
                let _outer = outer;
                match number % 4 {
                    0 => task::current().cancel(),
                    1 => weather.panic(),
                    2 => resume_unwind(Box::new("without a message")),
                    _ => {}
                }
                sleep_and_unwind(inner);
            })
        };
        let tasks: Vec<_> = (0..MANY).map(spawn).collect();
        // By now some have begun, and some have not.
        fibra::yield_now();
        tasks.iter().skip(3).step_by(4).for_each(JoinHandle::cancel);
        for (number, task) in tasks.into_iter().enumerate() {
            let error = task.join().unwrap_err();
            assert_eq!(error.is_panic(), matches!(number % 4, 1 | 2), "{number}: {error}");
        }
    });
}

/// Looks at the end of a scope whether all borrowers of this have ended.
struct Borrowed<'a> {
    weather: &'a Weather,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl<'a> Borrowed<'a> {
    fn new(weather: &'a Weather) -> Self {
        Borrowed { weather, begun: AtomicUsize::new(0), ended: AtomicUsize::new(0) }
    }

    fn lend(&self) -> Loan<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Loan(self)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if *self.begun.get_mut() != *self.ended.get_mut() {
            self.weather.ledger.wrong(format!("{:?} have begun, {:?} have ended", self.begun, self.ended));
        }
    }
}

struct Loan<'a>(&'a Borrowed<'a>);

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        fibra::yield_now();
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

fn scope_round(weather: &Arc<Weather>, number: usize) {
    let borrowed = Borrowed::new(weather);
    let children = || {
        fibra::scope(|s| {
            for child in 0..4 {
                let (loan, unwinds) = (borrowed.lend(), weather.unwinds(number + child));
                s.spawn(move || {
                    let _loan = loan;
                    if child == 0 && number % 4 == 1 {
                        unwinds.enter();
                        let _unwinds = unwinds;
                        weather.panic();
                    }
                    if number % 4 == 1 {
                        task::current().cancel();
                    }
                    sleep_and_unwind(unwinds);
                });
            }
            match number % 4 {
                0 => task::current().cancel(),
                3 => weather.panic(),
                _ => {}
            }
        });
    };
    match number % 4 {
        1 => {
            weather.expect_panic();
            children();
        }
        // Deadlines hit while children run, and while they unwind.
        2 => {
            let ended = timeout(brief(number), || timeout(brief(number / 4), children));
            assert!(!matches!(ended, Ok(Ok(()))), "nothing but a deadline ends the children");
        }
        3 => {
            let parent = task::current();
            let canceller = fibra::spawn(move || {
                fibra::sleep(brief(number));
                parent.cancel();
            });
            let unwound = catch_unwind(AssertUnwindSafe(children));
            task::shield(|| canceller.join().unwrap());
            resume_unwind(unwound.unwrap_err());
        }
        _ => children(),
    }
}

#[test]
fn scopes_that_end_early_lose_nothing() {
    let _guard = hang_guard();
    in_weather(|weather| {
        rounds(weather, scope_round, |number, result| match number % 4 {
            0 => assert!(result.unwrap_err().is_cancelled()),
            2 => result.unwrap(),
            _ => assert!(result.unwrap_err().is_panic()),
        });
    });
}

fn group_round(weather: &Arc<Weather>, number: usize) {
    let group = TaskGroup::with_limit(4);
    let spawn = |member: usize| {
        let unwinds = weather.unwinds(number + member);
        let weather = Arc::clone(weather);
        group.spawn(move || -> Result<(), ()> {
            match (number % 4, member) {
                (2, 1) => {
                    unwinds.enter();
                    let _unwinds = unwinds;
                    weather.panic();
                }
                (0, _) => task::current().cancel(),
                _ => {}
            }
            sleep_and_unwind(unwinds);
            Ok(())
        });
    };
    match number % 4 {
        // Six are more than the limit: the later ones wait for the earlier to unwind.
        0 => (0..6).for_each(spawn),
        _ => (0..4).for_each(spawn),
    }
    match number % 4 {
        0 => assert!(
            group.join_all().into_iter().all(|result| result.is_err_and(|error| error.is_cancelled()))
        ),
        1 => {
            group.cancel_all();
            assert!(
                group
                    .into_results()
                    .into_iter()
                    .all(|result| result.is_err_and(|error| error.is_cancelled()))
            );
        }
        2 => assert!(group.try_join_all().is_err()),
        _ => {
            assert!(timeout(brief(number), || group.join_next()).is_err());
            // Cancels, and does not wait.
            drop(group);
        }
    }
}

#[test]
fn groups_that_end_early_lose_nothing() {
    let _guard = hang_guard();
    in_weather(|weather| rounds(weather, group_round, |_, result| result.unwrap()));
}

fn race_round(weather: &Arc<Weather>, number: usize) {
    let borrowed = Borrowed::new(weather);
    let loses = |place: usize| {
        let (loan, unwinds) = (borrowed.lend(), weather.unwinds(number + place));
        move || {
            let _loan = loan;
            sleep_and_unwind(unwinds);
        }
    };
    match number % 4 {
        0 => assert_eq!(fibra::race(loses(0), || fibra::sleep(brief(number))), Either::Right(())),
        1 => {
            let nested = || fibra::race(loses(0), loses(1));
            _ = timeout(brief(number), || fibra::race(nested, loses(2))).unwrap_err();
        }
        2 => {
            let panics = weather.unwinds(number);
            let panic = move || {
                panics.enter();
                let _panics = panics;
                fibra::sleep(brief(number));
                weather.panic()
            };
            let raced = catch_unwind(AssertUnwindSafe(|| fibra::race(loses(1), panic)));
            assert!(raced.is_err());
        }
        _ => {
            task::current().cancel();
            fibra::race(loses(0), loses(1));
        }
    }
}

#[test]
fn races_lose_nothing() {
    let _guard = hang_guard();
    in_weather(|weather| {
        rounds(weather, race_round, |number, result| match number % 4 {
            3 => assert!(result.unwrap_err().is_cancelled()),
            _ => result.unwrap(),
        });
    });
}

fn fork_round(weather: &Arc<Weather>, number: usize) {
    let borrowed = Borrowed::new(weather);
    let unwinds = |place: usize| {
        let (loan, unwinds) = (borrowed.lend(), weather.unwinds(number + place));
        move || {
            let _loan = loan;
            sleep_and_unwind(unwinds);
        }
    };
    let loops = || {
        fibra::parallel_for(0..40_usize, |n| match n % 4 {
            3 => unwinds(n)(),
            _ => fibra::yield_now(),
        });
    };
    match number % 4 {
        0 => _ = timeout(brief(number), || fibra::join(unwinds(0), unwinds(1))).unwrap_err(),
        1 => _ = timeout(brief(number), loops).unwrap_err(),
        2 => {
            let panic = || {
                fibra::sleep(brief(number));
                weather.panic();
            };
            assert!(
                catch_unwind(AssertUnwindSafe(|| fibra::join(panic, || fibra::sleep(brief(number)))))
                    .is_err()
            );
            let items = (0..10).map(|place| weather.unwinds(number + place));
            let loops = || {
                fibra::parallel_for_each(items, |item| {
                    fibra::yield_now();
                    if item.number == number + 7 {
                        item.enter();
                        weather.panic();
                    }
                });
            };
            assert!(catch_unwind(AssertUnwindSafe(loops)).is_err());
        }
        _ => {
            task::current().cancel();
            loops();
        }
    }
}

#[test]
fn joins_and_loops_that_end_early_lose_nothing() {
    let _guard = hang_guard();
    in_weather(|weather| {
        rounds(weather, fork_round, |number, result| match number % 4 {
            3 => assert!(result.unwrap_err().is_cancelled()),
            _ => result.unwrap(),
        });
    });
}

/// Deadlines and tokens, one in the other, are hit while what they enclose runs, and while it unwinds.
fn bound_round(weather: &Arc<Weather>, number: usize) {
    let token = CancelToken::new();
    let fires = token.clone();
    let firing = fibra::spawn(move || {
        fibra::sleep(brief(number / 3));
        fires.cancel();
    });
    let (outer, inner) = (weather.unwinds(number), weather.unwinds(number / 2));
    let bounded = || {
        let ended = timeout(brief(number), || {
            outer.enter();
            let _outer = outer;
            let child = token.child_token();
            _ = child.scope(|| timeout(brief(number / 2) * 2, || sleep_and_unwind(inner)));
            // A task inside has ended it; swallowed unwinding comes again.
            _ = catch_unwind(|| fibra::sleep(LONG));
            fibra::sleep(LONG);
        });
        assert!(ended.is_err());
    };
    match number % 3 {
        0 => {
            // The task's own cancellation goes through all.
            task::current().cancel();
            bounded();
        }
        1 => task::on_big_stack(512 << 10, bounded),
        _ => bounded(),
    }
    fibra::yield_now();
    firing.join().unwrap();
}

#[test]
fn nested_deadlines_and_tokens_lose_nothing() {
    let _guard = hang_guard();
    in_weather(|weather| {
        rounds(weather, bound_round, |number, result| match number % 3 {
            0 => assert!(result.unwrap_err().is_cancelled()),
            _ => result.unwrap(),
        });
    });
}

#[test]
fn one_token_that_ends_a_thousand_scopes_loses_nothing() {
    let _guard = hang_guard();
    in_weather(|weather| {
        let root = CancelToken::new();
        let spawn = |number: usize| {
            let (unwinds, token) = (weather.unwinds(number), root.child_token());
            spawn_any(number, move || {
                // Also counted where the token was fired before.
                assert!(token.scope(|| sleep_and_unwind(unwinds)).is_err());
                assert!(!task::is_cancelled());
                fibra::yield_now();
            })
        };
        let tasks: Vec<_> = (0..MANY / 2).map(spawn).collect();
        fibra::yield_now();
        root.cancel();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn a_runtime_that_ends_in_the_midst_runs_every_destructor() {
    let _guard = hang_guard();
    for workers in [1, 2, 4] {
        for round in 0..6 {
            let (weather, runtime) = Weather::over(workers);
            runtime.run(|| {
                let spawn = |number: usize| {
                    let (outer, inner) = (weather.unwinds(number), weather.unwinds(number + round));
                    let ends = Arc::clone(&weather);
                    drop(spawn_any(number, move || {
                        let _outer = outer;
                        match number % 3 {
                            0 => task::current().cancel(),
                            1 => ends.panic(),
                            _ => {}
                        }
                        sleep_and_unwind(inner);
                    }));
                };
                (0..MANY / 8).for_each(spawn);
                (0..round).for_each(|_| fibra::yield_now());
            });
            runtime.shutdown();
            weather.check();
        }
    }
}

/// Blocks of memory that are in use.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: all of it is the system's allocator; the counter is an atomic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A storm in which hundreds of tasks are asleep in their destructors at one time.
fn calm_and_count(workers: usize) -> usize {
    const TASKS: usize = 700;
    let runtime = runtime(workers);
    runtime.run(|| {
        let asleep = AtomicUsize::new(0);
        fibra::scope(|s| {
            for number in 0..TASKS {
                let asleep = &asleep;
                s.spawn(move || {
                    let _waits = Waits { asleep, until: TASKS };
                    if number % 2 == 0 {
                        task::current().cancel();
                    }
                    fibra::yield_now();
                    let unwound = catch_unwind(|| resume_unwind(Box::new(vec![number; 10])));
                    drop(unwound);
                    task::current().cancel();
                    fibra::sleep(LONG);
                });
            }
        });
    });
    runtime.shutdown();
    BLOCKS.load(Ordering::Relaxed)
}

struct Waits<'a> {
    asleep: &'a AtomicUsize,
    until: usize,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while self.asleep.load(Ordering::SeqCst) < self.until {
            fibra::sleep(brief(7));
        }
    }
}

#[test]
fn a_storm_gives_all_its_memory_back() {
    if is_child() {
        for workers in [1, 2, 4] {
            // What std keeps for the process, and what moves panics between threads, is made once.
            calm_and_count(workers);
            let before = calm_and_count(workers);
            let after = (0..2).map(|_| calm_and_count(workers)).min().unwrap();
            // The panics that are moved out of threads' counts are made sixteen at a time, and once more for each worker that
            // finds all of them in the hands of others.
            assert!(after <= before + 16 * workers, "{workers} workers: {after} blocks after {before}");
        }
        return;
    }
    let _guard = hang_guard();
    let output = rerun("a_storm_gives_all_its_memory_back");
    assert!(output.status.success(), "{}", errors(&output));
}
