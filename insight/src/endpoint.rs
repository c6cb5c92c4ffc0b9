//! The endpoint: answers over HTTP what a runtime does, on threads of its own.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fibra_runtime::Handle;
use fibra_runtime::driver::unpinned;

use crate::answers::Answers;
use crate::request::{Request, Response};
use crate::socket::{Connection, Listener};
use crate::unwinder::install;

/// How many clients are answered at once. Each has a thread, and others wait in the queue of the socket.
const CLIENTS: usize = 4;

/// How long a client may take to send its request, and to read its answer.
const READ: Duration = Duration::from_secs(5);
const WRITE: Duration = Duration::from_secs(30);

/// How long a client may take to leave after its answer.
const LEAVE: Duration = Duration::from_secs(1);

/// How long a thread rests when the system refuses it a connection.
const REST: Duration = Duration::from_millis(100);

/// The shortest token, in bytes.
const SHORTEST_TOKEN: usize = 16;

/// Where an endpoint listens, and which runtime it shows: see [`serve`].
#[derive(Clone)]
pub struct Endpoint {
    runtime: Handle,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Unix(PathBuf),
    Loopback { address: SocketAddr, token: String },
}

impl Endpoint {
    /// Returns an endpoint at a Unix socket, which the user of the process and root can connect to.
    ///
    /// Its file gets the mode 0600, and the system is asked for the user of each client. The directory must exist. A file
    /// beside it, whose name ends in `.lock`, keeps other endpoints away as long as it is locked.
    pub fn unix(runtime: &Handle, path: impl Into<PathBuf>) -> Self {
        Endpoint { runtime: runtime.clone(), place: Place::Unix(path.into()) }
    }

    /// Returns an endpoint at a TCP port of a loopback address, for clients that know the token; port 0 is any free one.
    ///
    /// Every user of the machine can connect to the port, so the token is a secret. It has at least 16 bytes, all of them
    /// printable ASCII without spaces. A client sends it as `Authorization: Bearer TOKEN`. Requests whose `Host` is not
    /// `localhost` or a loopback address are refused, since a web page has caused them.
    pub fn loopback(runtime: &Handle, address: impl Into<SocketAddr>, token: impl Into<String>) -> Self {
        let place = Place::Loopback { address: address.into(), token: token.into() };
        Endpoint { runtime: runtime.clone(), place }
    }
}

/// Answers over HTTP what a runtime does, until the value that is returned is dropped.
///
/// Four plain threads answer, so they do it while all workers hang. A fifth client waits. A request and its head are
/// limited to 8 KiB and 5 seconds; a connection serves one request. `/` lists the paths: tasks with their stacks, the graph
/// of waits, metrics, profiles and traces.
///
/// An endpoint shows one runtime, as Go's `net/http/pprof` shows the one scheduler of a process: it has no names for
/// several. A program with more of them makes one endpoint for each. It does not keep the runtime from ending, and shows
/// what is left after that.
///
/// What is shown is a secret of the program: names of tasks, addresses of peers. So there is no endpoint unless a program
/// makes one.
///
/// # Errors
/// * [`AddrInUse`](ErrorKind::AddrInUse): another endpoint listens there, or the path is that of another file. The file
///   of a socket on which no process listens any more is replaced.
/// * [`NotFound`](ErrorKind::NotFound), [`PermissionDenied`](ErrorKind::PermissionDenied): the directory does not exist, or
///   may not be written to.
/// * [`InvalidInput`](ErrorKind::InvalidInput): the address is no loopback address, the token is short, or has bytes that it
///   must not have. [`InvalidFilename`](ErrorKind::InvalidFilename): the path is longer than a socket's can be.
/// * What the system says where it has no thread or no descriptor.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
///
/// let path = std::env::temp_dir().join(format!("insight-{}.sock", std::process::id()));
/// let runtime = fibra::Runtime::builder().workers(1).build()?;
/// let endpoint = fibra_insight::Endpoint::unix(&runtime.handle(), &path);
/// let serving = fibra_insight::serve(endpoint)?;
///
/// // curl --unix-socket PATH http://localhost/tasks
/// let mut client = UnixStream::connect(&path)?;
/// client.write_all(b"GET /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer)?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("0 tasks"));
///
/// drop(serving);
/// assert!(!path.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn serve(endpoint: Endpoint) -> io::Result<Serving> {
    install();
    let (listener, address, token) = match endpoint.place {
        Place::Unix(path) => (Listener::unix(&path)?, None, None),
        Place::Loopback { address, token } => {
            if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                let message = format!(
                    "the token of an endpoint has at least {SHORTEST_TOKEN} bytes, all printable ASCII without spaces"
                );
                return Err(io::Error::new(ErrorKind::InvalidInput, message));
            }
            let (listener, address) = Listener::loopback(address)?;
            (listener, Some(address), Some(token))
        }
    };
    let server = Arc::new(Server { listener, token, answers: Answers::new(endpoint.runtime) });
    // Dropped on an error, which ends the threads that have begun.
    let serving = Serving { server, address };
    for index in 0..CLIENTS {
        let server = Arc::clone(&serving.server);
        let builder = thread::Builder::new().name(format!("fibra-insight-{index}"));
        unpinned(|| builder.spawn(move || server.run()))?;
    }
    Ok(serving)
}

/// Stops an endpoint when it is dropped, and removes the files of its socket.
///
/// It does not wait for answers that are under way. They go on; a profile is cut short.
#[must_use = "the endpoint stops when this is dropped"]
pub struct Serving {
    server: Arc<Server>,
    address: Option<SocketAddr>,
}

impl Serving {
    /// Returns the loopback address with its port; `None` for a Unix socket.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// let any_port = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    /// let endpoint = fibra_insight::Endpoint::loopback(&runtime.handle(), any_port, "correct-horse-battery");
    /// let serving = fibra_insight::serve(endpoint)?;
    /// assert_ne!(serving.local_addr().unwrap().port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.server.answers.stop();
        self.server.listener.stop();
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What the threads share.
struct Server {
    listener: Listener,
    /// What clients have to know, where they are not known by their user.
    token: Option<String>,
    answers: Answers,
}

impl Server {
    fn run(&self) {
        while !self.answers.is_stopped() {
            match self.listener.accept() {
                // A client that leaves early has no interest in the error.
                Ok(client) => _ = self.serve(client),
                // It was stopped, or there is no descriptor left.
                Err(_) => thread::sleep(REST),
            }
        }
    }

    fn serve(&self, mut client: Connection) -> io::Result<()> {
        client.limit(READ);
        let Some(request) = Request::read(&mut client).transpose() else { return Ok(()) };
        let with_body = !request.as_ref().is_ok_and(|request| request.is_head);
        let answered = request.and_then(|request| {
            self.admit(&client, &request)?;
            let answer = AssertUnwindSafe(|| self.answers.answer(&request, &client));
            catch_unwind(answer).unwrap_or_else(|_| {
                let text = "the answer panicked, see standard error";
                Err(Response::refusal("500 Internal Server Error", text))
            })
        });
        client.limit(WRITE);
        answered.unwrap_or_else(|refusal| refusal).write(&mut client, with_body)?;
        client.limit(LEAVE);
        client.finish();
        Ok(())
    }

    fn admit(&self, client: &Connection, request: &Request) -> Result<(), Response> {
        match &self.token {
            Some(token) => request.admit(token),
            None if client.is_of_owner() => Ok(()),
            None => {
                let text = "the endpoint is for the user of the process, and for root";
                Err(Response::refusal("403 Forbidden", text))
            }
        }
    }
}
