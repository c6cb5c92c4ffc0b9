//! What the endpoint answers, by path.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use fibra_runtime::task::TaskState;
use fibra_runtime::{Handle, clock};

use crate::profiler::{Profiler, sleep};
use crate::recorder::FlightRecorder;
use crate::request::{Request, Response};
use crate::socket::Connection;

/// The answer to `/`.
const PATHS: &str = "\
/tasks?debug=1                    tasks by equal stacks
/tasks?debug=2                    each task with its stack
/tasks?format=json                each task, as JSON in the shape of JDK's thread dump
/graph                            which tasks wait for which, for Graphviz
/metrics                          numbers, for Prometheus
/profile?seconds=30               where tasks spend their time, for pprof
/profile?format=folded            the same for flame graphs
/profile?state=running&rate=100   samples of running tasks only, 100 a second
/trace?seconds=1                  what workers do, for Perfetto
";

const TEXT: &str = "text/plain; charset=utf-8";

/// How long a profile and a trace take at the most, in seconds.
const MOST_SECONDS: u32 = 600;

const UNAVAILABLE: &str = "503 Service Unavailable";

/// The state that a profile is of, by its name.
const STATES: [(&str, Option<TaskState>); 5] = [
    ("all", None),
    ("running", Some(TaskState::Running)),
    ("ready", Some(TaskState::Ready)),
    ("suspended", Some(TaskState::Suspended)),
    ("blocking", Some(TaskState::Blocking)),
];

/// Answers requests about a runtime.
pub(crate) struct Answers {
    runtime: Handle,
    /// Held while a profile is taken.
    profiling: Mutex<()>,
    is_stopped: AtomicBool,
}

impl Answers {
    pub(crate) fn new(runtime: Handle) -> Self {
        Answers { runtime, profiling: Mutex::new(()), is_stopped: AtomicBool::new(false) }
    }

    /// Ends a profile that is being taken, and says so from then on.
    pub(crate) fn stop(&self) {
        // Relaxed: it publishes nothing.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        // Relaxed: as in `stop`.
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns true if nothing is wanted any more: the endpoint was stopped, or the client has left.
    fn is_over(&self, client: &Connection) -> bool {
        self.is_stopped() || client.has_left()
    }

    /// Answers a request, or says why not. A profile or a trace ends when the client leaves.
    pub(crate) fn answer(&self, request: &Request, client: &Connection) -> Result<Response, Response> {
        request.allow(match request.path.as_str() {
            "/tasks" => &["debug", "format"],
            "/trace" => &["seconds"],
            "/profile" => &["seconds", "format", "state", "rate"],
            _ => &[],
        })?;
        match request.path.as_str() {
            "/" => Ok(Response::new(TEXT, PATHS)),
            "/tasks" => self.tasks(request),
            "/graph" => {
                Ok(Response::new("text/vnd.graphviz; charset=utf-8", self.runtime.wait_graph().to_dot()))
            }
            "/metrics" => {
                let page = self.runtime.metrics().to_prometheus();
                Ok(Response::new("text/plain; version=0.0.4; charset=utf-8", page))
            }
            "/profile" => self.profile(request, client),
            "/trace" => self.trace(request, client),
            path => {
                Err(Response::refusal("404 Not Found", format_args!("there is no {path:?}, only\n{PATHS}")))
            }
        }
    }

    fn tasks(&self, request: &Request) -> Result<Response, Response> {
        let is_json = request.choice("format", &[("text", false), ("json", true)])?;
        let is_full = request.choice("debug", &[("1", false), ("2", true)])?;
        let dump = self.runtime.dump();
        Ok(match (is_json, is_full) {
            (true, _) => Response::new("application/json", dump.to_json()),
            (false, true) => Response::new(TEXT, dump.to_string()),
            (false, false) => Response::new(TEXT, dump.grouped().to_string()),
        })
    }

    fn profile(&self, request: &Request, client: &Connection) -> Result<Response, Response> {
        let is_folded = request.choice("format", &[("pprof", false), ("folded", true)])?;
        let state = request.choice("state", &STATES)?;
        let seconds = request.number("seconds", 30, 1, MOST_SECONDS)?;
        let rate = request.number("rate", Profiler::RATE, 1, Profiler::MOST_RATE)?;
        let profiler = Profiler { rate, state };
        let _one = match self.profiling.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let text = "another profile is being taken: ask again when it has ended";
                return Err(Response::refusal(UNAVAILABLE, text));
            }
            // A profile that panicked has left nothing behind.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Ok(one) => one,
        };
        let duration = Duration::from_secs(seconds.into());
        let profile = profiler.run_until(&self.runtime, duration, || self.is_over(client));
        Ok(match is_folded {
            true => Response::new(TEXT, profile.to_folded()),
            false => Response::new("application/octet-stream", profile.to_pprof()),
        })
    }

    fn trace(&self, request: &Request, client: &Connection) -> Result<Response, Response> {
        let seconds = request.number("seconds", 1, 1, MOST_SECONDS)?;
        let recorder = FlightRecorder::start(&self.runtime).map_err(|_| {
            let text = "the program or a client has a recorder already: ask again when that has ended";
            Response::refusal(UNAVAILABLE, text)
        })?;
        sleep(clock::machine(), Duration::from_secs(seconds.into()), || self.is_over(client));
        let mut file = Vec::new();
        recorder.snapshot().write_perfetto(&mut file).expect("memory takes all that is written");
        Ok(Response::new("application/octet-stream", file))
    }
}
