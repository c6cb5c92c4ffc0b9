//! What may end the code that a task runs: its own cancellation, and the deadlines and tokens of the scopes it is in.
//!
//! ```text
//!  Header{bounds} ─▶ Bound ─▶ Bound ─▶ … ─▶ null        innermost first, each on the stack of the task itself
//!                    Deadline  Shield                    a shield hides what lies behind it
//!                    Token
//! ```
//!
//! The chain is only touched by the task, and by its worker while the task is off its stack. Another thread that cancels a
//! token sets the token's flag, which its bounds share, then a bit in the header, then looks at the wait word; the sleeper sets ASLEEP there and then looks at the header. That is the pair of
//! `cancel`, and its proof.
//!
//! Where several have been hit the outermost is raised: what it encloses ends with it.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use crate::base::clock;
use crate::base::primitive::{AtomicBool, Ordering};

/// One scope that may end early.
pub(crate) struct Bound {
    pub(super) outer: Cell<*const Bound>,
    pub(super) kind: Kind,
    /// The earliest deadline of this and what lies behind it.
    pub(super) earliest: Cell<Option<Instant>>,
    /// A wake by a cancel may concern code in here.
    pub(super) open: Cell<bool>,
    /// How often the code was unwound for this; stays at the most that can be counted.
    pub(crate) raised: Cell<u16>,
    /// Given when it is first raised, to no other one ever; 0 before. An address would be another one's later.
    number: Cell<u64>,
}

/// The number of the bound that was last raised for the first time. Of std also in a model: it orders nothing.
static RAISED: AtomicU64 = AtomicU64::new(0);

pub(super) enum Kind {
    Deadline(Instant),
    /// With the flag of the token.
    Token(Arc<AtomicBool>),
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

    /// Makes a scope that ends when the flag of a token is set.
    pub(crate) fn token(cancelled: Arc<AtomicBool>) -> Self {
        Bound::new(Kind::Token(cancelled))
    }

    /// A scope that nothing from outside of it ends.
    pub(crate) fn shield() -> Self {
        Bound::new(Kind::Shield { at_end: false })
    }

    /// The same around what the end of a task drops.
    pub(crate) fn shield_at_end() -> Self {
        Bound::new(Kind::Shield { at_end: true })
    }

    pub(super) fn is_hit(&self, look: Look) -> bool {
        match &self.kind {
            Kind::Deadline(deadline) => look == Look::Clock && *deadline <= clock::now(),
            // SeqCst: pairs with the swap of `Stop::cancel`.
            Kind::Token(cancelled) => cancelled.load(Ordering::SeqCst),
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

    pub(super) fn enter(&self, place: *const Bound, outer: Option<&Bound>) {
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
