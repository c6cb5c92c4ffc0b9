//! Copying within the kernel, between what the kernel can copy between.
//!
//! | from | into a disk | into a socket | into a pipe |
//! | --- | --- | --- | --- |
//! | a disk | `copy_file_range`, else `sendfile` | `sendfile`, for who asks for it | |
//! | a socket | | | `splice` |
//! | a pipe | `splice` | `splice` | `splice` |
//!
//! The empty places are for a buffer: between two sockets `splice` needs a pipe in between, and from a disk into a pipe it
//! holds the lock of the pipe for as long as the disk takes, in the way of the worker of whoever reads there. (From a pipe into
//! a disk it holds it too, but for as long as memory takes, if the system is not short of that.) From a disk into a socket
//! the pages of the file themselves are sent, which is no copy to who changes the file next: only `File::copy_to` does it.
//!
//! A piece with a disk at one end is moved on the blocking pool, any other in place. Neither waits for a pipe or a socket:
//! pipes are told by a flag, and sockets are lent for as long as it takes (`net::mode`). When there is nothing to be moved, one
//! end or the other is not ready, and the call does not say which. So the writing one is asked, and waited for if it is not
//! ready; else the reading one.
//!
//! What is moved is counted at once. All that cannot be done here, a call that is refused, an end that is none, is left to
//! the buffer, which goes on where this has stopped.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use crate::channel::Channel;
use crate::io::PipeEnd;
use crate::net::mode::Loan;
use crate::net::socket::{Kind, Socket};
use crate::op::Attempt;
use crate::readiness::Direction;
use crate::sys;
use crate::sys::file::{self, Nature};

/// Bytes that one way to the pool copies: some milliseconds, after which a cancel is seen.
const PIECE: u64 = 8 << 20;
/// Bytes that are copied in place at once.
const PIECE_IN_PLACE: u64 = 1 << 20;
/// So many times in a row both ends may say that they are ready and nothing move.
const FRUITLESS: u32 = 8;

/// One end of a copy, as the kernel has it.
pub(super) trait End: Sync {
    fn fd(&self) -> BorrowedFd<'_>;

    /// What it is, if it is what its type says: a value can be made from any descriptor.
    fn nature(&self) -> Nature;

    /// Runs a call that does not wait until it does not say `WouldBlock`, and waits in between as a read or a write does.
    fn run(
        &self,
        direction: Direction,
        call: &mut dyn FnMut() -> io::Result<Attempt<Option<usize>>>,
    ) -> io::Result<Option<usize>>;

    /// Makes a call where this end may be used.
    fn make(&self, call: &mut (dyn FnMut() -> io::Result<usize> + Send)) -> io::Result<usize> {
        call()
    }

    /// What keeps it from waiting.
    fn lend(&self) -> io::Result<Option<Loan<'_>>> {
        Ok(None)
    }
}

/// A file.
impl<S: AsFd + Sync> End for Channel<S> {
    fn fd(&self) -> BorrowedFd<'_> {
        Channel::fd(self)
    }

    fn nature(&self) -> Nature {
        match self.is_endless() {
            true => Nature::Other,
            false => Nature::Disk,
        }
    }

    /// It is always ready.
    fn run(
        &self,
        _: Direction,
        call: &mut dyn FnMut() -> io::Result<Attempt<Option<usize>>>,
    ) -> io::Result<Option<usize>> {
        call().map(Attempt::value)
    }

    fn make(&self, call: &mut (dyn FnMut() -> io::Result<usize> + Send)) -> io::Result<usize> {
        self.at_position(call)
    }
}

impl<S: Kind + Sync> End for Socket<S> {
    fn fd(&self) -> BorrowedFd<'_> {
        Socket::fd(self)
    }

    fn nature(&self) -> Nature {
        file::nature(self.fd()).only(Nature::Socket)
    }

    fn run(
        &self,
        direction: Direction,
        call: &mut dyn FnMut() -> io::Result<Attempt<Option<usize>>>,
    ) -> io::Result<Option<usize>> {
        match direction {
            Direction::Read => self.receive(call),
            Direction::Write => self.dispatch(call),
        }
    }

    fn lend(&self) -> io::Result<Option<Loan<'_>>> {
        Socket::lend(self).map(Some)
    }
}

impl<S: AsFd + Sync> End for PipeEnd<S> {
    fn fd(&self) -> BorrowedFd<'_> {
        PipeEnd::fd(self)
    }

    fn nature(&self) -> Nature {
        match self {
            PipeEnd::Pipe(_) => file::nature(self.fd()).only(Nature::Pipe),
            PipeEnd::Plain(file, _) => file.nature(),
        }
    }

    fn run(
        &self,
        direction: Direction,
        call: &mut dyn FnMut() -> io::Result<Attempt<Option<usize>>>,
    ) -> io::Result<Option<usize>> {
        match self {
            PipeEnd::Pipe(pipe) => pipe.wait_for(direction, call),
            PipeEnd::Plain(file, _) => End::run(file, direction, call),
        }
    }

    fn make(&self, call: &mut (dyn FnMut() -> io::Result<usize> + Send)) -> io::Result<usize> {
        match self {
            PipeEnd::Pipe(_) => call(),
            PipeEnd::Plain(file, _) => file.make(call),
        }
    }
}

/// A system call that copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    CopyRange,
    SendFile,
    Splice,
}

/// What becomes of the pages of a file that goes into a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// They are copied: what has been sent stays as it was.
    Copied,
    /// They are sent themselves: a change of the file may show where the other end has not taken them yet.
    Shared,
}

/// How the kernel copies from one end to the other.
#[derive(Clone, Copy)]
pub(super) struct Route {
    /// The best first; none if the kernel knows none.
    pub(super) ways: &'static [Way],
    /// Bytes that are copied at once.
    piece: u64,
}

impl Route {
    pub(super) fn between(from: &dyn End, to: &dyn End, pages: Pages) -> Route {
        let (from, to) = (from.nature(), to.nature());
        let ways: &[Way] = match (from, to) {
            (Nature::Disk, Nature::Disk) => &[Way::CopyRange, Way::SendFile],
            (Nature::Disk, Nature::Socket) if pages == Pages::Shared => &[Way::SendFile],
            (Nature::Pipe, Nature::Disk | Nature::Socket | Nature::Pipe) => &[Way::Splice],
            (Nature::Socket, Nature::Pipe) => &[Way::Splice],
            _ => &[],
        };
        let piece = if [from, to].contains(&Nature::Disk) { PIECE } else { PIECE_IN_PLACE };
        Route { ways, piece }
    }

    /// Copies up to `most` bytes, and notes in `moved` how many have been so far. What is left then, if anything, is for a
    /// buffer.
    pub(super) fn carry(self, from: &dyn End, to: &dyn End, most: u64, moved: &Cell<u64>) -> io::Result<()> {
        let loans = [from.lend()?, to.lend()?];
        for way in self.ways {
            if (Carrier { from, to, way: *way, loans: &loans }).go(self.piece, most, moved)? == Stop::Done {
                break;
            }
        }
        Ok(())
    }
}

/// Why no more was copied in one way.
#[derive(PartialEq, Eq)]
enum Stop {
    /// All that was asked for was copied, or there seems to be no more.
    Done,
    /// The kernel does not copy between these two, or not any further: other file systems, or a target that is appended to.
    Unfit,
}

/// What came of a piece.
enum Step {
    Moved(usize),
    /// The reading end was not ready, and may be now.
    Waited,
    /// Nothing was moved, though both ends say that they are ready.
    Fruitless,
}

struct Carrier<'a> {
    from: &'a dyn End,
    to: &'a dyn End,
    way: Way,
    loans: &'a [Option<Loan<'a>>],
}

impl Carrier<'_> {
    fn go(&self, piece: u64, most: u64, moved: &Cell<u64>) -> io::Result<Stop> {
        let mut fruitless = 0;
        while moved.get() < most {
            // At most some megabytes.
            let len = piece.min(most - moved.get()) as usize;
            match self.step(len) {
                Ok(Step::Moved(0)) => break,
                Ok(Step::Moved(n)) => {
                    moved.set(moved.get() + n as u64);
                    fruitless = 0;
                }
                Ok(Step::Waited) => {}
                Ok(Step::Fruitless) if fruitless == FRUITLESS => return Ok(Stop::Unfit),
                Ok(Step::Fruitless) => fruitless += 1,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_unfit(&error) => return Ok(Stop::Unfit),
                Err(error) => return Err(error),
            }
        }
        Ok(Stop::Done)
    }

    /// Moves a piece, or waits until that may be possible.
    fn step(&self, len: usize) -> io::Result<Step> {
        let moved = self.to.run(Direction::Write, &mut || match self.call(len) {
            Err(error) if is_would_block(&error) && is_ready(self.to, Direction::Write)? => {
                Ok(Attempt::Done(None))
            }
            outcome => outcome.map(|n| Attempt::Done(Some(n))),
        })?;
        if let Some(n) = moved {
            return Ok(Step::Moved(n));
        }
        if is_ready(self.from, Direction::Read)? {
            return Ok(Step::Fruitless);
        }
        self.from.run(Direction::Read, &mut || match is_ready(self.from, Direction::Read)? {
            true => Ok(Attempt::Done(None)),
            false => Err(io::ErrorKind::WouldBlock.into()),
        })?;
        Ok(Step::Waited)
    }

    fn call(&self, len: usize) -> io::Result<usize> {
        for loan in self.loans.iter().flatten() {
            loan.renew()?;
        }
        let (way, from, to) = (self.way, self.from.fd(), self.to.fd());
        let mut call = move || match way {
            Way::CopyRange => file::copy_range(from, to, len),
            Way::SendFile => file::send_file(from, to, len),
            Way::Splice => file::splice(from, to, len),
        };
        self.from.make(&mut || self.to.make(&mut call))
    }
}

fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn is_ready(end: &dyn End, direction: Direction) -> io::Result<bool> {
    sys::wait_for(end.fd(), direction, Some(Instant::now()))
}

fn is_unfit(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    file::is_refusal(error) || matches!(number, Some(libc::EBADF | libc::ESPIPE | libc::EOVERFLOW))
}
