//! Promises of `JoinHandle`, `JoinError` and `Task`.

use std::error::Error;
use std::io;
use std::panic::{self, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::message::message;
use fibra_runtime::{self as fibra, JoinError, JoinHandle, Runtime, Task, task};

const LONG: Duration = Duration::from_secs(3600);

#[expect(dead_code, reason = "checked by the compiler only")]
fn bounds_of_the_types() {
    fn all<T: Send + Sync + 'static>() {}
    fn sendable<T: Send>() {}
    all::<Task>();
    all::<JoinError>();
    all::<JoinHandle<u8>>();
    all::<JoinHandle<std::cell::Cell<u8>>>();
    all::<fibra::Handle>();
    all::<Runtime>();
    sendable::<task::Builder>();
    fn error<T: Error>() {}
    error::<JoinError>();
    fn across_a_panic<T: UnwindSafe + RefUnwindSafe>() {}
    across_a_panic::<Task>();
    across_a_panic::<JoinHandle<u8>>();
    across_a_panic::<fibra::Handle>();
    across_a_panic::<Runtime>();
    across_a_panic::<fibra::CancelToken>();
    across_a_panic::<&task::Scope<'static, 'static>>();
}

#[test]
fn a_thread_joins_a_task() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let slow = runtime.spawn(|| {
        fibra::sleep(Duration::from_millis(3));
        "slow"
    });
    assert_eq!(slow.join().unwrap(), "slow");
}

#[test]
fn a_finished_task_is_joined_at_once_by_any_caller() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let done = runtime.spawn(|| 7);
    while !done.is_finished() {
        thread::yield_now();
    }
    assert!(done.task().is_finished());
    assert_eq!(done.join_timeout(Duration::ZERO).unwrap().unwrap(), 7);
}

#[test]
fn join_timeout_gives_the_handle_back_and_the_task_goes_on() {
    let _guard = hang_guard();
    let check = || {
        let gate = Arc::new(AtomicBool::new(false));
        let open = Arc::clone(&gate);
        let rt = fibra::Handle::try_current();
        let wait = move || {
            while !open.load(Ordering::SeqCst) {
                fibra::sleep(Duration::from_micros(200));
            }
            5
        };
        let own = rt.is_none().then(|| runtime(1));
        let waiting = rt.unwrap_or_else(|| own.as_ref().unwrap().handle()).spawn(wait);
        let begin = Instant::now();
        let back = waiting.join_timeout(Duration::from_millis(2)).unwrap_err();
        assert!(begin.elapsed() >= Duration::from_millis(2));
        assert!(!back.is_finished());
        let again = back.join_timeout(Duration::ZERO).unwrap_err();
        gate.store(true, Ordering::SeqCst);
        assert_eq!(again.join_timeout(LONG).unwrap().unwrap(), 5);
    };
    check();
    runtime(1).run(check);
    runtime(2).run(check);
}

#[test]
fn join_timeout_of_more_than_the_clock_can_tell_is_a_join() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let task = fibra::spawn(|| fibra::sleep(Duration::from_millis(1)));
        task.join_timeout(Duration::MAX).unwrap().unwrap();
    });
}

#[test]
fn join_timeout_at_the_moment_of_the_end_has_one_result() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        for round in 0..2000_u64 {
            let task = fibra::spawn(move || {
                fibra::sleep(Duration::from_micros(round % 50));
                round
            });
            let value = match task.join_timeout(Duration::from_micros(25)) {
                Ok(value) => value,
                Err(handle) => handle.join(),
            };
            assert_eq!(value.unwrap(), round);
        }
    });
}

#[test]
fn a_task_that_joins_itself_panics() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (send, receive) = mpsc::channel::<JoinHandle<()>>();
        let own = fibra::spawn(move || {
            let me = receive.recv().unwrap();
            _ = me.join();
        });
        let id = own.task().clone();
        send.send(own).unwrap();
        while !id.is_finished() {
            fibra::yield_now();
        }
    });
}

type Body = Box<dyn FnOnce() + Send>;

/// Has a task join itself, and looks at its panic.
fn ouroboros(spawn: fn(task::Builder, Body) -> JoinHandle<()>, join: fn(JoinHandle<()>)) {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (send, receive) = mpsc::channel::<JoinHandle<()>>();
        let (told, text) = mpsc::channel();
        let body = move || {
            let me = receive.recv().unwrap();
            told.send(message(|| join(me))).unwrap();
        };
        let own = spawn(task::Builder::new().name("ouroboros"), Box::new(body));
        send.send(own).unwrap();
        fibra::yield_now();
        let text = fibra::unblock(move || text.recv().unwrap());
        assert!(text.contains("'ouroboros'") && text.contains("joins itself"), "{text}");
    });
}

#[test]
fn the_panic_of_joining_oneself_says_so() {
    ouroboros(task::Builder::spawn, |me| _ = me.join());
}

#[test]
fn a_task_of_the_pool_that_joins_itself_panics() {
    ouroboros(task::Builder::spawn_blocking, |me| _ = me.join());
}

#[test]
fn a_closure_on_the_pool_that_joins_the_task_which_sleeps_for_it_panics() {
    ouroboros(task::Builder::spawn, |me| fibra::unblock(|| _ = me.join()));
    // And where the calls nest.
    ouroboros(task::Builder::spawn, |me| fibra::unblock(|| fibra::unblock(|| _ = me.join())));
}

#[test]
fn dropping_the_handle_detaches_the_task_which_runs_on() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        drop(fibra::spawn(move || {
            fibra::sleep(Duration::from_millis(1));
            end.store(true, Ordering::SeqCst);
        }));
        while !ended.load(Ordering::SeqCst) {
            fibra::sleep(Duration::from_micros(100));
        }
    });
}

struct CountsDrops(Arc<AtomicUsize>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_result_of_a_task_is_dropped_once_by_its_runner_or_its_handle() {
    let _guard = hang_guard();
    let drops = Arc::new(AtomicUsize::new(0));
    const ROUNDS: usize = 3000;
    for workers in [1, 2] {
        runtime(workers).run(|| {
            for round in 0..ROUNDS {
                let result = CountsDrops(Arc::clone(&drops));
                let handle = fibra::spawn(move || result);
                match round % 4 {
                    0 => drop(handle),
                    1 => drop(handle.join()),
                    2 => {
                        fibra::yield_now();
                        drop(handle);
                    }
                    _ => {
                        (0..round % 100).for_each(|_| std::hint::spin_loop());
                        drop(handle);
                    }
                }
            }
        });
    }
    assert_eq!(drops.load(Ordering::SeqCst), 2 * ROUNDS);
}

#[test]
fn a_panic_comes_through_join_with_its_payload() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let error = fibra::spawn(|| panic::resume_unwind(Box::new(42_u32))).join().map(drop).unwrap_err();
        assert!(error.is_panic() && !error.is_cancelled() && !error.is_not_started());
        assert!(error.io_error().is_none() && error.source().is_none());
        assert_eq!(*error.into_panic().downcast::<u32>().unwrap(), 42);
    });
}

#[test]
fn the_error_of_a_panic_tells_task_and_message() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let named = task::Builder::new().name("baker").spawn(|| panic!("the {} burnt", "bread"));
        let id = named.task().id();
        let error = named.join().unwrap_err();
        assert_eq!(error.to_string(), format!("task 'baker' (id {id}) panicked: the bread burnt"));
        assert!(format!("{error:?}").contains("the bread burnt"));
        let silent = fibra::spawn(|| panic::resume_unwind(Box::new(()))).join().map(drop).unwrap_err();
        assert!(silent.to_string().ends_with("panicked"), "{silent}");
    });
}

#[test]
fn the_error_of_a_cancellation_says_so_and_has_no_payload() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let sleeper = task::Builder::new().name("sleeper").spawn(|| fibra::sleep(LONG));
        sleeper.task().cancel();
        let error = sleeper.join().unwrap_err();
        assert!(error.is_cancelled() && !error.is_panic() && !error.is_not_started());
        assert!(
            error.to_string().contains("'sleeper'") && error.to_string().ends_with("was cancelled"),
            "{error}"
        );
        let error = error.try_into_panic().unwrap_err();
        assert!(message(|| error.into_panic()).contains("was cancelled"));
    });
}

#[test]
fn a_join_error_becomes_an_io_error() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let error = fibra::spawn(|| panic::resume_unwind(Box::new("why"))).join().map(drop).unwrap_err();
        let error = io::Error::from(error);
        assert_eq!(error.kind(), io::ErrorKind::Other);
        assert!(error.to_string().contains("why"), "{error}");
    });
}

#[test]
fn ids_differ_over_runtimes_workers_and_kinds_of_task() {
    let _guard = hang_guard();
    let ids = |runtime: &Runtime| -> Vec<u64> {
        let mut ids = runtime.run(|| {
            let children: Vec<_> = (0..3000)
                .map(|_| fibra::spawn(|| fibra::spawn(|| task::current().id()).join().unwrap()))
                .collect();
            let mut ids: Vec<u64> = children.iter().map(|child| child.task().id()).collect();
            ids.extend(children.into_iter().map(|child| child.join().unwrap()));
            ids.push(fibra::spawn_local(|| task::current().id()).join().unwrap());
            ids.push(fibra::spawn_blocking(|| ()).task().id());
            ids
        });
        ids.extend((0..100).map(|_| runtime.spawn(|| ()).task().id()));
        ids
    };
    let mut all = ids(&runtime(1));
    all.extend(ids(&runtime(2)));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn a_task_knows_its_name_and_shows_it() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        assert_eq!(task::current().name(), Some("main"));
        let named = task::Builder::new().name(String::from("weaver")).spawn(|| {
            let me = task::current();
            (me.id(), me.name().map(str::to_owned), me.to_string(), format!("{me:?}"))
        });
        let handle = named.task().clone();
        assert_eq!(handle, *named.task());
        assert!(format!("{named:?}").contains("weaver"));
        let (id, name, shown, debug) = named.join().unwrap();
        assert_eq!((id, name.as_deref()), (handle.id(), Some("weaver")));
        assert_eq!(shown, format!("task 'weaver' (id {id})"));
        assert!(
            debug.contains("weaver") && debug.contains(&id.to_string()) && debug.contains("finished: false")
        );
        assert!(format!("{handle:?}").contains("finished: true"));
        let unnamed = fibra::spawn(|| task::current().name().is_none());
        let (id, place) = (unnamed.task().id(), unnamed.task().spawn_location().unwrap());
        assert_eq!(unnamed.task().to_string(), format!("task (id {id}, spawned at {place})"));
        assert!(unnamed.join().unwrap());
    });
}

#[test]
fn each_kind_of_spawn_knows_its_place_in_the_users_source() {
    let _guard = hang_guard();
    let (runtime, group) = (runtime(2), fibra::TaskGroup::new());
    let at_here = |task: &fibra::Task| task.spawn_location().is_some_and(|place| place.file() == file!());
    assert!(at_here(runtime.spawn(|| ()).task()) && at_here(runtime.spawn_blocking(|| ()).task()));
    assert!(at_here(runtime.handle().spawn(|| ()).task()));
    assert!(at_here(runtime.handle().spawn_on_worker(1, || ()).task()));
    assert!(at_here(task::Builder::new().spawn_on(&runtime.handle(), || ()).task()));
    runtime.run(|| {
        let (line, child) = (line!(), fibra::spawn(|| ()));
        assert_eq!(child.task().spawn_location().unwrap().line(), line);
        assert!(at_here(fibra::spawn_local(|| ()).task()) && at_here(fibra::spawn_blocking(|| ()).task()));
        assert!(at_here(&group.spawn(|| ())) && at_here(&group.spawn_local(|| ())));
        fibra::scope(|scope| {
            assert!(at_here(scope.spawn(|| ()).task()) && at_here(scope.spawn_local(|| ()).task()));
        });
        let own = || at_here(&task::current());
        assert!(matches!(fibra::race(own, task::park), fibra::structured::Either::Left(true)));
        let forked = fibra::join(fibra::yield_now, || task::current().spawn_location()).1;
        assert!(forked.is_none_or(|place| place.file() == file!()), "a part of an operation has none");
    });
}

#[test]
fn a_join_error_tells_its_task_and_its_value() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let named = task::Builder::new().name("baker").spawn(|| panic::resume_unwind(Box::new(42_u32)));
        let id = named.task().id();
        let mut error = named.join().map(drop).unwrap_err();
        assert_eq!((error.task_id(), error.task_name()), (id, Some("baker")));
        assert_eq!(error.downcast_ref::<u32>(), Some(&42));
        assert_eq!(error.downcast_ref::<&str>(), None);
        let unnamed = fibra::spawn(task::park);
        let (id, line) = (unnamed.task().id(), unnamed.task().spawn_location().unwrap().line());
        unnamed.cancel();
        let mut error = unnamed.join().unwrap_err();
        assert_eq!((error.task_id(), error.task_name()), (id, None));
        assert_eq!(error.downcast_ref::<u32>(), None);
        assert!(error.to_string().contains(&format!("join.rs:{line}")), "{error}");
    });
}

#[test]
fn a_thread_outside_runs_no_task() {
    assert!(task::try_current().is_none());
    assert!(message(task::current).contains("no task"));
}

#[test]
fn a_task_handle_outlives_task_and_runtime() {
    let _guard = hang_guard();
    let task = runtime(1).run(|| {
        let handle = fibra::spawn(|| ());
        let task = handle.task().clone();
        handle.join().unwrap();
        task
    });
    task.cancel();
    task.unpark();
    assert!(task.is_finished());
}

#[test]
fn a_local_task_may_hold_and_return_what_is_not_send() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let shared = std::rc::Rc::new(std::cell::Cell::new(1));
        let copy = std::rc::Rc::clone(&shared);
        let home = thread::current().id();
        let back = fibra::spawn_local(move || {
            fibra::sleep(Duration::from_micros(100));
            assert_eq!(thread::current().id(), home);
            copy.set(2);
            copy
        });
        let back = back.join().unwrap();
        assert!(std::rc::Rc::ptr_eq(&back, &shared));
        assert_eq!(shared.get(), 2);
    });
}
