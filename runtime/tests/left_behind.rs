//! What a call that never ends leaves behind when its runtime ends: its thread, and nothing else.

#[path = "common/counted.rs"]
mod counted;
#[path = "common/hang.rs"]
mod hang;
#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "common/ledger.rs"]
mod ledger;

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::Duration;

use counted::Counted;
use fibra_runtime::{self as fibra, Builder, Runtime, task};
use hang::hang_guard;
use ledger::{Entry, Ledger};

const LONG: Duration = Duration::from_secs(3600);

/// These tests look at the mappings of the process, and at its threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Calls that last until this is dropped.
struct Calls {
    end: Vec<mpsc::Sender<()>>,
    /// How many have ended.
    ended: Arc<AtomicUsize>,
}

impl Calls {
    fn new() -> Self {
        Calls { end: Vec::new(), ended: Arc::default() }
    }

    /// Begins one more, by a task that the end of the runtime cancels, and waits until it has begun.
    fn begin(&mut self) {
        let ((end, ended), (begun, begin)) = (mpsc::channel::<()>(), mpsc::channel());
        let count = Arc::clone(&self.ended);
        drop(fibra::spawn(move || {
            let call = task::spawn_call(move || {
                begun.send(()).unwrap();
                _ = ended.recv();
                count.fetch_add(1, Ordering::SeqCst);
            });
            _ = call.join();
        }));
        while begin.try_recv().is_err() {
            fibra::sleep(Duration::from_micros(50));
        }
        self.end.push(end);
    }

    fn end(&mut self) {
        let count = self.end.len();
        self.end.clear();
        while self.ended.load(Ordering::SeqCst) < count {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

fn is_mapped(address: usize) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let ends = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
    };
    maps.lines().filter_map(ends).any(|range| range.contains(&address))
}

/// Lists the threads of this process with names that begin so.
fn threads_called(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|comm| comm.starts_with(name)).count()
}

/// A runtime with hooks that are counted while they are alive.
fn with_hooks(alive: &Arc<AtomicUsize>) -> Builder {
    let hook = || Counted::new(Arc::clone(alive));
    let (start, stop, stall, panic) = (hook(), hook(), hook(), hook());
    Runtime::builder()
        .on_worker_start(move || _ = &start)
        .on_worker_stop(move || _ = &stop)
        .on_stall(move |_| _ = &stall)
        .on_task_panic(move |_| _ = &panic)
}

#[test]
fn stacks_and_hooks_go_with_the_runtime_and_not_with_the_last_call() {
    let _alone = alone();
    let _guard = hang_guard();
    for workers in [1, 2] {
        let (alive, mut calls) = (Arc::new(AtomicUsize::new(0)), Calls::new());
        let runtime = with_hooks(&alive).workers(workers).thread_name("left").build().unwrap();
        let mut stack = 0;
        runtime.run(|| {
            (0..2).for_each(|_| calls.begin());
            let here = 0_u8;
            stack = (&raw const here).addr();
        });
        assert_eq!(alive.load(Ordering::SeqCst), 4);
        assert!(is_mapped(stack));
        drop(runtime);
        assert_eq!(alive.load(Ordering::SeqCst), 0, "hooks are dropped");
        assert!(!is_mapped(stack), "stacks are unmapped");
        assert_eq!(threads_called("left-blocking"), 2, "the calls go on");
        calls.end();
        while threads_called("left-blocking") > 0 {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

#[test]
fn hooks_are_gone_when_a_run_returns_that_has_ended_tasks() {
    let _alone = alone();
    let _guard = hang_guard();
    for round in 0..300 {
        let alive = Arc::new(AtomicUsize::new(0));
        let ran = with_hooks(&alive).workers(1 + round % 2).run(|| {
            drop(fibra::spawn(task::park));
            fibra::yield_now();
        });
        ran.unwrap();
        assert_eq!(alive.load(Ordering::SeqCst), 0, "round {round}");
    }
}

/// What is to become of the things that wait behind a call when the end comes and the system has no more threads.
struct Stranded {
    ledger: Arc<Ledger>,
    /// Closures of tasks that the end cancels.
    cancelled: AtomicUsize,
    /// Closures of tasks that it cannot cancel.
    shielded: AtomicUsize,
}

impl Stranded {
    /// Puts one thing of each kind behind the calls, and waits until all are there.
    fn set(self: &Arc<Self>) {
        let queued = Arc::new(AtomicBool::new(false));
        let cancels = |entry: Entry| {
            let stranded = Arc::clone(self);
            move || {
                let _entry = entry;
                stranded.cancelled.fetch_add(1, Ordering::SeqCst);
            }
        };
        drop(fibra::spawn_blocking(cancels(self.ledger.entry())));
        let (caller, call) = (self.ledger.entry_of_a_task(), cancels(self.ledger.entry()));
        drop(fibra::spawn(move || {
            let _caller = caller;
            _ = task::spawn_call(call).join();
        }));
        let (sleeper, sleeps) = (self.ledger.entry_of_a_task(), cancels(self.ledger.entry()));
        drop(fibra::spawn(move || {
            let _sleeper = sleeper;
            fibra::unblock(sleeps);
        }));
        let (shielded, stranded) = (self.ledger.entry_of_a_task(), Arc::clone(self));
        let queue = Arc::clone(&queued);
        drop(fibra::spawn(move || {
            let _farewell = Farewell(shielded, Arc::clone(&stranded));
            queue.store(true, Ordering::SeqCst);
            task::shield(|| fibra::unblock(|| stranded.shielded.fetch_add(1, Ordering::SeqCst)));
            task::park();
        }));
        while !queued.load(Ordering::SeqCst) {
            fibra::sleep(Duration::from_micros(50));
        }
    }

    fn check(&self) {
        self.ledger.check();
        assert!(self.cancelled.load(Ordering::SeqCst) <= 1, "only the closure may have begun, in place");
        assert_eq!(self.shielded.load(Ordering::SeqCst), 2, "what must not be cancelled runs");
    }
}

/// Uses the pool while its task unwinds.
struct Farewell(#[expect(dead_code, reason = "dropped with it")] Entry, Arc<Stranded>);

impl Drop for Farewell {
    fn drop(&mut self) {
        fibra::unblock(|| self.1.shielded.fetch_add(1, Ordering::SeqCst));
    }
}

#[test]
fn tasks_queued_behind_calls_end_where_no_thread_can_be_had() {
    let _alone = alone();
    let _guard = hang_guard();
    for round in 0..32 {
        let (workers, threads) = (1 + round % 2, 1 + round / 2 % 2);
        let mut calls = Calls::new();
        let (ledger, cancelled, shielded) = Default::default();
        let stranded = Arc::new(Stranded { ledger, cancelled, shielded });
        let mut scene = || {
            (0..threads).for_each(|_| calls.begin());
            stranded.set();
        };
        let builder = Runtime::builder().workers(workers);
        let builder = builder.max_blocking_threads(threads).startable_blocking_threads(threads);
        match round / 4 % 4 {
            0 => builder.run(scene).unwrap(),
            1 => {
                let runtime = builder.build().unwrap();
                runtime.run(scene);
                assert!(runtime.shutdown_timeout(LONG).is_empty());
            }
            2 => {
                let runtime = builder.build().unwrap();
                runtime.run(scene);
                drop(runtime);
            }
            _ => {
                let runtime = builder.build().unwrap();
                let handle = runtime.handle();
                handle.run(|| {
                    scene();
                    drop(runtime);
                });
                stranded.ledger.wait_until_even();
            }
        }
        stranded.check();
        calls.end();
    }
}

/// Waits on a thread of the pool until what is queued there has ended.
type Waiter = fn(mpsc::Sender<()>);

#[test]
fn task_queued_behind_a_call_ends_though_another_thread_waits_for_it() {
    fn for_a_task(queued: mpsc::Sender<()>) {
        drop(fibra::spawn_blocking(move || {
            let behind = fibra::spawn_blocking(|| ());
            queued.send(()).unwrap();
            assert!(behind.join().unwrap_err().is_cancelled());
        }));
    }
    fn for_a_closure(queued: mpsc::Sender<()>) {
        let (sleeps, slept_for) = mpsc::channel::<fibra::JoinHandle<()>>();
        drop(fibra::spawn_blocking(move || slept_for.recv().unwrap().join().unwrap()));
        let sleeper = fibra::spawn(move || {
            queued.send(()).unwrap();
            task::shield(|| fibra::unblock(|| ()));
        });
        sleeps.send(sleeper).unwrap();
    }
    let _alone = alone();
    let _guard = hang_guard();
    for (waiter, threads) in [(for_a_task as Waiter, 1), (for_a_closure, 2)] {
        let mut calls = Calls::new();
        let runtime = Runtime::builder().workers(1).max_blocking_threads(threads).build().unwrap();
        runtime.run(|| {
            calls.begin();
            let (queued, is_queued) = mpsc::channel();
            waiter(queued);
            while is_queued.try_recv().is_err() {
                fibra::sleep(Duration::from_micros(50));
            }
        });
        assert!(runtime.shutdown_timeout(LONG).is_empty());
        calls.end();
    }
}

#[test]
fn nothing_waits_behind_calls_for_a_thread_that_the_system_does_not_have() {
    let _alone = alone();
    let _guard = hang_guard();
    for threads in 1..=2 {
        let mut calls = Calls::new();
        let builder = Runtime::builder().workers(1).blocking_keep_alive(Duration::ZERO);
        builder.startable_blocking_threads(threads).build().unwrap().run(|| {
            (0..threads).for_each(|_| calls.begin());
            let here = thread::current().id();
            assert_eq!(fibra::unblock(|| thread::current().id()), here, "it runs in place");
            assert!(fibra::spawn_blocking(|| ()).join().unwrap_err().is_not_started());
            assert!(task::spawn_call(|| ()).join().unwrap_err().is_not_started());
            calls.end();
            while fibra::unblock(|| thread::current().id()) == here {
                fibra::sleep(Duration::from_micros(50));
            }
        });
    }
}

#[test]
fn calls_beyond_the_maximum_come_when_one_has_ended_where_the_system_has_no_more_threads() {
    let _alone = alone();
    let _guard = hang_guard();
    let builder = Runtime::builder().workers(1).max_blocking_threads(1).startable_blocking_threads(1);
    builder.build().unwrap().run(|| {
        let (end, ended) = mpsc::channel::<()>();
        let call = task::spawn_call(move || _ = ended.recv());
        let others: Vec<_> = (0..5).map(|_| task::spawn_call(|| ())).collect();
        drop(end);
        call.join().unwrap();
        others.into_iter().for_each(|call| call.join().unwrap());
    });
}

#[test]
fn a_burst_of_calls_starts_a_thread_for_each() {
    const CALLS: usize = 16;
    let _alone = alone();
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).thread_name("burst").build().unwrap();
    let begun = Arc::new(AtomicUsize::new(0));
    runtime.run(|| {
        let (ends, calls): (Vec<_>, Vec<_>) = (0..CALLS)
            .map(|_| {
                let ((end, ended), begun) = (mpsc::channel::<()>(), Arc::clone(&begun));
                let call = task::spawn_call(move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    _ = ended.recv();
                });
                (end, call)
            })
            .unzip();
        while begun.load(Ordering::SeqCst) < CALLS {
            fibra::sleep(Duration::from_micros(50));
        }
        assert_eq!(threads_called("burst-blocking"), CALLS);
        drop(ends);
        calls.into_iter().for_each(|call| call.join().unwrap());
    });
}

/// Starts calls from tasks of their own, which tell when they begin and last until their sender is dropped.
fn begin_calls(count: usize) -> (mpsc::Receiver<usize>, Vec<mpsc::Sender<()>>, Vec<fibra::JoinHandle<()>>) {
    let (begun, begins) = mpsc::channel();
    let (ends, calls) = (0..count)
        .map(|number| {
            let (begun, (end, ended)) = (begun.clone(), mpsc::channel::<()>());
            let call = fibra::spawn(move || {
                let call = task::spawn_call(move || {
                    begun.send(number).unwrap();
                    _ = ended.recv();
                });
                call.join().unwrap();
            });
            fibra::yield_now();
            (end, call)
        })
        .unzip();
    (begins, ends, calls)
}

fn next_of(begins: &mpsc::Receiver<usize>) -> usize {
    loop {
        match begins.try_recv() {
            Ok(number) => return number,
            Err(_) => fibra::sleep(Duration::from_micros(50)),
        }
    }
}

#[test]
fn calls_leave_all_threads_to_others_and_come_in_turn() {
    let _alone = alone();
    let _guard = hang_guard();
    for most in [1, 2, 5] {
        let runtime = Runtime::builder().workers(1).max_blocking_threads(most).build().unwrap();
        runtime.run(|| {
            let (begins, ends, calls) = begin_calls(3 * most);
            let mut begun: Vec<usize> = (0..most).map(|_| next_of(&begins)).collect();
            begun.sort_unstable();
            assert!(begun.into_iter().eq(0..most));
            let all_are_here = std::sync::Barrier::new(most);
            fibra::scope(|scope| {
                (0..most).for_each(|_| drop(scope.spawn(|| fibra::unblock(|| all_are_here.wait()))));
            });
            assert!(begins.try_recv().is_err());
            for (number, end) in ends.into_iter().enumerate() {
                drop(end);
                if number + most < 3 * most {
                    assert_eq!(next_of(&begins), number + most);
                }
            }
            calls.into_iter().for_each(|call| call.join().unwrap());
        });
    }
}

#[test]
fn task_queued_behind_a_call_has_a_thread_once_the_call_begins() {
    let _alone = alone();
    let _guard = hang_guard();
    for threads in [1, 2] {
        let runtime = Runtime::builder().workers(1).max_blocking_threads(threads).build().unwrap();
        runtime.run(|| {
            let (open, gate) = mpsc::channel::<()>();
            let (end, ended) = mpsc::channel();
            let gate = std::sync::Mutex::new(gate);
            fibra::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| fibra::unblock(|| _ = gate.lock().unwrap().recv()));
                }
                let long = scope.spawn(|| task::spawn_call(move || ended.recv().unwrap()).join().unwrap());
                scope.spawn(move || fibra::unblock(move || end.send(()).unwrap()));
                fibra::yield_now();
                drop(open);
                long.join().unwrap();
            });
        });
    }
}

#[test]
fn the_end_waits_for_no_call_nor_for_those_behind() {
    let _alone = alone();
    let _guard = hang_guard();
    for threads in [1, 2, 4] {
        let runtime = Runtime::builder().workers(1).max_blocking_threads(threads).build().unwrap();
        let (begins, ends) = runtime.run(|| {
            let (begins, ends, _calls) = begin_calls(5);
            (0..threads).for_each(|_| _ = next_of(&begins));
            (begins, ends)
        });
        assert!(runtime.shutdown_timeout(LONG).is_empty());
        assert!(begins.try_recv().is_err());
        drop(ends);
    }
}
