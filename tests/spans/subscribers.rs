//! Subscribers of other kinds than the one for the process.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fibra::Runtime;
use tracing::dispatcher::{self, Dispatch};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Subscriber;
use tracing::{Event, Level, Metadata, Span, info_span};
use tracing_core::span::Current;
use tracing_subscriber::registry::Registry;

use crate::common::hang_guard;
use crate::recorder::inside;

/// Runs a task that holds a span over sleeps, and returns whether it was there before each and after it.
fn hold_a_span(subscriber: &Dispatch) -> Vec<bool> {
    let subscriber = subscriber.clone();
    let builder = Runtime::builder().workers(2).on_worker_start(move || {
        // Until the end of the thread.
        mem::forget(dispatcher::set_default(&subscriber));
    });
    let run = || {
        let other = fibra::spawn(|| (0..20).for_each(|_| fibra::yield_now()));
        let span = info_span!("held");
        let _span = span.enter();
        let seen = (0..10).map(|_| {
            fibra::yield_now();
            Span::current() == span
        });
        let seen = seen.collect();
        other.join().unwrap();
        seen
    };
    let runtime = builder.build().unwrap();
    let seen = runtime.run(run);
    runtime.spawn(|| assert_eq!(inside(), None)).join().unwrap();
    seen
}

#[test]
fn spans_of_a_default_for_each_worker_follow_their_tasks() {
    let _guard = hang_guard();
    assert_eq!(hold_a_span(&Dispatch::new(Registry::default())), [true; 10]);
}

/// Notes no current span, or one for ever.
struct Odd {
    current: Option<&'static Metadata<'static>>,
    calls: Arc<AtomicUsize>,
}

impl Subscriber for Odd {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn exit(&self, _: &Id) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn current_span(&self) -> Current {
        self.current.map_or_else(Current::none, |metadata| Current::new(Id::from_u64(1), metadata))
    }
}

#[test]
fn a_subscriber_that_tells_no_current_span_is_left_alone() {
    let _guard = hang_guard();
    let calls = Arc::new(AtomicUsize::new(0));
    assert_eq!(hold_a_span(&Dispatch::new(Odd { current: None, calls: Arc::clone(&calls) })), [false; 10]);
    assert_eq!(calls.load(Ordering::Relaxed), 2, "those of the task itself");
}

#[test]
fn a_subscriber_whose_spans_cannot_be_exited_hangs_no_task() {
    let _guard = hang_guard();
    let calls = Arc::new(AtomicUsize::new(0));
    crate::recorder::record();
    let odd = Odd { current: info_span!("stuck").metadata(), calls: Arc::clone(&calls) };
    let builder = Runtime::builder().workers(1);
    dispatcher::with_default(&Dispatch::new(odd), || builder.run(fibra::yield_now)).unwrap();
    assert!(calls.load(Ordering::Relaxed) > 0);
}
