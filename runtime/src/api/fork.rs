//! Forks: a closure as a child task, which its owner takes back if no worker has begun it.

#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::api::builder::Builder;
use crate::api::scope::{ScopedJoinHandle, scope};
use crate::base::payload::drop_quietly;
use crate::base::spin_lock::Lock;
use crate::sleep::cancel_points;
use crate::tasks::cancel;
use crate::tasks::context;
use crate::tasks::header::TaskRef;
use crate::tasks::join_error::JoinError;

/// The second closure while the first one runs.
pub(crate) struct Forked<'scope, F, T> {
    slot: &'scope Slot<F>,
    /// None where no task can be made.
    child: Option<ScopedJoinHandle<'scope, T>>,
}

/// The second closure in the frame of its owner.
struct Slot<F>(Lock<Option<F>>);

impl<F> Slot<F> {
    fn take(&self) -> Option<F> {
        self.0.lock().take()
    }
}

/// The closure of the child. Dropped un-run for want of a stack, it cancels the owner, which may wait for it.
struct Second<'scope, F> {
    slot: &'scope Slot<F>,
    /// Alive: it waits for the child, which owns this closure.
    owner: TaskRef,
}

impl<F> Second<'_, F> {
    fn take(&self) -> F {
        self.slot.take().expect("a closure runs once")
    }
}

impl<F> Drop for Second<'_, F> {
    fn drop(&mut self) {
        if self.slot.0.lock().is_none() {
            return;
        }
        self.owner.cancel();
        // Where nothing unwinds the owner cannot end without the result: it finds the closure, and runs it.
        if cancel::CAN_UNWIND {
            drop_quietly(self.slot.take());
        }
    }
}

impl<F, T> Forked<'_, F, T> {
    /// Returns true once a worker has begun it.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        self.child.as_ref().is_some_and(|child| child.task().as_ref().header().cancel_flags.is_begun())
    }

    /// Takes the closure back, if no worker has begun it.
    fn take_back(&self) -> Option<F> {
        let mut taken = None;
        if let Some(child) = &self.child {
            child.take_back(|| {
                taken = self.slot.take();
                JoinError::taken_back()
            });
        }
        taken
    }

    /// Takes the closure back, or waits for its result where a worker has begun it.
    fn end(mut self) -> Result<Result<T, JoinError>, F> {
        let taken = self.take_back();
        let child = self.child.take().expect("ended once");
        // After the former this does not wait, and has no value.
        let result = child.join();
        let unused = taken.or_else(|| match &result {
            Err(error) if !error.is_not_started() => self.slot.take(),
            _ => None,
        });
        unused.map_or(Ok(result), Err)
    }

    /// Resumes the panic of the first closure. The scope waits for a second closure that was begun.
    #[cold]
    fn unwind(mut self, payload: Box<dyn Any + Send>) -> ! {
        let child = match self.take_back() {
            Some(unused) => {
                let _unused = Quietly(Some(unused));
                _ = self.child.take().map(ScopedJoinHandle::join);
                resume_unwind(payload)
            }
            None => self.child.take(),
        };
        if let Some(child) = child.filter(ScopedJoinHandle::is_finished)
            && cancel::is_of_here(&*payload)
            && let Err(error) = child.join()
            && error.is_not_started()
        {
            not_started(&error);
        }
        resume_unwind(payload)
    }
}

/// Drops its value while a panic goes on: destructors see that, and their own panics are ignored.
struct Quietly<T>(Option<T>);

impl<T> Drop for Quietly<T> {
    fn drop(&mut self) {
        drop_quietly(self.0.take());
    }
}

/// Runs `a` here, with `b` as a child that any worker may begin meanwhile.
///
/// Returns a `b` that was not begun. Waits for a `b` that was begun, which is a cancellation point.
/// When this returns or unwinds, no worker runs `b` any more. Off a task, and where suspension is
/// forbidden, `b` is not offered to workers.
#[inline]
pub(crate) fn fork<A, RA, B, RB>(a: A, b: B) -> (RA, Result<RB, B>)
where
    A: FnOnce(&Forked<'_, B, RB>) -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let slot = Slot(Lock::new(Some(b)));
    let Some(owner) = context::task().filter(|task| !task.header().is_forbidden()) else {
        let first = a(&Forked { slot: &slot, child: None });
        return (first, Err(slot.take().expect("it was not begun")));
    };
    let second = Second { slot: &slot, owner: *owner };
    let (first, result) = scope(|scope| {
        let run = move || {
            let b = second.take();
            b()
        };
        let forked = Forked { slot: &slot, child: Some(scope.spawn_as(Builder::new().forked(), run)) };
        match catch_unwind(AssertUnwindSafe(|| a(&forked))) {
            Ok(first) => (first, forked.end()),
            Err(payload) => forked.unwind(payload),
        }
    });
    match result {
        Err(b) => (first, Err(b)),
        Ok(Ok(value)) => (first, Ok(value)),
        Ok(Err(error)) => fail(error),
    }
}

#[cold]
fn not_started(error: &JoinError) -> ! {
    panic!("the other closure of a `join` has not run: {error}")
}

/// Resumes the panic of the child. Its cancellation cancels the owner, as it would have done in
/// place.
#[cold]
fn fail(error: JoinError) -> ! {
    if error.is_not_started() {
        not_started(&error);
    }
    match error.try_into_panic() {
        Ok(payload) => resume_unwind(payload),
        Err(_) => {
            if let Some(task) = context::task() {
                cancel_points::mark_with_others(*task);
            }
            cancel_points::unwind_cancelled()
        }
    }
}
