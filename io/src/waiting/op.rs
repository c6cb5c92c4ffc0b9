//! The loop of every operation: try the system call, sleep when it would block, try again.
//!
//! Where the wait happens depends on the caller:
//!
//! | caller | waits by |
//! | --- | --- |
//! | a task on a worker with a reactor of ours | sleeping until the reactor hears an edge |
//! | a task on a worker without one | a `poll(2)` on the blocking pool, in slices, so that a cancel is seen |
//! | a plain thread | a `poll(2)` of its own |
//!
//! The last two are level-triggered. Their results are noted in the readiness word as if they were
//! edges. Such a poll may report an event that the call does not find, as an unread message in the
//! error queue. Its caller then pauses before the next poll.
//!
//! # Cancellation
//!
//! A wait is a cancellation point; a call that need not wait is none. An operation fails with
//! `TimedOut` where it would wait in a cancelled task that cannot be unwound. Such a task unwinds
//! already, or runs its last destructors. So a buffered writer that is flushed by its destructor
//! cannot hold the shutdown for ever.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use fibra_runtime::clock;
use fibra_runtime::wait::{self, Waking};
use fibra_runtime::{sleep, time, unblock};

use super::attempt::Attempt;
use super::cancel::{SLICE, check_may_wait, end_by_cancel};
use super::descriptor::Descriptor;
use crate::reactor;
use crate::readiness::Edge;
use crate::readiness::set::Reliance;
use crate::sys::{self, Direction};

/// How long a wait to write relies on events, where the system does not tell all.
pub(crate) const RECHECK: Duration = Duration::from_millis(250);

/// Spurious wake-ups off the reactor before a back-off. Fewer may come from a quicker competitor.
const MISLED: u32 = 2;

/// The first pause of a back-off, and how often it is doubled.
const BACK_OFF: Duration = Duration::from_millis(1);
const BACK_OFF_DOUBLINGS: u32 = 5;

impl<S: AsFd> Descriptor<S> {
    /// Runs `call` until it does not fail with `WouldBlock`, and waits in between.
    ///
    /// After `timeout` it fails with `WouldBlock`, as a blocking call of std does. `call` must not
    /// wait by itself. It is skipped while the descriptor is known to be drained.
    #[inline]
    pub(crate) fn run<T>(
        &self,
        direction: Direction,
        timeout: impl Fn() -> Option<Duration>,
        mut call: impl FnMut() -> io::Result<Attempt<T>>,
    ) -> io::Result<T> {
        if self.is_nonblocking() {
            wait::charge();
            return call().map(Attempt::value);
        }
        if let Some(outcome) = self.source().attempt(direction, &mut call) {
            wait::charge();
            return outcome;
        }
        let deadline = timeout().and_then(time::deadline);
        let mut misled = 0_u32;
        loop {
            let in_time = self.wait(direction, deadline, misled)?;
            if !in_time {
                // Worth a last look: what came just before may have had no event yet.
                self.heard(direction);
            }
            if let Some(outcome) = self.source().attempt(direction, &mut call) {
                return outcome;
            }
            if !in_time {
                return Err(timed_out());
            }
            misled = misled.saturating_add(1);
        }
    }

    /// Variant of [`run`](Self::run) with a deadline. Returns `None` once it is reached.
    pub(crate) fn run_until<T>(
        &self,
        direction: Direction,
        deadline: Option<Instant>,
        mut call: impl FnMut() -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let left = || deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        match self.run(direction, left, || call().map(Attempt::Done)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Runs a transfer of no bytes, even on a descriptor that is known to be drained.
    ///
    /// Such a transfer needs neither data nor room.
    #[cold]
    pub(crate) fn run_empty<T>(
        &self,
        direction: Direction,
        timeout: impl Fn() -> Option<Duration>,
        mut call: impl FnMut() -> io::Result<Attempt<T>>,
    ) -> io::Result<T> {
        wait::charge();
        match call() {
            // It waits for something else, as the connection.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.run(direction, timeout, call),
            outcome => outcome.map(Attempt::value),
        }
    }

    /// Waits until that direction may be ready. Returns false once the deadline has passed.
    ///
    /// Spurious returns are fine; `misled` is how many there were. The usual wait is inlined into
    /// the caller: a reader without a deadline, registered with the reactor of its worker. So the
    /// switch has no open return but the user's own.
    #[inline(always)]
    fn wait(&self, direction: Direction, deadline: Option<Instant>, misled: u32) -> io::Result<bool> {
        if direction == Direction::Read
            && deadline.is_none()
            && let Some(why) = self.source().sleep_on_own_worker(direction)
        {
            return outcome_of(why);
        }
        self.wait_anywhere(direction, deadline, misled)
    }

    /// Waits as a task of any kind, or as a thread.
    #[inline(never)]
    fn wait_anywhere(
        &self,
        direction: Direction,
        deadline: Option<Instant>,
        misled: u32,
    ) -> io::Result<bool> {
        let in_task = wait::in_task();
        if in_task {
            check_may_wait()?;
            if let Some(reliance) = self.registered().attach_here(self.fd().as_raw_fd())? {
                return self.wait_for_edge(direction, reliance, deadline);
            }
        }
        if misled >= MISLED && !back_off(misled - MISLED, deadline) {
            return Ok(false);
        }
        self.rechecking(direction, deadline, |until| match in_task {
            true => self.wait_on_pool(direction, until),
            false => self.wait_in_place(direction, until),
        })
    }

    /// Returns true if a waiter in that direction must recheck by itself.
    pub(crate) fn rechecks(&self, direction: Direction) -> bool {
        // Sockets of a simulation are of the Unix family, of which the system does not tell all.
        direction == Direction::Write && (self.rechecks_writes() || reactor::simulated::network().is_some())
    }

    /// Runs a wait, and ends it after [`RECHECK`] where the system does not report all events.
    fn rechecking(
        &self,
        direction: Direction,
        deadline: Option<Instant>,
        wait: impl FnOnce(Option<Instant>) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let recheck = self.rechecks(direction).then(|| clock::now() + RECHECK);
        let recheck = recheck.filter(|at| deadline.is_none_or(|deadline| *at < deadline));
        let in_time = wait(recheck.or(deadline))?;
        if !in_time && recheck.is_some() {
            self.heard(direction);
            return Ok(true);
        }
        Ok(in_time)
    }

    fn wait_for_edge(
        &self,
        direction: Direction,
        reliance: Reliance,
        deadline: Option<Instant>,
    ) -> io::Result<bool> {
        self.rechecking(direction, deadline, |until| {
            outcome_of(self.source().sleep(direction, reliance, until))
        })
    }

    /// Blocks the thread.
    fn wait_in_place(&self, direction: Direction, deadline: Option<Instant>) -> io::Result<bool> {
        check_may_wait()?;
        let until = [deadline, wait::begin_thread_wait("a socket or a pipe")].into_iter().flatten().min();
        let in_time = sys::wait_for(self.fd(), direction, until)?;
        if in_time {
            self.heard(direction);
        } else if until != deadline {
            return Err(end_by_cancel());
        }
        Ok(in_time)
    }

    fn wait_on_pool(&self, direction: Direction, deadline: Option<Instant>) -> io::Result<bool> {
        // The pool has the machine's clock.
        let deadline = deadline.map(clock::on_machine);
        loop {
            wait::cancellation_point();
            check_may_wait()?;
            let slice = clock::machine() + SLICE;
            let until = deadline.map_or(slice, |deadline| deadline.min(slice));
            let fd = self.fd();
            if unblock(|| sys::wait_for(fd, direction, Some(until)))? {
                self.heard(direction);
                return Ok(true);
            }
            if deadline.is_some_and(|deadline| deadline <= clock::machine()) {
                return Ok(false);
            }
        }
    }

    /// Notes the event of a poll, or that the call is worth another try.
    ///
    /// No other waiter needs waking: the reactor gets the event by itself.
    fn heard(&self, direction: Direction) {
        self.source().readiness().edge(Edge::new().ready(direction, true));
    }
}

/// Converts the end of a sleep into the outcome of a wait.
#[inline(always)]
fn outcome_of(why: Waking) -> io::Result<bool> {
    match why {
        Waking::Notified => Ok(true),
        Waking::TimedOut => Ok(false),
        Waking::Cancelled => Err(end_by_cancel()),
    }
}

/// Pauses before the next poll, longer each time. Returns false once the deadline has passed.
fn back_off(times: u32, deadline: Option<Instant>) -> bool {
    let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(clock::now()));
    sleep(left.min(BACK_OFF * (1 << times.min(BACK_OFF_DOUBLINGS))));
    !left.is_zero()
}

/// Returns the error of a blocking call whose socket's timeout has passed, on every Unix.
fn timed_out() -> io::Error {
    io::Error::from_raw_os_error(libc::EAGAIN)
}
