//! Spans of the crate `tracing` that follow the tasks which enter them.
//!
//! A subscriber of `tracing` notes the entered spans for each thread. A task that sleeps inside a span would leave it to the
//! other tasks of its worker. In a runtime of [`Runtime::builder`](crate::Runtime::builder) its spans are exited before each
//! sleep and entered again after it, if the crate has the feature `tracing`. So `#[instrument]`, `span.enter()` and `in_scope`
//! may be used around everything, waits included:
//!
//! ```
//! # use std::time::Duration;
//! #[tracing::instrument]
//! fn handle(request: u32) {
//!     fibra::sleep(Duration::from_millis(1));
//!     // Inside the span of this request, whatever other tasks did meanwhile.
//!     tracing::info!("answered");
//!     # assert_eq!(tracing::Span::current().metadata().map(|span| span.name()), Some("handle"));
//! }
//!
//! # tracing_subscriber::fmt().with_writer(std::io::sink).init();
//! fibra::run(|| {
//!     fibra::scope(|scope| {
//!         scope.spawn(|| handle(1));
//!         scope.spawn(|| handle(2));
//!     });
//!     assert!(tracing::Span::current().is_none());
//! });
//! ```
//!
//! # Children
//!
//! A task starts inside the span that its spawner is in, if the spawner waits for it: in a [`scope`](fn@crate::scope), a
//! [`TaskGroup`](crate::TaskGroup), a [`race`](fn@crate::race), a [`join`](fn@crate::join), a parallel loop, the closure of an
//! [`unblock`](crate::unblock), and a `run`. Other tasks start outside of all spans. [`follow`] makes other choices.
//!
//! # What to know
//!
//! * **Subscribers.** Any subscriber will do that tells its current span. All of tracing-subscriber do. One that does not keeps
//!   its spans on the threads.
//! * **Layers** see an exit and an enter at each sleep, as they do at each poll of an instrumented future. So `time.busy` and
//!   `time.idle` of the formatting layer are right, and `FmtSpan::ENTER` prints much. They are called inside a
//!   [hook](crate::Builder::on_switch): they must not suspend there, and their panics end the process.
//! * **Defaults.** The spans are those of the thread's default subscriber. A default that a task sets for its thread, by
//!   `with_default` or `set_default`, must not be held over a sleep: other tasks of the worker would get it. Set one for the
//!   process, or for each worker ([`on_worker_start`](crate::Builder::on_worker_start)).
//! * **Guards.** One that is dropped after a migration exits the span on the new thread. One that is forgotten, or dropped in
//!   another task, keeps its task inside the span until the task ends. A task that closes its current span, by a forgotten guard
//!   and a dropped handle, leaves the entered spans to the thread.
//! * **Threads** are left alone. The spans that a thread has entered when it calls `run` are its own again after that.
//! * **The blocking pool.** A task there and the closure of an `unblock` leave no span to the thread.
//! * **Cost.** About 35 ns a switch and 125 ns a task, also without a span. Each entered span is exited and entered again at each
//!   sleep, which takes 60 to 90 ns with tracing-subscriber.
//!
//! Spans that a task enters follow it whole. Children start in the innermost one only: its parents belong to it.

#![forbid(unsafe_code)]

use std::mem;

use fibra_runtime::task::{NewTask, Switch};
use tracing_core::dispatcher::{self, Dispatch};
use tracing_core::span::Id;

/// A subscriber whose current span comes so often in a row does not exit it.
const MOST_ALIKE: usize = 1_000;

/// Says which tasks start inside the span that their spawner is in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Inherit {
    /// No task does.
    ///
    /// A closure that its spawner runs itself is inside nevertheless, such as the second one of a [`join`](fn@crate::join) that no
    /// worker has begun.
    None,
    /// Tasks whose spawner waits for them do; see [`NewTask::is_structured`].
    #[default]
    Structured,
    /// All tasks do.
    All,
}

/// Makes the hook that keeps the spans of a task, for [`Builder::on_switch`](crate::Builder::on_switch).
///
/// [`Runtime::builder`](crate::Runtime::builder) sets one with [`Inherit::Structured`]. A hook of the program's own calls it.
///
/// # Examples
/// ```
/// # use fibra::tracing::Inherit;
/// # tracing_subscriber::fmt().with_writer(std::io::sink).init();
/// let runtime = fibra::Runtime::builder().on_switch(|task| fibra::tracing::follow(task, Inherit::All)).build()?;
/// runtime.run(|| {
///     let _span = tracing::info_span!("request").entered();
///     let child = fibra::spawn(|| tracing::Span::current().metadata().map(|span| span.name()));
///     assert_eq!(child.join().unwrap(), Some("request"));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn follow(task: &NewTask<'_>, inherit: Inherit) -> impl FnMut(Switch) + Send + use<> {
    let inherits = match inherit {
        Inherit::None => false,
        Inherit::Structured => task.is_structured(),
        Inherit::All => true,
    };
    let current = || inherits.then(|| Span::current(&default())).flatten();
    let mut spans = Spans { others: current().into_iter().collect(), _inherited: current() };
    move |_| spans.switch()
}

/// The spans of a task.
struct Spans {
    /// Those of the thread while the task runs, else those of the task; the innermost first.
    others: Vec<Span>,
    /// The task may outlive its spawner's handle of the span that it starts in.
    _inherited: Option<Span>,
}

impl Spans {
    fn switch(&mut self) {
        mem::replace(&mut self.others, exit_all()).iter().rev().for_each(Span::enter);
    }
}

/// A span that is kept open.
struct Span {
    subscriber: Dispatch,
    id: Id,
}

impl Span {
    /// Returns the innermost span that this thread has entered.
    fn current(subscriber: &Dispatch) -> Option<Self> {
        let id = subscriber.clone_span(subscriber.current_span().id()?);
        Some(Span { subscriber: subscriber.clone(), id })
    }

    fn enter(&self) {
        self.subscriber.enter(&self.id);
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.subscriber.try_close(self.id.clone());
    }
}

/// Exits all spans that this thread has entered, and returns them, the innermost first.
fn exit_all() -> Vec<Span> {
    let subscriber = default();
    let mut exited: Vec<Span> = Vec::new();
    while let Some(span) = Span::current(&subscriber) {
        let earlier = exited.len().checked_sub(MOST_ALIKE);
        if earlier.is_some_and(|index| exited[index].id == span.id) {
            break;
        }
        subscriber.exit(&span.id);
        exited.push(span);
    }
    exited
}

/// Returns the subscriber of this thread. A clone, since calls through the borrowed one could not reach it from inside.
fn default() -> Dispatch {
    dispatcher::get_default(Dispatch::clone)
}
