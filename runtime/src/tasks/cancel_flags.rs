//! The cancel flags of a task: what has ended, or may end, the code that it runs.
//!
//! ```text
//!  7   6       5       4       3           2       1       0
//! ┌───┬───────┬───────┬───────┬───────────┬───────┬───────┬───────────┐
//! │   │ BEGUN │ ENDED │ NOTED │ SHELTERED │ ASKED │ FIRED │ CANCELLED │
//! └───┴───────┴───────┴───────┴───────────┴───────┴───────┴───────────┘
//!  CANCELLED  the task was cancelled; it stays         set by any thread
//!  ASKED      a cancel other than the runtime's end    set with CANCELLED; it stays
//!  FIRED      a token of an enclosing scope was fired  set by the canceller, after the flag of that scope
//!                                                      cleared by the task, after such a scope
//!  SHELTERED  the end of the runtime leaves it alone   set before the task is published; it stays
//!  NOTED      the worker is to look, and is being told set by a canceller off the home worker
//!                                                      cleared by its worker, before the look
//!  ENDED      its worker looks no more                 set by its home worker; it stays
//!  BEGUN      of a forked task: it has been claimed    set by the worker that starts it or the owner that takes it back
//! ```
//!
//! * Until the task is known to stay on its home worker, a canceller stores its flag here and then
//!   loads the wait word. The worker that takes the task off its stack sets ASLEEP in that word and
//!   then loads these flags. All four are sequentially consistent; the proof is in the docs of
//!   `waiter/word.rs`.
//! * Once the task is known to stay on its home worker, a canceller elsewhere sends it there. NOTED
//!   and ENDED belong to that; `scheduler/home_worker.rs` has the rules.
//! * FIRED says only that some scope's flag is up. The task clears it and then checks the flags of
//!   its remaining scopes. A flag that goes up meanwhile is seen there, or its FIRED comes after
//!   the clearing and stays.

#![forbid(unsafe_code)]

use crate::base::primitive::{AtomicU8, Ordering};

const CANCELLED: u8 = 1;
const FIRED: u8 = 1 << 1;
const ASKED: u8 = 1 << 2;
const SHELTERED: u8 = 1 << 3;
const NOTED: u8 = 1 << 4;
const ENDED: u8 = 1 << 5;
const BEGUN: u8 = 1 << 6;

/// Holds the cancel flags of one task.
pub(crate) struct CancelFlags(AtomicU8);

impl CancelFlags {
    pub(crate) const fn new() -> Self {
        CancelFlags(AtomicU8::new(0))
    }

    /// Returns true if the task itself was cancelled.
    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        // SeqCst: the load of the pair with `ASLEEP`. A plain load on most machines.
        self.0.load(Ordering::SeqCst) & CANCELLED != 0
    }

    /// Returns true if the task was cancelled, or a token was fired for code of it, which may have
    /// ended since.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        // SeqCst: as above.
        self.0.load(Ordering::SeqCst) & (CANCELLED | FIRED) != 0
    }

    /// Returns true if the end of the runtime leaves the task alone.
    #[inline]
    pub(crate) fn is_sheltered(&self) -> bool {
        // Relaxed: set before the task is published.
        self.0.load(Ordering::Relaxed) & SHELTERED != 0
    }

    /// Makes the end of the runtime leave the task alone. Called before the task is published.
    pub(crate) fn set_sheltered(&self) {
        // Relaxed: as above.
        self.0.fetch_or(SHELTERED, Ordering::Relaxed);
    }

    /// Marks the task as cancelled. The caller then ends its sleep, if it is in one.
    pub(crate) fn set_cancelled(&self) {
        // SeqCst: the store of the pair.
        self.0.fetch_or(CANCELLED | ASKED, Ordering::SeqCst);
    }

    /// Marks the task as cancelled by the end of the runtime.
    pub(crate) fn set_cancelled_for_shutdown(&self) {
        // SeqCst: as above.
        self.0.fetch_or(CANCELLED, Ordering::SeqCst);
    }

    /// Returns true if the task was cancelled by more than the end of the runtime.
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: the caller knows of such a cancel by other ways, or does not need to see a
        // concurrent one.
        self.0.load(Ordering::Relaxed) & ASKED != 0
    }

    /// Marks that a token was fired for some code of the task.
    ///
    /// The caller then ends its sleep, if it is in one.
    pub(crate) fn set_fired(&self) {
        // SeqCst: as above. As a Release it publishes the flag of the scope to `clear_fired`.
        self.0.fetch_or(FIRED, Ordering::SeqCst);
    }

    /// Clears FIRED. Called by the task, which then checks the flags of its scopes again.
    pub(crate) fn clear_fired(&self) {
        // Acquire, as a part of it: pairs with `set_fired`.
        self.0.fetch_and(!FIRED, Ordering::SeqCst);
    }

    /// Claims a forked task that has not begun. Returns false if it was claimed before.
    pub(crate) fn begin(&self) -> bool {
        // AcqRel: the first claimant owns the closure from here on.
        self.0.fetch_or(BEGUN, Ordering::AcqRel) & BEGUN == 0
    }

    /// Returns true once a forked task has been claimed.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        // Relaxed: a hint, `begin` decides.
        self.0.load(Ordering::Relaxed) & BEGUN != 0
    }

    /// Notes that the home worker of the task is to check its flags.
    ///
    /// Returns true if the caller has to send the task: no other canceller is about to, and it has
    /// not ended.
    pub(crate) fn note(&self) -> bool {
        let noted = |seen| (seen & (NOTED | ENDED) == 0).then_some(seen | NOTED);
        // Relaxed on failure: the caller's flag is in this very word, so the worker that takes the
        // note sees it.
        // Release: pairs with the Acquire in `take_note`. Acquire: pairs with the Release in `end`.
        self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, noted).is_ok()
    }

    /// Clears NOTED. Called by the worker, which then checks the flags.
    pub(crate) fn take_note(&self) {
        self.0.fetch_and(!NOTED, Ordering::AcqRel);
    }

    /// Returns true until the worker has been told and has taken the note.
    pub(crate) fn is_noted(&self) -> bool {
        // Relaxed: only the worker clears NOTED.
        self.0.load(Ordering::Relaxed) & NOTED != 0
    }

    /// Marks the task as ended. Returns true if a canceller is about to tell the worker.
    pub(crate) fn end(&self) -> bool {
        self.0.fetch_or(ENDED, Ordering::AcqRel) & NOTED != 0
    }
}
