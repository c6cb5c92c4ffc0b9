//! `StreamFile`: an open file of any kind, read and written at its position.
//!
//! | file | a call | in a task |
//! | --- | --- | --- |
//! | on a disk | ends by itself, but may block the thread for as long as the disk takes | reads memory in place (`RWF_NOWAIT`); all else runs on the blocking pool, with the buffer borrowed |
//! | a terminal, a FIFO, a device | may never end: no input, no reader | waits until it is ready, as for a socket; then it runs in place if the kernel can be told not to wait, else on the second pool, with a buffer of its own |
//!
//! So no borrowing call waits on the pool for something that may not come, and a task that waits
//! can be cancelled. What `poll` says is old when the call is made: another reader may have taken
//! the input. Within the process a lock for each direction spans the second look and the transfer.
//! Other processes do not know that lock, so a call may wait on the second pool. If its task is
//! cancelled, the call runs on, and the data that it reads is lost.
//!
//! A file that came in non-blocking mode is not waited for, unless it is a standard stream. A plain
//! thread makes the plain call.
//!
//! A file system that refuses `RWF_NOWAIT` is asked each time: that costs little beside the way to
//! the pool. A call at the file's position holds a lock of the kernel. While such a call is on the
//! pool, no task tries the position in place, where it would block a worker.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fibra_runtime::clock;
use fibra_runtime::{unblock, wait};
use socket2::SockRef;

use crate::sys;
use crate::sys::Direction;
use crate::sys::file::{self, Identity, Place};
use crate::waiting::attempt::Attempt;
use crate::waiting::convert::Wraps;
use crate::waiting::descriptor::Descriptor;
use crate::waiting::second_pool::detached;
use crate::waiting::timeouts::Timeout;

/// The most that is copied in place, which keeps a worker for about 100 microseconds.
///
/// More goes to the pool, or is left to the next call.
const IN_PLACE_MAX: usize = 1 << 20;

/// The most that a read on the second pool asks for: as much as a FIFO holds.
const OWNED_MAX: usize = 64 << 10;

/// See the [module](self).
pub(crate) struct StreamFile<S: AsFd> {
    io: Descriptor<S>,
    is_endless: bool,
    shared: Arc<Shared>,
}

/// State of an open file that its descriptors share.
#[derive(Default)]
struct Shared {
    /// Calls at its position that are on the pool or on their way there.
    busy: AtomicUsize,
    limit: Timeout,
    locks: Arc<TransferLocks>,
}

/// Locks of one file, one for each direction, held over a look and the transfer after it.
#[derive(Default)]
struct TransferLocks {
    read: Mutex<()>,
    write: Mutex<()>,
}

impl TransferLocks {
    /// Returns the locks that all open files of `identity` share.
    fn of(identity: Identity) -> Arc<TransferLocks> {
        static ALL: Mutex<BTreeMap<Identity, Weak<TransferLocks>>> = Mutex::new(BTreeMap::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, locks| locks.strong_count() > 0);
        let known = all.get(&identity).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let locks = Arc::default();
            all.insert(identity, Arc::downgrade(&locks));
            locks
        })
    }
}

/// Ends the count of one call at the position.
struct Busy<'a>(&'a Shared);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Outcome of a look that does not wait.
enum Look {
    Moved(usize),
    /// The file is ready, and the call may block.
    Ready,
}

impl<S: AsFd> StreamFile<S> {
    /// Takes an open file that tasks wait for whatever its mode: a standard stream.
    pub(crate) fn patient(inner: S) -> StreamFile<S> {
        let nature = file::nature(inner.as_fd());
        let is_endless = nature.is_endless();
        let io = Descriptor::new(inner, false).recheck_writes(nature.keeps_shutdown_from_writers());
        let identity = file::identity(io.fd()).filter(|_| is_endless);
        let locks = identity.map_or_else(Arc::default, TransferLocks::of);
        let shared = Shared { locks, ..Shared::default() };
        StreamFile { io, is_endless, shared: Arc::new(shared) }
    }

    /// Makes a stream file of another descriptor of this open file.
    pub(crate) fn with_clone(&self, clone: S) -> StreamFile<S> {
        let (io, shared) = (self.io.with_clone(clone), Arc::clone(&self.shared));
        StreamFile { io, is_endless: self.is_endless, shared }
    }

    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn io(&self) -> &Descriptor<S> {
        &self.io
    }

    pub(crate) fn std(&self) -> &S {
        self.io.inner()
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.io.fd()
    }

    /// Returns how long a transfer of an endless file waits.
    pub(crate) fn limit(&self) -> &Timeout {
        &self.shared.limit
    }

    /// Returns true if a call may never end.
    pub(crate) fn is_endless(&self) -> bool {
        self.is_endless
    }

    /// Reads at the position.
    pub(crate) fn read(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let fd = self.fd();
        if !wait::in_task() {
            return file::read(fd, bufs);
        }
        if !self.is_endless {
            return match self.read_in_place(bufs, Place::Position) {
                Some(outcome) => outcome,
                None => self.at_position(|| file::read(fd, bufs)),
            };
        }
        let room = sys::total(bufs);
        if room == 0 {
            return in_vain(|| file::read(fd, bufs));
        }
        loop {
            let look = || self.look_for_data(bufs);
            if let Look::Moved(n) = self.io.run(Direction::Read, || self.limit().left(), look)? {
                return Ok(n);
            }
            let mut data = vec![0; room.min(OWNED_MAX)];
            let call = |fd: BorrowedFd<'_>| {
                let n = file::read(fd, &mut [IoSliceMut::new(&mut data)])?;
                data.truncate(n);
                Ok(data)
            };
            if let Some(data) = self.call_detached(Direction::Read, call)? {
                return (&data[..]).read_vectored(bufs);
            }
        }
    }

    /// Writes at the position.
    pub(crate) fn write(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let fd = self.fd();
        if !wait::in_task() {
            return file::write(fd, bufs);
        }
        if !self.is_endless {
            return self.at_position(|| file::write(fd, bufs));
        }
        if sys::total(bufs) == 0 {
            return in_vain(|| file::write(fd, bufs));
        }
        loop {
            let look = || self.look_for_room(bufs);
            if let Look::Moved(n) = self.io.run(Direction::Write, || self.limit().left(), look)? {
                return Ok(n);
            }
            let data = first_of(bufs).to_vec();
            let call = move |fd: BorrowedFd<'_>| file::write(fd, &[IoSlice::new(&data)]);
            if let Some(n) = self.call_detached(Direction::Write, call)? {
                return Ok(n);
            }
        }
    }

    /// Makes a call of an endless file on the second pool. Returns `None` if it would wait there.
    fn call_detached<T: Send + 'static>(
        &self,
        direction: Direction,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<T> + Send + 'static,
    ) -> io::Result<Option<T>> {
        let (fd, locks) = (self.fd().try_clone_to_owned()?, Arc::clone(&self.shared.locks));
        let caller = Arc::new(());
        let left = Arc::downgrade(&caller);
        let outcome = detached(move || {
            let lock = match direction {
                Direction::Read => &locks.read,
                Direction::Write => &locks.write,
            };
            let _lock = lock.lock().unwrap_or_else(PoisonError::into_inner);
            match left.strong_count() > 0 && sys::wait_for(fd.as_fd(), direction, Some(clock::now()))? {
                true => call(fd.as_fd()).map(Some),
                false => Ok(None),
            }
        });
        match outcome {
            // The mode was changed through another descriptor, or another process is in a call on
            // the terminal.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            outcome => outcome,
        }
    }

    /// Reads what is in memory already. Returns `None` where the disk has to be asked.
    pub(crate) fn read_in_place(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        place: Place,
    ) -> Option<io::Result<usize>> {
        // Relaxed: see `Busy`.
        let is_busy = matches!(place, Place::Position) && self.is_busy();
        let len = sys::total(bufs);
        if !wait::in_task() || is_busy || len > IN_PLACE_MAX {
            return None;
        }
        let outcome = file::read_nowait(self.fd(), bufs, place);
        match &outcome {
            // Linux 5.9 and 5.10 say so of what is not in memory; the call that may block knows
            // where the file ends.
            Ok(0) if len > 0 && !file::is_at_end(self.fd(), place) => None,
            Ok(_) => {
                wait::charge();
                Some(outcome)
            }
            // The call that may block says what is wrong, if something is.
            Err(_) => None,
        }
    }

    /// Runs a call that holds the position, on the pool.
    pub(crate) fn at_position<T: Send>(&self, call: impl FnOnce() -> T + Send) -> T {
        // Relaxed, here and in `Busy`: a task that misses it may block its worker for the time of the call.
        self.shared.busy.fetch_add(1, Ordering::Relaxed);
        let _busy = Busy(&self.shared);
        unblock(call)
    }

    /// Returns true if a call at the position would have to wait for another one.
    pub(crate) fn is_busy(&self) -> bool {
        // Relaxed: see `Busy`.
        self.shared.busy.load(Ordering::Relaxed) > 0
    }

    /// Reads what can be had without waiting.
    fn look_for_data(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<Attempt<Look>> {
        match read_piece(self.fd(), bufs) {
            Err(error) if file::is_refusal(&error) => {}
            outcome => return outcome.map(|n| Attempt::Done(Look::Moved(n))),
        }
        match self.io.is_nonblocking() {
            true => file::read(self.fd(), bufs).map(|n| Attempt::Done(Look::Moved(n))),
            false => sys::look(self.fd(), Direction::Read).map(|()| Attempt::Done(Look::Ready)),
        }
    }

    /// Writes what there is room for without waiting.
    fn look_for_room(&self, bufs: &[IoSlice<'_>]) -> io::Result<Attempt<Look>> {
        if self.io.rechecks_writes() {
            // A socket has a flag of its own.
            return sys::send_vectored(self.fd(), bufs).map(|n| Attempt::Done(Look::Moved(n)));
        }
        match file::write_nowait(self.fd(), bufs) {
            Err(error) if file::is_refusal(&error) => {}
            outcome => return outcome.map(|n| Attempt::Done(Look::Moved(n))),
        }
        match self.io.is_nonblocking() {
            true => file::write(self.fd(), bufs).map(|n| Attempt::Done(Look::Moved(n))),
            false => sys::look(self.fd(), Direction::Write).map(|()| Attempt::Done(Look::Ready)),
        }
    }

    /// Reads in a poll, which must not wait.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn try_read(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<Attempt<usize>> {
        let n = match self.is_endless.then(|| self.look_for_data(bufs)).transpose()?.map(Attempt::value) {
            Some(Look::Moved(n)) => n,
            Some(Look::Ready) => file::read(self.fd(), bufs)?,
            None => self.read(bufs)?,
        };
        Ok(Attempt::Done(n))
    }

    /// Writes in a poll, which must not wait.
    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn try_write(&self, bufs: &[IoSlice<'_>]) -> io::Result<Attempt<usize>> {
        let n = match self.is_endless.then(|| self.look_for_room(bufs)).transpose()?.map(Attempt::value) {
            Some(Look::Moved(n)) => n,
            Some(Look::Ready) => file::write(self.fd(), &[IoSlice::new(first_of(bufs))])?,
            None => self.write(bufs)?,
        };
        Ok(Attempt::Done(n))
    }
}

impl<S: AsFd> Wraps<S> for StreamFile<S> {
    /// Takes an open file, and its mode, if that makes a difference.
    fn adopt(inner: S) -> StreamFile<S> {
        let file = StreamFile::patient(inner);
        if file.is_endless {
            file.io.set_nonblocking(SockRef::from(file.expose()).nonblocking().unwrap_or(false));
        }
        file
    }

    fn into_std(self) -> S {
        self.io.into_inner()
    }

    fn expose(&self) -> &S {
        self.std()
    }
}

/// Reads the data that is there, up to [`IN_PLACE_MAX`]: some devices never run dry.
fn read_piece(fd: BorrowedFd<'_>, mut bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    // Nothing into nothing would be taken for the end.
    IoSliceMut::advance_slices(&mut bufs, 0);
    let mut room = IN_PLACE_MAX;
    let fits = |buf: &&IoSliceMut<'_>| room.checked_sub(buf.len()).map(|left| room = left).is_some();
    match bufs.iter().take_while(fits).count() {
        0 => {
            let first = IoSliceMut::new(&mut bufs[0][..IN_PLACE_MAX]);
            file::read_nowait(fd, &mut [first], Place::Position)
        }
        whole => file::read_nowait(fd, &mut bufs[..whole], Place::Position),
    }
}

/// Returns the outcome of a call on a standard stream. A closed stream takes all, as in std.
pub(crate) fn unless_closed(outcome: io::Result<usize>, all: usize) -> io::Result<usize> {
    match outcome {
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(all),
        outcome => outcome,
    }
}

/// Makes a call that moves no bytes, and so does not wait. It may fail.
fn in_vain(call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
    wait::charge();
    call()
}

/// Returns the bytes that a file which reports room takes without blocking.
fn first_of<'a>(bufs: &'a [IoSlice<'_>]) -> &'a [u8] {
    let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
    &first[..first.len().min(file::ROOM)]
}
