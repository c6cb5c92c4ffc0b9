//! The flight recorder.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use fibra_runtime::trace::{self, Recording};
use fibra_runtime::{Handle, Task};

use crate::trace::{StallEvent, Trace};

/// How many events a recorder keeps of each worker unless told otherwise: a MiB.
const EVENTS: usize = 1 << 16;

/// The bounds of that number.
const LEAST_EVENTS: usize = 1 << 6;
const MOST_EVENTS: usize = 1 << 26;

/// How many stalls a recorder keeps.
const STALLS: usize = 100;

/// Records what the workers of a runtime do, in rings that keep the last events.
///
/// It records until it is dropped. A runtime has at most one at a time. A worker that is parked when it is dropped frees its
/// ring when it is woken.
///
/// # Examples
/// ```
/// use fibra_insight::{Event, FlightRecorder};
/// use fibra_runtime::Runtime;
///
/// let runtime = Runtime::builder().workers(1).build()?;
/// let recorder = FlightRecorder::start(&runtime.handle())?;
/// runtime.run(|| fibra_runtime::yield_now());
/// let trace = recorder.snapshot();
/// assert!(trace.events().iter().any(|event| matches!(event.event, Event::Yields)));
/// let mut file = Vec::new();
/// trace.write_perfetto(&mut file)?;
/// assert!(!file.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct FlightRecorder(Arc<State>);

struct State {
    handle: Handle,
    recording: OnceLock<Recording>,
    stalls: Mutex<VecDeque<StallEvent>>,
    on_stall: Mutex<Option<Arc<StallHook>>>,
}

type StallHook = dyn Fn(Trace) + Send + Sync;

impl FlightRecorder {
    /// Starts to record, with room for 65,536 events of each worker, which takes a MiB.
    ///
    /// The worker of the caller begins at once, others at their next look for events, within 128 runs of tasks.
    ///
    /// # Errors
    /// `AlreadyExists` if the runtime has a recorder already.
    pub fn start(handle: &Handle) -> io::Result<Self> {
        Self::with_events(handle, EVENTS)
    }

    /// Starts to record, with room for so many events of each worker. An event takes 16 bytes.
    ///
    /// The number is rounded up to a power of two. A task that is woken and sleeps again makes three events.
    ///
    /// # Errors
    /// `AlreadyExists` if the runtime has a recorder already, and `InvalidInput` for less than 64 or more than 67 million events.
    ///
    /// # Examples
    /// ```
    /// use fibra_insight::FlightRecorder;
    /// use fibra_runtime::Runtime;
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let recorder = FlightRecorder::with_events(&runtime.handle(), 64)?;
    /// runtime.run(|| (0..100).for_each(|_| fibra_runtime::yield_now()));
    /// let trace = recorder.snapshot();
    /// assert!(trace.events().len() < 64 && trace.lost() > 100);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn with_events(handle: &Handle, events: usize) -> io::Result<Self> {
        if !(LEAST_EVENTS..=MOST_EVENTS).contains(&events) {
            let text =
                format!("a recorder keeps {LEAST_EVENTS} to {MOST_EVENTS} events of a worker, not {events}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let state = Arc::new(State {
            handle: handle.clone(),
            recording: OnceLock::new(),
            stalls: Mutex::default(),
            on_stall: Mutex::default(),
        });
        let weak = Arc::downgrade(&state);
        let note = move |task: &Task, worker, held| State::note_stall(&weak, task, worker, held);
        let recording = Recording::start(handle, events.next_power_of_two(), note)?;
        _ = state.recording.set(recording);
        Ok(FlightRecorder(state))
    }

    /// Returns a copy of what is recorded. The workers go on, and the recorder too.
    ///
    /// Callable from any thread, also while all workers compute. It copies and sorts all events that are kept, and looks
    /// at each task of the runtime for its name.
    pub fn snapshot(&self) -> Trace {
        self.0.snapshot()
    }

    /// Calls `hook` with a snapshot at each stall: when a task has held its worker for longer than the runtime's `stall_limit`.
    ///
    /// It is called on the watching thread, before the runtime tells of the stall. It replaces an earlier hook. Does
    /// nothing where no `stall_limit` is in force.
    ///
    /// # Examples
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// use fibra_insight::FlightRecorder;
    /// use fibra_runtime::Runtime;
    ///
    /// let runtime = Runtime::builder().workers(1).stall_limit(Duration::from_millis(5)).build()?;
    /// let recorder = FlightRecorder::start(&runtime.handle())?;
    /// let (sender, traces) = mpsc::channel();
    /// recorder.on_stall(move |trace| drop(sender.send(trace)));
    /// runtime.run(|| std::thread::sleep(Duration::from_millis(50)));
    /// let trace = traces.recv().unwrap();
    /// assert!(trace.stalls()[0].held >= Duration::from_millis(5));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_stall(&self, hook: impl Fn(Trace) + Send + Sync + 'static) {
        let former = lock(&self.0.on_stall).replace(Arc::new(hook));
        drop(former);
    }
}

impl fmt::Debug for FlightRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightRecorder").field("runtime", &self.0.handle).finish_non_exhaustive()
    }
}

impl State {
    fn recording(&self) -> &Recording {
        self.recording.get().expect("a recorder is handed out once it records")
    }

    fn snapshot(&self) -> Trace {
        let stalls = lock(&self.stalls).iter().cloned().collect();
        let recording = self.recording();
        Trace::new(recording.read(), recording.time(), stalls, &self.handle.tasks())
    }

    fn note_stall(this: &Weak<State>, task: &Task, worker: usize, held: Duration) {
        // Not yet, or no more.
        let Some(this) = this.upgrade() else { return };
        let Some(recording) = this.recording.get() else { return };
        let mut stalls = lock(&this.stalls);
        if stalls.len() == STALLS {
            stalls.pop_front();
        }
        stalls.push_back(StallEvent { at: recording.time(), worker, task: task.id(), held });
        drop(stalls);
        let hook = lock(&this.on_stall).clone();
        if let Some(hook) = hook {
            hook(this.snapshot());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a span of the running task, which a trace shows under that name until the guard is dropped.
///
/// Spans nest, and may last over sleeps. Without a recorder this costs a few nanoseconds; nothing is recorded off the
/// workers. Of a name longer than 65,535 bytes the begin is shown.
///
/// # Examples
/// ```
/// use fibra_insight::{Event, FlightRecorder, span};
/// use fibra_runtime::Runtime;
///
/// let runtime = Runtime::builder().workers(1).build()?;
/// let recorder = FlightRecorder::start(&runtime.handle())?;
/// runtime.run(|| {
///     let _span = span("checkout");
///     fibra_runtime::yield_now();
/// });
/// let trace = recorder.snapshot();
/// assert!(trace.events().iter().any(|event| matches!(event.event, Event::SpanBegins("checkout"))));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn span(name: &'static str) -> Span {
    Span { is_recorded: trace::span_begins(name), _here: PhantomData }
}

/// Ends a span when dropped; see [`span`].
#[must_use = "the span ends when the guard is dropped"]
#[derive(Debug)]
pub struct Span {
    is_recorded: bool,
    /// Not `Send`: it is of the task that has made it.
    _here: PhantomData<*const ()>,
}

impl Drop for Span {
    fn drop(&mut self) {
        if self.is_recorded {
            trace::span_ends();
        }
    }
}
