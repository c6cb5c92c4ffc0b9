//! Several addresses, and the first that answers: RFC 8305, "Happy Eyeballs".
//!
//! The families take turns, beginning with the one that the resolver put first. An attempt that has not been decided after
//! [`HEAD_START`] goes on while the next begins; one that fails lets the next begin at once.
//!
//! In a task, the first attempt is waited for in place, so the usual case spawns nothing, and each of the others by a task of its
//! own. Attempts that have lost are cancelled and waited for: when the race is over, won or lost or cancelled itself, their
//! sockets are closed and their tasks have ended. A plain thread waits for all of them in one `poll`.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fibra_runtime::clock;
use fibra_runtime::scope;
use fibra_runtime::task::{Scope, ScopedJoinHandle};

use super::TcpStream;
use super::connecting::{Connecting, Outcome};
use crate::net::resolve::no_address;
use crate::sys;
use crate::sys::Direction;
use crate::waiting::helper::spawn_helper;
use crate::waiting::manual::ManualSource;

#[cfg(test)]
mod tests;

/// The "Connection Attempt Delay" that the RFC recommends.
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the first of the addresses that answers. To be called in a task.
pub(super) fn connect_first(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let board = Board::default();
    scope(|attempts| Race { attempts, board: &board, runners: Vec::new(), undecided: 0 }.run(addresses))
}

/// Connects to the first of the addresses that answers, in a plain thread.
pub(super) fn connect_first_in_place(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut addresses = in_turns(addresses);
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

/// Blocks the thread until one of the attempts is decided, and gives what came of it. None if the time has passed.
fn first_of(
    undecided: &mut VecDeque<Connecting>,
    timeout: Option<Duration>,
) -> Option<io::Result<TcpStream>> {
    let deadline = timeout.map(|timeout| clock::now() + timeout);
    loop {
        for _ in 0..undecided.len() {
            match undecided.pop_front()?.within(Some(Duration::ZERO)) {
                Ok(Outcome::Connected(stream)) => return Some(Ok(stream)),
                Ok(Outcome::Pending(connecting)) => undecided.push_back(connecting),
                Err(error) => return Some(Err(error)),
            }
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return None;
        }
        let fds: Vec<BorrowedFd<'_>> = undecided.iter().map(Connecting::fd).collect();
        match sys::wait_any(&fds, Direction::Write, left) {
            // No attempt can be waited for. Each round gives one up, so that the loop ends.
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                undecided.pop_front();
                return Some(Err(error));
            }
            _ => {}
        }
    }
}

/// The addresses in such an order that the families take turns as long as both last.
fn in_turns(addresses: Vec<SocketAddr>) -> impl Iterator<Item = SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (ours, others): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|it| it.is_ipv6() == first_is_v6);
    let (mut ours, mut others) = (ours.into_iter(), others.into_iter());
    let mut turn = false;
    std::iter::from_fn(move || {
        turn = !turn;
        match turn {
            true => ours.next().or_else(|| others.next()),
            false => others.next().or_else(|| ours.next()),
        }
    })
}

/// The attempts that are under way. Dropping it cancels them; the scope waits for them.
struct Race<'scope, 'env> {
    attempts: &'scope Scope<'scope, 'env>,
    board: &'env Board,
    runners: Vec<ScopedJoinHandle<'scope, ()>>,
    undecided: usize,
}

impl Race<'_, '_> {
    fn run(mut self, addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
        let mut failure = no_address();
        for address in in_turns(addresses) {
            match self.attempt(address) {
                Some(Ok(winner)) => return Ok(winner),
                Some(Err(error)) => failure = error,
                None => {}
            }
        }
        while let Some(outcome) = self.next_outcome(None) {
            match outcome {
                Ok(winner) => return Ok(winner),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Begins an attempt and gives what was decided within its head start, by whichever attempt.
    fn attempt(&mut self, address: SocketAddr) -> Option<io::Result<TcpStream>> {
        let connecting = match Connecting::start(address) {
            Ok(connecting) => connecting,
            Err(error) => return Some(Err(error)),
        };
        if self.undecided > 0 {
            self.enter(connecting);
            return self.next_outcome(Some(HEAD_START));
        }
        match connecting.within(Some(HEAD_START)) {
            Ok(Outcome::Connected(stream)) => Some(Ok(stream)),
            Ok(Outcome::Pending(connecting)) => {
                self.enter(connecting);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Lets an attempt go on by itself.
    fn enter(&mut self, connecting: Connecting) {
        let posting = Posting(Some(self.board));
        self.undecided += 1;
        self.runners.push(spawn_helper(self.attempts, move || match connecting.within(None) {
            Ok(Outcome::Connected(stream)) => posting.post(Ok(stream)),
            Ok(Outcome::Pending(_)) => posting.post(Err(io::ErrorKind::TimedOut.into())),
            Err(error) => posting.post(Err(error)),
        }));
    }

    /// Waits for the next outcome. None if there is no attempt any more, or the time has passed.
    fn next_outcome(&mut self, timeout: Option<Duration>) -> Option<io::Result<TcpStream>> {
        if self.undecided == 0 {
            return None;
        }
        let outcome = self.board.take(timeout.map(|timeout| clock::now() + timeout))?;
        self.undecided -= 1;
        Some(outcome)
    }
}

impl Drop for Race<'_, '_> {
    fn drop(&mut self) {
        self.runners.iter().for_each(ScopedJoinHandle::cancel);
    }
}

/// The one outcome that an attempt owes. One that ends without it, or never starts, posts that.
struct Posting<'a>(Option<&'a Board>);

impl Posting<'_> {
    fn post(mut self, outcome: io::Result<TcpStream>) {
        if let Some(board) = self.0.take() {
            board.post(outcome);
        }
    }
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        if let Some(board) = self.0.take() {
            board.post(Err(io::Error::other("the task that was to connect has ended before")));
        }
    }
}

/// Where the attempts post their outcomes.
#[derive(Default)]
struct Board {
    outcomes: Mutex<VecDeque<io::Result<TcpStream>>>,
    news: ManualSource,
}

impl Board {
    fn post(&self, outcome: io::Result<TcpStream>) {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push_back(outcome);
        self.news.notify(Direction::Read);
    }

    /// Waits for the outcome that came first, or for the cancel of a task that cannot be unwound. There is one reader only.
    fn take(&self, deadline: Option<Instant>) -> Option<io::Result<TcpStream>> {
        let first = || self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        self.news.wait_or_fail(Direction::Read, deadline, first).unwrap_or_else(|error| Some(Err(error)))
    }
}
