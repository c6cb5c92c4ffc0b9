//! A scope that waits for its children, in a frame that goes with it.

use std::ptr::NonNull;
use std::task::Poll;

use loom::cell::UnsafeCell;
use loom::thread;

use super::Task;
use super::family::{Family, Lost, Member};
use crate::gate::assert_no_wake_is_left;
use crate::intrusive_list::Link;
use crate::primitive::{Arc, check_bounded};
use crate::wait::strategy::UntilRaised;
use crate::wait::{self, Asleep, Sleeper, WaitStrategy, over};

/// A child, and what it borrows of the scope's frame.
struct Child {
    link: Link<Member>,
    task: Task,
}

// SAFETY: the link is reached under the family's lock only.
unsafe impl Sync for Child {}
// SAFETY: as above.
unsafe impl Send for Child {}

/// What is in the frame of a scope. Loom is told of its end.
struct Frame {
    family: Family,
    borrowed: UnsafeCell<u32>,
}

impl Frame {
    fn new() -> Box<Self> {
        let frame = Frame { family: Family::new(false), borrowed: UnsafeCell::new(0) };
        assert!(matches!(frame.family.try_end(), Poll::Ready(None)) && !frame.family.shelters());
        Box::new(frame)
    }

    /// A child that has yet to enter.
    fn child(&self) -> Arc<Child> {
        Arc::new(Child { link: Link::new(Member::of(&self.family)), task: Task::new() })
    }

    /// Spawns a child that runs `f` with what it borrows, and ends.
    fn spawn(&self, f: impl FnOnce(&UnsafeCell<u32>) + 'static) -> (Task, thread::JoinHandle<()>) {
        let child = self.child();
        let task = child.task.clone();
        enter(&self.family, &child);
        let borrowed = std::ptr::from_ref(&self.borrowed);
        let runs = thread::spawn(move || {
            // SAFETY: the frame is not left before this child has ended.
            f(unsafe { &*borrowed });
            end(&child);
        });
        (task, runs)
    }

    /// As `await_children`, where nothing cuts it short; `hurried` is a first sleep that ends early.
    fn await_children(&self, hurried: bool) -> Option<Lost> {
        let until = UntilRaised(&self.family);
        if hurried {
            _ = wait::sleep(&until, Some(over()));
        }
        loop {
            if let Poll::Ready(lost) = self.family.try_end() {
                return lost;
            }
            _ = wait::sleep_shielded(&until, None);
        }
    }

    /// By who has found nobody alive.
    fn end(self: Box<Self>) {
        self.borrowed.with_mut(|_| ());
    }
}

/// As the kin of a task that is made.
fn enter(family: &Family, child: &Arc<Child>) {
    // SAFETY: the link stays until the child has ended, which takes it out.
    if unsafe { family.enter(&child.link, child.task.as_ref()) } {
        child.task.header().marks.set_cancelled();
    }
}

/// The same, of a task that has ended.
fn end(child: &Child) {
    // SAFETY: the family is there until the child has left, which has entered.
    if let Some(parent) = unsafe { child.link.data().family().as_ref().leave(&child.link) } {
        parent.wake();
    }
}

/// Hunts: a frame that is left while a child still touches it, or what it borrows; a parent that is not woken, or is in its
/// next sleep; a panic that was noted and is not seen.
#[test]
fn a_frame_is_left_when_its_last_child_has_let_go_of_it() {
    for hurried in [false, true] {
        let model = move || {
            let frame = Frame::new();
            let family = NonNull::from(&frame.family);
            let (_task, child) = frame.spawn(move |borrowed| {
                borrowed.with_mut(|_| ());
                // SAFETY: the frame is not left before this child has ended.
                unsafe { family.as_ref() }.lose(Lost::Panicked);
            });
            assert!(frame.await_children(hurried).is_some());
            frame.end();
            assert_no_wake_is_left();
            child.join().unwrap();
        };
        check_bounded(3, model);
    }
}

/// Hunts: a parent that is woken by the first of two children, or by neither.
#[test]
fn the_last_of_two_children_wakes_the_parent() {
    check_bounded(3, || {
        let (frame, sleeper) = (Frame::new(), Sleeper::new());
        let (_task, other) = frame.spawn(|borrowed| borrowed.with_mut(|_| ()));
        let child = frame.child();
        enter(&frame.family, &child);
        let _ = sleeper.word.begin(true);
        let asleep = UntilRaised(&frame.family).after_asleep(sleeper.handle());
        assert_eq!(asleep, Asleep::Stay, "one has yet to end");
        end(&child);
        sleeper.leave_stack();
        assert_eq!(frame.family.alive(), 0);
        frame.end();
        other.join().unwrap();
        sleeper.assert_even();
    });
}

/// Hunts: a child that another child spawns as the scope is cancelled, and that neither is among those who are cancelled nor finds
/// the mark.
#[test]
fn no_child_is_spawned_past_a_cancel() {
    check_bounded(3, || {
        let frame = Frame::new();
        let grandchild = frame.child();
        let (task, child) = frame.spawn({
            let grandchild = grandchild.clone();
            move |_| {
                // SAFETY: as of any child: the family is there.
                enter(unsafe { grandchild.link.data().family().as_ref() }, &grandchild);
            }
        });
        let cancelled = frame.family.cancel();
        cancelled.iter().for_each(Task::cancel);
        child.join().unwrap();
        assert!(grandchild.task.is_cancelled());
        end(&grandchild);
        assert!(frame.await_children(false).is_none());
        drop((cancelled, task));
        frame.end();
    });
}
