//! Waits for children without a waiter, so that the system can forget them when they end.
//!
//! One thread for the whole process, which is there while there are such children: they are dropped anywhere, also where
//! there is no runtime, or one that is about to end. It waits for all of them at once, by the descriptors of the processes;
//! where there are none it looks at the children ten times a second.
//!
//! A pipe tells the thread of later children. It is written to under the lock, after the child was put down there. The
//! thread reads it before it takes the lock, so it finds the child of each notice.

#![forbid(unsafe_code)]

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use fibra_runtime::driver::unpinned;
use socket2::SockRef;

use crate::sys::Direction;
use crate::sys::wait_any;

/// How often children are looked at that have no descriptor.
const PAUSE: Duration = Duration::from_millis(100);

static REAPER: Mutex<Reaper> = Mutex::new(Reaper { arrived: Vec::new(), notifier: None });

struct Reaper {
    /// The children that the thread is to take over.
    arrived: Vec<Orphan>,
    /// There while the thread is.
    notifier: Option<PipeWriter>,
}

/// A child without another waiter.
pub(super) struct Orphan {
    pub(super) child: Child,
    pub(super) pidfd: Option<OwnedFd>,
}

impl Orphan {
    fn is_running(&mut self) -> bool {
        // An error means that there is no such child any more.
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Takes over a child, if there is one. When the thread cannot be started, it is tried again whenever a child is let go.
pub(super) fn take_over(orphan: Option<Orphan>) {
    let mut reaper = lock();
    reaper.arrived.extend(orphan);
    if reaper.arrived.is_empty() {
        return;
    }
    match &mut reaper.notifier {
        // It fails if the pipe is full, which is a notice as well.
        Some(notifier) => drop(notifier.write(&[0])),
        none => *none = start().ok(),
    }
}

fn lock() -> MutexGuard<'static, Reaper> {
    REAPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread, and returns its notifier.
fn start() -> io::Result<PipeWriter> {
    let (notices, notifier) = io::pipe()?;
    SockRef::from(&notices).set_nonblocking(true)?;
    SockRef::from(&notifier).set_nonblocking(true)?;
    let thread = thread::Builder::new().name("fibra-reaper".to_owned());
    unpinned(|| thread.spawn(move || reap(notices)))?;
    Ok(notifier)
}

/// The life of the thread.
fn reap(mut notices: PipeReader) {
    let mut orphans: Vec<Orphan> = Vec::new();
    let mut is_told_of_an_end = false;
    loop {
        {
            let mut reaper = lock();
            if orphans.is_empty() && reaper.arrived.is_empty() {
                reaper.notifier = None;
                return;
            }
            orphans.append(&mut reaper.arrived);
        }
        let before = orphans.len();
        orphans.retain_mut(Orphan::is_running);
        let in_vain = is_told_of_an_end && orphans.len() == before;
        is_told_of_an_end = !orphans.is_empty() && rest(&mut notices, &orphans, in_vain);
    }
}

/// Sleeps until one of them may have ended, or another one comes: false.
///
/// In vain is what the system tells of a child that somebody traces: it has ended, but cannot be waited for before its tracer has
/// done so, which may be long in coming. Then this is a pause, after which they are listened to again.
fn rest(notices: &mut PipeReader, orphans: &[Orphan], in_vain: bool) -> bool {
    let is_blind = orphans.iter().any(|orphan| orphan.pidfd.is_none());
    let heard = if in_vain { &[] } else { orphans };
    let pidfds = heard.iter().filter_map(|orphan| orphan.pidfd.as_ref());
    let fds: Vec<BorrowedFd<'_>> = pidfds.map(AsFd::as_fd).chain([notices.as_fd()]).collect();
    let rested = wait_any(&fds, Direction::Read, (is_blind || in_vain).then_some(PAUSE));
    if rested.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
        thread::sleep(PAUSE);
    }
    // Nothing to read means that no child came.
    notices.read(&mut [0; 64]).is_err() && !in_vain
}
