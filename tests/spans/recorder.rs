//! A subscriber that tests ask what it was told.

use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::Id;
use tracing::{Event, Metadata, Span, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) const WORKERS: [usize; 3] = [1, 2, 4];

/// What happened to all spans of one name.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    pub(crate) enters: usize,
    pub(crate) exits: usize,
    pub(crate) closes: usize,
}

#[derive(Default)]
struct Log {
    /// Of each message, the names of the spans around it, the outermost first.
    events: HashMap<String, Vec<&'static str>>,
    spans: HashMap<&'static str, Counts>,
}

static LOG: LazyLock<Mutex<Log>> = LazyLock::new(Default::default);

struct Recorder;

/// Makes the recorder the subscriber of the process.
pub(crate) fn record() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| Registry::default().with(Recorder).init());
}

/// Takes the names of the spans around the event with that message.
#[track_caller]
pub(crate) fn spans_of(message: &str) -> Vec<&'static str> {
    LOG.lock().unwrap().events.remove(message).expect("such an event")
}

pub(crate) fn counts(span: &str) -> Counts {
    LOG.lock().unwrap().spans.get(span).copied().unwrap_or_default()
}

/// The name of the span that the caller is in.
pub(crate) fn inside() -> Option<&'static str> {
    Span::current().metadata().map(Metadata::name)
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let scope = context.event_scope(event).into_iter().flat_map(|scope| scope.from_root());
        let names = scope.map(|span| span.name()).collect();
        LOG.lock().unwrap().events.insert(message.0, names);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        count(id, &context, |counts| counts.enters += 1);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        count(id, &context, |counts| counts.exits += 1);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        count(&id, &context, |counts| counts.closes += 1);
    }
}

fn count<S: Subscriber + for<'a> LookupSpan<'a>>(
    id: &Id,
    context: &Context<'_, S>,
    add: impl FnOnce(&mut Counts),
) {
    let span = context.span(id).expect("an open span");
    add(LOG.lock().unwrap().spans.entry(span.name()).or_default());
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
