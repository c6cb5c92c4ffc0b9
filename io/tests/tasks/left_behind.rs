//! The end of a runtime waits for no call that may never end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::sides::guarded;
use crate::common::{nap, runtime, with_full_pool};
use crate::folder::Folder;
use fibra_io::fs::File;
use fibra_runtime::{Runtime, spawn, spawn_blocking, task, unblock};

/// Lets the thread go that waits in an open.
fn release(path: &Path) {
    _ = std::fs::File::options().read(true).write(true).open(path).unwrap();
}

#[test]
fn an_open_that_was_left_does_not_hold_up_the_end() {
    for workers in [1, 2] {
        guarded(|| {
            let folder = Folder::new();
            let path = folder.fifo();
            let runtime = runtime(workers);
            runtime.run(|| {
                let path = path.clone();
                let opener = spawn(|| File::open(path).map(drop));
                nap(5);
                opener.cancel();
                assert!(opener.join().unwrap_err().is_cancelled());
            });
            drop(runtime);
            release(&path);
        });
    }
}

#[test]
fn an_open_is_left_by_the_end_itself() {
    guarded(|| {
        let folder = Folder::new();
        let path = folder.fifo();
        let opened = path.clone();
        let opener = Runtime::builder()
            .driver(fibra_io::driver())
            .workers(1)
            .run(|| {
                let opener = spawn(|| File::open(opened).map(drop));
                nap(5);
                opener
            })
            .unwrap();
        assert!(opener.join().unwrap_err().is_cancelled());
        release(&path);
    });
}

#[test]
fn a_task_that_has_left_an_open_is_not_reported() {
    guarded(|| {
        let folder = Folder::new();
        let path = folder.fifo();
        let runtime = runtime(1);
        let opened = path.clone();
        runtime.spawn(|| File::open(opened).map(drop));
        nap(5);
        assert!(runtime.shutdown_timeout(std::time::Duration::from_secs(60)).is_empty());
        release(&path);
    });
}

#[test]
fn a_wait_for_a_lock_does_not_hold_up_the_end_and_locks_nothing() {
    guarded(|| {
        let folder = Folder::new();
        let path = folder.file("file");
        let holder = std::fs::File::create(&path).unwrap();
        holder.lock().unwrap();
        let runtime = runtime(1);
        let waited = path.clone();
        runtime.spawn(move || File::open(waited).unwrap().lock());
        nap(5);
        drop(runtime);
        holder.unlock().unwrap();
        std::fs::File::open(&path).unwrap().try_lock().unwrap();
    });
}

#[test]
fn task_queued_behind_such_a_call_ends() {
    /// Uses the pool while its task unwinds.
    struct Farewell(Arc<AtomicBool>);
    impl Drop for Farewell {
        fn drop(&mut self) {
            let said = &self.0;
            unblock(|| said.store(true, Ordering::SeqCst));
        }
    }
    guarded(|| {
        let folder = Folder::new();
        let path = folder.fifo();
        let runtime =
            Runtime::builder().driver(fibra_io::driver()).workers(1).max_blocking_threads(1).build().unwrap();
        let said = Arc::new(AtomicBool::new(false));
        let ran = Arc::new(AtomicBool::new(false));
        let runs = Arc::clone(&ran);
        let farewell = Farewell(Arc::clone(&said));
        let opened = path.clone();
        let queued = runtime.run(move || {
            _ = spawn(|| File::open(opened).map(drop));
            nap(5);
            _ = spawn(move || {
                let _farewell = farewell;
                task::park();
            });
            let queued = spawn_blocking(move || runs.store(true, Ordering::SeqCst));
            nap(1);
            queued
        });
        drop(runtime);
        assert!(said.load(Ordering::SeqCst));
        // There is a thread beside the one that waits, which may have come to it.
        assert!(queued.join().is_err_and(|error| error.is_cancelled()) || ran.load(Ordering::SeqCst));
        release(&path);
    });
}

#[test]
fn an_open_that_was_left_before_it_began_is_not_made() {
    with_full_pool(|free, taker| {
        let folder = Folder::new();
        let path = folder.fifo();
        let opener = spawn(|| File::open(path).map(drop));
        fibra_runtime::yield_now();
        opener.cancel();
        assert!(opener.join().unwrap_err().is_cancelled());
        drop(free);
        taker.join().unwrap();
        assert_eq!(unblock(|| 7), 7, "the only thread is free");
    });
}
