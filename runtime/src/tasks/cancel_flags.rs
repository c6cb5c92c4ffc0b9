//! The marks of a task: what has ended, or may end, the code that it runs.
//!
//! ```text
//!  7   6       5       4       3           2       1       0
//! ┌───┬───────┬───────┬───────┬───────────┬───────┬───────┬───────────┐
//! │   │ BEGUN │ ENDED │ NOTED │ SHELTERED │ ASKED │ FIRED │ CANCELLED │
//! └───┴───────┴───────┴───────┴───────────┴───────┴───────┴───────────┘
//!  CANCELLED  the task was cancelled; it stays         set by anybody
//!  ASKED      not by the end of the runtime alone      set with CANCELLED; it stays
//!  FIRED      a token was fired that it runs under     set by who fires, after the flag of the scope in question
//!                                                      cleared by the task, after such a scope
//!  SHELTERED  the end of the runtime leaves it alone   set before anybody has seen the task; it stays
//!  NOTED      its worker is to look, or soon told to   set by one who marks a task that is at home elsewhere
//!                                                      cleared by its worker, before the look
//!  ENDED      its worker looks no more                 set by its worker, of a task that stays there; it stays
//!  BEGUN      of a forked task: it has been claimed    set by the worker that starts it or the owner that takes it back
//! ```
//!
//! * A mark and the sleep of the task, until it is known to stay on its worker: who marks it looks at the wait word then, and whoever
//!   takes the task off its stack sets ASLEEP there and then looks at the marks. Both are sequentially consistent; the proof stands at
//!   the head of `wait/word.rs`.
//! * A task that is known to stay on its worker is not to be woken by who marks it elsewhere: that one sends it to the worker, which
//!   looks at the marks itself. Who sets NOTED first sends it; who finds it set has marked before the look that is to come. Its sender
//!   may use the worker's block until it has sent: whoever finds ENDED does not, and the worker that finds NOTED as it sets ENDED waits
//!   for what is sent, before it lets go of the task and of itself.
//! * FIRED says only that some flag is up. The task clears it and then looks at the flags of the scopes that are left: a flag
//!   that goes up meanwhile is seen there, or its mark comes after the clearing and stays.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU8, Ordering};

const CANCELLED: u8 = 1;
const FIRED: u8 = 1 << 1;
const ASKED: u8 = 1 << 2;
const SHELTERED: u8 = 1 << 3;
const NOTED: u8 = 1 << 4;
const ENDED: u8 = 1 << 5;
const BEGUN: u8 = 1 << 6;

/// The marks of one task.
pub(crate) struct Marks(AtomicU8);

impl Marks {
    pub(crate) const fn new() -> Self {
        Marks(AtomicU8::new(0))
    }

    /// True if the task itself was cancelled.
    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        // SeqCst: the load of the pair with `ASLEEP`. A plain load on most machines.
        self.0.load(Ordering::SeqCst) & CANCELLED != 0
    }

    /// True if the task was cancelled, or a token was fired for code of it that may have ended since.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        // SeqCst: as above.
        self.0.load(Ordering::SeqCst) & (CANCELLED | FIRED) != 0
    }

    /// True if the end of the runtime leaves the task alone.
    #[inline]
    pub(crate) fn is_sheltered(&self) -> bool {
        // Relaxed: whoever sees the task sees what was set before.
        self.0.load(Ordering::Relaxed) & SHELTERED != 0
    }

    /// The end of the runtime is to leave the task alone, which nobody has seen yet.
    pub(crate) fn set_sheltered(&self) {
        // Relaxed: as above.
        self.0.fetch_or(SHELTERED, Ordering::Relaxed);
    }

    /// The task was cancelled. The caller then ends its sleep, if it is in one.
    pub(crate) fn set_cancelled(&self) {
        // SeqCst: the store of the pair.
        self.0.fetch_or(CANCELLED | ASKED, Ordering::SeqCst);
    }

    /// The same by the end of the runtime.
    pub(crate) fn set_overtaken(&self) {
        // SeqCst: as above.
        self.0.fetch_or(CANCELLED, Ordering::SeqCst);
    }

    /// True if somebody has cancelled the task who may know of it, and not the end of the runtime alone.
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: who asks knows of such a cancel by other ways, or does not care for one at this moment.
        self.0.load(Ordering::Relaxed) & ASKED != 0
    }

    /// A token was fired for some code of the task. The caller then ends its sleep, if it is in one.
    pub(crate) fn set_fired(&self) {
        // SeqCst: as above. As a Release it publishes the flag of the scope to `clear_fired`.
        self.0.fetch_or(FIRED, Ordering::SeqCst);
    }

    /// Takes that mark back. By the task, which then looks at the flags of its scopes again.
    pub(crate) fn clear_fired(&self) {
        // Acquire, as a part of it: pairs with `set_fired`.
        self.0.fetch_and(!FIRED, Ordering::SeqCst);
    }

    /// Claims a forked task that has not begun. Returns false if it was claimed before.
    pub(crate) fn begin(&self) -> bool {
        // AcqRel: the caller that claims it first is alone with its closure from here on.
        self.0.fetch_or(BEGUN, Ordering::AcqRel) & BEGUN == 0
    }

    /// Returns true once a forked task has been claimed.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        // Relaxed: a hint, `begin` decides.
        self.0.load(Ordering::Relaxed) & BEGUN != 0
    }

    /// Notes that the worker of the task is to look. True if the caller has to tell it: nobody else is about to, and the task has not
    /// ended.
    pub(crate) fn note(&self) -> bool {
        let noted = |seen| (seen & (NOTED | ENDED) == 0).then_some(seen | NOTED);
        // Relaxed where it is set already: the caller's mark is in this very word, so whoever takes the note sees it. Release: pairs with
        // the Acquire in `take_note`. Acquire: with the Release in `end`.
        self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, noted).is_ok()
    }

    /// By the worker, which looks then.
    pub(crate) fn take_note(&self) {
        self.0.fetch_and(!NOTED, Ordering::AcqRel);
    }

    /// True while the worker has not been told, or has not looked.
    pub(crate) fn is_noted(&self) -> bool {
        // Relaxed: the worker alone takes notes.
        self.0.load(Ordering::Relaxed) & NOTED != 0
    }

    /// The task has ended. True if somebody is about to tell the worker.
    pub(crate) fn end(&self) -> bool {
        self.0.fetch_or(ENDED, Ordering::AcqRel) & NOTED != 0
    }
}
