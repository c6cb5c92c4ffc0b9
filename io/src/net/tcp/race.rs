//! Connects to the first of several addresses that answers: RFC 8305, "Happy Eyeballs".
//!
//! IPv4 and IPv6 alternate, beginning with the resolver's first address. An attempt that is undecided
//! after [`HEAD_START`] goes on while the next begins. A failure lets the next begin at once.
//!
//! A task waits by its reactor, for one attempt or several. Without a reactor it waits for several by a `poll` on the
//! blocking pool, in slices, so that it sees a cancel. A plain thread polls in place. The end of the race closes the
//! sockets of all other attempts, also if the task is cancelled.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::task::Context;
use std::time::Duration;

use fibra_runtime::wait::{EndedBy, Outcome, Until, WaitDescription, WakerSignal};
use fibra_runtime::{clock, time, unblock, wait};

use super::TcpStream;
use super::connecting::Connecting;
use crate::net::resolve::no_address;
use crate::sys;
use crate::sys::Direction;
use crate::waiting::cancel::{SLICE, check_may_wait, end_by_cancel};
use crate::waiting::edge_wait::EdgeWait;

#[cfg(test)]
mod tests;

/// The "Connection Attempt Delay" that the RFC recommends.
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the first of the addresses that answers.
pub(super) fn connect_first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut addresses = alternate(addresses);
    let mut undecided = VecDeque::new();
    let mut failure = no_address();
    loop {
        let next = addresses.next();
        match next.map(Connecting::start) {
            Some(Ok(connecting)) => undecided.push_back(connecting),
            Some(Err(error)) => {
                failure = error;
                continue;
            }
            None if undecided.is_empty() => return Err(failure),
            None => {}
        }
        match first_of(&mut undecided, next.map(|_| HEAD_START)) {
            Some(Ok(winner)) => return Ok(winner),
            Some(Err(error)) => failure = error,
            None => {}
        }
    }
}

/// Waits until an attempt is decided. Returns `None` if the time has passed.
fn first_of(
    undecided: &mut VecDeque<Connecting>,
    timeout: Option<Duration>,
) -> Option<io::Result<TcpStream>> {
    let deadline = timeout.map(|timeout| clock::now() + timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        let is_alone = undecided.len() == 1;
        for _ in 0..undecided.len() {
            match undecided.pop_front()?.until(if is_alone { deadline } else { Some(clock::now()) }) {
                Ok(Ok(stream)) => return Some(Ok(stream)),
                Ok(Err(connecting)) => undecided.push_back(connecting),
                Err(error) => return Some(Err(error)),
            }
        }
        if is_alone || left.is_some_and(|left| left.is_zero()) {
            return None;
        }
        match wait_any(undecided, left) {
            // No attempt can be waited for. Each round gives one up, so that the loop ends.
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                undecided.pop_front();
                return Some(Err(error));
            }
            _ => {}
        }
    }
}

/// Waits until one of the attempts may be decided. May return before `timeout`.
fn wait_any(undecided: &VecDeque<Connecting>, timeout: Option<Duration>) -> io::Result<()> {
    if wait::in_task() && undecided.iter().all(Connecting::is_heard_here) {
        return wait_for_edge(undecided, timeout);
    }
    let fds: Vec<BorrowedFd<'_>> = undecided.iter().map(Connecting::fd).collect();
    if !wait::in_task() {
        wait::cancellation_point();
        let left = wait::begin_thread_wait("a connection")
            .map(|deadline| deadline.saturating_duration_since(clock::now()));
        return sys::wait_any(&fds, Direction::Write, left.into_iter().chain(timeout).min()).map(drop);
    }
    let slice = timeout.map_or(SLICE, |timeout| timeout.min(SLICE));
    unblock(|| sys::wait_any(&fds, Direction::Write, Some(slice))).map(drop)
}

/// Sleeps until the reactor hears of one of the attempts, or the time has passed.
fn wait_for_edge(undecided: &VecDeque<Connecting>, timeout: Option<Duration>) -> io::Result<()> {
    const RACE: &WaitDescription = &WaitDescription::new("connections").ended_by(EndedBy::Outside);
    check_may_wait()?;
    let (signal, waker) = WakerSignal::new();
    let mut context = Context::from_waker(&waker);
    let mut waits: Vec<EdgeWait> = undecided.iter().map(|_| EdgeWait::new(Direction::Write)).collect();
    let mut attempts = undecided.iter().zip(&mut waits);
    if attempts.any(|(attempt, wait)| attempt.poll_edge(wait, &mut context).is_ready()) {
        return Ok(());
    }
    match signal.sleep(Until::report(timeout.and_then(time::deadline)).described(RACE)) {
        Outcome::Cancelled => Err(end_by_cancel()),
        _ => Ok(()),
    }
}

/// Orders the addresses so that IPv4 and IPv6 alternate as long as both last.
fn alternate(addresses: Vec<SocketAddr>) -> impl Iterator<Item = SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (even, odd): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|it| it.is_ipv6() == first_is_v6);
    let (mut next, mut other) = (even.into_iter(), odd.into_iter());
    std::iter::from_fn(move || {
        let address = next.next().or_else(|| other.next());
        std::mem::swap(&mut next, &mut other);
        address
    })
}
