//! Writers that look again now and then, since nobody tells them.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use loom::thread;

use crate::place::Hearing;
use crate::primitive::{AtomicBool, Ordering, check_bounded};
use crate::reactor::{FD, Handle};
use crate::readiness::Direction;
use crate::source::{Link, Source, Waiter, link};
use crate::wait::{Polled, Tickets, Waking};

/// A source that is full, whose writers its reactor has look again.
struct Model {
    source: Arc<Source>,
    handle: Arc<Handle>,
    hearing: Hearing,
    /// Another reactor, which hears of it as well where there is one.
    elsewhere: Option<Arc<Handle>>,
    /// A reader, beside which a source does not move.
    reader: Mutex<Pin<Box<Polled<Waiter<Arc<Source>, Link>>>>>,
    done: AtomicBool,
}

impl Model {
    fn new(elsewhere: Option<Arc<Handle>>) -> Arc<Self> {
        let (source, handle) = (Arc::new(Source::new()), Handle::new());
        let mut hearing = source.attach(FD, &handle).unwrap();
        for direction in [Direction::Read, Direction::Write] {
            _ = source.readiness().blocked(direction, source.readiness().load());
        }
        let mut reader = Box::pin(Polled::new(reader(&source, hearing)));
        if let Some(elsewhere) = &elsewhere {
            assert!(reader.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            hearing = source.attach(FD, elsewhere).unwrap();
        }
        let (reader, done) = (Mutex::new(reader), AtomicBool::new(false));
        let model = Model { source, handle, hearing, elsewhere, reader, done };
        model.done.load(Ordering::Relaxed);
        // One has entered before.
        model.source.watch(None);
        Arc::new(model)
    }

    /// Somebody tries to write, finds no room, and does not wait.
    fn try_once(&self) {
        let seen = self.source.readiness().load();
        _ = self.source.readiness().blocked(Direction::Write, seen);
    }

    /// A writer on another worker enters there, and does not wait.
    fn enter_elsewhere(&self) {
        self.source.watch(self.elsewhere.as_ref().map(|elsewhere| elsewhere.id()));
    }

    /// The worker of the reactor: round after round, until the writer has looked again.
    fn rounds(&self) {
        while !self.done.load(Ordering::Relaxed) {
            self.handle.recheck();
            thread::yield_now();
        }
    }

    /// Has `write` wait once, beside the rounds and beside another one.
    fn run(self: &Arc<Self>, write: fn(&Model), other: fn(&Model)) {
        let others = [Model::rounds, other].map(|other| {
            let model = Arc::clone(self);
            thread::spawn(move || other(&model))
        });
        write(self);
        self.done.store(true, Ordering::Relaxed);
        others.into_iter().for_each(|other| other.join().unwrap());
        drop(std::mem::replace(
            &mut *self.reader.lock().unwrap(),
            Box::pin(Polled::new(reader(&self.source, self.hearing))),
        ));
        self.source.detach(FD);
        drop(self.handle.vigil().close());
        drop(self.elsewhere.as_ref().map(|elsewhere| elsewhere.vigil().close()));
    }

    /// The writer is a task.
    fn wait_as_task(&self) {
        assert_eq!(self.source.sleep_watched(Direction::Write, self.hearing, None), Waking::Notified);
    }

    /// It is a future, which enters only while it is pending.
    fn wait_as_future(&self) {
        let poller = Arc::new(Tickets::new());
        let waker = Waker::from(Arc::clone(&poller));
        let writer = Waiter::new(Arc::clone(&self.source), Direction::Write, self.hearing, link());
        let mut sleep = pin!(Polled::new(writer));
        if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.source.watch(Some(self.handle.id()));
            poller.take();
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        }
    }
}

fn reader(source: &Arc<Source>, hearing: Hearing) -> Waiter<Arc<Source>, Link> {
    Waiter::new(Arc::clone(source), Direction::Read, hearing, link())
}

/// Hunts: a writer that sleeps while its source is in no vigil.
#[test]
fn no_task_sleeps_outside_of_a_vigil() {
    // With fewer, a round that lets in again after it has told would not be caught.
    check_bounded(4, || Model::new(None).run(Model::wait_as_task, Model::try_once));
}

/// Hunts: the same of a future.
#[test]
fn no_future_sleeps_outside_of_a_vigil() {
    check_bounded(4, || Model::new(None).run(Model::wait_as_future, Model::try_once));
}

/// Hunts: a writer that relies on its own vigil, from which its source is taken for the sake of another one.
#[test]
fn no_task_sleeps_outside_of_its_own_vigil() {
    check_bounded(3, || Model::new(Some(Handle::new())).run(Model::wait_as_task, Model::enter_elsewhere));
}

/// Hunts: the same of a future.
#[test]
fn no_future_sleeps_outside_of_its_own_vigil() {
    check_bounded(3, || Model::new(Some(Handle::new())).run(Model::wait_as_future, Model::enter_elsewhere));
}

/// Hunts: the first of a round that does not break the park of its reactor, which then lasts for ever.
#[test]
fn the_first_of_a_round_breaks_the_park() {
    check_bounded(3, || {
        let (source, handle) = (Arc::new(Source::new()), Handle::new());
        source.attach(FD, &handle).unwrap();
        let writer = {
            let source = Arc::clone(&source);
            thread::spawn(move || source.watch(None))
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
