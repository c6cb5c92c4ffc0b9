//! Reading and writing FIFOs and terminals without waiting.
//!
//! What `poll` says of them is old when the call is made: another reader may have taken what came. And a terminal can be written to,
//! it says, as soon as it has some room; a write of more waits for the rest. The flag of the call that would forbid it to wait is
//! unknown there. The mode of the descriptor would, but that is shared with everybody who has the file open through it: the shell,
//! for one. So the file is opened once more.
//!
//! What a backend owes:
//!
//! * another way to the same FIFO or terminal, whose calls do not wait, or the answer that there is none ([`open_nowait`]);
//! * how long a read that finds nothing waits before it ends by itself, as some of terminals do ([`patience`]).

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::sys::Direction;

/// Opens a FIFO or a terminal again, to read it or to write to it without waiting. None if it is neither, is not open in that
/// direction, or is not to be had so: the other end of a pseudoterminal, which gives a new one each time; another user's; a terminal
/// that is kept for one (`TIOCEXCL`); one without a `/proc`; a FIFO without readers; where no descriptor is left.
///
/// It is meant to be closed after the call. Kept open it would keep a terminal from hanging up and a FIFO from ending, and it would
/// go on being that one when the descriptor was made another.
#[cfg(target_os = "linux")]
pub(crate) fn open_nowait(fd: BorrowedFd<'_>, direction: Direction) -> Option<OwnedFd> {
    use std::fs::OpenOptions;
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::OpenOptionsExt;

    let identity = Identity::of(fd)?;
    if !is_open_for(fd, direction) {
        return None;
    }
    let mut options = OpenOptions::new();
    match direction {
        Direction::Read => options.read(true),
        Direction::Write => options.write(true),
    };
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let opened = options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let again = OwnedFd::from(opened.ok()?);
    // `/dev/tty`, for one, may be another by now than when it was opened.
    (Identity::of(again.as_fd()) == Some(identity)).then_some(again)
}

/// Which one it is, whatever it was opened as.
#[cfg(target_os = "linux")]
#[derive(PartialEq, Eq)]
enum Identity {
    /// The numbers of the device that it lies on and of itself.
    Fifo(libc::dev_t, libc::ino_t),
    /// The number of the device that it is.
    Terminal(libc::c_uint),
}

#[cfg(target_os = "linux")]
impl Identity {
    /// None of what is neither, and of the end of a pseudoterminal that is not the terminal.
    fn of(fd: BorrowedFd<'_>) -> Option<Identity> {
        let status = super::file::status(fd)?;
        match status.st_mode & libc::S_IFMT {
            libc::S_IFIFO => Some(Identity::Fifo(status.st_dev, status.st_ino)),
            libc::S_IFCHR if !is_master(fd) => ask(fd, libc::TIOCGDEV).map(Identity::Terminal),
            _ => None,
        }
    }
}

/// True of the end of a pseudoterminal that is not the terminal.
#[cfg(target_os = "linux")]
fn is_master(fd: BorrowedFd<'_>) -> bool {
    ask(fd, libc::TIOCGPTN).is_some()
}

/// What the terminal answers to a question for a number.
#[cfg(target_os = "linux")]
fn ask(fd: BorrowedFd<'_>, question: libc::Ioctl) -> Option<libc::c_uint> {
    use std::os::fd::AsRawFd;

    let mut answer = 0;
    // SAFETY: the descriptor is borrowed, so it is open; both questions that are asked are answered with one number of this type,
    // which is writable and outlives the call.
    let outcome = unsafe { libc::ioctl(fd.as_raw_fd(), question, &raw mut answer) };
    (outcome == 0).then_some(answer)
}

#[cfg(target_os = "linux")]
fn is_open_for(fd: BorrowedFd<'_>, direction: Direction) -> bool {
    let access = flags(fd).map(|flags| flags & libc::O_ACCMODE);
    let other_way = match direction {
        Direction::Read => libc::O_WRONLY,
        Direction::Write => libc::O_RDONLY,
    };
    access.is_some_and(|access| access != other_way)
}

/// How it was opened.
#[cfg(target_os = "linux")]
fn flags(fd: BorrowedFd<'_>) -> Option<libc::c_int> {
    use std::os::fd::AsRawFd;

    // SAFETY: the descriptor is borrowed, so it is open; the call touches no memory.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    (flags >= 0).then_some(flags)
}

/// How long a read of a terminal waits for input before it ends with nothing, where `VMIN` is zero: for `VTIME`, in tenths of a
/// second. None if it ends with input alone.
#[cfg(target_os = "linux")]
pub(crate) fn patience(fd: BorrowedFd<'_>) -> Option<Duration> {
    let settings = settings(fd).filter(|settings| settings.c_lflag & libc::ICANON == 0)?;
    let waits_by_mode = || flags(fd).is_some_and(|flags| flags & libc::O_NONBLOCK == 0);
    let (least, tenths) = (settings.c_cc[libc::VMIN], settings.c_cc[libc::VTIME]);
    let ends = least == 0 && (tenths == 0 || waits_by_mode()) && !is_master(fd);
    ends.then(|| Duration::from_millis(100) * tenths.into())
}

/// How a terminal is set. None if it is none.
#[cfg(target_os = "linux")]
fn settings(fd: BorrowedFd<'_>) -> Option<libc::termios> {
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;

    let mut settings = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the descriptor is borrowed, so it is open; the structure is writable and outlives the call.
    let told = unsafe { libc::tcgetattr(fd.as_raw_fd(), settings.as_mut_ptr()) } == 0;
    // SAFETY: the call has succeeded, so it has filled the structure.
    told.then(|| unsafe { settings.assume_init() })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_nowait(_: BorrowedFd<'_>, _: Direction) -> Option<OwnedFd> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn patience(_: BorrowedFd<'_>) -> Option<Duration> {
    None
}
