//! Writing to a terminal without waiting.
//!
//! `poll` says of a terminal that it can be written to as soon as it has some room, a write of more waits for the rest,
//! and the flag of the call that would forbid it is unknown there. The mode of the descriptor would, but that is shared with
//! everybody who has the terminal open through it: the shell, for one. So the terminal is opened once more.
//!
//! What a backend owes: another way to the same terminal, whose writes do not wait, or the answer that there is none
//! ([`open_nowait`]).

use std::os::fd::{BorrowedFd, OwnedFd};

/// Opens the terminal again, to write to it without waiting. None if it is no terminal, or one that is not to be had so: the other
/// end of a pseudoterminal, which gives a new one each time; another user's; one without a `/proc`.
///
/// It is meant to be closed after the call. Kept open it would keep the terminal from hanging up, and it would go on being that
/// one when the descriptor was made another.
#[cfg(target_os = "linux")]
pub(crate) fn open_nowait(fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    use std::fs::OpenOptions;
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::OpenOptionsExt;

    let number = number(fd)?;
    if is_master(fd) || !is_open_for_writing(fd) {
        return None;
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let opened = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let again = OwnedFd::from(opened.ok()?);
    // `/dev/tty`, for one, may be another by now than when it was opened.
    (self::number(again.as_fd()) == Some(number)).then_some(again)
}

/// The number of the device that the terminal is, whatever it was opened as. None if it is no terminal.
#[cfg(target_os = "linux")]
fn number(fd: BorrowedFd<'_>) -> Option<libc::c_uint> {
    ask(fd, libc::TIOCGDEV)
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
fn is_open_for_writing(fd: BorrowedFd<'_>) -> bool {
    use std::os::fd::AsRawFd;

    // SAFETY: the descriptor is borrowed, so it is open; the call touches no memory.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    flags >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_nowait(_: BorrowedFd<'_>) -> Option<OwnedFd> {
    None
}
