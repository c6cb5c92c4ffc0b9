//! Promises of runtimes as values, their handles, their builder, and of one inside the other.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::message::message;
use fibra_runtime::driver::{self, Driver, Parts, Ready, Unpark};
use fibra_runtime::{self as fibra, Handle, Runtime, task};

#[test]
fn run_borrows_from_its_caller() {
    let _guard = hang_guard();
    let mut words = vec![String::from("a")];
    let length = runtime(2).run(|| {
        words.push(String::from("b"));
        fibra::yield_now();
        words.len()
    });
    assert_eq!((length, words.len()), (2, 2));
}

#[test]
fn a_builder_runs_on_the_calling_thread_what_is_neither_send_nor_static() {
    let _guard = hang_guard();
    let here = thread::current().id();
    let local = std::rc::Rc::new(std::cell::Cell::new(0));
    let back = Runtime::builder().workers(2).run(|| {
        assert_eq!(thread::current().id(), here);
        let copy = std::rc::Rc::clone(&local);
        fibra::spawn_local(move || {
            assert_eq!(thread::current().id(), here);
            copy.set(1);
        })
        .join()
        .unwrap();
        fibra::spawn(|| fibra::sleep(Duration::from_millis(1))).join().unwrap();
        std::rc::Rc::clone(&local)
    });
    assert!(std::rc::Rc::ptr_eq(&back.unwrap(), &local));
    assert_eq!(local.get(), 1);
    assert!(Handle::try_current().is_none(), "the thread is a plain one again");
    assert_eq!(Runtime::builder().workers(1).run(|| 4).unwrap(), 4, "and can be a worker once more");
}

#[test]
fn spawns_off_the_runtime_panic_and_say_how_to_start_one() {
    for text in [
        message(|| fibra::spawn(|| ())),
        message(|| fibra::spawn_local(|| ())),
        message(|| fibra::spawn_blocking(|| ())),
        message(Handle::current),
    ] {
        assert!(text.contains("fibra::run"), "{text}");
    }
    assert!(Handle::try_current().is_none());
}

#[test]
fn a_runtime_inside_a_runtime_panics_in_a_task_and_says_why() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let inner = runtime(1);
        let texts = [
            message(|| inner.run(|| ())),
            message(|| inner.handle().run(|| ())),
            message(|| Handle::current().run(|| ())),
            message(|| Runtime::builder().workers(1).run(|| ())),
        ];
        for text in texts {
            assert!(text.contains("inside a runtime") && text.contains("spawn_blocking"), "{text}");
        }
    });
}

#[test]
fn a_runtime_inside_a_runtime_works_from_a_thread_and_from_the_pool() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let from_pool = fibra::spawn_blocking(|| runtime(1).run(|| fibra::spawn(|| 1).join().unwrap()));
        assert_eq!(from_pool.join().unwrap(), 1);
        let borrowed = 2;
        assert_eq!(fibra::unblock(|| Runtime::builder().workers(1).run(|| borrowed).unwrap()), 2);
        let from_thread = thread::spawn(|| runtime(2).run(|| 3));
        assert_eq!(fibra::unblock(|| from_thread.join().unwrap()), 3);
    });
}

#[test]
fn a_task_may_build_a_runtime_spawn_there_and_drop_it() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let inner = runtime(1);
        assert_eq!(inner.spawn(|| 5).join().unwrap(), 5);
        let sleeper = inner.spawn(|| fibra::sleep(Duration::MAX));
        fibra::unblock(|| drop(inner));
        assert!(sleeper.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn two_runtimes_join_and_unpark_across() {
    let _guard = hang_guard();
    let (left, right) = (runtime(2), runtime(1));
    let handle = right.handle();
    left.run(|| {
        for round in 0..500_u32 {
            let me = task::current();
            let there = handle.spawn(move || {
                me.unpark();
                fibra::spawn(move || round).join().unwrap()
            });
            task::park();
            assert_eq!(there.join().unwrap(), round);
        }
    });
    right.run(|| {
        let far: Vec<_> = (0..200_u64)
            .map(|number| {
                left.spawn(move || {
                    fibra::sleep(Duration::from_micros(number));
                    number
                })
            })
            .collect();
        assert_eq!(far.into_iter().map(|task| task.join().unwrap()).sum::<u64>(), 19_900);
    });
}

#[test]
fn cancels_reach_tasks_of_another_runtime() {
    let _guard = hang_guard();
    let (left, right) = (runtime(1), runtime(1));
    for _ in 0..100 {
        let sleeper = right.spawn(|| fibra::sleep(Duration::MAX));
        left.run(|| {
            fibra::sleep(Duration::from_micros(20));
            sleeper.task().cancel();
            assert!(sleeper.join().unwrap_err().is_cancelled());
        });
    }
}

#[test]
fn a_handle_spawns_and_runs_from_foreign_threads() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let handle = runtime.handle();
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let handle = handle.clone();
            thread::spawn(move || {
                let tasks: Vec<_> = (0..500).map(|i| handle.spawn(move || i * thread)).collect();
                let sum: u64 = tasks.into_iter().map(|task| task.join().unwrap()).sum();
                sum + handle.run(|| fibra::spawn(|| 1).join().unwrap())
            })
        })
        .collect();
    let sum: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(sum, 124_750 * 6 + 4);
}

#[test]
fn the_current_handle_is_that_of_worker_or_pool() {
    let _guard = hang_guard();
    let name_of_worker = |handle: Handle| handle.run(|| thread::current().name().map(str::to_owned));
    let (left, right) = (
        Runtime::builder().workers(1).thread_name("left").build().unwrap(),
        Runtime::builder().workers(1).thread_name("right").build().unwrap(),
    );
    for (runtime, name) in [(&left, "left-0"), (&right, "right-0")] {
        let (in_task, in_pool) = runtime.run(|| {
            let in_pool = fibra::spawn_blocking(Handle::current).join().unwrap();
            (Handle::current(), in_pool)
        });
        assert_eq!(name_of_worker(in_task).as_deref(), Some(name));
        assert_eq!(name_of_worker(in_pool).as_deref(), Some(name));
        assert!(format!("{:?}", runtime.handle()).contains("Handle"));
    }
}

#[test]
fn a_handle_of_an_ended_runtime_answers_cancelled_and_drops_the_closure_here() {
    struct Where(Arc<Mutex<Option<ThreadId>>>);
    impl Drop for Where {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = Some(thread::current().id());
        }
    }
    let _guard = hang_guard();
    let handle = runtime(1).handle();
    let place = Arc::new(Mutex::new(None));
    let capture = Where(Arc::clone(&place));
    let task = handle.spawn(move || drop(capture));
    assert_eq!(*place.lock().unwrap(), Some(thread::current().id()));
    assert!(task.is_finished());
    assert!(task.join().unwrap_err().is_cancelled());
    assert!(message(|| handle.run(|| ())).contains("cancelled"));
}

#[test]
fn spawns_that_meet_the_end_of_the_runtime_are_run_or_dropped() {
    let _guard = hang_guard();
    for _ in 0..100 {
        let runtime = runtime(2);
        let (handle, made) = (runtime.handle(), Arc::new(()));
        let token = Arc::clone(&made);
        let spawner = thread::spawn(move || {
            for _ in 0..50 {
                let token = Arc::clone(&token);
                let task = handle.spawn(move || drop(token));
                assert!(task.join().map_or_else(|error| error.is_cancelled(), |()| true));
            }
        });
        thread::sleep(Duration::from_micros(50));
        drop(runtime);
        spawner.join().unwrap();
        assert_eq!(Arc::strong_count(&made), 1);
    }
}

#[test]
fn hooks_run_once_on_each_worker() {
    let _guard = hang_guard();
    let (starts, stops) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (on_start, on_stop) = (Arc::clone(&starts), Arc::clone(&stops));
    let builder = Runtime::builder()
        .workers(3)
        .on_worker_start(move || on_start.lock().unwrap().push(thread::current().id()))
        .on_worker_stop(move || on_stop.lock().unwrap().push(thread::current().id()));
    let runtime = builder.build().unwrap();
    runtime.run(|| ());
    assert!(stops.lock().unwrap().is_empty());
    drop(runtime);
    let (mut starts, mut stops) = (starts.lock().unwrap().clone(), stops.lock().unwrap().clone());
    starts.sort_unstable_by_key(|id| format!("{id:?}"));
    stops.sort_unstable_by_key(|id| format!("{id:?}"));
    assert_eq!((starts.len(), &starts), (3, &stops));
    starts.dedup();
    assert_eq!(starts.len(), 3);
}

#[test]
fn the_start_hooks_of_all_workers_may_wait_for_one_another() {
    let _guard = hang_guard();
    let builder = || {
        let all = Barrier::new(3);
        Runtime::builder().workers(3).on_worker_start(move || _ = all.wait())
    };
    assert_eq!(builder().build().unwrap().run(|| 1), 1);
    assert_eq!(builder().run(|| 2).unwrap(), 2);
}

#[test]
fn hooks_run_on_the_calling_thread_too_where_that_is_a_worker() {
    let _guard = hang_guard();
    let count = Arc::new(AtomicUsize::new(0));
    let (start, stop) = (Arc::clone(&count), Arc::clone(&count));
    let builder = Runtime::builder()
        .workers(2)
        .on_worker_start(move || _ = start.fetch_add(1, Ordering::SeqCst))
        .on_worker_stop(move || _ = stop.fetch_add(100, Ordering::SeqCst));
    builder.run(|| ()).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 202);
}

#[test]
fn workers_are_named_after_the_runtime_and_counted() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(2).thread_name("mill").build().unwrap();
    assert_eq!(runtime.workers(), 2);
    assert!(format!("{runtime:?}").contains('2'));
    let name = runtime.run(|| thread::current().name().map(str::to_owned)).unwrap();
    assert!(name == "mill-0" || name == "mill-1", "{name}");
}

#[test]
fn a_runtime_of_no_workers_or_no_blocking_threads_is_refused() {
    assert!(message(|| Runtime::builder().workers(0)).contains("workers"));
    assert!(message(|| Runtime::builder().workers(5000)).contains("workers"));
    assert!(message(|| Runtime::builder().max_blocking_threads(0)).contains("thread"));
}

#[test]
fn a_name_that_no_thread_can_have_is_refused() {
    let text = message(|| Runtime::builder().thread_name("mill\0stone"));
    assert!(text.contains("NUL") && text.contains("mill"), "{text}");
}

fn processors_allowed() -> usize {
    // SAFETY: all zeros is an empty set, and the call fills it in.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set), 0);
        libc::CPU_COUNT(&set) as usize
    }
}

fn runtime_of_one_pinned() -> Runtime {
    Runtime::builder().workers(1).pin_workers(true).build().unwrap()
}

#[test]
fn pinned_workers_have_one_processor_each() {
    let _guard = hang_guard();
    let pinned = runtime_of_one_pinned();
    assert_eq!(pinned.run(processors_allowed), 1);
    let free = runtime(1).run(processors_allowed);
    assert_eq!(free, processors_allowed());
}

#[test]
fn process_started_by_a_pinned_worker_may_use_all_processors() {
    let _guard = hang_guard();
    let all = processors_allowed();
    let pinned = runtime_of_one_pinned();
    let seen = pinned.run(|| {
        let nested = Runtime::builder().workers(1).pin_workers(true).build().unwrap();
        let nested = fibra::unblock(|| nested.spawn_blocking(processors_allowed).join().unwrap());
        [
            fibra::unblock(processors_allowed),
            fibra::spawn_blocking(processors_allowed).join().unwrap(),
            nested,
        ]
    });
    assert_eq!(seen, [all; 3]);
}

#[test]
fn a_runtime_that_a_pinned_worker_builds_is_not_pinned_with_it() {
    let _guard = hang_guard();
    let (all, workers) = (processors_allowed(), Runtime::builder().build().unwrap().workers());
    let pinned = runtime_of_one_pinned();
    let (seen, by_default) = pinned.run(|| {
        let nested = runtime(2);
        let seen = [
            nested.spawn(processors_allowed).join().unwrap(),
            nested.spawn_blocking(processors_allowed).join().unwrap(),
        ];
        assert_eq!(processors_allowed(), 1);
        (seen, Runtime::builder().build().unwrap().workers())
    });
    assert_eq!(seen, [all; 2]);
    assert_eq!(by_default, workers);
}

#[test]
fn the_watch_over_pinned_workers_may_use_all_processors() {
    let _guard = hang_guard();
    let all = processors_allowed();
    let build = |tell: Sender<usize>| {
        let builder = Runtime::builder().workers(1).pin_workers(true);
        let builder = builder.stall_limit(Duration::from_millis(1));
        builder.on_stall(move |_| _ = tell.send(processors_allowed()))
    };
    let (tell, told) = channel();
    assert_eq!(build(tell).run(|| told.recv().unwrap()).unwrap(), all);
    let (tell, told) = channel();
    assert_eq!(build(tell).build().unwrap().run(move || told.recv().unwrap()), all);
}

/// What a driver does, and how often it was asked to look without waiting.
#[derive(Default)]
struct Looks {
    count: AtomicUsize,
    signal: Mutex<Signal>,
    signalled: Condvar,
}

#[derive(Default)]
struct Signal {
    is_set: bool,
    is_waited_for: bool,
}

struct Looking(Arc<Looks>);

impl Unpark for Looks {
    fn unpark(&self) {
        self.signal.lock().unwrap().is_set = true;
        self.signalled.notify_one();
    }
}

impl Driver for Looking {
    fn park(&mut self, timeout: Option<Duration>, _ready: &mut Ready) -> io::Result<()> {
        let Looking(looks) = self;
        if timeout == Some(Duration::ZERO) {
            looks.count.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        let mut signal = looks.signal.lock().unwrap();
        signal.is_waited_for = true;
        let timeout = timeout.unwrap_or(Duration::from_secs(3600));
        *looks.signalled.wait_timeout_while(signal, timeout, |signal| !signal.is_set).unwrap().0 =
            Signal::default();
        Ok(())
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::clone(&self.0) as Arc<dyn Unpark>
    }
}

/// How often a task is woken while its worker waits.
const WAKES: usize = 300;

/// How often that worker looked at its driver meanwhile, without waiting.
fn looks_of_a_worker(polling: bool) -> usize {
    let looks = Arc::new(Looks::default());
    let driver = Arc::clone(&looks);
    let make = move || {
        let driver = Box::new(Looking(Arc::clone(&driver)));
        Ok(Parts { driver, handle: Arc::new(()), id: driver::Id::fresh() })
    };
    let runtime = Runtime::builder().workers(1).polling(polling).driver(make).build().unwrap();
    let sleeper = runtime.spawn(|| (0..WAKES).for_each(|_| task::park()));
    while !sleeper.is_finished() {
        let is_waited_for = looks.signal.lock().unwrap().is_waited_for;
        match is_waited_for {
            true => sleeper.task().unpark(),
            false => thread::yield_now(),
        }
    }
    runtime.shutdown();
    looks.count.load(Ordering::SeqCst)
}

#[test]
fn polling_may_be_forbidden() {
    let _guard = hang_guard();
    let (forbidden, allowed) = (looks_of_a_worker(false), looks_of_a_worker(true));
    println!("{forbidden} looks where polling is forbidden, {allowed} where it is allowed");
    // At one turn of the worker in many, and not before it waits.
    assert!(forbidden < WAKES / 10, "{forbidden}");
}

#[test]
fn a_runtime_dropped_in_another_one_on_a_thread_of_its_own_pool_ends_without_waiting_for_itself() {
    let _guard = hang_guard();
    let outer = runtime(1);
    let handle = outer.handle();
    let dropper = handle.spawn_blocking(move || Runtime::builder().workers(1).run(move || drop(outer)));
    assert!(dropper.join().unwrap().is_ok());
    while !handle.spawn(|| ()).join().is_err_and(|error| error.is_cancelled()) {
        thread::yield_now();
    }
}

#[test]
fn a_runtime_dropped_by_its_own_task_ends_without_waiting_for_itself() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let handle = runtime.handle();
        let went_on = Arc::new(AtomicBool::new(false));
        let goes_on = Arc::clone(&went_on);
        let dropper = handle.spawn(move || {
            drop(runtime);
            goes_on.store(true, Ordering::SeqCst);
            // Until it is cancelled like all others.
            loop {
                fibra::yield_now();
            }
        });
        assert!(dropper.join().unwrap_err().is_cancelled());
        assert!(went_on.load(Ordering::SeqCst));
        while !handle.spawn(|| ()).join().is_err_and(|error| error.is_cancelled()) {
            thread::yield_now();
        }
    }
}
