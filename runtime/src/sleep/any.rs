//! The wait for one of several arms.
//!
//! ```text
//!   enlist each arm, under one token ──one is ready: close the token──▶ withdraw all ──▶ Ready
//!              │ none
//!              ▼
//!            sleep ──served: the token says for which arm──▶ withdraw all, land what that owes ──▶ Served(number)
//!              └──── deadline, cancel: close the token ────▶ as above ──▶ TimedOut, Cancelled
//! ```
//!
//! A waker takes the token under the lock of the list in which it found the arm, before it gives anything. So one arm at
//! most is served, and its waker owns the one wake of the sleep.
//!
//! Arms that were enlisted are chained through their [`Link`]s, so the wait trusts no iterator to name them twice.

use std::cell::Cell;
use std::iter::successors;
use std::marker::PhantomData;
use std::mem::{offset_of, transmute};
use std::ptr::{self, NonNull};

use crate::sleep::cancel_points::unwind_cancelled;
use crate::sleep::queue::wait::{Until, without_unwinding};
use crate::waiter::description::{WaitDescription, WaitRecord};
use crate::waiter::kind::WakeHandle;
use crate::waiter::select_token::Claim;
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

/// One arm of a select.
///
/// Primitives return a [`QueueArm`](crate::sleep::queue::arm::QueueArm), which implements it.
///
/// # Safety
/// After `withdraw` no waker finds the arm. `enlist` hands out the wake of the sleep only to wakers that use it after
/// they have taken the token for `number`. [`link`](Arm::link) returns a field of the arm.
pub unsafe trait Arm {
    /// Publishes the sleep `me`, unless the arm is ready.
    ///
    /// # Safety
    /// The arm is enlisted nowhere. It stays in place until it was withdrawn, and the wake has landed if the token was
    /// taken. `token` lives as long.
    unsafe fn enlist(&self, me: WakeHandle<'_>, token: &Claim, number: usize) -> Enlisted;

    /// Withdraws what `enlist` has published, if a waker has not taken it out. A hook of the sleep: it wakes nothing.
    ///
    /// # Safety
    /// `enlist` was called for the present sleep.
    unsafe fn withdraw(&self);

    /// Wakes the waiters that the departure of the arm has served. Runs after the sleep.
    fn departed(&self) {}

    /// Returns the link of the arm in its select.
    fn link(&self) -> &Link;
}

/// The result of enlisting an arm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enlisted {
    /// It waits.
    Waits,
    /// It is ready.
    Ready,
}

/// Links an arm into the list of its select.
#[repr(C)]
pub struct Link {
    next: Cell<Option<NonNull<Link>>>,
    record: WaitRecord,
    /// The arm that the link is of, while it is enlisted.
    arm: Cell<Option<Enlistee>>,
}

/// An arm that stays borrowed as long as it is chained.
type Enlistee = NonNull<dyn Arm>;

impl Link {
    /// Makes the link of an arm that is not enlisted.
    pub const fn new(record: WaitRecord) -> Self {
        Link { next: Cell::new(None), record, arm: Cell::new(None) }
    }

    /// Returns true while a select waits for the arm.
    pub fn is_enlisted(&self) -> bool {
        self.arm.get().is_some()
    }
}

/// Outcome of a wait for several arms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// The arm of this number was served.
    Served(usize),
    /// An arm was ready at its arrival: try all again.
    Ready,
    /// The deadline has passed; or, of [`look_at_all`], no arm was ready.
    TimedOut,
    /// The task was cancelled.
    Cancelled,
}

/// Blocks the caller until one of the arms is served or ready.
///
/// Each arm comes with the number that is returned for it.
///
/// A panic of an arm ends the process, and so does an arm that occurs twice.
pub fn wait_any<'a>(arms: impl Iterator<Item = (&'a (dyn Arm + 'a), usize)>, until: Until) -> Chosen {
    let waiting = AnyOf::new(arms, until.spins(), true);
    let why = until.sleep(&waiting);
    waiting.finish(why, until)
}

/// Looks at all arms at one moment, without a wait for any of them. One may be served at that moment.
pub fn look_at_all<'a>(arms: impl Iterator<Item = (&'a (dyn Arm + 'a), usize)>) -> Chosen {
    let until = Until::shielded(None);
    let waiting = AnyOf::new(arms, false, false);
    let why = until.sleep(&waiting);
    waiting.finish(why, until)
}

/// The chain of the arms that were enlisted, with the record that leads to it.
#[repr(C)]
struct Chain {
    record: WaitRecord,
    /// The link of the arm that was enlisted last.
    last: Cell<Option<NonNull<Link>>>,
}

static SELECT: WaitDescription = WaitDescription::new("select").arms(offset_of!(Chain, last) as isize);

/// Sleep for several arms.
struct AnyOf<'a, I> {
    arms: Cell<Option<I>>,
    token: Claim,
    chain: Chain,
    spins: bool,
    /// False if it goes on once all arms are enlisted.
    stays: bool,
    /// True if that has come to pass.
    has_seen_all: Cell<bool>,
    arms_life: PhantomData<&'a ()>,
}

impl<'a, I: Iterator<Item = (&'a (dyn Arm + 'a), usize)>> AnyOf<'a, I> {
    fn new(arms: I, spins: bool, stays: bool) -> Self {
        AnyOf {
            arms: Cell::new(Some(arms)),
            token: Claim::new(),
            chain: Chain { record: WaitRecord::new(&SELECT, ptr::null()), last: Cell::new(None) },
            spins,
            stays,
            has_seen_all: Cell::new(false),
            arms_life: PhantomData,
        }
    }

    /// Enlists all arms, up to the first that is ready. Returns true if all wait.
    fn enlist_all(&self, me: WakeHandle<'_>) -> bool {
        self.arms.take().into_iter().flatten().all(|(arm, number)| {
            self.chain(arm);
            // SAFETY: it was enlisted nowhere, as its link says. It is borrowed for `'a`, and so stays until the sleep is
            // over, before which `before_awake` withdraws it and looks at the token; this one lives as long.
            unsafe { arm.enlist(me, &self.token, number) == Enlisted::Waits }
        })
    }

    fn chain(&self, arm: &'a (dyn Arm + 'a)) {
        let link = arm.link();
        // SAFETY: the types differ in a lifetime only. The pointer is used by this sleep alone, which `'a` outlives.
        let arm = unsafe { transmute::<NonNull<dyn Arm + 'a>, Enlistee>(NonNull::from(arm)) };
        assert!(!link.is_enlisted(), "a select waits for an arm once");
        link.arm.set(Some(arm));
        link.next.set(self.chain.last.replace(Some(NonNull::from(link))));
    }

    fn enlisted(&self) -> impl Iterator<Item = &'a dyn Arm> {
        // SAFETY: a chained arm is borrowed for `'a`, and so is its link.
        let links = successors(self.chain.last.get(), |link| unsafe { link.as_ref() }.next.get());
        // SAFETY: as above.
        links.filter_map(|link| unsafe { link.as_ref().arm.get().map(|arm| arm.as_ref()) })
    }

    /// Goes on without a sleep, unless a waker has taken the token.
    fn go_on(&self) -> Asleep {
        match self.token.close() {
            None => Asleep::Rouse,
            Some(_) => Asleep::Stay,
        }
    }

    /// Ends the wait, after the sleep.
    fn finish(&self, why: Waking, until: Until) -> Chosen {
        let mut next = self.chain.last.take();
        while let Some(link) = next {
            // SAFETY: as in `enlisted`.
            let (link, arm) = unsafe { (link.as_ref(), link.as_ref().arm.take().map(|arm| arm.as_ref())) };
            next = link.next.take();
            arm.into_iter().for_each(Arm::departed);
        }
        match (self.token.taken(), why) {
            (Some(number), _) => Chosen::Served(number),
            (None, Waking::Notified) if self.has_seen_all.get() => Chosen::TimedOut,
            (None, Waking::Notified) => Chosen::Ready,
            (None, Waking::TimedOut) => Chosen::TimedOut,
            (None, Waking::Cancelled) if until.unwinds() => unwind_cancelled(),
            (None, Waking::Cancelled) => Chosen::Cancelled,
        }
    }
}

impl<'a, I: Iterator<Item = (&'a (dyn Arm + 'a), usize)>> WaitStrategy for AnyOf<'a, I> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        match without_unwinding(|| self.enlist_all(me)) {
            true if self.stays => Asleep::Stay,
            all_wait => {
                self.has_seen_all.set(all_wait);
                self.go_on()
            }
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        let is_taken = self.token.close().is_some();
        // SAFETY: `enlist` was called for each of them.
        without_unwinding(|| self.enlisted().for_each(|arm| unsafe { arm.withdraw() }));
        match is_taken && why != Waking::Notified {
            true => Withdrawal::Served,
            false => Withdrawal::Withdrawn,
        }
    }

    fn may_spin(&self) -> bool {
        self.spins
    }

    fn record(&self) -> *const WaitRecord {
        self.chain.record.address()
    }
}
