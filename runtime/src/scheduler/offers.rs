//! Closures that their owner will run itself, unless a worker without work takes them first.
//!
//! An offer lies in the frame of the task that made it. It is no task, has no stack and costs no allocation; it becomes
//! a task of its taker's when it is taken, and most never are. Who has the right to it is in `offer_state.rs`.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock;
use crate::base::intrusive_list::Link;
use crate::scheduler::block::Block;
use crate::scheduler::current;
use crate::scheduler::offer_state::{Offered, Taken};
use crate::scheduler::start::FEED;
use crate::scheduler::wake;
use crate::scheduler::worker::Worker;
use crate::stack::handle::Stack;
use crate::tasks::cancel::may_unwind_in;
use crate::tasks::header::{Nature, Origin, TaskRef, Traits};
use crate::tasks::raw;
use crate::tasks::task::Task;

/// Offers a closure on the worker of this thread. False off a task, and where that may not suspend to wait for the taker;
/// nothing has happened then.
///
/// # Safety
/// The link stays where it is, and all that its `run` reaches by `whole` is alive and may be used on any thread, until
/// [`withdraw`] has answered true or `done` is.
#[inline]
pub(crate) unsafe fn publish(link: &Link<Offered>, whole: *const ()) -> bool {
    let published = current::with_worker(|worker| {
        let task = worker.context().waiting_task()?;
        if task.header().is_forbidden() {
            return None;
        }
        let sheltered = !may_unwind_in(task.header());
        link.data().set_owner(task);
        // SAFETY: the worker is this thread's; the link is new to the ring and stays, by this function's contract.
        if unsafe { worker.block.offers.push(link, whole, sheltered) } {
            worker.tell_thieves();
        }
        Some(())
    });
    published.flatten().is_some()
}

/// Takes an offer back. False if somebody has taken it; its end has to be waited for then.
#[inline]
pub(crate) fn withdraw(link: &Link<Offered>) -> bool {
    let offers = link.data().offers();
    // A migratable task may have changed its worker.
    let here = current::with_worker(|worker| ptr::eq(&raw const worker.block.offers, offers));
    // SAFETY: it was offered there, on a worker of a runtime that lives while its tasks run.
    unsafe { (*offers).withdraw(link, here == Some(true)) }
}

/// How long the first offer waits at the least while its own worker has other tasks to run.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long one waits there at the most, behind others, that its owner may wait for.
const LONGEST_PATIENCE: Duration = Duration::from_millis(25);

impl Worker {
    /// Makes a task of the first offer of `block`, here. False if there is none, or no stack for it: its owner has one, and must
    /// not wait for another.
    pub(crate) fn accept(&self, block: &Block) -> bool {
        let here = ptr::eq(Arc::as_ptr(&self.block), block);
        // SAFETY: the thread is this worker's.
        !block.offers.is_empty() && self.accept_by(here, || unsafe { block.offers.take(here) })
    }

    /// The same of the first own offer that its owner may wait for.
    fn accept_awaited(&self) -> bool {
        // SAFETY: as above.
        self.accept_by(true, || unsafe { self.block.offers.take_awaited() })
    }

    fn accept_by(&self, here: bool, take: impl FnOnce() -> Option<Taken>) -> bool {
        let stack = if here { self.stack_for_own_offer() } else { self.stacks.borrow_mut().take_spare() };
        stack.is_some_and(|stack| self.accept_on(stack, false, take))
    }

    /// Makes a task of the first own offer that its owner may wait for on a stack beyond the limits, if it has lacked one for too
    /// long. There are as many of these as owners wait, each of whom has a stack itself. Where there is no such stack either, the
    /// owner is cut short.
    pub(crate) fn relieve_offer(&self) -> bool {
        if !self.has_lacked() {
            return false;
        }
        self.lack.set(None);
        // SAFETY: the thread is this worker's.
        let take = || unsafe { self.block.offers.take_awaited() };
        let reserve = self.reserve.borrow_mut().take();
        match reserve {
            Ok(stack) => self.accept_on(stack, true, take),
            Err(error) => {
                if let Some(taken) = take() {
                    taken.refuse(error.to_string(), TaskRef::cancel);
                }
                false
            }
        }
    }

    /// True if the first own offer that its owner may wait for has lacked a stack for too long.
    fn has_lacked(&self) -> bool {
        if self.block.offers.is_empty() {
            return false;
        }
        // SAFETY: the thread is this worker's.
        let Some(first) = (unsafe { self.block.offers.first_awaited() }) else { return false };
        let now = clock::now();
        match self.lack.get() {
            Some((offer, since)) if offer == first => now - since >= self.shared.config.stack_patience,
            _ => {
                self.lack.set(Some((first, now)));
                false
            }
        }
    }

    /// Makes a task of what `take` takes, on that stack.
    fn accept_on(&self, stack: Stack, of_reserve: bool, take: impl FnOnce() -> Option<Taken>) -> bool {
        let Some(taken) = take() else {
            match of_reserve {
                true => self.reserve.borrow_mut().give(stack),
                false => self.give_stack(stack),
            }
            return false;
        };
        let adopter = taken.adopter();
        let sheltered =
            taken.is_sheltered().then(|| Box::new(Traits { sheltered: true, ..Traits::default() }));
        let origin =
            Origin { kind: &wake::TASK, id: self.next_id(), nature: Nature::Offered, traits: sheltered };
        let task = raw::new(Some(&self.context().slabs), move || taken.run(), (), origin);
        // SAFETY: made just now; the handle's count goes to this one.
        let handle = unsafe { Task::from_count(task) };
        self.spawned(task);
        // SAFETY: the offer is not done: its task waits in this worker's queue, and has not run before this returns.
        unsafe { adopter.adopt(&handle) };
        // Its owner asks the offer, not the task, for the outcome. The task has not run, so it has no result to drop.
        _ = task.header().join.detach();
        task.header().on_reserve.set(of_reserve);
        self.bind_in_turn(task, stack);
        true
    }

    /// A stack for the task that an own offer is to become: its owner may be waiting for it. Any other offer can do without.
    fn stack_for_own_offer(&self) -> Option<Stack> {
        let taken = self.stacks.borrow_mut().take().ok();
        if taken.is_none() {
            self.unpark_others();
        }
        self.next_accept.set(taken.is_none().then(|| clock::now() + FEED));
        taken
    }

    /// Makes a task of the first own offer, on whatever stack there is for it.
    pub(crate) fn accept_own(&self) -> bool {
        self.accept(&self.block) || self.relieve_lacking()
    }

    fn relieve_lacking(&self) -> bool {
        self.next_accept.get().is_some() && self.relieve_offer()
    }

    /// True if there are own offers, and there may be a stack for the first.
    pub(crate) fn has_offers(&self) -> bool {
        !self.block.offers.is_empty() && self.next_accept.get().is_none_or(|at| clock::now() >= at)
    }

    /// How long to wait before the next try for an own offer that found no stack.
    pub(crate) fn until_accept(&self) -> Option<Duration> {
        self.next_accept.get().filter(|_| !self.block.offers.is_empty()).map(|_| FEED)
    }

    /// Makes a task of an own offer now and then, also while this worker always has something to run: what runs may be a
    /// task that does nothing but look whether its offer was taken up. Ever more seldom, since mostly its owner will run
    /// it itself in good time, and to the end before it begins the next: a loop that computes for a minute, and offers the rest of
    /// what each of its tasks has to do, has some fifty tasks here by then. Where the owner may wait for what it offers that is
    /// no measure, and patience has an end.
    pub(crate) fn heed_offers(&self) {
        if self.block.offers.is_empty() {
            return self.heeded.set(0);
        }
        let (now, heeded) = (clock::now(), self.heeded.get());
        if heeded > 0 && now < self.next_heed.get() {
            if now >= self.next_awaited.get() {
                _ = self.accept_awaited() || self.relieve_lacking();
                self.next_awaited.set(now + LONGEST_PATIENCE);
            }
            return;
        }
        if heeded > 0 {
            self.accept_own();
        } else {
            self.next_awaited.set(now + LONGEST_PATIENCE);
        }
        self.heeded.set(heeded.saturating_add(1));
        let patience = PATIENCE.saturating_mul(heeded.saturating_add(1).saturating_pow(2));
        self.next_heed.set(now + patience);
    }
}
