//! Who of the two sides of a oneshot channel has spoken, who listens, and who is last and frees it.
//!
//! ```text
//!   7        4 3        0
//!  ┌──────────┬──────────┐     the same four bits for each side
//!  │ receiver │  sender  │
//!  └──────────┴──────────┘
//!  SPOKE   the side has said its one word: the sender "the outcome is there", the receiver "no more"
//!  GONE    it touches nothing of the channel any more
//!  ASLEEP  it sleeps, and its slot holds the right to wake it
//!  POLLED  it was polled, and its slot holds a waker
//!
//!                listen                   speak, of the other side
//!  slot is mine ────────▶ ASLEEP/POLLED ──────────────────────────▶ slot is the other's, who takes what is in it
//!       ▲                      │
//!       └──────────────────────┘
//!              unlisten
//! ```
//!
//! * Each move is one compare-exchange, so that of `speak` and `unlisten` one is first; that one has what is in the slot.
//!   Who listened and listens no more looks whether the other has spoken before it touches its slot again.
//! * Who leaves says GONE together with its word. The sleeper whose wake it has taken cannot vanish before that wake has
//!   landed, so it may reach into the slot after. A waker pins nobody: who takes one says GONE only when it has it.
//! * Who says GONE second, or sees that the other has said it, frees the channel.

use crate::primitive::{AtomicU8, Ordering};

const SPOKE: u8 = 1;
const GONE: u8 = 1 << 1;
const ASLEEP: u8 = 1 << 2;
const POLLED: u8 = 1 << 3;

const LISTENS_MASK: u8 = ASLEEP | POLLED;

/// The word of a channel.
pub(crate) struct Word(AtomicU8);

/// One side of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }

    fn bits(self, bits: u8) -> u8 {
        match self {
            Side::Sender => bits,
            Side::Receiver => bits << 4,
        }
    }
}

/// How a side listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    Asleep,
    Polled,
}

/// Whether a side that speaks remains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    Stays,
    Leaves,
}

/// What a side owes that has spoken.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spoken {
    /// Nothing.
    Unheard,
    /// It left, and was the last: it frees the channel.
    Last,
    /// It takes the wake out of the other's slot, and uses it. If it leaves, it has left.
    Rouse,
    /// It takes the waker out of the other's slot; then, if it leaves, it calls `leave`; then it uses the waker.
    Call,
}

impl Word {
    pub(crate) const fn new() -> Self {
        Word(AtomicU8::new(0))
    }

    /// True if the other side has spoken: what it wrote before is seen.
    #[inline]
    pub(crate) fn hears(&self, me: Side) -> bool {
        // Acquire: pairs with the Release in `speak`.
        self.0.load(Ordering::Acquire) & me.other().bits(SPOKE) != 0
    }

    /// True if this side has spoken.
    pub(crate) fn has_spoken(&self, me: Side) -> bool {
        // Relaxed: a bit of this side's own.
        self.0.load(Ordering::Relaxed) & me.bits(SPOKE) != 0
    }

    /// True if this side listens, as far as it knows: the other may have heard of it meanwhile.
    pub(crate) fn may_listen(&self, me: Side) -> bool {
        // Relaxed: only this side sets the bit, and `unlisten` finds out.
        self.0.load(Ordering::Relaxed) & me.bits(LISTENS_MASK) != 0
    }

    /// As [`speak`](Word::speak), unless the other side has spoken.
    pub(crate) fn speak_first(&self, me: Side, then: Then) -> Option<Spoken> {
        self.speak_unless(me.other().bits(SPOKE), me, then)
    }

    /// Says the word of this side.
    pub(crate) fn speak(&self, me: Side, then: Then) -> Spoken {
        match self.speak_unless(0, me, then) {
            Some(spoken) => spoken,
            None => unreachable!("nothing keeps it from speaking"),
        }
    }

    fn speak_unless(&self, forbidden: u8, me: Side, then: Then) -> Option<Spoken> {
        let other = me.other();
        // Acquire, here and below: pairs with the Release in `listen`, for the slot, and with that of whoever left, for
        // the memory.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            if seen & forbidden != 0 {
                return None;
            }
            if seen & other.bits(GONE) != 0 {
                // Nobody looks at the word any more.
                return Some(if then == Then::Leaves { Spoken::Last } else { Spoken::Unheard });
            }
            let polled = seen & other.bits(POLLED) != 0;
            let leaves = then == Then::Leaves && !polled;
            let mine = me.bits(SPOKE | if leaves { GONE } else { 0 });
            let next = seen & !other.bits(LISTENS_MASK) | mine;
            // Release: pairs with the Acquire in `hears`, and where the other side frees the channel.
            match self.0.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if polled => return Some(Spoken::Call),
                Ok(before) if before & other.bits(ASLEEP) != 0 => return Some(Spoken::Rouse),
                Ok(_) => return Some(Spoken::Unheard),
                Err(now) => seen = now,
            }
        }
    }

    /// The last touch of a side that has spoken. True if it was the last: it frees the channel.
    pub(crate) fn leave(&self, me: Side) -> bool {
        // Release: this side's touches come before those of whoever frees. Acquire: pairs with it.
        self.0.fetch_or(me.bits(GONE), Ordering::AcqRel) & me.other().bits(GONE) != 0
    }

    /// Gives what is in this side's slot to the other, unless that has spoken.
    pub(crate) fn listen(&self, me: Side, how: How) -> bool {
        let bit = match how {
            How::Asleep => me.bits(ASLEEP),
            How::Polled => me.bits(POLLED),
        };
        // Acquire, here and below: pairs with the Release in `speak`.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            if seen & me.other().bits(SPOKE) != 0 {
                return false;
            }
            // Release: pairs with the Acquire in `speak`, for the slot.
            match self.0.compare_exchange_weak(seen, seen | bit, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the slot back. False if the other side was first and has what is in it: the slot is never this side's again.
    pub(crate) fn unlisten(&self, me: Side) -> bool {
        // Acquire: pairs with the Release in `speak`: after a false, the other has spoken.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            if seen & me.bits(LISTENS_MASK) == 0 {
                return false;
            }
            let next = seen & !me.bits(LISTENS_MASK);
            match self.0.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }
}
