//! Waits for a descriptor, beside the edges of its reactor and beside its end.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use loom::thread;

use crate::primitive::{AtomicBool, Ordering, check_bounded};
use crate::reactor::{FD, Handle};
use crate::readiness::set::Reliance;
use crate::readiness::source::{Source, Waiter, link};
use crate::sys::Direction;
use crate::wait::{Polled, Tickets, Waking, over};
use crate::waiting::registration::Registered;

/// A source that is known to have nothing to read, and the reactor that it is registered with.
fn registered() -> (Arc<Registered>, Arc<Handle>, Reliance) {
    let (source, handle) = (blocked(), Handle::new());
    let reliance = source.attach(FD, &handle).unwrap();
    (source, handle, reliance)
}

/// Each of loom's objects is made by its first use.
fn blocked() -> Arc<Registered> {
    let source = Arc::new(Registered::new(-1));
    source.edge(Handle::new().id(), crate::readiness::Edge::new(), |_wake| unreachable!("no task waits"));
    _ = (source.readiness().load(), source.set_id());
    block(&source);
    source.detach(FD);
    source
}

/// Tries to read, and waits while that would block, as the loop in `op.rs`. `found` tells whether there is something.
fn read(source: &Source, reliance: Reliance, found: impl Fn() -> bool) {
    loop {
        let seen = source.readiness().load();
        if seen.is_ready(Direction::Read) {
            if found() {
                return;
            }
            _ = source.readiness().blocked(Direction::Read, seen);
        }
        assert_eq!(source.sleep(Direction::Read, reliance, None), Waking::Notified);
    }
}

/// Nothing can be read any more.
fn block(source: &Source) {
    _ = source.readiness().blocked(Direction::Read, source.readiness().load());
}

/// Finds: an edge beside a reader that goes to sleep, which neither the reader sees nor its sleep is told of.
#[test]
fn an_edge_ends_the_sleep_of_a_reader() {
    check_bounded(3, || {
        let (source, handle, reliance) = registered();
        let reactor = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.dispatch(Direction::Read))
        };
        read(&source, reliance, || true);
        reactor.join().unwrap();
        source.detach(FD);
    });
}

/// Finds: a reader at its deadline that an edge takes out of the list, and that is woken in its next sleep, or after its end.
#[test]
fn an_edge_meets_the_deadline_of_a_reader() {
    check_bounded(3, || {
        let (source, handle, reliance) = registered();
        let reactor = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.dispatch(Direction::Read))
        };
        _ = source.sleep(Direction::Read, reliance, Some(over()));
        read(&source, reliance, || true);
        reactor.join().unwrap();
        source.detach(FD);
    });
}

/// Finds: a reader that goes to sleep as its reactor ends, and is never woken.
#[test]
fn the_end_of_a_reactor_leaves_no_reader_asleep() {
    check_bounded(3, || {
        let (source, handle, reliance) = registered();
        let ends = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.close())
        };
        assert_eq!(source.sleep(Direction::Read, reliance, None), Waking::Notified);
        ends.join().unwrap();
        // It is told until it is registered elsewhere.
        block(&source);
        assert_eq!(source.sleep(Direction::Read, reliance, None), Waking::Notified);
        let reliance = source.attach(FD, &Handle::new()).unwrap();
        assert_eq!(source.sleep(Direction::Read, reliance, Some(over())), Waking::TimedOut);
        source.detach(FD);
    });
}

/// Finds: a source that stays without a set of reactors since its former reactor ends as it moves.
#[test]
fn the_end_of_a_reactor_costs_a_moved_waiter_one_look() {
    check_bounded(3, || {
        let ((source, former, _), here) = (registered(), Handle::new());
        let ends = {
            let former = Arc::clone(&former);
            thread::spawn(move || former.close())
        };
        _ = source.attach(FD, &here).unwrap();
        ends.join().unwrap();
        block(&source);
        let reliance = source.attach(FD, &here).unwrap();
        assert_eq!(
            source.sleep(Direction::Read, reliance, Some(over())),
            Waking::TimedOut,
            "it has a reactor"
        );
        let reactor = thread::spawn(move || here.dispatch(Direction::Read));
        read(&source, reliance, || true);
        reactor.join().unwrap();
        source.detach(FD);
    });
}

/// Finds: a reader is never woken as a wait on another worker makes its reactor leave.
#[test]
fn no_reader_sleeps_where_its_reactor_has_left() {
    check_bounded(3, || {
        let ((source, here, reliance), elsewhere) = (registered(), Handle::new());
        let others = {
            let source = Arc::clone(&source);
            thread::spawn(move || {
                let reliance = source.attach(FD, &elsewhere).unwrap();
                _ = source.sleep(Direction::Read, reliance, Some(over()));
                here.dispatch(Direction::Read);
            })
        };
        assert_eq!(source.sleep(Direction::Read, reliance, None), Waking::Notified);
        others.join().unwrap();
        source.detach(FD);
    });
}

/// Finds: a reader that the edge of another worker's reactor leaves asleep, and its own reactor as well.
#[test]
fn of_two_reactors_each_wakes_its_own_readers() {
    check_bounded(3, || {
        let ((source, here, reliance), elsewhere) = (registered(), Handle::new());
        let poller = Arc::new(Tickets::new());
        let waker = Waker::from(Arc::clone(&poller));
        let reader = Waiter::new(Arc::clone(source.source()), Direction::Read, reliance, link());
        let mut sleep = Box::pin(Polled::new(reader));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let reliance = source.attach(FD, &elsewhere).unwrap();
        let data = Arc::new(AtomicBool::new(false));
        data.load(Ordering::Relaxed);
        let edges = {
            let data = Arc::clone(&data);
            thread::spawn(move || {
                here.dispatch(Direction::Read);
                // Release: what came after the first edge, and makes one more with each reactor.
                data.store(true, Ordering::Release);
                elsewhere.dispatch(Direction::Read);
            })
        };
        read(&source, reliance, || data.load(Ordering::Acquire));
        poller.take();
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        edges.join().unwrap();
        source.detach(FD);
    });
}

/// Finds: a reader that sleeps on since a worker takes its source out of an ending reactor before that has handed it out.
#[test]
fn leaving_a_closed_reactor_leaves_no_reader_asleep() {
    check_bounded(3, || {
        let (source, handle, reliance) = registered();
        let poller = Arc::new(Tickets::new());
        let waker = Waker::from(Arc::clone(&poller));
        let reader = Waiter::new(Arc::clone(source.source()), Direction::Read, reliance, link());
        let mut sleep = pin!(Polled::new(reader));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let ends = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.close())
        };
        _ = source.attach_elsewhere(FD, None);
        poller.take();
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        ends.join().unwrap();
        source.detach(FD);
    });
}

/// Finds: a source that another worker registers as the reactor ends, and that takes itself for registered.
#[test]
fn a_registration_at_the_end_of_a_reactor_is_woken_or_sees_it() {
    check_bounded(3, || {
        let (source, handle) = (blocked(), Handle::new());
        let ends = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.close())
        };
        if let Ok(reliance) = source.attach_elsewhere(FD, Some(&handle)) {
            assert_eq!(source.sleep(Direction::Read, reliance, None), Waking::Notified);
        }
        ends.join().unwrap();
        source.detach(FD);
    });
}
