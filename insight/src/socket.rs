//! Sockets of the endpoint: made for the user of the process alone, with limits of time.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fibra_runtime::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, fchmod};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;

use crate::sys;

/// How many clients wait for their turn.
const BACKLOG: i32 = 64;

/// How much input after a request is read, and ignored.
const MOST_IGNORED: u64 = 64 * 1024;

/// A socket that takes connections. A Unix socket's file goes with it.
pub(crate) struct Listener {
    socket: OwnedFd,
    /// The file of a Unix socket, with its identity.
    file: Option<(PathBuf, (u64, u64))>,
}

/// A connection, whose reads and writes fail after the time that was given.
pub(crate) struct Connection {
    socket: OwnedFd,
    until: Instant,
}

impl Listener {
    /// Listens on a Unix socket with mode 0600. A file that a process has left that has ended is replaced.
    pub(crate) fn unix(path: &Path) -> io::Result<Self> {
        let explain = |error: Errno| explain(path, error);
        if path.as_os_str().is_empty() {
            // The system would make up a name that every user can connect to.
            return Err(io::Error::new(ErrorKind::InvalidInput, "the path of the endpoint is empty"));
        }
        let address = SocketAddrUnix::new(path).map_err(explain)?;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // Linux makes the file with the mode of the socket.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        if let Err(error) = net::bind(&socket, &address) {
            if error != Errno::ADDRINUSE {
                return Err(explain(error));
            }
            remove_stale(path)?;
            net::bind(&socket, &address).map_err(explain)?;
        }
        let file = Some((path.into(), id_of(path)?));
        net::listen(&socket, BACKLOG)?;
        Ok(Listener { socket, file })
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
        Ok((Listener { socket: listener.into(), file: None }, local))
    }

    /// Waits for a client.
    pub(crate) fn accept(&self) -> io::Result<Connection> {
        let socket = retry_on_intr(|| net::accept_with(&self.socket, SocketFlags::CLOEXEC))?;
        Ok(Connection { socket, until: clock::machine() })
    }

    /// Ends all waits for clients, now and later, and removes the file.
    pub(crate) fn stop(&self) {
        // It listens, so there is nothing to fail but a client that goes at this moment.
        _ = net::shutdown(&self.socket, net::Shutdown::Both);
        if let Some((path, own)) = &self.file
            && id_of(path).is_ok_and(|id| id == *own)
        {
            // Gone already, or in a directory that has become read-only.
            _ = fs::remove_file(path);
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

/// Removes a socket's file on which no process listens.
fn remove_stale(path: &Path) -> io::Result<()> {
    let in_use = match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            if fs::symlink_metadata(path)?.file_type().is_socket() {
                return fs::remove_file(path);
            }
            "exists, and is no socket"
        }
        _ => "is in use: another endpoint or process listens on it",
    };
    Err(io::Error::new(ErrorKind::AddrInUse, format!("the endpoint {} {in_use}", path.display())))
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
