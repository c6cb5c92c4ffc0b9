//! What may end the code that a task runs: its own cancellation, and the deadlines and tokens of the scopes it is in.
//!
//! ```text
//!  Header{bounds} ─▶ Bound ─▶ Bound ─▶ … ─▶ null        innermost first, each on the stack of the task itself
//!                    Deadline  Shield                    a shield hides what lies behind it
//!                    Token
//! ```
//!
//! The chain is only touched by the task, and by its worker while the task is off its stack. Another thread that fires a
//! token sets the flag in its bound (under the token's lock, which the scope takes before it ends), then a bit in the
//! header, then looks at the wait word; the sleeper sets ASLEEP there and then looks at the header. That is the pair of
//! `cancel`, and its proof.
//!
//! Where several have been hit the outermost is raised: what it encloses ends with it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use crate::base::primitive::{AtomicBool, Ordering};
use crate::tasks::cancel::Cancelled;
use crate::tasks::header::Header;

/// One scope that may end early.
pub(crate) struct Bound {
    outer: Cell<*const Bound>,
    kind: Kind,
    /// The earliest deadline of this and what lies behind it.
    earliest: Cell<Option<Instant>>,
    /// A wake by a cancel may concern code in here.
    open: Cell<bool>,
    /// How often the code was unwound for this; stays at the most that can be counted.
    pub(crate) raised: Cell<u16>,
    /// Given when it is first raised, to no other one ever; 0 before. An address would be another one's later.
    number: Cell<u64>,
}

/// The number of the bound that was last raised for the first time. Of std also in a model: it orders nothing.
static RAISED: AtomicU64 = AtomicU64::new(0);

enum Kind {
    Deadline(Instant),
    Token(AtomicBool),
    Shield {
        /// Around destructors that end the task, though it does not unwind.
        at_end: bool,
    },
}

/// Who ends the code that runs.
pub(crate) enum Target<'a> {
    Task,
    Bound(&'a Bound),
}

/// How far to look for what has been hit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// At marks only.
    Marks,
    /// Also at the clock.
    Clock,
}

impl Bound {
    fn new(kind: Kind) -> Self {
        Bound {
            outer: Cell::new(ptr::null()),
            kind,
            earliest: Cell::new(None),
            open: Cell::new(true),
            raised: Cell::new(0),
            number: Cell::new(0),
        }
    }

    /// A scope that ends at `deadline`.
    pub(crate) fn deadline(deadline: Instant) -> Self {
        Bound::new(Kind::Deadline(deadline))
    }

    /// A scope that ends when it is fired.
    pub(crate) fn token() -> Self {
        Bound::new(Kind::Token(AtomicBool::new(false)))
    }

    /// A scope that nothing from outside of it ends.
    pub(crate) fn shield() -> Self {
        Bound::new(Kind::Shield { at_end: false })
    }

    /// The same around what the end of a task drops.
    pub(crate) fn shield_at_end() -> Self {
        Bound::new(Kind::Shield { at_end: true })
    }

    /// Ends the scope, by anybody who keeps it from going away meanwhile. The caller then marks the task.
    pub(crate) fn fire(&self) {
        if let Kind::Token(fired) = &self.kind {
            // SeqCst: comes before the mark in the header, which is the store of the pair with `ASLEEP`.
            fired.store(true, Ordering::SeqCst);
        }
    }

    fn is_hit(&self, look: Look) -> bool {
        match &self.kind {
            Kind::Deadline(deadline) => look == Look::Clock && *deadline <= Instant::now(),
            // SeqCst: as in `fire`.
            Kind::Token(fired) => fired.load(Ordering::SeqCst),
            Kind::Shield { .. } => false,
        }
    }

    /// Its number, from now on. By its task.
    pub(crate) fn number(&self) -> u64 {
        if self.number.get() == 0 {
            // Relaxed: it publishes nothing.
            self.number.set(RAISED.fetch_add(1, Ordering::Relaxed) + 1);
        }
        self.number.get()
    }

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

    fn enter(&self, place: *const Bound, outer: Option<&Bound>) {
        self.outer.set(place);
        let behind = outer.and_then(|outer| outer.earliest.get());
        let (earliest, open) = match &self.kind {
            Kind::Deadline(own) => (
                Some(behind.map_or(*own, |behind| behind.min(*own))),
                outer.is_none_or(|outer| outer.open.get()),
            ),
            Kind::Token(_) => (behind, true),
            Kind::Shield { .. } => (None, false),
        };
        self.earliest.set(earliest);
        self.open.set(open);
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
