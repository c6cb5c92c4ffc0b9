//! Closures that their owner will run itself, unless a worker without work takes them first.
//!
//! An offer lies in the frame of the task that made it. It is no task, has no stack and costs no allocation; it becomes
//! a task of its taker's when it is taken, and most never are.
//!
//! ```text
//!             publish                    take: by an idle worker           finish
//!   made ────────────────▶ offered ────────────────────────────▶ taken ────────────▶ done: run, or given back un-run
//!                             │
//!                             └── withdraw, by the owner ──▶ the owner's again
//! ```
//!
//! Who takes an offer out of its worker's ring, under the ring's lock, has the right to its closure. `done` is the last
//! that a taker touches of it, and its owner does not leave the frame before.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Worker;
use super::biased::Biased;
use super::block::Block;
use crate::current;
use crate::ring::{Link, Ring};
use crate::task::cancel::may_unwind_in;
use crate::task::{Builder, Join, JoinState, Task};
use crate::wait::Lock;

/// The offers of the tasks on one worker.
pub(crate) struct Offers {
    ring: Biased<Ring<Offered>>,
    /// The number of the one that was offered first, 0 where there is none; written under the lock, read by anybody.
    first: AtomicU64,
    /// How many were ever made; written by the worker alone.
    published: AtomicU64,
}

/// What a closure on offer and its taker share.
pub(crate) struct Offered {
    /// Tells it from all others of its worker.
    number: Cell<u64>,
    /// Where it is offered.
    offers: Cell<*const Offers>,
    /// The closure and its place, for `run`.
    whole: Cell<*const ()>,
    run: unsafe fn(*const ()),
    /// Its owner must not be unwound for what befalls the taker.
    sheltered: Cell<bool>,
    /// A hint for the owner, who looks now and then.
    taken: AtomicBool,
    child: Lock<Child>,
    pub(crate) done: Join,
}

/// The task that an offer became.
struct Child {
    task: Option<Task>,
    cancelled: bool,
}

impl Offered {
    /// `run` runs the closure behind the pointer that [`publish`] is given.
    pub(crate) const fn new(run: unsafe fn(*const ())) -> Self {
        Offered {
            number: Cell::new(0),
            offers: Cell::new(ptr::null()),
            whole: Cell::new(ptr::null()),
            run,
            sheltered: Cell::new(false),
            taken: AtomicBool::new(false),
            child: Lock::new(Child { task: None, cancelled: false }),
            done: Join::new(),
        }
    }

    /// True once somebody has taken it; a hint.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }

    /// Cancels the task that it became, or is about to become.
    pub(crate) fn cancel(&self) {
        let task = {
            let mut child = self.child.lock();
            child.cancelled = true;
            child.task.clone()
        };
        if let Some(task) = task {
            task.cancel();
        }
    }

    /// Notes which task it became.
    fn adopt(&self, task: &Task) {
        let handle = task.clone();
        let cancelled = {
            let mut child = self.child.lock();
            child.task = Some(handle);
            child.cancelled
        };
        if cancelled {
            task.cancel();
        }
    }
}

/// Offers a closure on the worker of this thread. False off a task, and where that may not suspend to wait for the taker;
/// nothing has happened then.
///
/// # Safety
/// The link stays where it is, and all that `run` reaches by `whole` is alive and may be used on any thread, until
/// [`withdraw`] has answered true or `done` is.
#[inline]
pub(crate) unsafe fn publish(link: &Link<Offered>, whole: *const ()) -> bool {
    let published = current::with_worker(|worker| {
        let task = worker.running().filter(|_| !worker.in_hook.get())?;
        if task.header().forbidden.get() > 0 {
            return None;
        }
        link.data().whole.set(whole);
        link.data().sheltered.set(!may_unwind_in(task.header()));
        // SAFETY: the worker is this thread's; the link is new to the ring and stays, by this function's contract.
        if unsafe { worker.block.offers.push(link) } {
            worker.tell_thieves();
        }
        Some(())
    });
    published.flatten().is_some()
}

/// Takes an offer back. False if somebody has taken it; its end has to be waited for then.
#[inline]
pub(crate) fn withdraw(link: &Link<Offered>) -> bool {
    let offers = link.data().offers.get();
    let here = current::with_worker(|worker| ptr::eq(&raw const worker.block.offers, offers));
    // SAFETY: it was offered there, on a worker of a runtime that lives while its tasks run. The ring is this thread's own
    // where its worker is.
    unsafe {
        match here {
            Some(true) => (*offers).ring.own(|ring| (*offers).unlink(ring, link)),
            // A migratable task, which has changed its worker.
            _ => (*offers).ring.borrow(|ring| (*offers).unlink(ring, link)),
        }
    }
}

impl Offers {
    pub(super) fn new() -> Self {
        Offers { ring: Biased::new(Ring::new()), first: AtomicU64::new(0), published: AtomicU64::new(0) }
    }

    /// The number of the one that has waited longest, 0 where there is none.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        // SeqCst: the load of the pair with a producer, who stores, fences, and looks for the parked; see `idle`.
        self.first.load(Ordering::SeqCst)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first() == 0
    }

    /// How many were ever made here; a hint.
    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// True if it is the only one, so that nobody may look for it yet. Beside another one somebody does: whoever was told
    /// of that, or saw it before it parked.
    ///
    /// # Safety
    /// By the worker itself; the link is in no ring, and stays until it was taken out of this one.
    #[inline]
    unsafe fn push(&self, link: &Link<Offered>) -> bool {
        // Relaxed, both: written by this thread alone, and a hint to others.
        let number = self.published.load(Ordering::Relaxed) + 1;
        self.published.store(number, Ordering::Relaxed);
        link.data().number.set(number);
        link.data().offers.set(self);
        let push = |ring: &mut Ring<Offered>| {
            let alone = ring.is_empty();
            // SAFETY: by this function's contract.
            unsafe { ring.push_back(link) };
            if alone {
                self.note(number);
            }
            alone
        };
        // SAFETY: by the contract all calls come from the worker's thread; nothing in here panics.
        unsafe { self.ring.own(push) }
    }

    /// # Safety
    /// The link is in this ring or in none.
    #[inline]
    unsafe fn unlink(&self, ring: &mut Ring<Offered>, link: &Link<Offered>) -> bool {
        // SAFETY: by this function's contract.
        let linked = unsafe { ring.remove(link) };
        // Relaxed: written under the lock that is held.
        if linked && self.first.load(Ordering::Relaxed) == link.data().number.get() {
            self.note(ring.first().map_or(0, |first| first.data().number.get()));
        }
        linked
    }

    #[inline]
    fn note(&self, first: u64) {
        // Relaxed: the queue's lock orders what matters; for the pair with those who park, `tell_thieves` has the fence.
        self.first.store(first, Ordering::Relaxed);
    }

    fn take_first(&self, ring: &mut Ring<Offered>) -> Option<Taken> {
        let link = NonNull::from(ring.first()?);
        // SAFETY: it is in this ring, so its owner keeps it; and from here on the taker has to be waited for.
        unsafe {
            link.as_ref().data().taken.store(true, Ordering::Relaxed);
            self.unlink(ring, link.as_ref());
        }
        Some(Taken(link))
    }
}

/// The right to the closure of an offer. Dropped un-run it gives the closure back to its owner.
struct Taken(NonNull<Link<Offered>>);

impl Taken {
    /// # Safety
    /// The offer is not done.
    unsafe fn offered<'a>(&self) -> &'a Offered {
        // SAFETY: its owner stays for it until it is done.
        unsafe { self.0.as_ref() }.data()
    }

    /// In the task that the offer became.
    fn run(self) {
        // SAFETY: not done before the drop of `self`; `run` was made for what is behind `whole`, and runs once, since there
        // is one `Taken`.
        unsafe { (self.offered().run)(self.offered().whole.get()) }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: done now. Afterwards nothing of it is touched: a wake lands in its owner's task, which waits for that.
        match unsafe { self.offered() }.done.finish() {
            JoinState::Nobody => {}
            JoinState::Waiting(wake) => wake.wake(),
            JoinState::Polled(_) | JoinState::Detached => unreachable!("an owner waits"),
        }
    }
}

/// How long the first offer waits at the least while its own worker has other tasks to run.
const PATIENCE: Duration = Duration::from_millis(1);

impl Worker {
    /// Makes a task of the first offer of `block`, here. False if there is none.
    pub(super) fn accept(&self, block: &Block) -> bool {
        let offers = &block.offers;
        if offers.is_empty() {
            return false;
        }
        let taken = match self.is_home_of(block) {
            // SAFETY: the ring of this worker, on its thread; nothing in here panics.
            true => unsafe { offers.ring.own(|ring| offers.take_first(ring)) },
            false => offers.ring.borrow(|ring| offers.take_first(ring)),
        };
        let Some(taken) = taken else { return false };
        let link = taken.0;
        // SAFETY: it was taken, so its owner waits for it.
        let builder = match unsafe { link.as_ref() }.data().sheltered.get() {
            true => Builder::new().sheltered(),
            false => Builder::new(),
        };
        // SAFETY: who offered it vouches for what it borrows until it is done, and for its use on any thread. The worker is
        // this thread's.
        let handle = unsafe { builder.spawn_local_erased(self, move || taken.run()) };
        // A task that was refused is done, and the offer's owner may have gone on. Any other waits in this worker's queue,
        // and has not run before this returns.
        if !handle.is_finished() {
            // SAFETY: so the offer is not done.
            unsafe { link.as_ref() }.data().adopt(handle.task());
        }
        true
    }

    /// Makes a task of an own offer now and then, also while this worker always has something to run: what runs may be a
    /// task that does nothing but look whether its offer was taken up. Ever more seldom, since mostly its owner will run
    /// it itself in good time, and to the end before it begins the next.
    pub(super) fn heed_offers(&self) {
        if self.block.offers.is_empty() {
            return self.heeded.set(0);
        }
        let (now, heeded) = (Instant::now(), self.heeded.get());
        if heeded > 0 && now < self.next_heed.get() {
            return;
        }
        if heeded > 0 {
            self.accept(&self.block);
        }
        self.heeded.set(heeded + 1);
        self.next_heed.set(now + PATIENCE * (heeded + 1).saturating_pow(2));
    }
}
