//! Who runs a closure that is on offer.
//!
//! ```text
//!             push                       take: by an idle worker           end
//!   made ────────────────▶ offered ────────────────────────────▶ taken ────────────▶ done: run, or given back un-run
//!                             │
//!                             └── withdraw, by the owner ──▶ the owner's again
//! ```
//!
//! Who takes an offer out of its worker's ring, under the ring's lock, has the right to its closure. `done` is the last
//! that a taker touches of it, and its owner does not leave the frame before.
//!
//! The number of the first offer stands beside the ring for those who do not take the lock. A store of it and the look for
//! the parked that follows (`Idle::after_spawn`, which begins with a fence) are a store-load pair with a worker that counts
//! itself as parked and then looks at the number again.

use std::ptr::{self, NonNull};

use crate::base::intrusive_list::{Link, Ring};
use crate::base::primitive::{AtomicBool, AtomicU64, Cell, Ordering};
use crate::base::spin_lock::Lock;
use crate::scheduler::biased::Biased;
use crate::tasks::header::TaskRef;
use crate::tasks::join_state::{Join, JoinState};
use crate::tasks::task::Task;

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
    /// Its owner may wait for it before it comes to run it itself.
    awaited: bool,
    /// Its owner must not be unwound for what befalls the taker.
    sheltered: Cell<bool>,
    /// The task that offers it.
    owner: Cell<Option<TaskRef>>,
    /// Why nobody could begin it; for the owner, once it is done.
    lacking: Cell<Option<String>>,
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
    /// `run` runs the closure behind the pointer that [`Offers::push`] is given, for which its owner may wait if it is `awaited`.
    pub(crate) const fn new(run: unsafe fn(*const ()), awaited: bool) -> Self {
        Offered {
            number: Cell::new(0),
            offers: Cell::new(ptr::null()),
            whole: Cell::new(ptr::null()),
            run,
            awaited,
            sheltered: Cell::new(false),
            owner: Cell::new(None),
            lacking: Cell::new(None),
            taken: AtomicBool::new(false),
            child: Lock::new(Child { task: None, cancelled: false }),
            done: Join::new(),
        }
    }

    /// Where it is offered, or was.
    #[inline]
    pub(crate) fn offers(&self) -> *const Offers {
        self.offers.get()
    }

    /// True once somebody has taken it; a hint.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        // Relaxed: `withdraw` decides.
        self.taken.load(Ordering::Relaxed)
    }

    /// Says who offers it, before that is done.
    #[inline]
    pub(crate) fn set_owner(&self, owner: TaskRef) {
        self.owner.set(Some(owner));
    }

    /// Why nobody could begin it, if that is so. By the owner, once it is done.
    pub(crate) fn take_lacking(&self) -> Option<String> {
        self.lacking.take()
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

impl Offers {
    pub(crate) fn new() -> Self {
        Offers { ring: Biased::new(Ring::new()), first: AtomicU64::new(0), published: AtomicU64::new(0) }
    }

    /// The number of the one that has waited longest, 0 where there is none.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        // SeqCst: the load of the pair with a producer, who stores, fences, and looks for the parked; see `idle`.
        self.first.load(Ordering::SeqCst)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first() == 0
    }

    /// How many were ever made here; a hint.
    pub(crate) fn published(&self) -> u64 {
        // Relaxed: nothing is published by it.
        self.published.load(Ordering::Relaxed)
    }

    /// Offers a closure. True if it is the only one, so that nobody may look for it yet. Beside another one somebody does:
    /// whoever was told of that, or saw it before it parked.
    ///
    /// # Safety
    /// By the worker itself. The link is in no ring. It stays where it is, and all that its `run` reaches by `whole` may be
    /// used on any thread, until [`withdraw`](Offers::withdraw) has answered true or `done` is.
    #[inline]
    pub(crate) unsafe fn push(&self, link: &Link<Offered>, whole: *const (), sheltered: bool) -> bool {
        // Relaxed, both: written by this thread alone, and a hint to others.
        let number = self.published.load(Ordering::Relaxed) + 1;
        self.published.store(number, Ordering::Relaxed);
        let offered = link.data();
        offered.whole.set(whole);
        offered.sheltered.set(sheltered);
        offered.number.set(number);
        offered.offers.set(self);
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

    /// Takes an offer back. False if somebody has taken it; its end has to be waited for then.
    ///
    /// # Safety
    /// It was offered here. `here` is said by the worker itself alone.
    #[inline]
    pub(crate) unsafe fn withdraw(&self, link: &Link<Offered>, here: bool) -> bool {
        // SAFETY: by the contract the link is in this ring or in none, and who calls `own` is the worker.
        unsafe {
            match here {
                true => self.ring.own(|ring| self.unlink(ring, link)),
                false => self.ring.borrow(|ring| self.unlink(ring, link)),
            }
        }
    }

    /// Takes the first one.
    ///
    /// # Safety
    /// `here` is said by the worker itself alone.
    pub(crate) unsafe fn take(&self, here: bool) -> Option<Taken> {
        let first = |ring: &mut Ring<Offered>| self.take_from(ring, |_| true);
        match here {
            // SAFETY: by this function's contract; nothing in here panics.
            true => unsafe { self.ring.own(first) },
            false => self.ring.borrow(first),
        }
    }

    /// The number of the first one that its owner may wait for.
    ///
    /// # Safety
    /// By the worker itself.
    pub(crate) unsafe fn first_awaited(&self) -> Option<u64> {
        let number =
            |ring: &mut Ring<Offered>| Some(ring.find(|offered| offered.awaited)?.data().number.get());
        // SAFETY: by this function's contract; nothing in here panics.
        unsafe { self.ring.own(number) }
    }

    /// Takes the first one that its owner may wait for.
    ///
    /// # Safety
    /// By the worker itself.
    pub(crate) unsafe fn take_awaited(&self) -> Option<Taken> {
        // SAFETY: by this function's contract; nothing in here panics.
        unsafe { self.ring.own(|ring| self.take_from(ring, |offered| offered.awaited)) }
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
        // Relaxed: the ring's lock orders what matters; for the pair with those who park, who tells them has the fence.
        self.first.store(first, Ordering::Relaxed);
    }

    fn take_from(&self, ring: &mut Ring<Offered>, wanted: impl Fn(&Offered) -> bool) -> Option<Taken> {
        let link = NonNull::from(ring.find(wanted)?);
        // SAFETY: it is in this ring, so its owner keeps it; and from here on the taker has to be waited for.
        unsafe {
            // Relaxed: a hint.
            link.as_ref().data().taken.store(true, Ordering::Relaxed);
            self.unlink(ring, link.as_ref());
        }
        Some(Taken(link))
    }
}

/// The right to the closure of an offer. Dropped un-run it gives the closure back to its owner.
pub(crate) struct Taken(NonNull<Link<Offered>>);

/// An offer that was taken, for the one who makes a task of it.
#[derive(Clone, Copy)]
pub(crate) struct Adopter(NonNull<Link<Offered>>);

impl Taken {
    /// # Safety
    /// The offer is not done.
    unsafe fn offered<'a>(&self) -> &'a Offered {
        // SAFETY: its owner stays for it until it is done.
        unsafe { self.0.as_ref() }.data()
    }

    /// True if the task that it becomes is to run in any case.
    pub(crate) fn is_sheltered(&self) -> bool {
        // SAFETY: not done before the drop of `self`.
        unsafe { self.offered() }.sheltered.get()
    }

    /// Gives it back to its owner un-run, since something is lacking to begin it with; and has `cut_short` end what the owner does
    /// meanwhile, which may wait for it.
    pub(crate) fn refuse(self, lacking: String, cut_short: impl FnOnce(TaskRef)) {
        // SAFETY: not done before the drop of `self`. Until then its owner stays, and touches neither of the cells.
        let offered = unsafe { self.offered() };
        offered.lacking.set(Some(lacking));
        if let Some(owner) = offered.owner.get() {
            cut_short(owner);
        }
    }

    /// Where to note the task that it becomes.
    pub(crate) fn adopter(&self) -> Adopter {
        Adopter(self.0)
    }

    /// In the task that the offer became.
    pub(crate) fn run(self) {
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

impl Adopter {
    /// Notes which task the offer became, and cancels it if the offer was cancelled.
    ///
    /// # Safety
    /// The offer is not done: the task is alive, and does not run before this returns.
    pub(crate) unsafe fn adopt(self, task: &Task) {
        // SAFETY: by this function's contract, and its owner stays until it is done.
        unsafe { self.0.as_ref() }.data().adopt(task);
    }
}
