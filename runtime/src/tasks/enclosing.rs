//! The bounds around the code that a task runs: entering one, and what they say of the code inside.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use crate::tasks::bounds::{Bound, Kind, Look, Target};
use crate::tasks::cancel::Cancelled;
use crate::tasks::header::Header;

impl Bound {
    /// Runs `f` inside this bound. `None` if the bound ended it.
    pub(crate) fn run<T>(&self, header: &Header, f: impl FnOnce() -> T) -> Option<T> {
        let outer = header.bounds.get();
        // SAFETY: a bound of the chain lies on the stack of this task, in a frame further out than this one.
        self.enter(outer, unsafe { outer.as_ref() });
        header.bounds.set(self);
        let result = catch_unwind(AssertUnwindSafe(f));
        header.bounds.set(outer);
        match result {
            Ok(value) => Some(value),
            Err(payload) if self.raised.get() > 0 && Cancelled::ends(&*payload, header, Some(self)) => None,
            Err(payload) => resume_unwind(payload),
        }
    }
}

impl Header {
    /// The bounds around the code that runs, innermost first.
    fn around(&self) -> impl Iterator<Item = &Bound> {
        // SAFETY: see `Bound::run`; the header is asked by the task itself, or by its worker while it is off its stack.
        let innermost = unsafe { self.bounds.get().as_ref() };
        // SAFETY: as above.
        std::iter::successors(innermost, |bound| unsafe { bound.outer.get().as_ref() })
    }

    /// When the code that runs is ended from around it.
    pub(crate) fn enclosing_deadline(&self) -> Option<Instant> {
        self.around().next()?.earliest.get()
    }

    /// False while no cancel concerns the code that runs.
    pub(crate) fn is_open(&self) -> bool {
        self.around().next().is_none_or(|bound| bound.open.get())
    }

    /// True if a shield is around the code that runs: also around scopes in there, which may be open again.
    #[inline]
    pub(crate) fn is_shielded(&self) -> bool {
        self.around().any(|bound| matches!(bound.kind, Kind::Shield { .. }))
    }

    /// True in what the end of the task drops, off any unwinding; but not in a shield of the user's in there.
    pub(crate) fn is_at_end(&self) -> bool {
        let mut shields = self.around().filter_map(|bound| match bound.kind {
            Kind::Shield { at_end } => Some(at_end),
            _ => None,
        });
        shields.next() == Some(true)
    }

    /// True where the task was cancelled and what its end drops is to fail instead of waiting.
    pub(crate) fn is_cancelled_at_end(&self) -> bool {
        self.marks.is_cancelled() && self.is_at_end()
    }

    /// True if a mark ends the present sleep, which has begun `at_end` or as any other.
    pub(crate) fn is_marked(&self, at_end: bool) -> bool {
        self.hit(Look::Marks).is_some() || (at_end && self.is_cancelled_at_end())
    }

    /// The outermost of what has been hit and is not behind a shield. In a task that unwinds nothing
    /// is raised for it.
    pub(crate) fn hit(&self, look: Look) -> Option<Target<'_>> {
        let mut target = None;
        for bound in self.around() {
            if matches!(bound.kind, Kind::Shield { .. }) {
                return target;
            }
            if bound.is_hit(look) {
                target = Some(Target::Bound(bound));
            }
        }
        if self.marks.is_cancelled() { Some(Target::Task) } else { target }
    }

    /// True if the code that runs was unwound by something that is still around it.
    pub(crate) fn is_raised(&self) -> bool {
        self.unwound.get() > 0 || self.around().any(|bound| bound.raised.get() > 0)
    }

    /// Takes the mark of fired tokens back, after a scope that had one; unless another is around.
    pub(crate) fn forget_token(&self) {
        self.marks.clear_fired();
        // Only tokens are hit by marks.
        if self.around().any(|bound| bound.is_hit(Look::Marks)) {
            self.marks.set_fired();
        }
    }
}
