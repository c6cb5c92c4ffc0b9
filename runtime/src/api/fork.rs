//! A closure beside another one: on offer to idle workers while its owner runs the other, and run by its owner if nobody
//! took it.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::api::join_handle::UntilDone;
use crate::base::abort::Bomb;
use crate::base::intrusive_list::Link;
use crate::base::payload;
use crate::scheduler::offer_state::Offered;
use crate::scheduler::offers;
use crate::sleep::cancel_points;
use crate::sleep::task_sleep;
use crate::tasks::bounds::Look;
use crate::tasks::cancel;
use crate::tasks::context;
use crate::tasks::join_error::JoinError;
use crate::tasks::locals::InheritedLocals;
use crate::tasks::raw;
use crate::tasks::shield;
use crate::waiter::strategy::Waking;

/// What became of the closure that was on offer.
pub(crate) enum Beside<F, T> {
    /// Nobody took it.
    Kept(F),
    Ran(T),
}

/// A closure that the one beside it may wait for.
pub(crate) const PAIR: bool = true;
/// One that nobody waits for before it has its turn.
pub(crate) const LOOP: bool = false;

/// Looks whether the closure on offer was taken.
pub(crate) struct Probe<'a>(&'a Offered);

impl Probe<'_> {
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.0.is_taken()
    }
}

/// Runs `a` here while `b` is on offer. When this returns, or unwinds, nobody runs `b` any more.
///
/// A wait for a `b` that was taken is a cancellation point: it calls `stop`, cancels `b`, waits for it, and unwinds.
#[inline]
pub(crate) fn fork<A, RA, B, RB>(a: A, b: B, awaited: bool, stop: impl FnOnce()) -> (RA, Beside<B, RB>)
where
    A: FnOnce(Probe<'_>) -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let fork = Fork::new(b, bequest(), awaited);
    // SAFETY: the fork is not moved until it was withdrawn or waited for, below; nothing unwinds in between. `b` and its
    // value are `Send`, and what they borrow outlives this call.
    let on_offer = unsafe { fork.publish() };
    let first = catch_unwind(AssertUnwindSafe(|| a(Probe(fork.link.data()))));
    let cut_short = on_offer && !fork.withdraw() && fork.settle(first.is_err(), stop);
    if let Some(unused) = fork.heritage.into_inner() {
        forgo(unused);
    }
    let lacking = if on_offer && first.is_err() { fork.link.data().take_lacking() } else { None };
    let (b, result) = (fork.f.into_inner(), fork.result.into_inner());
    match first {
        // What cannot be unwound goes on with both.
        Ok(value) if !cut_short || !cancel::CAN_UNWIND => (value, beside(b, result)),
        Ok(_) => cancel_points::unwind_cancelled(),
        Err(payload) => {
            let _rest = Rest(Some((b, result)));
            match lacking {
                // So it was cut short, lest it wait for `b` for ever.
                Some(lacking) if cancel::is_of_here(&*payload) => {
                    panic!("the other closure of a `join` has not run: {lacking}")
                }
                _ => resume_unwind(payload),
            }
        }
    }
}

/// What a taker's task is to inherit. Cloned ahead, since only this task may touch its values.
#[inline]
fn bequest() -> Option<InheritedLocals> {
    let task = context::task().filter(|task| !task.header().is_forbidden())?;
    task.header().present_locals()?.clone_inherited()
}

/// Drops what no taker has inherited. As at the end of a task nothing cuts the destructors short.
#[cold]
fn forgo(heritage: InheritedLocals) {
    shield::shield(|| drop(heritage));
}

/// What is left of `b`, dropped while `a`'s panic goes on: its destructors see that, and no cancellation cuts them short.
struct Rest<T>(Option<T>);

impl<T> Drop for Rest<T> {
    fn drop(&mut self) {
        payload::drop_quietly(self.0.take());
    }
}

fn beside<F, T>(f: Option<F>, result: Option<Result<T, JoinError>>) -> Beside<F, T> {
    match (f, result) {
        (Some(f), _) => Beside::Kept(f),
        (None, Some(Ok(value))) => Beside::Ran(value),
        (None, Some(Err(error))) => fail(error),
        (None, None) => unreachable!("a closure that was taken has run"),
    }
}

/// Goes on with the panic of the closure. One that had its own task cancelled has its owner cancelled, as it would have
/// been had it run there.
#[cold]
fn fail(error: JoinError) -> ! {
    match error.try_into_panic() {
        Ok(payload) => resume_unwind(payload),
        Err(_) => {
            if let Some(task) = context::task() {
                cancel_points::mark_with_others(*task);
            }
            cancel_points::unwind_cancelled()
        }
    }
}

struct Fork<F, T> {
    link: Link<Offered>,
    /// The owner's, or its taker's; gone once it has begun to run there.
    f: UnsafeCell<Option<F>>,
    /// The same for what its taker inherits.
    heritage: UnsafeCell<Option<InheritedLocals>>,
    result: UnsafeCell<Option<Result<T, JoinError>>>,
}

impl<F: FnOnce() -> T, T> Fork<F, T> {
    #[inline]
    fn new(f: F, heritage: Option<InheritedLocals>, awaited: bool) -> Self {
        Fork {
            link: Link::new(Offered::new(Self::run, awaited)),
            f: UnsafeCell::new(Some(f)),
            heritage: UnsafeCell::new(heritage),
            result: UnsafeCell::new(None),
        }
    }

    /// # Safety
    /// The fork stays where it is, and what the closure borrows is alive and may be used on any thread, until `withdraw`
    /// has answered true or `settle` has returned.
    #[inline]
    unsafe fn publish(&self) -> bool {
        // SAFETY: by this function's contract.
        unsafe { offers::publish(&self.link, (&raw const *self).cast()) }
    }

    #[inline]
    fn withdraw(&self) -> bool {
        offers::withdraw(&self.link)
    }

    /// In the task that took it.
    ///
    /// # Safety
    /// `whole` is a fork of this type that was taken, and this is called once.
    unsafe fn run(whole: *const ()) {
        // SAFETY: its owner waits for the taker, and leaves all in it alone until then.
        let fork = unsafe { &*whole.cast::<Self>() };
        let task = context::task().expect("what was taken runs in a task");
        // SAFETY: as above; the values are of keys that tasks inherit, so they are `Send`.
        if let Some(heritage) = unsafe { (*fork.heritage.get()).take() } {
            task.header().inherit(heritage);
        }
        // SAFETY: as above.
        let f = unsafe { (*fork.f.get()).take() }.expect("a closure runs once");
        let result = catch_unwind(AssertUnwindSafe(f)).map_err(|payload| cancel::judge(*task, payload));
        // As at the end of any task: before the result is there.
        raw::end_locals(*task);
        // SAFETY: as above.
        unsafe { *fork.result.get() = Some(result) };
    }

    /// Waits until the taker is through with it. True if the owner is to unwind by its cancellation.
    #[cold]
    fn settle(&self, unwinding: bool, stop: impl FnOnce()) -> bool {
        let offered = self.link.data();
        let until = UntilDone::new(&offered.done);
        // The frame must not be left, whatever happens in here.
        let bomb = Bomb::of_user("the wait for a closure beside another one has unwound");
        let cancelled = || context::task().is_some_and(|task| task.header().hit(Look::Clock).is_some());
        let cut_short = (unwinding && cancelled())
            || (!offered.done.is_done() && task_sleep::sleep_or_cancel(&until, None) == Waking::Cancelled);
        if cut_short {
            if cancel::CAN_UNWIND {
                stop();
            }
            offered.cancel();
        }
        while !offered.done.is_done() {
            _ = task_sleep::sleep_shielded(&until, None);
        }
        bomb.defuse();
        cut_short
    }
}
