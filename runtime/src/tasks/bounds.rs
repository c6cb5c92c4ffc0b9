//! The scopes that may end the code of a task: deadlines, tokens and shields, besides its own
//! cancellation.
//!
//! ```text
//!  Header{bounds} ─▶ Bound ─▶ Bound ─▶ … ─▶ null        innermost first, each on the stack of the task itself
//!                    Deadline  Shield                    a shield hides what lies behind it
//!                    Token
//! ```
//!
//! Only the task touches the chain, and its worker while the task is off its stack. A thread that
//! cancels a token sets the token's flag, which its bounds share, then a bit in the header, then
//! loads the wait word. The sleeper sets ASLEEP there and then loads the header. That is the pair
//! of `cancel`, with the same proof.
//!
//! Of several bounds that were hit the outermost is raised: the scopes inside it end with it.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use crate::base::clock;
use crate::base::primitive::{AtomicBool, Ordering};

/// Describes one scope that may end early.
pub(crate) struct Bound {
    pub(super) outer: Cell<*const Bound>,
    pub(super) kind: Kind,
    /// The earliest deadline of this scope and the scopes around it.
    pub(super) earliest: Cell<Option<Instant>>,
    /// A cancel from outside may concern code in this scope.
    pub(super) open: Cell<bool>,
    /// How often the code was unwound for this scope; saturates.
    pub(crate) raised: Cell<u16>,
    /// A unique number, given when the scope is first raised; 0 before. An address could be reused.
    number: Cell<u64>,
}

/// The last number given. An atomic of std also in a model: it orders nothing.
static RAISED: AtomicU64 = AtomicU64::new(0);

/// Returns a number that no scope has had.
pub(crate) fn next_number() -> u64 {
    // Relaxed: it publishes nothing.
    RAISED.fetch_add(1, Ordering::Relaxed) + 1
}

pub(super) enum Kind {
    Deadline(Instant),
    /// With the flag of the token.
    Token(Arc<AtomicBool>),
    Shield {
        /// Around destructors that end the task, though it does not unwind.
        at_end: bool,
    },
}

/// Tells what ends the running code.
pub(crate) enum Target<'a> {
    Task,
    Bound(&'a Bound),
}

/// Tells how far to look for a bound that was hit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// At flags only.
    Flags,
    /// At flags and at the clock.
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

    /// Makes a scope that ends at `deadline`.
    pub(crate) fn deadline(deadline: Instant) -> Self {
        Bound::new(Kind::Deadline(deadline))
    }

    /// Makes a scope that ends when the flag of a token is set.
    pub(crate) fn token(cancelled: Arc<AtomicBool>) -> Self {
        Bound::new(Kind::Token(cancelled))
    }

    /// Makes a scope that nothing outside of it ends.
    pub(crate) fn shield() -> Self {
        Bound::new(Kind::Shield { at_end: false })
    }

    /// Makes a shield around the destructors at the end of a task.
    pub(crate) fn shield_at_end() -> Self {
        Bound::new(Kind::Shield { at_end: true })
    }

    pub(super) fn is_hit(&self, look: Look) -> bool {
        match &self.kind {
            Kind::Deadline(deadline) => look == Look::Clock && *deadline <= clock::now(),
            // SeqCst: pairs with the swap in `cancel_token.rs`.
            Kind::Token(cancelled) => cancelled.load(Ordering::SeqCst),
            Kind::Shield { .. } => false,
        }
    }

    /// Returns its number, which is given now if it has none. Called by its task.
    pub(crate) fn number(&self) -> u64 {
        if self.number.get() == 0 {
            self.number.set(next_number());
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
