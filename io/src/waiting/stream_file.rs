//! An open file of any kind, as tasks read and write it.
//!
//! | it is | a call | so in a task |
//! | --- | --- | --- |
//! | on a disk | ends by itself, but may block the thread for as long as the disk takes | what is in memory is read in place (`RWF_NOWAIT`), all else on the blocking pool, with the buffer borrowed |
//! | a terminal, a FIFO, a device | may never end: no input, no reader | waits until it is ready, as for a socket, and is made then |
//!
//! So no borrowing call is ever left waiting on the pool for something that may not come, and a task that waits for it can
//! be cancelled and has taken nothing. What it takes at once in place is bounded, since some devices never run dry. (Where the call cannot be told not to wait, which is so for the other end of a
//! pseudoterminal, for devices, and for what cannot be opened once more, and somebody else takes the input in between, it waits after all. So does the read of a
//! regular file of a system like procfs that has nothing yet.) What came in non-blocking mode is not waited for, standard streams
//! aside. In a plain thread it is the plain call.
//!
//! A file system that refuses `RWF_NOWAIT` is asked once for each open file. And a call at the file's position holds a
//! lock of the kernel; while one of those is on the pool, nobody tries the position in place, where it would block a
//! worker for as long.

#![forbid(unsafe_code)]

use std::cell::OnceCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fibra_runtime::clock;
use fibra_runtime::{unblock, wait};
use socket2::SockRef;

use crate::sys;
use crate::sys::Direction;
use crate::sys::file::{self, Identity, Place};
use crate::sys::reopen;
use crate::waiting::attempt::Attempt;
use crate::waiting::cancel as op;
use crate::waiting::descriptor::Descriptor;

/// The most that is copied in place; it takes a worker some 100 microseconds. More goes to the pool, or is for the next call.
const IN_PLACE_MAX: usize = 1 << 20;

/// The pause before a terminal in use elsewhere is tried again.
const CONTENDED: Duration = Duration::from_millis(1);

/// See the [module](self).
pub(crate) struct StreamFile<S: AsFd> {
    io: Descriptor<S>,
    is_endless: AtomicBool,
    shared: Arc<Shared>,
    /// The file at the last look; the descriptor may be made another file.
    known: Option<Mutex<Option<Identity>>>,
}

/// What is known of an open file, whichever of its descriptors is used.
#[derive(Default)]
struct Shared {
    /// It has refused a call that does not wait.
    refuses: AtomicBool,
    /// Calls at its position that are on the pool or on their way there.
    busy: AtomicUsize,
}

impl Shared {
    fn may_try(&self) -> bool {
        // Relaxed: a wrong answer costs a system call in vain.
        !self.refuses.load(Ordering::Relaxed)
    }

    /// Returns true if `outcome` says that no such call may be made, and keeps that.
    fn note<T>(&self, outcome: &io::Result<T>) -> bool {
        let refused = outcome.as_ref().is_err_and(file::is_refusal);
        if refused {
            // Relaxed: see `may_try`.
            self.refuses.store(true, Ordering::Relaxed);
        }
        refused
    }
}

/// One call at the position.
struct Busy<'a>(&'a Shared);

impl<'a> Busy<'a> {
    fn new(shared: &'a Shared) -> Busy<'a> {
        // Relaxed, here and below: who misses it may block for as long as the call takes, and that is all.
        shared.busy.fetch_add(1, Ordering::Relaxed);
        Busy(shared)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What came of a look that does not wait.
enum Look {
    Moved(usize),
    /// It is ready, and the call has to be made where it may block.
    Ready,
    /// It is ready, and somebody else has it, who may leave it so.
    Contended,
}

impl<S: AsFd> StreamFile<S> {
    /// Takes an open file. The mode that std would obey is read from it, if it makes a difference.
    pub(crate) fn new(inner: S) -> StreamFile<S> {
        let stream = StreamFile::known_as(None, inner);
        if stream.is_endless() {
            stream.io.set_nonblocking(SockRef::from(stream.inner()).nonblocking().unwrap_or(false));
        }
        stream
    }

    /// Takes an open file that tasks wait for whatever its mode, and whatever file its number becomes (`dup2`): a standard stream.
    pub(crate) fn patient(inner: S) -> StreamFile<S> {
        let identity = file::identity(inner.as_fd());
        StreamFile::known_as(Some(Mutex::new(identity)), inner)
    }

    fn known_as(known: Option<Mutex<Option<Identity>>>, inner: S) -> StreamFile<S> {
        let io = Descriptor::new(inner, false);
        let stream = StreamFile { io, is_endless: AtomicBool::default(), shared: Arc::default(), known };
        stream.look();
        stream
    }

    /// Asks what is open, and how it has to be waited for.
    fn look(&self) {
        let nature = file::nature(self.fd());
        // Relaxed: whoever misses it has begun before.
        self.is_endless.store(nature.is_endless(), Ordering::Relaxed);
        self.io.recheck_writes(nature.keeps_shutdown_from_writers());
    }

    /// Forgets what was known of another file. A wait for that one ends.
    fn look_anew(&self) {
        // A plain thread relies on nothing of it.
        let Some(known) = self.known.as_ref().filter(|_| wait::in_task()) else { return };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let present = file::identity(self.fd());
        if *known != present {
            *known = present;
            self.look();
            // Relaxed: see `look`.
            self.shared.refuses.store(false, Ordering::Relaxed);
            // Who looks before the renewal may wait in vain, until that wakes it.
            drop(known);
            self.io.registered().renew(self.fd().as_raw_fd());
        }
    }

    /// Another descriptor of the same open file.
    pub(crate) fn with_clone(&self, clone: S) -> StreamFile<S> {
        let io = self.io.with_clone(clone);
        StreamFile { io, is_endless: self.is_endless().into(), shared: Arc::clone(&self.shared), known: None }
    }

    pub(crate) fn inner(&self) -> &S {
        self.io.inner()
    }

    pub(crate) fn into_inner(self) -> S {
        self.io.into_inner()
    }

    #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
    pub(crate) fn io(&self) -> &Descriptor<S> {
        &self.io
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.io.fd()
    }

    /// Returns true if a call may never end.
    pub(crate) fn is_endless(&self) -> bool {
        // Relaxed: see `look`.
        self.is_endless.load(Ordering::Relaxed)
    }

    /// Reads at the position.
    pub(crate) fn read(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let fd = self.fd();
        self.look_anew();
        match (wait::in_task(), self.is_endless()) {
            (false, _) => file::read(fd, bufs),
            (true, true) if sys::is_empty(bufs.iter().map(|buf| buf.len())) => {
                in_vain(|| file::read(fd, bufs))
            }
            (true, false) => match self.read_in_place(bufs, Place::Position) {
                Some(outcome) => outcome,
                None => self.at_position(|| file::read(fd, bufs)),
            },
            (true, true) => self.read_when_ready(bufs),
        }
    }

    /// Reads what may never end.
    fn read_when_ready(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let fd = self.fd();
        // As it is set when the read begins.
        let set = OnceCell::new();
        let patience = || *set.get_or_init(|| reopen::patience(fd));
        loop {
            match self.io.run(Direction::Read, patience, || self.look_for_data(bufs, patience)) {
                Ok(Look::Moved(n)) => return Ok(n),
                Ok(Look::Ready) => return unblock(|| file::read(fd, bufs)),
                Ok(Look::Contended) => stand_back()?,
                Err(error) => {
                    // So ends a read that has waited for its time.
                    let is_over = error.kind() == io::ErrorKind::WouldBlock && !self.io.is_nonblocking();
                    return if is_over { Ok(0) } else { Err(error) };
                }
            }
        }
    }

    /// Writes at the position.
    pub(crate) fn write(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let fd = self.fd();
        self.look_anew();
        match (wait::in_task(), self.is_endless()) {
            (false, _) => file::write(fd, bufs),
            (true, true) if sys::is_empty(bufs.iter().map(|buf| buf.len())) => {
                in_vain(|| file::write(fd, bufs))
            }
            (true, false) => self.at_position(|| file::write(fd, bufs)),
            (true, true) => loop {
                match self.io.run(Direction::Write, || None, || self.look_for_room(bufs))? {
                    Look::Moved(n) => return Ok(n),
                    Look::Ready => return unblock(|| file::write(fd, &[IoSlice::new(first_of(bufs))])),
                    Look::Contended => stand_back()?,
                }
            },
        }
    }

    /// Reads what is in memory already. None: ask the disk.
    pub(crate) fn read_in_place(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        place: Place,
    ) -> Option<io::Result<usize>> {
        // Relaxed: see `Busy`.
        let is_busy = matches!(place, Place::Position) && self.is_busy();
        let len = bufs.iter().map(|buf| buf.len()).fold(0, usize::saturating_add);
        if !wait::in_task() || is_busy || len > IN_PLACE_MAX || !self.shared.may_try() {
            return None;
        }
        let outcome = file::read_nowait(self.fd(), bufs, place);
        match &outcome {
            // Linux 5.9 and 5.10 say so of what is not in memory; the call that may block knows where the file ends.
            Ok(0) if len > 0 && !file::is_at_end(self.fd(), place) => None,
            Ok(_) => {
                wait::charge();
                Some(outcome)
            }
            // The call that may block says what is wrong, if something is.
            Err(_) => {
                self.shared.note(&outcome);
                None
            }
        }
    }

    /// Runs a call that holds the position, on the pool.
    pub(crate) fn at_position<T: Send>(&self, call: impl FnOnce() -> T + Send) -> T {
        let _busy = Busy::new(&self.shared);
        unblock(call)
    }

    /// Returns true if a call at the position would have to wait for another one.
    pub(crate) fn is_busy(&self) -> bool {
        // Relaxed: see `Busy`.
        self.shared.busy.load(Ordering::Relaxed) > 0
    }

    /// Looks once; `patience` is how long the read waits if it ends by itself.
    fn look_for_data(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        patience: impl FnOnce() -> Option<Duration>,
    ) -> io::Result<Attempt<Look>> {
        if self.shared.may_try() {
            let outcome = read_piece(self.fd(), bufs);
            if !self.shared.note(&outcome) {
                return outcome.map(|n| Attempt::Done(Look::Moved(n)));
            }
        }
        if !self.asks(Direction::Read)? {
            // A FIFO that no writer has opened yet is at its end, and nothing tells so but the call.
            if self.io.is_nonblocking()
                && let Some(again) = reopen::open_nowait(self.fd(), Direction::Read)
            {
                return file::read(again.as_fd(), bufs).map(|n| Attempt::Done(Look::Moved(n)));
            }
            return match patience() {
                Some(Duration::ZERO) => Ok(Attempt::Done(Look::Moved(0))),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        self.call_anew(Direction::Read, |fd| file::read(fd, bufs))
    }

    fn look_for_room(&self, bufs: &[IoSlice<'_>]) -> io::Result<Attempt<Look>> {
        if self.shared.may_try() {
            let outcome = file::write_nowait(self.fd(), bufs);
            if !self.shared.note(&outcome) {
                return outcome.map(|n| Attempt::Done(Look::Moved(n)));
            }
        }
        if self.io.rechecks_writes() {
            // To ask would tell nothing, and there is a call with a flag of its own. Somebody may have put another file there since.
            let outcome = sys::send_vectored(self.fd(), bufs);
            if !outcome.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOTSOCK)) {
                return outcome.map(|n| Attempt::Done(Look::Moved(n)));
            }
        }
        if !self.asks(Direction::Write)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Some room does not mean enough of it.
        self.call_anew(Direction::Write, |fd| file::write(fd, &[IoSlice::new(first_of(bufs))]))
    }

    /// Asks whether a call would find something.
    fn asks(&self, direction: Direction) -> io::Result<bool> {
        sys::wait_for(self.fd(), direction, Some(clock::now()))
    }

    /// Makes a call on what is said to be ready, through a descriptor that does not wait, if one is to be had.
    fn call_anew(
        &self,
        direction: Direction,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> io::Result<Attempt<Look>> {
        let Some(again) = reopen::open_nowait(self.fd(), direction) else {
            return Ok(Attempt::Done(Look::Ready));
        };
        match call(again.as_fd()) {
            // A terminal says so as well while somebody else is in a call, and nobody tells when that has ended.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                match !self.io.is_nonblocking() && self.asks(direction)? {
                    true => Ok(Attempt::Done(Look::Contended)),
                    false => Err(error),
                }
            }
            outcome => outcome.map(|n| Attempt::Done(Look::Moved(n))),
        }
    }
}

/// Reads what is there, and of a device that never runs dry a piece.
fn read_piece(fd: BorrowedFd<'_>, mut bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    // Nothing into nothing would be taken for the end.
    IoSliceMut::advance_slices(&mut bufs, 0);
    let mut room = IN_PLACE_MAX;
    let fits = |buf: &&IoSliceMut<'_>| room.checked_sub(buf.len()).map(|left| room = left).is_some();
    match bufs.iter().take_while(fits).count() {
        0 => {
            let first = IoSliceMut::new(&mut bufs[0][..IN_PLACE_MAX]);
            file::read_nowait(fd, &mut [first][..], Place::Position)
        }
        whole => file::read_nowait(fd, &mut bufs[..whole], Place::Position),
    }
}

/// What comes of a call on a standard stream: on one that is not open, as in std, it has done all that there is to do.
pub(crate) fn unless_closed(outcome: io::Result<usize>, all: usize) -> io::Result<usize> {
    match outcome {
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(all),
        outcome => outcome,
    }
}

/// Lets go on who has the terminal.
fn stand_back() -> io::Result<()> {
    op::check_may_wait()?;
    op::pause(CONTENDED);
    Ok(())
}

/// Makes a call that is to move nothing, and so waits for nothing; it may still say what is wrong.
fn in_vain(call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
    wait::charge();
    call()
}

/// As much as a file that is said to have room takes without blocking.
fn first_of<'a>(bufs: &'a [IoSlice<'_>]) -> &'a [u8] {
    let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
    &first[..first.len().min(file::ROOM)]
}
