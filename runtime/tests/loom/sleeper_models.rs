//! The reader of a suspended task: what it keeps belongs to the sleep that it has found.
//!
//! The switch is not built here. Its stores are those of `coroutine/native.rs`, and the reader's loads those of `tasks/sleeper.rs`.

use std::sync::Arc;

use loom::thread;

use crate::primitive::{AtomicUsize, Ordering, check, fence};
use crate::wait::Sleeper;

/// What is done otherwise than it should be.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    Nothing,
    /// The worker resumes the task without a fence.
    ResumesWithoutFence,
    /// The reader looks again without a fence.
    LooksWithoutFence,
}

/// Where the stack ends in both sleeps.
const POINTER: usize = 64;

struct Task {
    sleeper: Arc<Sleeper>,
    saved: AtomicUsize,
    /// A word of its stack, which has the number of the sleep.
    frame: AtomicUsize,
}

impl Task {
    /// As the switch does that leaves the stack.
    fn leave(&self, sleep: usize) {
        self.frame.store(sleep, Ordering::Relaxed);
        let _ = self.sleeper.begin_at_once();
        self.saved.store(POINTER, Ordering::Release);
    }

    fn resume(&self, flaw: Flaw) {
        self.saved.store(0, Ordering::Relaxed);
        if flaw != Flaw::ResumesWithoutFence {
            fence(Ordering::Release);
        }
    }
}

/// A task wakes and sleeps again in the same frames while a reader copies it.
fn a_copy_with(flaw: Flaw) {
    let task = Arc::new(Task {
        sleeper: Sleeper::at_home(),
        saved: AtomicUsize::new(0),
        frame: AtomicUsize::new(0),
    });
    task.leave(1);
    let first = task.sleeper.word.why();
    let worker = {
        let task = Arc::clone(&task);
        thread::spawn(move || {
            let _ = task.sleeper.word.notify();
            task.resume(flaw);
            task.leave(2);
        })
    };
    let word = task.sleeper.word.why();
    let saved = task.saved.load(Ordering::Acquire);
    if word.is_asleep() && saved != 0 {
        let frame = task.frame.load(Ordering::Relaxed);
        if flaw != Flaw::LooksWithoutFence {
            fence(Ordering::SeqCst);
        }
        if task.saved.load(Ordering::Acquire) == saved && task.sleeper.word.why() == word {
            assert_eq!(frame, if word == first { 1 } else { 2 }, "the copy is of another sleep");
        }
    }
    worker.join().unwrap();
}

/// Finds: a copy that holds what the task has written after the sleep that the reader has found.
#[test]
fn a_copy_belongs_to_its_sleep() {
    check(|| a_copy_with(Flaw::Nothing));
}

/// Shows that it takes the fence after the 0.
#[test]
#[should_panic(expected = "the copy is of another sleep")]
fn a_resume_without_a_fence_is_missed() {
    check(|| a_copy_with(Flaw::ResumesWithoutFence));
}

/// Shows that it takes the fence before the second look.
#[test]
#[should_panic(expected = "the copy is of another sleep")]
fn a_second_look_without_a_fence_is_too_early() {
    check(|| a_copy_with(Flaw::LooksWithoutFence));
}
