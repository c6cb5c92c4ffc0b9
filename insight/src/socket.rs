//! Sockets of the endpoint: made for the user of the process alone, with limits of time.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fibra_runtime::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;

use crate::sys;

/// How many clients wait for their turn.
const BACKLOG: i32 = 64;

/// The mode of files.
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

/// The message for a path that another process uses.
const LISTENS: &str = "is in use: another endpoint or process listens on it";

/// How much input after a request is read, and ignored.
const MOST_IGNORED: u64 = 64 * 1024;

/// A socket that takes connections. The files of a Unix socket go with it.
pub(crate) struct Listener {
    socket: OwnedFd,
    files: Vec<OwnFile>,
}

/// A file that this endpoint has made, with its identity.
struct OwnFile {
    path: PathBuf,
    id: (u64, u64),
    /// Of a lock, which is held as long as this is open.
    _lock: Option<OwnedFd>,
}

/// A connection, whose reads and writes fail after the time that was given.
pub(crate) struct Connection {
    socket: OwnedFd,
    until: Instant,
}

impl Listener {
    /// Listens on a Unix socket with mode 0600. A file that a process has left that has ended is replaced.
    pub(crate) fn unix(path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            // The system would make up a name that every user can connect to.
            return Err(io::Error::new(ErrorKind::InvalidInput, "the path of the endpoint is empty"));
        }
        let address = SocketAddrUnix::new(path).map_err(|error| explain(path, error))?;
        // Held from before the check until the removal: another program would take a socket that does not listen yet for a stale
        // file.
        let lock = lock(path)?;
        match listen(path, &address) {
            Ok((socket, file)) => Ok(Listener { socket, files: vec![file, lock] }),
            Err(error) => {
                lock.remove();
                Err(error)
            }
        }
    }

    /// Listens on a port of a loopback address, and refuses all other addresses.
    pub(crate) fn loopback(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        if !address.ip().is_loopback() {
            let message = format!("{address} is no loopback address: an endpoint is for this machine only");
            return Err(io::Error::new(ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind(address).map_err(|error| {
            io::Error::new(error.kind(), format!("the endpoint cannot listen on {address}: {error}"))
        })?;
        let local = listener.local_addr()?;
        Ok((Listener { socket: listener.into(), files: Vec::new() }, local))
    }

    /// Waits for a client.
    pub(crate) fn accept(&self) -> io::Result<Connection> {
        let socket = retry_on_intr(|| net::accept_with(&self.socket, SocketFlags::CLOEXEC))?;
        Ok(Connection { socket, until: clock::machine() })
    }

    /// Ends all waits for clients, now and later, and removes the files.
    pub(crate) fn stop(&self) {
        // It listens, so there is nothing to fail but a client that goes at this moment.
        _ = net::shutdown(&self.socket, net::Shutdown::Both);
        self.files.iter().for_each(OwnFile::remove);
    }
}

impl OwnFile {
    /// Removes the file, unless it is another one by now.
    fn remove(&self) {
        if id_of(&self.path).is_ok_and(|id| id == self.id) {
            // Gone already, or in a directory that has become read-only.
            _ = fs::remove_file(&self.path);
        }
    }
}

impl Connection {
    /// Lets reads and writes go on for that long from now.
    pub(crate) fn limit(&mut self, time: Duration) {
        self.until = clock::machine() + time;
    }

    /// Returns true if the client at a Unix socket is root, or the user of this process.
    pub(crate) fn is_of_owner(&self) -> bool {
        let is_owner = |user| user == 0 || user == geteuid().as_raw();
        sys::peer_user(self.socket.as_fd()).is_ok_and(is_owner)
    }

    /// Returns true if the client has closed the connection, or its sending side.
    pub(crate) fn has_left(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.socket, PollFlags::RDHUP)], Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Ends the connection so that the client reads what was written: a close would drop that if there is input left.
    pub(crate) fn finish(self) {
        _ = net::shutdown(&self.socket, net::Shutdown::Write);
        _ = io::copy(&mut self.take(MOST_IGNORED), &mut io::sink());
    }

    fn arm(&self, which: Timeout) -> io::Result<()> {
        let left = self.until.saturating_duration_since(clock::machine());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        // A shorter one would be none at all.
        Ok(set_socket_timeout(&self.socket, which, Some(left.max(Duration::from_millis(1))))?)
    }
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.arm(Timeout::Recv)?;
        net::recv(&self.socket, into, RecvFlags::empty()).map(|(read, _)| read).map_err(timed_out)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.arm(Timeout::Send)?;
        net::send(&self.socket, bytes, SendFlags::NOSIGNAL).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn timed_out(error: Errno) -> io::Error {
    if error == Errno::AGAIN { ErrorKind::TimedOut.into() } else { error.into() }
}

/// Locks the file beside a socket, which programs hold that listen there or are about to.
fn lock(socket: &Path) -> io::Result<OwnFile> {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    // It may be the file of another user, and a pipe.
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    loop {
        let file = open(&path, flags, OWNER).map_err(|error| explain(socket, error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use(socket, LISTENS)),
            Err(error) => return Err(explain(socket, error)),
        }
        let opened = fstat(&file)?;
        if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile || opened.st_size > 0 {
            return Err(in_use(&path, "is no file of an endpoint's lock"));
        }
        let id = (opened.st_dev, opened.st_ino);
        // Its last holder may have removed it after it was opened.
        if id_of(&path).is_ok_and(|current| current == id) {
            return Ok(OwnFile { path, id, _lock: Some(file) });
        }
    }
}

/// Listens at a path that is locked.
fn listen(path: &Path, address: &SocketAddrUnix) -> io::Result<(OwnedFd, OwnFile)> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Linux makes the file with the mode of the socket.
    fchmod(&socket, OWNER)?;
    if let Err(error) = net::bind(&socket, address) {
        if error != Errno::ADDRINUSE {
            return Err(explain(path, error));
        }
        remove_stale(path, address)?;
        net::bind(&socket, address).map_err(|error| explain(path, error))?;
    }
    let file = OwnFile { path: path.into(), id: id_of(path)?, _lock: None };
    net::listen(&socket, BACKLOG)?;
    Ok((socket, file))
}

/// Removes a socket's file on which no process listens.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    // A connection to a full queue would wait.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let client = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match net::connect(&client, address) {
        Err(Errno::CONNREFUSED) if fs::symlink_metadata(path)?.file_type().is_socket() => {
            fs::remove_file(path)
        }
        Err(Errno::CONNREFUSED) => Err(in_use(path, "exists, and is no socket")),
        _ => Err(in_use(path, LISTENS)),
    }
}

fn in_use(path: &Path, how: &str) -> io::Error {
    io::Error::new(ErrorKind::AddrInUse, format!("the endpoint {} {how}", path.display()))
}

/// Says what is wrong with the path of a socket.
fn explain(path: &Path, error: Errno) -> io::Error {
    let reason = match error {
        Errno::NAMETOOLONG => "the path of a socket has at most 108 bytes".into(),
        Errno::NOENT => "its directory does not exist".into(),
        Errno::NOTDIR => "a part of the path is no directory".into(),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => "there is no permission to make a file there".into(),
        error => error.to_string(),
    };
    let message = format!("the endpoint {} cannot be made: {reason}", path.display());
    io::Error::new(io::Error::from(error).kind(), message)
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}
