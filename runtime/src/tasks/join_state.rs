//! The end of a task, and the waiter for it.
//!
//! One atomic pointer holds both the state of the handle and its one waiter:
//!
//! ```text
//!             handle dropped
//!   UNJOINED ─────────────────▶ DETACHED
//!    │  ▲                           │
//!    │  │ withdrawn                 │ finish: the runner drops the result
//!    ▼  │                           ▼
//!   a node on the joiner's stack ─▶ DONE ◀── finish: the result is the handle's
//!   or a waker in a box             │
//!                                   └──▶ TAKEN    a poll has taken the result
//! ```
//!
//! The runner makes the moves to DONE, the handle makes all others. Every move but the last is one read-modify-write with
//! Acquire and Release: DONE publishes the result to the handle, DETACHED gives up the stage to the runner.
//!
//! A handle that is polled as a future leaves its waker in a box, whose address carries the bit
//! `WAKER`. The box belongs to the word. The side that takes it out owns it from then on: the
//! handle by withdrawing it, the runner by DONE. So neither waits for its counterpart.
//!
//! After its move to DONE the runner reads the node it found. A joiner that waits for nothing else
//! stays until the wake in that node lands. A joiner that waits for several things may have been
//! woken for another. So the runner takes its select token before the wake, and releases the node
//! last. A joiner that is too late to withdraw waits for that release, which takes a few
//! instructions.

use std::ptr;
use std::task::Waker;

use crate::base::primitive::{AtomicBool, AtomicPtr, Cell, Ordering, spin_loop, yield_now};
use crate::waiter::kind::RawWake;
use crate::waiter::select_token::Claim;

const UNJOINED: *mut Joiner = ptr::null_mut();
const DETACHED: *mut Joiner = ptr::without_provenance_mut(1);
const DONE: *mut Joiner = ptr::without_provenance_mut(ENDED);
const TAKEN: *mut Joiner = ptr::without_provenance_mut(ENDED | 1);

/// The bit of DONE and TAKEN, which is zero in every address of a node or a waker.
const ENDED: usize = 2;
/// Marks the address of a waker in a box.
const WAKER: usize = 1;
const TAGS: usize = ENDED | WAKER;

const _: () = assert!(align_of::<Joiner>() > TAGS && align_of::<Waker>() > TAGS);

/// Holds the state of a task's end.
pub(crate) struct Join(AtomicPtr<Joiner>);

/// Links the waiter for a task's end. Lives on the waiter's stack.
pub(crate) struct Joiner {
    wake: Cell<Option<RawWake>>,
    /// The select token and the arm of this node, for a joiner that waits for several things.
    claim: Cell<(*const Claim, usize)>,
    /// With a select token: the runner touches this node no more.
    released: AtomicBool,
}

/// Tells which waiter the runner finds at the end of a task.
#[must_use]
pub(crate) enum JoinState {
    /// No waiter, or a joiner that was woken for something else.
    Unjoined,
    Waiting(RawWake),
    /// A future, whose waker is now the runner's to call.
    Polled(Box<Waker>),
    Detached,
}

/// Tells what a handle finds as it is dropped.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detaching {
    /// The runner drops the result, when there is one.
    Left,
    /// The task is done, and the result is still the handle's.
    Done,
    /// A poll has taken the result.
    Taken,
}

impl Join {
    pub(crate) const fn new() -> Self {
        Join(AtomicPtr::new(UNJOINED))
    }

    pub(crate) fn is_done(&self) -> bool {
        // Acquire: pairs with the Release in `finish`, which publishes the result.
        self.0.load(Ordering::Acquire).addr() & ENDED != 0
    }

    pub(crate) fn is_detached(&self) -> bool {
        // Acquire: pairs with the Release in `detach`.
        self.0.load(Ordering::Acquire) == DETACHED
    }

    /// Returns true while a joiner or a future waits for the end. A hint.
    pub(crate) fn is_awaited(&self) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        seen != UNJOINED && seen != DETACHED && seen.addr() & ENDED == 0
    }

    /// Publishes the end. Called by the runner, once.
    pub(crate) fn finish(&self) -> JoinState {
        // Release: publishes the result. Acquire: pairs with `publish` and `detach`.
        match self.0.swap(DONE, Ordering::AcqRel) {
            UNJOINED => JoinState::Unjoined,
            DETACHED => JoinState::Detached,
            // SAFETY: a marked address is that of a box which was the word's until now.
            waker if is_waker(waker) => JoinState::Polled(unsafe { boxed(waker) }),
            joiner => {
                // SAFETY: a joiner that published its node keeps it until it has withdrawn it,
                // which fails from now on, or until the wake taken here lands, or until the node is
                // released.
                let wake = unsafe { (*joiner).claim_wake() };
                wake.map_or(JoinState::Unjoined, JoinState::Waiting)
            }
        }
    }

    /// Leaves the result to the runner, unless the task is done.
    ///
    /// Called by a handle that has withdrawn what it published.
    pub(crate) fn detach(&self) -> Detaching {
        // Release: gives up the stage. Acquire on failure: the result is ours.
        match self.0.compare_exchange(UNJOINED, DETACHED, Ordering::Release, Ordering::Acquire) {
            Ok(_) => Detaching::Left,
            Err(TAKEN) => Detaching::Taken,
            Err(found) => {
                debug_assert!(found == DONE, "no joiner waits through a dropped handle");
                Detaching::Done
            }
        }
    }

    /// Notes that the handle has taken the result and stays. The task is done.
    pub(crate) fn set_taken(&self) {
        // Release: a reader of TAKEN sees what the runner published, which this handle has
        // acquired.
        self.0.store(TAKEN, Ordering::Release);
    }

    /// Leaves a waker to be called at the end, or gives it back if the task is done.
    ///
    /// Called by a handle that waits in no other way.
    pub(crate) fn publish_waker(&self, waker: Box<Waker>) -> Result<(), Box<Waker>> {
        let marked = Box::into_raw(waker).cast::<Joiner>().map_addr(|address| address | WAKER);
        // Release: pairs with the Acquire in `finish`, which takes the box. Acquire on failure: DONE.
        match self.0.compare_exchange(UNJOINED, marked, Ordering::Release, Ordering::Acquire) {
            Ok(_) => Ok(()),
            // SAFETY: the box made above, which was not published.
            Err(_) => Err(unsafe { boxed(marked) }),
        }
    }

    /// Takes back the waker that the handle left, if there is one and the task is not done.
    #[inline]
    pub(crate) fn withdraw_waker(&self) -> Option<Box<Waker>> {
        // Relaxed: only the handle stores a waker, so it sees its own store.
        let seen = self.0.load(Ordering::Relaxed);
        if is_waker(seen) { self.withdraw_seen(seen) } else { None }
    }

    #[cold]
    fn withdraw_seen(&self, marked: *mut Joiner) -> Option<Box<Waker>> {
        // Relaxed: the runner has not read the box. Acquire on failure: DONE.
        let taken = self.0.compare_exchange(marked, UNJOINED, Ordering::Relaxed, Ordering::Acquire);
        // SAFETY: a marked address is that of a box which was the word's until now.
        taken.ok().map(|_| unsafe { boxed(marked) })
    }

    /// Publishes a joiner. Returns false if the task is done: nothing was published.
    pub(crate) fn publish(&self, joiner: &Joiner, wake: RawWake) -> bool {
        joiner.wake.set(Some(wake));
        let node = ptr::from_ref(joiner).cast_mut();
        // Release: pairs with the Acquire in `finish`, which reads the node. Acquire on failure: DONE.
        let published = self.0.compare_exchange(UNJOINED, node, Ordering::Release, Ordering::Acquire).is_ok();
        if !published {
            // Dropped unused.
            joiner.wake.take();
        }
        published
    }

    /// Withdraws a joiner.
    ///
    /// Returns false if the task is done: the wake in the node has come or is on its way.
    pub(crate) fn withdraw(&self, joiner: &Joiner) -> bool {
        let node = ptr::from_ref(joiner).cast_mut();
        // Acquire on failure: DONE. Relaxed otherwise: the node was never read.
        self.0.compare_exchange(node, UNJOINED, Ordering::Relaxed, Ordering::Acquire).is_ok()
    }

    /// Publishes a joiner that waits for several things; this one is its arm `arm`.
    pub(crate) fn publish_for(&self, joiner: &Joiner, wake: RawWake, claim: &Claim, arm: usize) -> bool {
        joiner.claim.set((claim, arm));
        // Relaxed: published with the node.
        joiner.released.store(false, Ordering::Relaxed);
        self.publish(joiner, wake)
    }

    /// Withdraws what [`publish_for`](Join::publish_for) published, or waits until the runner has
    /// released the node.
    pub(crate) fn withdraw_for(&self, joiner: &Joiner) {
        if !self.withdraw(joiner) {
            joiner.await_release();
        }
    }
}

fn is_waker(word: *mut Joiner) -> bool {
    word.addr() & TAGS == WAKER && word != DETACHED
}

/// # Safety
/// `marked` is the marked address of a box that is the caller's.
unsafe fn boxed(marked: *mut Joiner) -> Box<Waker> {
    // SAFETY: by the contract, and without its mark the address is the box's again.
    unsafe { Box::from_raw(marked.map_addr(|address| address & !WAKER).cast::<Waker>()) }
}

impl Joiner {
    /// Makes an unpublished node.
    pub(crate) const fn new() -> Self {
        Joiner { wake: Cell::new(None), claim: Cell::new((ptr::null(), 0)), released: AtomicBool::new(false) }
    }

    /// Takes the wake, unless the joiner was taken for another arm. Called by the runner.
    fn claim_wake(&self) -> Option<RawWake> {
        let wake = self.wake.take();
        assert!(wake.is_some(), "a node is published with a wake");
        let (claim, arm) = self.claim.get();
        // SAFETY: the token lives until its joiner has withdrawn, which waits for the release.
        let Some(claim) = (unsafe { claim.as_ref() }) else { return wake };
        let taken = claim.take(arm);
        // Release: pairs with the Acquire in `await_release`. The last touch of the node and of the
        // token.
        self.released.store(true, Ordering::Release);
        wake.filter(|_| taken)
    }

    /// Returns true if the runner has taken the wake, or none was published.
    pub(crate) fn is_served(&self) -> bool {
        self.wake.take().is_none()
    }

    fn await_release(&self) {
        let mut rounds = 0_u32;
        // Acquire: pairs with the Release in `claim_wake`.
        while !self.released.load(Ordering::Acquire) {
            rounds += 1;
            if rounds.is_multiple_of(64) { yield_now() } else { spin_loop() }
        }
    }
}
