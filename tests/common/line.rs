//! Sessions over a line that does harm: those that begin with a handshake and end with a goodbye, so that a client hears of
//! every end that is none of theirs. And then it serves again: a healthy client on a new connection, and no descriptor more
//! than before.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use super::faulty::{Cuts, Delays, Direction, Fault, Glues, Proxy, Resets, Slices, StopsReading, Throttles};
use super::server::Server;

/// How many clients suffer at once.
const CLIENTS: usize = 4;

/// How many bytes come back to each of them, where there are few.
const FEW: usize = 1000;

/// The same, where the line breaks before all of them have come.
const MANY: usize = 100_000;

/// A server that echoes what is said in sessions.
pub(crate) trait Sessions: Sync + Sized {
    /// How many bytes of a handshake go in one piece where all others go alone.
    const WHOLE: usize = 0;

    /// The other end of a session.
    type Client;

    /// Starts it with so many workers, and with more patience than any client needs.
    fn start(workers: usize) -> Self;

    fn server(&self) -> &Server;

    /// Serves a healthy client.
    fn serves(&self);

    /// Has so many bytes sent back over that address, from the first word of a session to the last; or says how the
    /// connection ended, which must not pass for anything else.
    fn talk(&self, address: &str, bytes: usize) -> io::Result<()>;

    /// Sends to that address without reading the echo, until the server takes no more.
    fn stick(&self, address: &str) -> Self::Client;
}

/// Does `harm` to a server with one worker, then to one with two.
fn harmed<S: Sessions>(harm: impl Fn(&S)) {
    for workers in [1, 2] {
        let victim = S::start(workers);
        victim.server().recovers(|| victim.serves(), || harm(&victim));
    }
}

/// Lets several clients speak at once through a proxy that does them harm, and a healthy one beside them.
fn through<S: Sessions>(victim: &S, fault: impl Fault, client: impl Fn(&str) + Sync) {
    let proxy = Proxy::before(victim.server().address(), fault);
    thread::scope(|scope| {
        (0..CLIENTS).for_each(|_| _ = scope.spawn(|| client(proxy.address())));
        victim.serves();
    });
}

/// Clients that are answered in full, whatever the harm.
fn all_are_answered<S: Sessions>(bytes: usize, fault: impl Fault + Copy) {
    harmed::<S>(|victim| {
        through(victim, fault, |address| victim.talk(address, bytes).expect("all of it came back"));
    });
}

/// Clients that see their sessions broken off.
fn all_are_cut_off<S: Sessions, F: Fault + Copy>(fault: F) {
    harmed::<S>(|victim| {
        through(victim, fault, |address| {
            let end = victim.talk(address, MANY).expect_err("an end that is none").kind();
            let is_reset = matches!(end, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
            assert!(is_reset || (!F::RESETS && end == ErrorKind::UnexpectedEof), "{end:?}");
        });
    });
}

pub(crate) fn delayed<S: Sessions>() {
    all_are_answered::<S>(FEW, Delays(Duration::from_millis(20)));
}

pub(crate) fn sliced_into_single_bytes<S: Sessions>() {
    all_are_answered::<S>(FEW, Slices(S::WHOLE));
}

/// All that is sent before an answer is waited for is in one piece; or in some; or pieces end wherever in a record or a frame.
pub(crate) fn glued_together<S: Sessions>() {
    [usize::MAX, 1000, 7].into_iter().for_each(|size| all_are_answered::<S>(FEW, Glues(size)));
}

pub(crate) fn throttled<S: Sessions>() {
    all_are_answered::<S>(FEW, Throttles(50, Duration::from_millis(1)));
}

/// Ends before the first byte, in the middle of what comes first, and in the middle of what is echoed.
fn breaks<S: Sessions, F: Fault + Copy>(fault: fn(Direction, usize) -> F) {
    for direction in [Direction::Requests, Direction::Answers] {
        [0, 3, 100, 20_000].into_iter().for_each(|after| all_are_cut_off::<S, _>(fault(direction, after)));
    }
}

pub(crate) fn cut<S: Sessions>() {
    breaks::<S, _>(Cuts);
}

pub(crate) fn reset<S: Sessions>() {
    breaks::<S, _>(Resets);
}

/// A client that does not read its echo, so that the server cannot write: it serves the others, until the line breaks.
pub(crate) fn no_longer_read_from<S: Sessions>() {
    harmed::<S>(|victim| {
        let proxy = Proxy::before(victim.server().address(), StopsReading(5000));
        let _stuck = victim.stick(proxy.address());
        victim.serves();
        drop(proxy);
        victim.serves();
    });
}
