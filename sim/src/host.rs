//! The hosts of a simulated program.

#![forbid(unsafe_code)]

use std::fmt;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fibra::{Handle, JoinHandle, Task};

use crate::context;
use crate::host_id::HostId;
use crate::oracle::Oracle;

/// How often a crash looks for the tasks that it has cancelled before it lets time pass between two looks.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The time between a panic of a body and its restart.
const PAUSE: Duration = Duration::from_secs(1);

/// A host of a simulated program: tasks with an address of their own, that crash together.
///
/// Dropped, it runs on.
///
/// # Examples
/// ```
/// use fibra::net::{TcpListener, TcpStream};
/// use fibra_sim::{Sim, host};
/// use std::io::{ErrorKind, Read};
///
/// Sim::builder().run(|| {
///     let server = host("server", || {
///         let listener = TcpListener::bind("0.0.0.0:80").unwrap();
///         let mut clients = Vec::new();
///         loop {
///             clients.push(listener.accept().unwrap());
///         }
///     });
///     fibra::sleep(std::time::Duration::from_secs(1));
///     let mut stream = TcpStream::connect("server:80").unwrap();
///     server.crash();
///     assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
///     assert_eq!(TcpStream::connect("server:80").unwrap_err().kind(), ErrorKind::ConnectionRefused);
///     server.restart();
///     fibra::sleep(std::time::Duration::from_secs(1));
///     assert!(TcpStream::connect("server:80").is_ok());
/// });
/// ```
pub struct Host {
    name: String,
    id: HostId,
    run: Arc<Oracle>,
    body: Arc<dyn Fn() + Send + Sync>,
    body_task: Mutex<Option<JoinHandle<()>>>,
}

/// Starts a host of that name, which runs `body`.
///
/// All tasks that `body` spawns are on this host, and so are the sockets that they make. Others reach it by its name. A panic
/// of `body` fails the run at once; see [`restarting_host`].
///
/// # Panics
/// Panics outside a simulation, if there is a host of that name, and if it is `localhost`.
#[track_caller]
pub fn host(name: &str, body: impl Fn() + Send + Sync + 'static) -> Host {
    start(name, Arc::new(body))
}

/// Starts a host whose body runs again a second after it has panicked.
///
/// As after a [crash](Host::crash), the other tasks of the host are cancelled before, and its connections reset.
///
/// # Panics
/// As [`host`].
///
/// # Examples
/// ```
/// use fibra_sim::{Sim, restarting_host};
/// use std::sync::atomic::{AtomicU32, Ordering};
/// static RUNS: AtomicU32 = AtomicU32::new(0);
/// Sim::builder().run(|| {
///     let host = restarting_host("unstable", || {
///         assert!(RUNS.fetch_add(1, Ordering::Relaxed) >= 2, "not yet");
///     });
///     host.join();
///     assert_eq!(RUNS.load(Ordering::Relaxed), 3);
/// });
/// ```
#[track_caller]
pub fn restarting_host(name: &str, body: impl Fn() + Send + Sync + 'static) -> Host {
    start(
        name,
        Arc::new(move || {
            while let Err(panic) = catch_unwind(AssertUnwindSafe(&body)) {
                if fibra::task::is_cancelled() {
                    resume_unwind(panic);
                }
                if let Some(run) = context::run() {
                    let host = run.network().tasks().present_host();
                    run.network().crash(host);
                    cancel_tasks(&run, host);
                    fibra::sleep(PAUSE);
                    run.network().restart(host);
                }
            }
        }),
    )
}

#[track_caller]
fn start(name: &str, body: Arc<dyn Fn() + Send + Sync>) -> Host {
    let Some(run) = context::run() else { panic!("host {name:?} was started outside a simulation") };
    assert!(name != "localhost", "\"localhost\" stands for each host itself, and names none");
    let Some(id) = run.network().add_host(name) else { panic!("the simulation has a host {name:?} already") };
    let host = Host { name: name.to_owned(), id, run, body, body_task: Mutex::new(None) };
    host.run_body();
    host
}

impl Host {
    fn run_body(&self) {
        let (run, body) = (Arc::clone(&self.run), Arc::clone(&self.body));
        let body = move || {
            let outcome = catch_unwind(AssertUnwindSafe(&*body));
            if let Err(panic) = outcome {
                if !fibra::task::is_cancelled() {
                    run.end_for_panic(&fibra::task::current());
                }
                resume_unwind(panic);
            }
        };
        let task = fibra::task::Builder::new().name(self.name.as_str()).spawn(body);
        self.run.network().tasks().set(task.task().id(), self.id);
        *self.body_task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address that its name stands for.
    pub fn ip(&self) -> IpAddr {
        self.run.network().ips(self.id)[0]
    }

    /// Returns its address of IPv6, which its name does not stand for.
    pub fn ipv6(&self) -> IpAddr {
        self.run.network().ips(self.id)[1]
    }

    /// Kills the host, as if its process was killed.
    ///
    /// Its connections are reset, which the other ends see unless a link is cut. Then its tasks are cancelled, and unwind
    /// without a network. Returns when they have ended; a panic on the way fails no run. A task of the host itself is cancelled
    /// by its call.
    ///
    /// # Cancellation
    /// A cancellation point, if its tasks do not end at once.
    ///
    /// # Panics
    /// Panics outside the tasks of the simulation.
    pub fn crash(&self) {
        self.run.network().crash(self.id);
        cancel_tasks(&self.run, self.id);
        let this = fibra::task::current();
        if self.run.network().tasks().host_of(this.id()) == self.id {
            this.cancel();
            fibra::yield_now();
        }
    }

    /// Runs the body again, after a [`crash`](Self::crash) if it runs.
    ///
    /// For the tasks of other hosts: a task of the host itself is cancelled by the crash, and restarts nothing. See
    /// [`restarting_host`].
    ///
    /// # Cancellation
    /// As [`crash`](Self::crash).
    ///
    /// # Panics
    /// Panics outside the tasks of the simulation.
    pub fn restart(&self) {
        self.crash();
        self.run.network().restart(self.id);
        self.run_body();
    }

    /// Sends the host a Ctrl-C.
    ///
    /// Those of its tasks hear it that listen by [`fibra::signal`]. As for a real process, it is the end where none has ever
    /// listened, and so is the second one after [`exit_on_repeat`](fibra::signal::exit_on_repeat): then the host
    /// [crashes](Self::crash).
    ///
    /// # Cancellation
    /// As [`crash`](Self::crash), if it is the end.
    ///
    /// # Panics
    /// Panics outside the tasks of the simulation.
    ///
    /// # Examples
    /// ```
    /// use fibra_sim::{Sim, host};
    /// Sim::builder().run(|| {
    ///     let server = host("server", || fibra::signal::ctrl_c().unwrap());
    ///     // Lets the server listen.
    ///     fibra::sleep(std::time::Duration::from_secs(1));
    ///     server.ctrl_c();
    ///     server.join();
    /// });
    /// ```
    pub fn ctrl_c(&self) {
        let process = self.run.network().process_of(self.id);
        if fibra::signal::deliver_simulated(process, fibra::signal::SIGINT) {
            self.crash();
        }
    }

    /// Waits until the body has returned, or a crash has ended it.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn join(self) {
        let body = self.body_task.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A crash is no failure, and a panic has ended the run.
        _ = body.map(JoinHandle::join);
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("name", &self.name).field("ip", &self.ip()).finish_non_exhaustive()
    }
}

/// Cancels the tasks of a host, except the caller, until they have ended.
fn cancel_tasks(run: &Oracle, host: HostId) {
    let (this, runtime) = (fibra::task::current().id(), Handle::current());
    for look in 1.. {
        let hosts = run.network().tasks();
        let is_there = |task: &Task| task.id() != this && hosts.host_of(task.id()) == host;
        let tasks: Vec<Task> = runtime.started_tasks().into_iter().filter(is_there).collect();
        drop(hosts);
        if tasks.is_empty() && runtime.unstarted_tasks() == 0 {
            return;
        }
        tasks.iter().for_each(Task::cancel);
        match look % LOOKS {
            0 => fibra::sleep(BETWEEN_LOOKS),
            _ => fibra::yield_now(),
        }
    }
}
