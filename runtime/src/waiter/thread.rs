//! Plain threads as waiters.
//!
//! ```text
//!  the thread                                      the waker that found it asleep
//!
//!  falls asleep by the word, and parks             takes a counted `Thread` out of the place
//!  until RELEASED ◀─────────────────────────────── released := true, the last touch of the place
//!  released := false: the place is the next        unparks the `Thread`
//!  sleep's, or goes with the thread
//! ```
//!
//! A waker may outlive the thread that it wakes. So the thread waits for a flag that the waker sets
//! as its last touch, and the waker takes a counted `Thread` before it sets the flag. A thread
//! whose deadline passed claims its sleep by the word, as any waker does. If another waker was
//! first, the thread waits for the flag all the same.

use std::ptr::NonNull;
use std::rc::Rc;
use std::task::Waker;
use std::time::Instant;

use crate::base::clock;
use crate::base::primitive::thread::Thread;
use crate::waiter::kind::notify_by_word;

use crate::base::primitive::{AtomicBool, Ordering, thread, thread_local};
use crate::waiter::kind::{Kind, Waiter, WakeHandle};
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};
use crate::waiter::word::{Epoch, Fallen, Woke};

/// The place where one thread waits.
#[repr(C)]
struct Place {
    waiter: Waiter,
    thread: Thread,
    /// Set by the waker that queues the thread, as its last touch of this place.
    released: AtomicBool,
}

static KIND: Kind = Kind { notify: notify_by_word, queue };

thread_local! {
    static PLACE: Rc<Place> = Rc::new(Place::new());
}

impl Place {
    fn new() -> Self {
        Place { waiter: Waiter::new(&KIND), thread: thread::current(), released: AtomicBool::new(false) }
    }

    fn waiter(&self) -> NonNull<Waiter> {
        NonNull::from(self).cast()
    }

    /// Waits until the waker that was told to queue the thread has let go of this place.
    fn await_release(&self) {
        // Acquire: pairs with the Release in `queue`.
        while !self.released.load(Ordering::Acquire) {
            thread::park();
        }
        // Relaxed: the next waker finds the place by a lock taken after this.
        self.released.store(false, Ordering::Relaxed);
    }

    /// Parks the thread until a waker releases it or the deadline passes.
    fn park_until(&self, deadline: Option<Instant>) {
        let deadline = deadline.map(clock::on_machine);
        while !self.released.load(Ordering::Acquire) {
            let Some(deadline) = deadline else {
                thread::park();
                continue;
            };
            let left = deadline.saturating_duration_since(clock::machine());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

/// Sleeps on the calling thread. Nothing cancels such a sleep.
///
/// Where the strategy may spin, `spin` first polls for the notification, and returns whether it has
/// come.
pub(crate) fn sleep(
    how: &impl WaitStrategy,
    deadline: Option<Instant>,
    spin: impl FnOnce(&dyn Fn() -> bool) -> bool,
) -> Waking {
    // Destructors of other thread-locals may run after that of `PLACE`; a temporary place serves
    // there.
    let place = PLACE.try_with(Rc::clone).unwrap_or_else(|_| Rc::new(Place::new()));
    let word = &place.waiter.word;
    let epoch = word.begin(true);
    let why = match how.after_asleep(WakeHandle::new(place.waiter(), &())) {
        Asleep::Rouse => Waking::Notified,
        Asleep::Stay if how.may_spin() && spin(&|| word.why().notified) => Waking::Notified,
        Asleep::Stay => block(&place, deadline, epoch),
    };
    if how.before_awake(why) == Withdrawal::Withdrawn {
        return why;
    }
    if !word.await_landing() && word.fall_asleep() == Fallen::Asleep {
        place.await_release();
    }
    Waking::Notified
}

fn block(place: &Place, deadline: Option<Instant>, epoch: Epoch) -> Waking {
    let word = &place.waiter.word;
    if word.fall_asleep() == Fallen::Asleep {
        place.park_until(deadline);
        // The deadline claims the sleep as any waker does. A waker that was first lets go of the
        // place.
        if word.expire(epoch) == Woke::Left {
            place.await_release();
        }
    }
    if word.why().notified { Waking::Notified } else { Waking::TimedOut }
}

unsafe fn queue(waiter: NonNull<Waiter>) -> Option<Waker> {
    // SAFETY: a waiter of this kind is the first field of a `Place`, which waits for `released` before it goes on.
    let place = unsafe { waiter.cast::<Place>().as_ref() };
    let thread = place.thread.clone();
    // Release: pairs with the Acquire in `await_release`. The last touch of the place.
    place.released.store(true, Ordering::Release);
    thread.unpark();
    None
}
