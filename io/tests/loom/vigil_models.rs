//! Writers that look again now and then, since nobody tells them.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use loom::thread;

use crate::primitive::{AtomicBool, Ordering, check_bounded};
use crate::reactor::{FD, Handle};
use crate::readiness::Direction;
use crate::source::{Source, Waiter};
use crate::wait::list::Node;
use crate::wait::{Polled, Tickets, Waking};

/// A source that is full, whose writers its reactor has look again.
struct Model {
    source: Arc<Source>,
    handle: Arc<Handle>,
    done: AtomicBool,
}

impl Model {
    fn new() -> Arc<Self> {
        let (source, handle) = (Arc::new(Source::new()), Handle::new());
        source.attach(FD, &handle).unwrap();
        let model = Model { source, handle, done: AtomicBool::new(false) };
        model.done.load(Ordering::Relaxed);
        model.try_once();
        // One has entered before.
        model.source.watch();
        Arc::new(model)
    }

    /// Somebody tries to write, finds no room, and does not wait.
    fn try_once(&self) {
        let seen = self.source.readiness().load();
        _ = self.source.readiness().blocked(Direction::Write, seen);
    }

    /// The worker of the reactor: round after round, until the writer has looked again.
    fn rounds(&self) {
        while !self.done.load(Ordering::Relaxed) {
            self.handle.recheck();
            thread::yield_now();
        }
    }

    /// Has `write` wait once, beside the rounds and beside another who tries.
    fn run(self: &Arc<Self>, write: fn(&Model)) {
        let others = [Model::rounds, Model::try_once].map(|other| {
            let model = Arc::clone(self);
            thread::spawn(move || other(&model))
        });
        write(self);
        self.done.store(true, Ordering::Relaxed);
        others.into_iter().for_each(|other| other.join().unwrap());
        self.source.detach(FD);
        drop(self.handle.vigil().close());
    }
}

/// Hunts: a writer that sleeps while its source is in no vigil.
#[test]
fn no_task_sleeps_outside_of_a_vigil() {
    // With fewer, a round that lets in again after it has told would not be caught.
    check_bounded(4, || {
        Model::new().run(|model| {
            assert_eq!(model.source.sleep_watched(Direction::Write, None), Waking::Notified);
        });
    });
}

/// Hunts: the same of a future, which enters only while it is pending.
#[test]
fn no_future_sleeps_outside_of_a_vigil() {
    check_bounded(4, || {
        Model::new().run(|model| {
            let poller = Arc::new(Tickets::new());
            let waker = Waker::from(Arc::clone(&poller));
            let mut sleep =
                pin!(Polled::new(Waiter::new(Arc::clone(&model.source), Direction::Write, Node::new())));
            if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                model.source.watch();
                poller.take();
                assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
            }
        });
    });
}

/// Hunts: the first of a round that does not break the park of its reactor, which then lasts for ever.
#[test]
fn the_first_of_a_round_breaks_the_park() {
    check_bounded(3, || {
        let (source, handle) = (Arc::new(Source::new()), Handle::new());
        source.attach(FD, &handle).unwrap();
        let writer = {
            let source = Arc::clone(&source);
            thread::spawn(move || source.watch())
        };
        // A park that does not see the round is broken.
        if !handle.vigil().may_have_sources() {
            handle.unparks.take();
        }
        assert!(handle.vigil().may_have_sources());
        assert_eq!(handle.vigil().take_due().len(), 1);
        writer.join().unwrap();
        source.detach(FD);
    });
}
