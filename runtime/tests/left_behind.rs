//! What a call that never ends leaves behind when its runtime ends: its thread, and nothing else.

#[path = "common/counted.rs"]
mod counted;
#[path = "common/hang.rs"]
mod hang;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::Duration;

use counted::Counted;
use fibra_runtime::{self as fibra, Builder, Runtime, task};
use hang::hang_guard;

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

/// Threads of this process whose name begins so.
fn threads_called(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|comm| comm.starts_with(name)).count()
}

/// A runtime all of whose hooks are counted while they are alive.
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
