//! What a process says on standard error, and what it costs while idle: each in a process of its own.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::rerun::{errors, is_child, rerun};
use crate::said::{block_until_said, rerun_until_it_says};
use fibra_runtime::wait::{self, Admit, Until, WaitDescription, WaitQueue};
use fibra_runtime::{self as fibra, Runtime, task};

#[test]
fn the_message_of_a_panic_names_the_task() {
    if is_child() {
        return runtime(1).run(|| {
            let task = task::Builder::new().name("unlucky").spawn(|| panic!("thirteen"));
            assert!(task.join().unwrap_err().is_panic());
        });
    }
    let _guard = hang_guard();
    let output = rerun("processes::the_message_of_a_panic_names_the_task");
    let text = errors(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("'unlucky'") && text.contains("thirteen") && text.contains("processes.rs"),
        "{text}"
    );
}

#[test]
fn a_cancellation_says_nothing() {
    if is_child() {
        return runtime(2).run(|| {
            let tasks: Vec<_> = (0..20).map(|_| fibra::spawn(|| fibra::sleep(Duration::MAX))).collect();
            fibra::sleep(Duration::from_millis(1));
            tasks.iter().for_each(|task| task.task().cancel());
            tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
            drop(fibra::spawn(|| fibra::sleep(Duration::MAX)));
        });
    }
    let _guard = hang_guard();
    let output = rerun("processes::a_cancellation_says_nothing");
    assert!(output.status.success());
    assert_eq!(errors(&output), "");
}

#[test]
fn a_task_that_swallows_its_cancellation_a_hundred_times_is_named() {
    if is_child() {
        return runtime(1).run(|| {
            let glutton = task::Builder::new().name("glutton").spawn(|| {
                (0..250).for_each(|_| assert!(panic::catch_unwind(|| fibra::sleep(Duration::MAX)).is_err()));
            });
            fibra::sleep(Duration::from_millis(1));
            glutton.task().cancel();
            glutton.join().unwrap();
        });
    }
    let _guard = hang_guard();
    let output = rerun("processes::a_task_that_swallows_its_cancellation_a_hundred_times_is_named");
    let text = errors(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(
        text.lines().filter(|line| line.contains("'glutton'") && line.contains("100")).count(),
        1,
        "{text}"
    );
}

#[test]
fn a_hook_of_the_users_own_may_wait_and_keeps_the_task_s_name() {
    if is_child() {
        let asked = Arc::new(AtomicUsize::new(0));
        let asking = Arc::clone(&asked);
        panic::set_hook(Box::new(move |_| {
            // Inside a hook a wait blocks the thread.
            fibra::sleep(Duration::from_millis(1));
            asking.fetch_add(1, Ordering::SeqCst);
        }));
        runtime(2).run(|| {
            let tasks: Vec<_> = (0..20).map(|_| fibra::spawn(|| panic!("heard by the hook"))).collect();
            tasks.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_panic()));
        });
        assert_eq!(asked.load(Ordering::SeqCst), 20);
        return;
    }
    let _guard = hang_guard();
    let output = rerun("processes::a_hook_of_the_users_own_may_wait_and_keeps_the_task_s_name");
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn a_shutdown_that_takes_long_names_the_tasks_left() {
    if is_child() {
        static ENDING: AtomicBool = AtomicBool::new(false);
        static STARTED: AtomicBool = AtomicBool::new(false);
        let runtime = runtime(2);
        runtime.run(|| {
            drop(task::Builder::new().name("dawdler").spawn(|| {
                STARTED.store(true, Ordering::SeqCst);
                task::shield(|| {
                    while !ENDING.load(Ordering::SeqCst) {
                        fibra::yield_now();
                    }
                });
                block_until_said();
            }));
            while !STARTED.load(Ordering::SeqCst) {
                fibra::yield_now();
            }
        });
        ENDING.store(true, Ordering::SeqCst);
        return drop(runtime);
    }
    let _guard = hang_guard();
    let test = "processes::a_shutdown_that_takes_long_names_the_tasks_left";
    let (status, text) = rerun_until_it_says(test, "'dawdler'", 1);
    assert!(status.success(), "{text}");
    assert_eq!(text.matches("'dawdler'").count(), 1, "{text}");
}

/// Holds up the end until that is told.
struct Dawdles;

static SAID: AtomicBool = AtomicBool::new(false);

impl Drop for Dawdles {
    fn drop(&mut self) {
        task::shield(|| {
            while !SAID.load(Ordering::SeqCst) {
                fibra::sleep(Duration::from_millis(5));
            }
        });
    }
}

fibra::task_local! { static DAWDLES: Dawdles = Dawdles; }

#[test]
fn a_run_that_takes_long_to_end_says_so_also_where_no_task_has_begun_but_its_first() {
    let scenes: [fn(); 3] = [
        || {
            let dawdles = Dawdles;
            drop(task::Builder::new().name("unstarted").spawn(move || drop(dawdles)));
        },
        || {
            let dawdles = Dawdles;
            drop(fibra::spawn_blocking(move || drop(dawdles)));
        },
        || DAWDLES.with(|_| ()),
    ];
    if is_child() {
        return thread::scope(|s| {
            for scene in scenes {
                s.spawn(move || Runtime::builder().workers(1).run(scene).unwrap());
            }
            block_until_said();
            SAID.store(true, Ordering::SeqCst);
        });
    }
    let _guard = hang_guard();
    let test = "processes::a_run_that_takes_long_to_end_says_so_also_where_no_task_has_begun_but_its_first";
    let (status, text) = rerun_until_it_says(test, "still waits for", scenes.len());
    assert!(status.success(), "{text}");
    assert_eq!(text.matches("still waits for").count(), scenes.len(), "{text}");
    assert!(text.contains("'unstarted'") && text.contains("'main'"), "{text}");
}

fn processor_time() -> Duration {
    // SAFETY: all zeros is a valid `rusage`, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0);
        usage
    };
    let of = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    of(usage.ru_utime) + of(usage.ru_stime)
}

/// What this process uses in a second in which it has nothing to do.
fn used_in_an_idle_second() -> Duration {
    let before = processor_time();
    thread::sleep(Duration::from_secs(1));
    let used = processor_time() - before;
    println!("used {used:?} in an idle second");
    used
}

#[test]
fn an_idle_runtime_uses_no_processor_time() {
    if is_child() {
        // Not around the parent, which waits for the child: what the child printed would be lost.
        let _guard = hang_guard();
        let runtime = Runtime::builder().workers(4).build().unwrap();
        let tasks: Vec<_> = (0..100).map(|_| runtime.spawn(task::park)).collect();
        runtime.run(|| {
            fibra::unblock(|| ());
            (0..100).map(|_| fibra::spawn(|| ())).for_each(|task| task.join().unwrap());
        });
        // Where the machine is busy its threads may still be on their way to sleep, and where it stands still while one of them runs
        // that counts as used: the next second tells. Beside something that never sleeps there is no such second.
        while used_in_an_idle_second() >= Duration::from_millis(20) {}
        tasks.iter().for_each(|task| task.task().unpark());
        return;
    }
    let output = rerun("processes::an_idle_runtime_uses_no_processor_time");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn on_a_thread_that_serves_others_waits_panic_and_the_first_contended_lock_is_reported() {
    if is_child() {
        wait::forbid_thread_waits("this test");
        for _ in 0..2 {
            let lock = WaitQueue::<bool, ()>::new(false);
            thread::scope(|threads| {
                threads.spawn(|| {
                    thread::sleep(Duration::from_millis(5));
                    lock.with(|open, waiters| {
                        *open = true;
                        waiters.serve_all(0)
                    })
                });
                let admit = |open: &bool| if *open { Admit::Done(()) } else { Admit::Back };
                let until = Until::shielded(None).described(const { &WaitDescription::new("test lock") });
                lock.wait(0, (), until, |open, (), _| admit(open), || (), |_, (), _, _| ());
            });
        }
        let refused = panic::catch_unwind(|| fibra::sleep(Duration::ZERO)).unwrap_err();
        let text = refused.downcast_ref::<String>().unwrap();
        return assert!(text.contains("`sleep`") && text.contains("the only thread of this test"), "{text}");
    }
    let _guard = hang_guard();
    let test = "on_a_thread_that_serves_others_waits_panic_and_the_first_contended_lock_is_reported";
    let output = rerun(&format!("processes::{test}"));
    let text = errors(&output);
    assert!(output.status.success(), "{text}");
    let said = "fibra: a contended test lock at 0x";
    assert_eq!(text.lines().filter(|line| line.starts_with(said)).count(), 1, "{text}");
}
