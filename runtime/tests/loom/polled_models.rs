//! Futures that sleep between two polls, and may be dropped there.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::gate::{Gate, UntilOpen};
use crate::primitive::check_bounded;
use crate::wait::{Polled, Tickets, Waking};

type Sleep = Pin<Box<Polled<UntilOpen<Arc<Gate>>>>>;

fn until_open(gate: &Arc<Gate>) -> Sleep {
    Box::pin(Polled::new(UntilOpen::of(Arc::clone(gate))))
}

/// A polling thread, which parks between polls.
fn executor() -> Arc<Tickets> {
    Arc::new(Tickets::new())
}

/// Polls with another waker each time: to call an earlier one has no effect.
fn poll_to_end(mut future: Pin<&mut impl Future<Output = Waking>>) -> Waking {
    loop {
        let executor = executor();
        if let Poll::Ready(why) = poll_once(future.as_mut(), &executor) {
            return why;
        }
        executor.take();
    }
}

fn poll_once(future: Pin<&mut impl Future<Output = Waking>>, waker: &Arc<Tickets>) -> Poll<Waking> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(waker))))
}

/// Finds: a pending poll whose waker is never called; a write before the wake that is not seen after it.
#[test]
fn the_waker_of_the_last_poll_is_called() {
    check_bounded(3, || {
        let gate = Gate::new();
        let opener = gate.spawn_open();
        let mut sleep = until_open(&gate);
        let early = executor();
        let why = match poll_once(sleep.as_mut(), &early) {
            Poll::Ready(why) => why,
            Poll::Pending => poll_to_end(sleep.as_mut()),
        };
        assert_eq!(why, Waking::Notified);
        gate.assert_written();
        drop(sleep);
        opener.join().unwrap();
        assert_eq!(gate.permits(), 0);
        assert_eq!(Arc::strong_count(&early), 1, "a waker is not kept");
    });
}

/// Finds: a future that is dropped while it is woken, and frees its cell before the waker has let go; a permit that is lost
/// with the future, or given twice.
#[test]
fn a_future_that_is_dropped_waits_for_its_waker() {
    check_bounded(3, || {
        let gate = Gate::new();
        let opener = gate.spawn_open();
        let (mut sleep, polls) = (until_open(&gate), executor());
        let passed = poll_once(sleep.as_mut(), &polls).is_ready();
        let given = passed || sleep.as_mut().withdraw();
        if given {
            gate.assert_written();
        }
        drop(sleep);
        opener.join().unwrap();
        assert_eq!(u32::from(given) + gate.permits(), 1);
        assert_eq!(Arc::strong_count(&polls), 1, "a waker is not kept");
    });
}

/// Finds: a sleep that takes over the cell of the sleep before, and is ended by the rest of that sleep's wake.
#[test]
fn a_sleep_that_is_renewed_has_a_wake_of_its_own() {
    check_bounded(3, || {
        let gate = Gate::new();
        let opener = gate.spawn_open();
        let mut sleep = until_open(&gate);
        assert_eq!(poll_to_end(sleep.as_mut()), Waking::Notified);
        sleep.as_mut().renew();
        let polls = executor();
        assert!(poll_once(sleep.as_mut(), &polls).is_pending(), "there was one permit");
        opener.join().unwrap();
        assert!(poll_once(sleep.as_mut(), &polls).is_pending(), "the first wake is over");
        assert!(!sleep.as_mut().withdraw());
    });
}

/// Finds: a cell that is freed under the waker of its second sleep, since the waker of the first had let go of it.
#[test]
fn a_cell_that_is_used_again_is_let_go_of_again() {
    check_bounded(3, || {
        let gate = Gate::new();
        let opener = gate.spawn(|gate| (0..2).for_each(|_| gate.open()));
        let mut sleep = until_open(&gate);
        assert_eq!(poll_to_end(sleep.as_mut()), Waking::Notified);
        sleep.as_mut().renew();
        // It does not wait for the waker of the second.
        let given = poll_once(sleep.as_mut(), &executor()).is_ready() || sleep.as_mut().withdraw();
        drop(sleep);
        opener.join().unwrap();
        assert_eq!(u32::from(given) + gate.permits(), 1);
    });
}

/// Drops a future when it is called.
struct Dropper(Cell<Option<Sleep>>);

// SAFETY: the caller has taken the only waker.
unsafe impl Sync for Dropper {}
// SAFETY: as above; the future may be dropped on any thread.
unsafe impl Send for Dropper {}

impl Wake for Dropper {
    fn wake(self: Arc<Self>) {
        drop(self.0.take());
    }
}

/// Finds: a waker that is called while the wake of a future which it drops is still to land: that drop waits for ever.
#[test]
fn wake_each_lands_every_wake_before_it_calls_a_waker() {
    check_bounded(2, || {
        let gate = Gate::new();
        let (mut first, mut second, polls) = (until_open(&gate), until_open(&gate), executor());
        let dropper = Arc::new(Dropper(Cell::new(None)));
        let waker = Waker::from(Arc::clone(&dropper));
        assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        assert!(poll_once(second.as_mut(), &polls).is_pending());
        dropper.0.set(Some(second));
        let opener = gate.spawn(Gate::open_to_all);
        drop(first);
        opener.join().unwrap();
        drop(dropper);
        assert!(!gate.has_waiters());
    });
}
