//! Locks on files exclude, and a waiter for a lock holds up no other task.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks};
use crate::folder::Folder;
use fibra_io::fs::{self, File, TryLockError};
use fibra_runtime::{Runtime, spawn, timeout};

/// A time after which what has not come will not come.
const SHORT: Duration = Duration::from_millis(30);

/// Opens for reading and writing.
fn open(path: &Path) -> File {
    File::options().read(true).write(true).create(true).open(path).unwrap()
}

/// Runs `test` in a task of a runtime whose pool has so many threads.
fn with_threads(threads: usize, test: impl FnOnce() + Send) {
    let builder = Runtime::builder().driver(fibra_io::driver()).workers(2).max_blocking_threads(threads);
    guarded(|| builder.build().unwrap().run(test));
}

#[test]
fn a_lock_excludes_the_others() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file("file");
        let (one, other) = (open(&path), open(&path));
        one.lock().unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        assert!(matches!(other.try_lock_shared(), Err(TryLockError::WouldBlock)));
        one.unlock().unwrap();
        one.lock_shared().unwrap();
        other.lock_shared().unwrap();
        assert!(matches!(open(&path).try_lock(), Err(TryLockError::WouldBlock)));
        drop((one, other));
        open(&path).try_lock().unwrap();
    });
}

#[test]
fn a_lock_that_comes_free_is_taken() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file("file");
        let holder = open(&path);
        holder.lock().unwrap();
        let waiter = {
            let file = open(&path);
            beside(move || {
                file.lock().unwrap();
                file
            })
        };
        crate::common::nap(5);
        holder.unlock().unwrap();
        let _locked = waiter.join();
        assert!(matches!(holder.try_lock(), Err(TryLockError::WouldBlock)));
    });
}

#[test]
fn a_wait_for_a_lock_can_be_left_and_locks_nothing() {
    in_tasks(|| {
        let folder = Folder::new();
        let path = folder.file("file");
        let (holder, waiter) = (open(&path), open(&path));
        holder.lock().unwrap();
        assert!(timeout(SHORT, || waiter.lock()).is_err());
        holder.unlock().unwrap();
        holder.try_lock().unwrap();
    });
}

#[test]
fn a_lock_that_is_taken_after_a_wait_was_left_stays() {
    in_tasks(|| {
        let folder = Folder::new();
        let path = folder.file("file");
        let (holder, other) = (open(&path), open(&path));
        let file = Arc::new(open(&path));
        holder.lock().unwrap();
        for _ in 0..3 {
            assert!(timeout(SHORT, || file.lock()).is_err());
        }
        let clone = file.try_clone().unwrap();
        let waiter = spawn(move || {
            clone.lock().unwrap();
            clone
        });
        holder.unlock().unwrap();
        let clone = waiter.join().unwrap();
        // Nothing comes of those that were left.
        for _ in 0..10 {
            crate::common::nap(1);
            assert!(matches!(other.try_lock_shared(), Err(TryLockError::WouldBlock)));
        }
        clone.unlock().unwrap();
        other.try_lock().unwrap();
    });
}

#[test]
fn the_owner_of_a_lock_finds_a_thread_to_write_however_many_wait() {
    with_threads(4, || {
        let folder = Folder::new();
        let path = folder.file("file");
        let writers: Vec<_> = (0..16)
            .map(|_| {
                let path = path.clone();
                spawn(move || {
                    let mut file = File::options().append(true).create(true).open(path).unwrap();
                    file.lock().unwrap();
                    file.write_all(b"line\n").unwrap();
                    file.unlock().unwrap();
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"line\n".repeat(16));
    });
}

#[test]
fn waits_for_locks_that_were_left_keep_no_thread() {
    with_threads(2, || {
        let folder = Folder::new();
        let path = folder.file("file");
        std::fs::write(&path, b"text").unwrap();
        let holder = std::fs::File::open(&path).unwrap();
        holder.lock().unwrap();
        let file = open(&path);
        for _ in 0..2 {
            assert!(timeout(SHORT, || file.lock()).is_err());
            assert!(timeout(SHORT, || file.lock_shared()).is_err());
        }
        assert_eq!(fs::read(&path).unwrap(), b"text");
    });
}
