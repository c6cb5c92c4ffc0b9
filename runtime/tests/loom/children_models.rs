//! A scope that waits for its children, in a frame that goes with it.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::thread;

use super::Task;
use super::children::{Children, Lost};
use crate::gate::assert_no_wake_is_left;
use crate::primitive::check_bounded;
use crate::wait::{Until, over};

/// What is in the frame of a scope. Loom is told of its end.
struct Frame {
    children: Children,
    borrowed: UnsafeCell<u32>,
}

/// A frame as its children reach it.
#[derive(Clone, Copy)]
struct Borrowed(*const Frame);

// SAFETY: the frame is not left before the child that has this has ended.
unsafe impl Send for Borrowed {}

impl Borrowed {
    fn frame<'a>(self) -> &'a Frame {
        // SAFETY: as above.
        unsafe { &*self.0 }
    }
}

impl Frame {
    fn new() -> Box<Self> {
        let frame = Frame { children: Children::new(false, 0), borrowed: UnsafeCell::new(0) };
        assert!(
            frame.children.alive() == 0 && frame.children.take_lost().is_none() && !frame.children.shelters()
        );
        Box::new(frame)
    }

    /// Spawns a child that runs `f` with the frame, and ends.
    fn spawn(&self, f: impl FnOnce(&Frame) + 'static) -> (Task, thread::JoinHandle<()>) {
        let task = Task::new();
        let key = enter(&self.children, &task);
        let borrowed = Borrowed(ptr::from_ref(self));
        let runs = thread::spawn(move || {
            f(borrowed.frame());
            borrowed.frame().children.leave(key);
        });
        (task, runs)
    }

    /// As `await_all`, where nothing cuts it short; `hurried` is a first wait that ends early.
    fn await_all(&self, hurried: bool) -> Option<Lost> {
        if hurried {
            self.children.wait(Until::report(Some(over())));
        }
        if self.children.alive() > 0 {
            self.children.wait(Until::shielded(None));
        }
        self.children.take_lost()
    }

    /// Ends the frame. Called once no child is alive.
    fn end(self: Box<Self>) {
        self.borrowed.with_mut(|_| ());
    }
}

/// As the hook of a task that is made.
fn enter(children: &Children, task: &Task) -> usize {
    let (key, is_cancelled) = children.enter(task.as_ref());
    if is_cancelled {
        task.header().cancel_flags.set_cancelled();
    }
    key
}

/// Finds: a frame that is left while a child still touches it, or what it borrows; a parent that is not woken, or is in its
/// next sleep; a panic that was noted and is not seen.
#[test]
fn a_frame_is_left_when_its_last_child_has_let_go_of_it() {
    for hurried in [false, true] {
        let model = move || {
            let frame = Frame::new();
            let (_task, child) = frame.spawn(move |frame| {
                frame.borrowed.with_mut(|_| ());
                frame.children.lose(Lost::Panicked);
            });
            assert!(frame.await_all(hurried).is_some());
            frame.end();
            assert_no_wake_is_left();
            child.join().unwrap();
        };
        check_bounded(3, model);
    }
}

/// Finds: a parent that is woken by the first of two children, or by neither.
#[test]
fn the_last_of_two_children_wakes_the_parent() {
    check_bounded(2, || {
        let frame = Frame::new();
        let (_task, other) = frame.spawn(|frame| frame.borrowed.with_mut(|_| ()));
        let key = enter(&frame.children, &Task::new());
        assert!(!frame.children.wait(Until::report(Some(over()))), "one has yet to end");
        frame.children.leave(key);
        assert!(frame.await_all(false).is_none());
        frame.end();
        other.join().unwrap();
        assert_no_wake_is_left();
    });
}

/// Finds: a child that another child spawns as the scope is cancelled, and that is neither cancelled nor finds the scope
/// cancelled.
#[test]
fn no_child_is_spawned_past_a_cancel() {
    check_bounded(3, || {
        let frame = Frame::new();
        let grandchild = Task::new();
        let key = Arc::new(AtomicUsize::new(0));
        let (task, child) = frame.spawn({
            let (grandchild, key) = (grandchild.clone(), Arc::clone(&key));
            move |frame| key.store(enter(&frame.children, &grandchild), Ordering::Relaxed)
        });
        let cancelled = frame.children.cancel();
        cancelled.iter().for_each(Task::cancel);
        child.join().unwrap();
        assert!(grandchild.is_cancelled());
        frame.children.leave(key.load(Ordering::Relaxed));
        assert!(frame.await_all(false).is_none());
        drop((cancelled, task));
        frame.end();
    });
}
