//! The bounds around the running code of a task: entering a bound, and what they tell about the
//! code inside.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use crate::tasks::bounds::{Bound, Kind, Look, Target};
use crate::tasks::cancel::Cancelled;
use crate::tasks::header::Header;

impl Bound {
    /// Runs `f` inside this bound. Returns `None` if the bound ended it.
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
    /// Iterates over the bounds around the running code, innermost first.
    fn around(&self) -> impl Iterator<Item = &Bound> {
        // SAFETY: see `Bound::run`; the caller is the task itself, or its worker while the task is
        // off its stack.
        let innermost = unsafe { self.bounds.get().as_ref() };
        // SAFETY: as above.
        std::iter::successors(innermost, |bound| unsafe { bound.outer.get().as_ref() })
    }

    /// Returns the earliest deadline around the running code.
    pub(crate) fn enclosing_deadline(&self) -> Option<Instant> {
        self.around().next()?.earliest.get()
    }

    /// Returns false while no cancel concerns the running code.
    pub(crate) fn is_open(&self) -> bool {
        self.around().next().is_none_or(|bound| bound.open.get())
    }

    /// Returns true if a shield is around the running code, even if a scope inside the shield is
    /// open again.
    #[inline]
    pub(crate) fn is_shielded(&self) -> bool {
        self.around().any(|bound| matches!(bound.kind, Kind::Shield { .. }))
    }

    /// Returns true in destructors at the end of the task, off any unwinding, and not inside a
    /// user's shield there.
    pub(crate) fn is_at_end(&self) -> bool {
        let mut shields = self.around().filter_map(|bound| match bound.kind {
            Kind::Shield { at_end } => Some(at_end),
            _ => None,
        });
        shields.next() == Some(true)
    }

    /// Returns true where destructors at the end of a cancelled task are to fail instead of
    /// waiting.
    pub(crate) fn is_cancelled_at_end(&self) -> bool {
        self.cancel_flags.is_cancelled() && self.is_at_end()
    }

    /// Returns true if a cancel flag ends the present sleep.
    ///
    /// `at_end` tells how that sleep has begun.
    pub(crate) fn is_marked(&self, at_end: bool) -> bool {
        self.hit(Look::Flags).is_some() || (at_end && self.is_cancelled_at_end())
    }

    /// Returns the outermost target that was hit and is not behind a shield.
    ///
    /// In a task that unwinds nothing is raised for it.
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
        if self.cancel_flags.is_cancelled() { Some(Target::Task) } else { target }
    }

    /// Returns true if the running code was unwound by a bound or cancel that still surrounds it.
    pub(crate) fn is_raised(&self) -> bool {
        self.unwound.get() > 0 || self.around().any(|bound| bound.raised.get() > 0)
    }

    /// Clears FIRED after a token's scope, unless another fired token is around.
    pub(crate) fn forget_token(&self) {
        self.cancel_flags.clear_fired();
        // Flags alone hit only tokens.
        if self.around().any(|bound| bound.is_hit(Look::Flags)) {
            self.cancel_flags.set_fired();
        }
    }
}
