//! Traces in Perfetto's format: `protos/perfetto/trace/` of <https://github.com/google/perfetto>.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process;
use std::time::Duration;

use fibra_runtime::trace::Event;

use crate::protobuf::Message;
use crate::trace::{StallEvent, Trace, TraceEvent};

/// How many tasks have tracks: the viewer gets slow with more.
const MOST_TASKS: usize = 1000;

/// Fields of the messages.
mod field {
    pub(super) mod trace {
        pub(crate) const PACKET: u32 = 1;
    }
    pub(super) mod packet {
        pub(crate) const TIMESTAMP: u32 = 8;
        pub(crate) const SEQUENCE: u32 = 10;
        pub(crate) const TRACK_EVENT: u32 = 11;
        pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    }
    pub(super) mod track {
        pub(crate) const UUID: u32 = 1;
        pub(crate) const NAME: u32 = 2;
        pub(crate) const PROCESS: u32 = 3;
        pub(crate) const THREAD: u32 = 4;
        pub(crate) const PARENT: u32 = 5;
        pub(crate) const ORDER_OF_CHILDREN: u32 = 11;
    }
    pub(super) mod process {
        pub(crate) const PID: u32 = 1;
        pub(crate) const NAME: u32 = 6;
    }
    pub(super) mod thread {
        pub(crate) const PID: u32 = 1;
        pub(crate) const TID: u32 = 2;
        pub(crate) const NAME: u32 = 5;
    }
    pub(super) mod event {
        pub(crate) const KIND: u32 = 9;
        pub(crate) const TRACK: u32 = 11;
        pub(crate) const NAME: u32 = 23;
        pub(crate) const FLOW: u32 = 47;
        pub(crate) const LAST_FLOW: u32 = 48;
    }
}

/// The types of track events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;

/// The order of tracks by their first events.
const CHRONOLOGICAL: u64 = 2;

/// Tracks have numbers: these two, and three kinds that lie beside each other.
const PROCESS: u64 = 4;
const TASKS: u64 = 8;

fn track_of_worker(worker: usize) -> u64 {
    4 * (worker as u64 + 1) + 1
}

fn track_of_task(task: u64) -> u64 {
    4 * task + 2
}

fn track_of_spans(task: u64) -> u64 {
    4 * task + 3
}

/// Returns the name of the program's file.
fn program() -> String {
    let file = env::current_exe().ok();
    file.iter().filter_map(|file| file.file_name()).map(|name| name.to_string_lossy()).collect()
}

impl Trace {
    /// Writes the trace in Perfetto's format, which <https://ui.perfetto.dev> opens.
    ///
    /// It shows a track for each worker, with the tasks that it runs; a track for each of the thousand tasks with most events,
    /// with what they wait for and with their spans; and arrows from the event that wakes or spawns a task to the run
    /// that it leads to.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write_perfetto(&self, out: impl Write) -> io::Result<()> {
        let mut writer = Writer { trace: self, out, tasks: HashMap::new(), open: BTreeMap::new(), flows: 0 };
        writer.describe_workers()?;
        writer.describe_tasks()?;
        let mut stalls = self.stalls().iter().peekable();
        for event in self.events() {
            while let Some(stall) = stalls.next_if(|stall| stall.at <= event.at) {
                writer.stall(stall)?;
            }
            writer.event(event)?;
        }
        stalls.try_for_each(|stall| writer.stall(stall))?;
        writer.end()
    }

    /// Writes the trace to a file, as [`write_perfetto`](Trace::write_perfetto) does. An existing file is replaced.
    ///
    /// # Errors
    /// Returns the system's error if the file cannot be made or written.
    ///
    /// # Examples
    /// ```
    /// use fibra_insight::FlightRecorder;
    /// use fibra_runtime::Runtime;
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let recorder = FlightRecorder::start(&runtime.handle())?;
    /// runtime.run(|| fibra_runtime::yield_now());
    /// let path = std::env::temp_dir().join(format!("{}.pftrace", std::process::id()));
    /// recorder.snapshot().save(&path)?;
    /// assert!(std::fs::metadata(&path)?.len() > 0);
    /// std::fs::remove_file(path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        self.write_perfetto(&mut file)?;
        file.flush()
    }
}

struct Writer<'a, W> {
    trace: &'a Trace,
    out: W,
    tasks: HashMap<u64, TaskState>,
    /// How many slices are open on each track.
    open: BTreeMap<u64, usize>,
    flows: u64,
}

/// What the writer knows of a task.
#[derive(Default)]
struct TaskState {
    has_track: bool,
    runs: bool,
    /// The flow from its last wake, which leads to its next run.
    flow: Option<u64>,
}

/// The arrow that an event is at.
#[derive(Clone, Copy)]
enum Flow {
    None,
    From(u64),
    To(u64),
}

impl<W: Write> Writer<'_, W> {
    fn packet(&mut self, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        let mut message = Message::default();
        message.message(field::trace::PACKET, |packet| {
            // There is one sequence of packets.
            packet.number(field::packet::SEQUENCE, 1);
            write(packet);
        });
        self.out.write_all(message.as_bytes())
    }

    fn describe(
        &mut self,
        track: u64,
        parent: Option<u64>,
        write: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.packet(|packet| {
            packet.message(field::packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.number(field::track::UUID, track);
                parent.iter().for_each(|parent| _ = descriptor.number(field::track::PARENT, *parent));
                write(descriptor);
            });
        })
    }

    fn describe_workers(&mut self) -> io::Result<()> {
        let pid = process::id().into();
        self.describe(PROCESS, None, |track| {
            track.message(field::track::PROCESS, |process| {
                process.number(field::process::PID, pid).string(field::process::NAME, &program());
            });
        })?;
        for (worker, thread) in self.trace.threads.iter().enumerate() {
            let name = format!("worker {worker}");
            self.describe(track_of_worker(worker), Some(PROCESS), |track| {
                track.string(field::track::NAME, &name);
                if let Some(tid) = thread {
                    track.message(field::track::THREAD, |thread| {
                        thread.number(field::thread::PID, pid).number(field::thread::TID, *tid as u64);
                        thread.string(field::thread::NAME, &name);
                    });
                }
            })?;
        }
        self.describe(TASKS, Some(PROCESS), |track| {
            track.string(field::track::NAME, "tasks").number(field::track::ORDER_OF_CHILDREN, CHRONOLOGICAL);
        })
    }

    /// Describes the tracks of the tasks with most events, in the order of their ids.
    fn describe_tasks(&mut self) -> io::Result<()> {
        // Whether each has spans, and how many events.
        let mut tasks: HashMap<u64, (bool, usize)> = HashMap::new();
        for event in self.trace.events() {
            let counts = event.task.map(|task| tasks.entry(task).or_default());
            if let Some((has_spans, events)) = counts {
                *has_spans |= matches!(event.event, Event::SpanBegins(_));
                *events += 1;
            }
        }
        let mut tasks: Vec<_> = tasks.into_iter().collect();
        tasks.sort_by_key(|(task, (_, events))| (usize::MAX - events, *task));
        tasks.truncate(MOST_TASKS);
        tasks.sort();
        for (task, (has_spans, _)) in tasks {
            let name = self.trace.label(task);
            let track = track_of_task(task);
            self.describe(track, Some(TASKS), |track| _ = track.string(field::track::NAME, &name))?;
            if has_spans {
                self.describe(track_of_spans(task), Some(track), |track| {
                    _ = track.string(field::track::NAME, "spans");
                })?;
            }
            self.tasks.insert(task, TaskState { has_track: true, ..TaskState::default() });
        }
        Ok(())
    }

    fn put(&mut self, at: Duration, track: u64, kind: u64, name: &str, flow: Flow) -> io::Result<()> {
        self.packet(|packet| {
            packet.number(field::packet::TIMESTAMP, at.as_nanos() as u64);
            packet.message(field::packet::TRACK_EVENT, |event| {
                event.number(field::event::KIND, kind).number(field::event::TRACK, track);
                if !name.is_empty() {
                    event.string(field::event::NAME, name);
                }
                match flow {
                    Flow::None => {}
                    Flow::From(flow) => _ = event.fixed64(field::event::FLOW, flow),
                    Flow::To(flow) => _ = event.fixed64(field::event::LAST_FLOW, flow),
                }
            });
        })
    }

    fn begin(&mut self, at: Duration, track: u64, name: &str, flow: Flow) -> io::Result<()> {
        *self.open.entry(track).or_default() += 1;
        self.put(at, track, BEGIN, name, flow)
    }

    /// Ends the innermost slice of a track, if one is open.
    fn end_slice(&mut self, at: Duration, track: u64) -> io::Result<()> {
        match self.open.get_mut(&track) {
            Some(open) if *open > 0 => *open -= 1,
            _ => return Ok(()),
        }
        self.put(at, track, END, "", Flow::None)
    }

    /// Begins a slice in the place of the open one.
    fn next_slice(&mut self, at: Duration, track: u64, name: &str, flow: Flow) -> io::Result<()> {
        self.end_slice(at, track)?;
        self.begin(at, track, name, flow)
    }

    /// Changes what the track of a task shows, if it has one.
    fn next_of_task(&mut self, at: Duration, task: u64, name: &str, flow: Flow) -> io::Result<()> {
        match self.has_track(task) {
            true => self.next_slice(at, track_of_task(task), name, flow),
            false => Ok(()),
        }
    }

    fn has_track(&self, task: u64) -> bool {
        self.tasks.get(&task).is_some_and(|state| state.has_track)
    }

    fn state(&mut self, task: u64) -> &mut TaskState {
        self.tasks.entry(task).or_default()
    }

    fn event(&mut self, event: &TraceEvent) -> io::Result<()> {
        let at = event.at;
        let worker = track_of_worker(event.worker);
        match (event.event, event.task) {
            (Event::Runs(task), _) => self.run(at, event.worker, task),
            (Event::Yields, Some(task)) => self.stop(at, worker, task, "ready"),
            (Event::Sleeps(wait), Some(task)) => {
                let wait = wait.map_or(String::from("sleeps"), |wait| format!("waits: {}", wait.name()));
                // Another worker may have woken it before it has left its stack.
                let is_woken = self.state(task).flow.is_some();
                self.stop(at, worker, task, if is_woken { "ready" } else { &wait })
            }
            (Event::Ends, Some(task)) => self.stop(at, worker, task, ""),
            (Event::Wakes(task), _) => self.wake(event, "wakes", task),
            (Event::TimerWakes(task), _) => self.wake(event, "timer wakes", task),
            // The wake of another worker has been seen.
            (Event::Takes(task), _) if self.state(task).flow.is_some() => Ok(()),
            (Event::Takes(task), _) => self.wake(event, "takes", task),
            (Event::Spawns(task), _) => self.wake(event, "spawns", task),
            (Event::Steals(from), _) => {
                self.put(at, worker, INSTANT, &format!("steals from worker {from}"), Flow::None)
            }
            (Event::Parks, _) => self.next_slice(at, worker, "parked", Flow::None),
            (Event::Unparks, _) => self.end_slice(at, worker),
            (Event::SpanBegins(name), Some(task)) if self.has_track(task) => {
                self.begin(at, track_of_spans(task), name, Flow::None)
            }
            (Event::SpanEnds, Some(task)) => self.end_slice(at, track_of_spans(task)),
            _ => Ok(()),
        }
    }

    fn run(&mut self, at: Duration, worker: usize, task: u64) -> io::Result<()> {
        let state = self.state(task);
        state.runs = true;
        let (to_task, to_worker) = match state.flow.take().map_or(Flow::None, Flow::To) {
            flow if state.has_track => (flow, Flow::None),
            flow => (Flow::None, flow),
        };
        let label = self.trace.label(task);
        self.next_slice(at, track_of_worker(worker), &label, to_worker)?;
        self.next_of_task(at, task, &format!("runs on worker {worker}"), to_task)
    }

    /// Ends a run. The task then does what `next` says; nothing more if that is empty.
    fn stop(&mut self, at: Duration, worker: u64, task: u64, next: &str) -> io::Result<()> {
        self.state(task).runs = false;
        self.end_slice(at, worker)?;
        match next {
            "" => self.end_slice(at, track_of_task(task)),
            next => self.next_of_task(at, task, next, Flow::None),
        }
    }

    /// Begins a flow that leads to the next run of `task`, at the task that runs or else at the worker.
    fn wake(&mut self, event: &TraceEvent, verb: &str, task: u64) -> io::Result<()> {
        let track = match event.task {
            Some(waker) if self.has_track(waker) => track_of_task(waker),
            _ => track_of_worker(event.worker),
        };
        self.flows += 1;
        let flow = self.flows;
        let name = format!("{verb} {}", self.trace.label(task));
        self.put(event.at, track, INSTANT, &name, Flow::From(flow))?;
        let state = self.state(task);
        state.flow = Some(flow);
        match state.runs {
            true => Ok(()),
            false => self.next_of_task(event.at, task, "ready", Flow::None),
        }
    }

    fn stall(&mut self, stall: &StallEvent) -> io::Result<()> {
        let name =
            format!("stall: {} has held the worker for {:?}", self.trace.label(stall.task), stall.held);
        self.put(stall.at, track_of_worker(stall.worker), INSTANT, &name, Flow::None)
    }

    /// Ends all slices that are open.
    fn end(&mut self) -> io::Result<()> {
        for (track, open) in self.open.clone() {
            (0..open).try_for_each(|_| self.end_slice(self.trace.end, track))?;
        }
        self.out.flush()
    }
}
