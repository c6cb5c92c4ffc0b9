//! Promises of the hooks around a task's switches.

use std::cell::Cell;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::rerun::{errors, is_child, rerun};
use crate::rest::until_others_sleep;
use fibra_runtime::{self as fibra, task, task_local};
use task::Switch;

const WORKERS: [usize; 3] = [1, 2, 4];

thread_local! {
    /// As a scoped thread-local or an entered span: it belongs to the running task.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

/// Keeps `INSIDE` at `mine` while its task runs.
fn keeps(mine: u64) -> impl FnMut(Switch) + Send {
    let mut other = mine;
    move |_| other = INSIDE.replace(other)
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Switch>>>);

impl Log {
    fn hook(&self) -> impl FnMut(Switch) + Send + use<> {
        let log = self.clone();
        move |switch| log.0.lock().unwrap().push(switch)
    }

    fn taken(&self) -> Vec<Switch> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn builder(log: &Log) -> task::Builder {
    task::Builder::new().on_switch(log.hook())
}

#[test]
fn a_scoped_thread_local_is_kept_right_between_interleaving_tasks() {
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            let tasks: Vec<_> = (1..=100)
                .map(|number| {
                    task::Builder::new().on_switch(keeps(number)).spawn(move || {
                        for step in 0..20 {
                            assert_eq!(INSIDE.get(), number);
                            match (number + step) % 3 {
                                0 => fibra::yield_now(),
                                1 => fibra::sleep(Duration::from_micros(10)),
                                _ => task::on_big_stack(1 << 18, fibra::yield_now),
                            }
                        }
                        assert_eq!(INSIDE.get(), number);
                    })
                })
                .collect();
            let bare: Vec<_> = (0..100)
                .map(|_| {
                    fibra::spawn(|| {
                        for _ in 0..20 {
                            assert_eq!(INSIDE.get(), 0);
                            fibra::yield_now();
                        }
                    })
                })
                .collect();
            tasks.into_iter().chain(bare).for_each(|task| task.join().unwrap());
            assert_eq!(INSIDE.get(), 0);
        });
    }
}

#[test]
fn calls_alternate_from_the_first_entry_to_the_end() {
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            let log = Log::default();
            builder(&log).spawn(|| ()).join().unwrap();
            assert_eq!(log.taken(), [Switch::In, Switch::Out]);
            builder(&log).spawn(fibra::yield_now).join().unwrap();
            assert_eq!(log.taken(), [Switch::In, Switch::Out, Switch::In, Switch::Out]);
            builder(&log).spawn(|| task::on_big_stack(1 << 18, fibra::yield_now)).join().unwrap();
            assert_eq!(log.taken(), [Switch::In, Switch::Out, Switch::In, Switch::Out]);
            let panics = builder(&log).spawn(|| panic::resume_unwind(Box::new(())));
            assert!(panics.join().unwrap_err().is_panic());
            assert_eq!(log.taken(), [Switch::In, Switch::Out]);
            builder(&log).spawn_blocking(|| ()).join().unwrap();
            assert_eq!(log.taken(), [Switch::In, Switch::Out]);
            fibra::scope(|s| s.spawn_as(builder(&log), || ()).join().unwrap());
            assert_eq!(log.taken(), [Switch::In, Switch::Out]);
        });
    }
}

#[test]
fn destructors_run_between_in_and_out() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    struct Looks;
    impl Drop for Looks {
        fn drop(&mut self) {
            assert_eq!(INSIDE.get(), 7);
            fibra::yield_now();
            assert_eq!(INSIDE.get(), 7);
            SEEN.fetch_add(1, Ordering::SeqCst);
        }
    }
    task_local! { static LOOKS: Looks = Looks }
    let _guard = hang_guard();
    for workers in WORKERS {
        SEEN.store(0, Ordering::SeqCst);
        runtime(workers).run(|| {
            for _ in 0..100 {
                // An unclaimed result and a task-local, then captures of one that is cancelled before it has run.
                let body = || {
                    task::park();
                    LOOKS.with(|_| ());
                    Looks
                };
                let handle = task::Builder::new().on_switch(keeps(7)).spawn(body);
                let unclaimed = handle.task().clone();
                drop(handle);
                unclaimed.unpark();
                let captured = Looks;
                let unrun = task::Builder::new().on_switch(keeps(7)).spawn_local(move || drop(captured));
                unrun.cancel();
                assert!(unrun.join().unwrap_err().is_cancelled());
            }
            while SEEN.load(Ordering::SeqCst) < 300 {
                fibra::sleep(Duration::from_millis(1));
            }
        });
    }
}

#[test]
fn a_hook_is_dropped_with_its_task() {
    let _guard = hang_guard();
    for workers in WORKERS {
        let log = Log::default();
        runtime(workers).run(|| {
            let kept: Vec<_> = (0..20).map(|_| builder(&log).spawn(|| ())).collect();
            let tasks: Vec<_> = kept.iter().map(|handle| handle.task().clone()).collect();
            kept.into_iter().for_each(|handle| handle.join().unwrap());
            while Arc::strong_count(&log.0) > 1 {
                fibra::yield_now();
            }
            drop(tasks);
            drop(builder(&log));
            let ended = runtime(1).handle();
            assert!(builder(&log).spawn_on(&ended, || ()).join().unwrap_err().is_cancelled());
            assert_eq!(Arc::strong_count(&log.0), 1);
        });
        assert_eq!(log.taken().len(), 40);
    }
}

#[test]
fn a_task_that_unwinds_and_suspends_is_followed() {
    struct Yields(u64);
    impl Drop for Yields {
        fn drop(&mut self) {
            assert!(thread::panicking());
            fibra::yield_now();
            assert!(thread::panicking());
            assert_eq!(INSIDE.get(), self.0);
        }
    }
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers).run(|| {
            let tasks: Vec<_> = (1..50)
                .map(|number| {
                    task::Builder::new().on_switch(keeps(number)).spawn(move || {
                        let _yields = Yields(number);
                        fibra::sleep(Duration::MAX);
                    })
                })
                .collect();
            until_others_sleep();
            tasks.iter().for_each(|task| task.cancel());
            tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
        });
    }
}

#[test]
fn a_cancel_is_not_raised_in_a_hook() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let hook = |_: Switch| {
            assert!(!task::is_cancelled());
            task::check_cancelled();
        };
        let task = task::Builder::new().on_switch(hook).spawn(|| fibra::sleep(Duration::MAX));
        fibra::yield_now();
        task.cancel();
        assert!(task.join().unwrap_err().is_cancelled());
    });
}

fn dies_by(hook: fn(), at: Switch, test: &str, says: &str) {
    if is_child() {
        return runtime(1).run(|| {
            let call = move |switch| {
                if switch == at {
                    hook();
                }
            };
            drop(task::Builder::new().name("hooked").on_switch(call).spawn(fibra::yield_now).join());
            println!("went on");
        });
    }
    let _guard = hang_guard();
    let output = rerun(test);
    let text = errors(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains(says), "{text}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("went on"));
}

const PANICKED: &str = "the hook around the switches of a task has panicked";
const FORBIDS: &str = "a hook has to drop what forbids a suspension";

#[test]
fn a_hook_that_panics_ends_the_process_and_says_so() {
    dies_by(
        || panic!("in the hook"),
        Switch::Out,
        "switch_hooks::a_hook_that_panics_ends_the_process_and_says_so",
        PANICKED,
    );
}

#[test]
fn a_hook_that_suspends_ends_the_process_and_says_so() {
    dies_by(
        fibra::yield_now,
        Switch::Out,
        "switch_hooks::a_hook_that_suspends_ends_the_process_and_says_so",
        PANICKED,
    );
}

/// Else a wait for a condition would unwind out of the lock that it is to take again, with a guard that stands for it.
#[test]
fn a_hook_that_goes_on_forbidding_suspensions_ends_the_process_and_says_so() {
    let test = "switch_hooks::a_hook_that_goes_on_forbidding_suspensions_ends_the_process_and_says_so";
    dies_by(|| std::mem::forget(task::forbid_suspend()), Switch::In, test, FORBIDS);
}

#[test]
fn a_hook_that_forbids_what_follows_a_sleep_ends_the_process_and_says_so() {
    let test = "switch_hooks::a_hook_that_forbids_what_follows_a_sleep_ends_the_process_and_says_so";
    dies_by(|| std::mem::forget(task::forbid_suspend()), Switch::Out, test, FORBIDS);
}

#[test]
fn a_hook_may_forbid_suspensions_while_it_runs() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let hook = |_: Switch| drop(task::forbid_suspend());
        let forbidding = task::Builder::new().on_switch(hook).spawn(|| {
            fibra::yield_now();
            std::mem::forget(task::forbid_suspend());
        });
        forbidding.join().unwrap();
    });
}

/// A value that only a hook makes; where it was dropped is noted.
struct Entered;

static DROPPED_ON: Mutex<Vec<thread::ThreadId>> = Mutex::new(Vec::new());

impl Drop for Entered {
    fn drop(&mut self) {
        DROPPED_ON.lock().unwrap().push(thread::current().id());
    }
}

#[test]
fn value_entered_by_a_hook_at_the_last_switch_goes_with_the_task() {
    task_local! { static ENTERED: Entered = Entered }
    let _guard = hang_guard();
    let (task, worker) = runtime(1).run(|| {
        let enters = |switch| {
            if switch == Switch::Out {
                ENTERED.with(|_| ());
            }
        };
        let handle = task::Builder::new().on_switch(enters).spawn(|| ());
        let task = handle.task().clone();
        handle.join().unwrap();
        (task, thread::current().id())
    });
    assert_eq!(*DROPPED_ON.lock().unwrap(), [worker], "before the join");
    drop(task);
    assert_eq!(DROPPED_ON.lock().unwrap().len(), 1);
}
