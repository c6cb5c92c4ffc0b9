//! Closures on offer: who runs them, and who hears of them.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::idle::{Idle, Sight};
use crate::intrusive_list::Link;
use crate::join_state::Joiner;
use crate::offer_state::{Offered, Offers, Taken};
use crate::park_state::{Found, ParkState};
use crate::primitive::check_bounded;
use crate::task::Task;
use crate::wait::{Sleeper, Tickets};

/// What an owner keeps on its stack for one offer. Loom is told of its end: a later touch is an error.
struct Frame {
    link: Link<Offered>,
    /// How often the closure has run.
    runs: UnsafeCell<u32>,
    sleeper: Arc<Sleeper>,
}

// SAFETY: the right to run is handed over by the offer, which is what the models check.
unsafe impl Sync for Frame {}
// SAFETY: as above.
unsafe impl Send for Frame {}

impl Frame {
    fn new() -> Arc<Self> {
        let frame = Frame {
            link: Link::new(Offered::new(run, true)),
            runs: UnsafeCell::new(0),
            sleeper: Sleeper::new(),
        };
        let _ = frame.sleeper.word.begin(true);
        assert!(!frame.link.data().is_taken() && !frame.link.data().done.is_done());
        Arc::new(frame)
    }

    /// Has it taken once, and left: so the lock around its child is there before another thread is.
    fn make_child(self: &Arc<Self>) {
        let offers = fresh_offers();
        push(&offers, self);
        let taken = take(&offers, true).expect("just pushed");
        // SAFETY: it is not done, and never runs.
        unsafe { taken.adopter().adopt(&Task::new()) };
        std::mem::forget(taken);
    }

    /// By who has the right to the closure.
    fn run(&self) {
        // SAFETY: there is one who has.
        self.runs.with_mut(|runs| unsafe { *runs += 1 });
    }

    /// As `Fork::settle`, without a cancellation.
    fn await_done(&self) {
        let done = &self.link.data().done;
        if !done.is_done() {
            let joiner = Joiner::new();
            if done.publish(&joiner, self.sleeper.raw()) {
                self.sleeper.leave_stack();
            }
            assert!(joiner.is_served(), "only the end wakes it");
        }
        assert!(done.is_done());
    }

    /// The owner takes the offer back, or waits for who took it. True if it was taken back.
    fn withdraw_or_wait(&self, offers: &Offers, here: bool) -> bool {
        // SAFETY: offered there; the models say `here` on one thread.
        let withdrawn = unsafe { offers.withdraw(&self.link, here) };
        if !withdrawn {
            self.await_done();
        }
        withdrawn
    }

    fn runs(&self) -> u32 {
        // SAFETY: the offer is the owner's again.
        self.runs.with(|runs| unsafe { *runs })
    }
}

unsafe fn run(whole: *const ()) {
    // SAFETY: `push` was given a frame, which stays until the offer is done.
    unsafe { &*whole.cast::<Frame>() }.run();
}

fn fresh_offers() -> Arc<Offers> {
    let offers = Arc::new(Offers::new());
    // SAFETY: nobody else is there yet.
    assert!(unsafe { offers.take(true).is_none() && offers.take(false).is_none() } && offers.is_empty());
    offers
}

/// By the worker.
fn push(offers: &Offers, frame: &Arc<Frame>) -> bool {
    // SAFETY: the models push on one thread, and keep the frame until the offer was taken back or is done.
    unsafe { offers.push(&frame.link, Arc::as_ptr(frame).cast(), false) }
}

/// By another worker, or by the same.
fn take(offers: &Offers, here: bool) -> Option<Taken> {
    // SAFETY: the models say `here` on the thread that pushes.
    unsafe { offers.take(here) }
}

/// The owner leaves its frame: nobody else has anything to do with it.
fn leave(frame: Arc<Frame>) {
    let frame = Arc::into_inner(frame).expect("the only count");
    drop(frame.link);
}

/// Hunts: a closure that both run, or neither; an owner that leaves its frame before its taker, or sleeps for ever.
#[test]
fn an_offer_is_taken_or_withdrawn() {
    check_bounded(3, || {
        let (offers, frame) = (fresh_offers(), Frame::new());
        assert!(push(&offers, &frame), "the only one");
        let thief = {
            let offers = Arc::clone(&offers);
            thread::spawn(move || take(&offers, false).map(Taken::run).is_some())
        };
        let withdrawn = frame.withdraw_or_wait(&offers, true);
        if withdrawn {
            frame.run();
        }
        assert_eq!(frame.runs(), 1, "one of the two runs it");
        assert!(offers.is_empty());
        leave(frame);
        assert_ne!(thief.join().unwrap(), withdrawn);
    });
}

/// Hunts: the same where the taker cannot make a task of it, and gives it back un-run.
#[test]
fn an_offer_that_is_given_back_is_the_owners_again() {
    check_bounded(3, || {
        let (offers, frame) = (fresh_offers(), Frame::new());
        push(&offers, &frame);
        let thief = {
            let offers = Arc::clone(&offers);
            thread::spawn(move || drop(take(&offers, false)))
        };
        frame.withdraw_or_wait(&offers, true);
        assert_eq!(frame.runs(), 0, "nobody has run it");
        frame.run();
        leave(frame);
        thief.join().unwrap();
    });
}

/// Hunts: the same where the owner has changed its worker, and the one of before takes the offer up itself.
#[test]
fn an_offer_is_withdrawn_from_afar_or_taken_at_home() {
    check_bounded(3, || {
        let (offers, frame) = (fresh_offers(), Frame::new());
        push(&offers, &frame);
        let owner = {
            let offers = Arc::clone(&offers);
            thread::spawn(move || {
                let withdrawn = frame.withdraw_or_wait(&offers, false);
                assert_eq!(frame.runs(), u32::from(!withdrawn));
                leave(frame);
                withdrawn
            })
        };
        let taken = take(&offers, true).map(Taken::run).is_some();
        assert_ne!(owner.join().unwrap(), taken);
    });
}

/// Hunts: a cancel that comes between the taking and the task, and reaches neither.
#[test]
fn a_cancel_reaches_the_task_that_an_offer_became() {
    check_bounded(3, || {
        let (offers, frame) = (fresh_offers(), Frame::new());
        frame.make_child();
        push(&offers, &frame);
        let task = Task::new();
        let thief = {
            let (offers, task) = (Arc::clone(&offers), task.clone());
            thread::spawn(move || {
                let Some(taken) = take(&offers, false) else { return };
                // SAFETY: it does not run before.
                unsafe { taken.adopter().adopt(&task) };
                taken.run();
            })
        };
        // SAFETY: offered there; this thread is the worker.
        if unsafe { offers.withdraw(&frame.link, true) } {
            frame.run();
        } else {
            frame.link.data().cancel();
            frame.await_done();
            assert!(task.is_cancelled(), "cancelled before or after it was noted");
        }
        assert_eq!(frame.runs(), 1);
        leave(frame);
        thief.join().unwrap();
    });
}

/// What the model breaks, to show that the hunts find it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// Nobody is told of an offer.
    Untold,
    /// The last searcher does not look for more.
    NoMore,
}

/// Workers that idle beside one that makes offers.
struct Idlers {
    offers: Arc<Offers>,
    idle: Idle,
    parks: Vec<(ParkState, Tickets)>,
    flaw: Flaw,
}

impl Idlers {
    fn new(idlers: usize, flaw: Flaw) -> Arc<Self> {
        let park = |_| (ParkState::new(), Tickets::new());
        // The one that offers is a worker too.
        let idle = Idle::new(idlers + 1);
        let idlers = Idlers { offers: fresh_offers(), idle, parks: (0..idlers).map(park).collect(), flaw };
        assert!(idlers.parks.iter().all(|(state, _)| !state.is_parked()));
        assert_eq!(idlers.idle.after_global(), None);
        Arc::new(idlers)
    }

    /// As `offers::publish`.
    fn offer(&self, frame: &Arc<Frame>) {
        if push(&self.offers, frame) && self.flaw != Flaw::Untold {
            self.tell_thieves();
        }
    }

    fn tell_thieves(&self) {
        if let Some(index) = self.idle.after_spawn() {
            let (state, driver) = &self.parks[index];
            if state.unpark() == Found::Parked {
                driver.put();
            }
        }
    }

    /// As `Worker::rest`, of one that takes what it sees at once: until it has run an offer.
    fn rest(&self, index: usize) {
        let mut searching = false;
        loop {
            searching = searching || self.idle.try_search();
            let mut found = if searching { take(&self.offers, false) } else { None };
            if found.is_none() {
                searching = self.park(index, searching);
                found = take(&self.offers, false);
            }
            if let Some(taken) = found {
                if searching {
                    self.found_work();
                }
                return taken.run();
            }
        }
    }

    /// As `Worker::park`. True if this worker searches now.
    fn park(&self, index: usize, searching: bool) -> bool {
        let (state, driver) = &self.parks[index];
        self.idle.park(index, searching, Sight::Nothing);
        let came = !state.begin_park() || !self.offers.is_empty();
        if !came {
            driver.take();
        }
        state.end_park();
        let woken = !self.idle.unpark(index);
        woken || (searching && came && self.idle.try_search())
    }

    /// As `Worker::found_work`.
    fn found_work(&self) {
        if self.idle.end_search() && self.flaw != Flaw::NoMore && !self.offers.is_empty() {
            self.tell_thieves();
        }
    }
}

/// Hunts: an offer is made just as the only idle worker parks.
#[test]
fn an_offer_meets_the_park() {
    check_bounded(3, || offers_for(1, Flaw::None));
}

/// Shows that the hunt finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn an_offer_that_nobody_is_told_of_is_missed() {
    check_bounded(3, || offers_for(1, Flaw::Untold));
}

/// Hunts: of two offers the second is told to nobody, since there was one before it; and who was told of that runs it for
/// ever.
#[test]
fn no_offer_lies_while_a_worker_is_parked() {
    check_bounded(1, || offers_for(2, Flaw::None));
}

/// Shows that the hunt finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn a_thief_that_does_not_look_for_more_leaves_an_offer_lying() {
    check_bounded(1, || offers_for(2, Flaw::NoMore));
}

/// As many offers as idle workers, each of which takes one. Their owner computes, and does not come to withdraw them.
fn offers_for(count: usize, flaw: Flaw) {
    let idlers = Idlers::new(count, flaw);
    let frames: Vec<_> = (0..count).map(|_| Frame::new()).collect();
    let threads: Vec<_> = (0..count)
        .map(|index| {
            let idlers = Arc::clone(&idlers);
            thread::spawn(move || idlers.rest(index))
        })
        .collect();
    frames.iter().for_each(|frame| idlers.offer(frame));
    for frame in frames {
        frame.await_done();
        assert_eq!(frame.runs(), 1);
        leave(frame);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(idlers.offers.is_empty());
}
