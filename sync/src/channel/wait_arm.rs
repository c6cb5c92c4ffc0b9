//! The select arm that waits for an event, a semaphore or a token.

#![forbid(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;

use super::arm::{Arm, Purpose};
use super::operation::{Erased, Operation, Target};
use super::selectable::Selectable;
use super::selectable::sealed::Taken;
use crate::wait;

/// The arm `wait(source)`. Its waker has taken for it what it waits for.
pub struct WaitArm<'a, S: Selectable> {
    source: &'a S,
    /// Made for a wait.
    place: OnceCell<S::Arm<'a>>,
    /// What was taken of the source for it, until the arm is completed.
    taken: Cell<Option<Taken>>,
}

/// Makes the arm of a `wait` case.
pub fn wait_arm<M, S: Source<M> + ?Sized>(source: &S) -> WaitArm<'_, S::Root> {
    WaitArm::new(source.root())
}

/// A source, or what dereferences to one, at any depth.
///
/// `M` tells the two apart, and is inferred. A method that is looked up by the compiler would find a source behind pointers too,
/// but its error would not say what a select can wait for.
#[diagnostic::on_unimplemented(
    message = "a select cannot wait for `{Self}`",
    label = "is, or points to, no event, count, semaphore, token, or receiver of a oneshot, broadcast or watch channel",
    note = "the cases for channels and tasks are `recv(receiver) -> result => body`, \
            `send(sender, message) -> result => body` and `join(handle) => body`",
    note = "for a signal, wait for its `event()`; for a socket, for an event of a `fibra::Readiness`; for anything else, \
            `race` it against the select"
)]
pub trait Source<M> {
    /// The type of the source.
    type Root: Selectable;

    /// Returns the source.
    fn root(&self) -> &Self::Root;
}

/// Marks a source.
pub struct Itself;

/// Marks what dereferences to a source, or to what does.
pub struct Behind<M>(PhantomData<M>);

impl<S: Selectable> Source<Itself> for S {
    type Root = S;

    fn root(&self) -> &S {
        self
    }
}

impl<M, P: Deref<Target: Source<M>> + ?Sized> Source<Behind<M>> for P {
    type Root = <P::Target as Source<M>>::Root;

    fn root(&self) -> &Self::Root {
        (**self).root()
    }
}

impl<'a, S: Selectable> WaitArm<'a, S> {
    /// Makes an arm for `source`.
    pub fn new(source: &'a S) -> Self {
        WaitArm { source, place: OnceCell::new(), taken: Cell::new(None) }
    }

    /// Returns what was taken, after the arm was selected.
    pub fn complete(&self) -> S::Outcome<'a> {
        self.source.outcome(self.take().expect("only the arm that was chosen is completed"))
    }
}

impl<S: Selectable> Arm for WaitArm<'_, S> {
    fn try_now(&self) -> bool {
        let taken = self.source.take_now();
        let is_taken = taken.is_some();
        self.taken.set(taken);
        is_taken
    }

    fn place(&self, _purpose: Purpose) -> Option<&dyn wait::Arm> {
        Some(self.place.get_or_init(|| self.source.arm()))
    }

    fn accept(&self) -> bool {
        self.taken.set(self.place.get().map(|place| self.source.served(place)));
        true
    }
}

impl<S: Selectable> Operation for WaitArm<'_, S> {
    fn abandon(&self) {
        self.take().into_iter().for_each(|taken| self.source.give_back(taken));
    }

    fn take(&self) -> Option<Taken> {
        self.taken.take()
    }

    fn target(&self) -> Target {
        Target::Waits(ptr::from_ref(self.source).cast())
    }

    fn renew(&self) -> Erased {
        Erased::new(WaitArm::new(self.source))
    }
}
