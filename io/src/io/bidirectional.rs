//! `copy_bidirectional`: copies between two streams in both directions at once, as a proxy does.

#![forbid(unsafe_code)]

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use fibra_runtime::limit::Refusal;
use fibra_runtime::{scope, wait};

use super::{DuplexStream, copy};
use crate::net::{TcpStream, UnixStream};
use crate::waiting::helper::{join_helper, spawn_helper};

/// Ends the two directions of a stream one by one, through a shared reference.
///
/// Waiters of a direction that is ended wake.
pub trait HalfClose {
    /// Ends one direction or both, as [`TcpStream::shutdown`] does.
    ///
    /// # Errors
    ///
    /// `NotConnected` if the connection has ended already.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
}

impl HalfClose for TcpStream {
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }
}

impl HalfClose for UnixStream {
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }
}

impl HalfClose for DuplexStream {
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }
}

/// Copies between `a` and `b` in both directions, until both have ended.
///
/// Returns the bytes copied from `a` to `b`, and from `b` to `a`.
///
/// When one stream ends, the write half of its peer is shut down, and the opposite direction goes on.
/// A direction that ends in any other way ends both: both streams are shut down altogether.
///
/// The caller copies one direction, and a helper task the opposite one; for a plain thread the helper
/// is a thread. Both have ended when this returns.
///
/// # Cancellation
///
/// Every wait is a cancellation point; the helper task is cancelled with the caller. Both streams are
/// shut down.
///
/// # Errors
///
/// The error of the direction which failed first, as [`copy`](fn@copy); also if there is no task or
/// thread for the helper.
///
/// # Panics
///
/// Resumes the panic of a stream.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::Shutdown;
/// use fibra_io::io::{copy_bidirectional, duplex};
///
/// let (mut client, a) = duplex(64);
/// let (b, mut server) = duplex(64);
/// client.write_all(b"request")?;
/// client.shutdown(Shutdown::Write)?;
/// server.write_all(b"an answer")?;
/// server.shutdown(Shutdown::Write)?;
/// assert_eq!(copy_bidirectional(&a, &b)?, (7, 9));
/// let mut request = String::new();
/// server.read_to_string(&mut request)?;
/// assert_eq!(request, "request");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn copy_bidirectional<A, B>(a: &A, b: &B) -> io::Result<(u64, u64)>
where
    A: HalfClose + Sync + ?Sized,
    B: HalfClose + Sync + ?Sized,
    for<'a> &'a A: Read + Write,
    for<'b> &'b B: Read + Write,
{
    let failure = Mutex::new(None);
    let (there, back) = (Way::new(a, b, &failure), Way::new(b, a, &failure));
    let bytes = match wait::in_task() {
        true => scope(|tasks| {
            let there = spawn_helper(tasks, || there.go());
            let received = back.go();
            Ok((join_helper(there)?, received))
        }),
        false => thread::scope(|threads| {
            let there = thread::Builder::new().spawn_scoped(threads, || there.go());
            let there = there.map_err(|error| Refusal::of_thread("a copy beside another one", error))?;
            let received = back.go();
            Ok((there.join().unwrap_or_else(|panic| resume_unwind(panic)), received))
        }),
    };
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => bytes,
    }
}

/// One direction of the copy.
///
/// If it fails or never starts, both streams are shut down, which ends the opposite direction.
struct Way<'a, A: HalfClose + ?Sized, B: HalfClose + ?Sized> {
    from: &'a A,
    to: &'a B,
    /// The first of both directions.
    failure: &'a Mutex<Option<io::Error>>,
    ended_well: bool,
}

impl<'a, A: HalfClose + ?Sized, B: HalfClose + ?Sized> Way<'a, A, B> {
    fn new(from: &'a A, to: &'a B, failure: &'a Mutex<Option<io::Error>>) -> Self {
        Way { from, to, failure, ended_well: false }
    }

    /// Copies to the end, and returns the number of bytes.
    fn go(mut self) -> u64
    where
        for<'r> &'r A: Read,
        for<'w> &'w B: Write,
    {
        match self.carry() {
            Ok(bytes) => {
                self.ended_well = true;
                bytes
            }
            // Stored before the drop shuts the streams down, which may fail the opposite direction.
            Err(error) => {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                0
            }
        }
    }

    fn carry(&self) -> io::Result<u64>
    where
        for<'r> &'r A: Read,
        for<'w> &'w B: Write,
    {
        let (mut from, mut to) = (self.from, self.to);
        let bytes = copy(&mut from, &mut to)?;
        to.flush()?;
        match self.to.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != ErrorKind::NotConnected => Err(error),
            _ => Ok(bytes),
        }
    }
}

impl<A: HalfClose + ?Sized, B: HalfClose + ?Sized> Drop for Way<'_, A, B> {
    fn drop(&mut self) {
        if !self.ended_well {
            // A stream that is shut down already need not be.
            let _ = self.from.shutdown(Shutdown::Both);
            let _ = self.to.shutdown(Shutdown::Both);
        }
    }
}
