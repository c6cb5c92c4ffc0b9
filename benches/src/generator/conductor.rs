//! The conductor: begins and ends the measured interval, reads the meters at both moments, and reports.

use super::board::Board;
use super::{connect, say};
use crate::process::Usage;
use crate::sys;
use crate::wire::{Event, Order, Outcome};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between two looks at the connections.
const LOOK: Duration = Duration::from_millis(20);

/// Time between two reports of progress.
const REPORT: Duration = Duration::from_millis(200);

/// The time that connections have to finish after a stop.
const GRACE: Duration = Duration::from_millis(300);

/// The plan of a run: three moments.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// The first request.
    pub(crate) start: Instant,
    /// The end of the warm-up.
    pub(crate) begin: Instant,
    /// The last request, unless the measured time begins late.
    pub(crate) end: Instant,
}

impl Plan {
    /// Starts a moment from now, when all connections have taken up their places.
    pub(crate) fn new(order: &Order) -> Self {
        let places = Duration::from_micros(20) * u32::try_from(order.connections).unwrap_or(u32::MAX);
        let start = Instant::now() + LOOK + places;
        let begin = start + order.warmup;
        Self { start, begin, end: begin + order.duration }
    }
}

/// Conducts a run to its end and sends all events.
///
/// `sleep` suspends the caller, a task or a thread. Requests go over `busy` connections; `idle` ones stay
/// silent.
pub(crate) fn conduct(
    order: &Order,
    plan: Plan,
    board: &Board,
    busy: usize,
    idle: &[TcpStream],
    sleep: impl Fn(Duration),
) {
    sleep(plan.start.saturating_duration_since(Instant::now()));
    // Progress counts from here: what went before was connecting.
    board.progress(Duration::ZERO);
    let watch = |until: Instant| watch(plan, until, board, &sleep);
    let mut early = watch(plan.begin);
    // Of the server and of the generator.
    let read_meters = || (order.server.and_then(Usage::of), sys::own_cpu_time());
    let mut meters = None;
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if early.is_none() {
        let before = read_meters();
        board.begin();
        // The interval has its full length, also where so many connections came before us that it began late.
        early = watch(plan.end.max(Instant::now() + order.duration));
        board.end();
        meters = Some((before, read_meters()));
    }
    connect::look_after(idle, board);
    drain(order, board, &sleep);
    let mut outcome = Outcome { ended_early: early, ..board.outcome() };
    (outcome.totals.connected, outcome.totals.begun) = (busy, begun);
    if let Some(((server_before, before), (server_after, after))) = meters {
        outcome.totals.own_cpu = after.saturating_sub(before);
        outcome.totals.server = server_before
            .zip(server_after)
            .map(|(before, after)| Usage { cpu: after.cpu.saturating_sub(before.cpu), ..after });
    }
    say(&Event::Done(Box::new(outcome)));
}

/// Sleeps until the given moment and reports progress; comes back early, with the reason, when the run is at
/// its end.
fn watch(plan: Plan, until: Instant, board: &Board, sleep: &impl Fn(Duration)) -> Option<String> {
    let mut report = Instant::now() + REPORT;
    loop {
        let now = Instant::now();
        if board.is_stopped() {
            return Some("stopped".into());
        }
        if now >= until {
            return None;
        }
        if board.live() == 0 {
            return Some("no connection is left".into());
        }
        if now >= report {
            say(&Event::Progress(board.progress(now.saturating_duration_since(plan.start))));
            report = now + REPORT;
        }
        sleep(LOOK.min(until - now));
    }
}

/// Gives the connections time for their pending replies, and counts the connections that need longer.
fn drain(order: &Order, board: &Board, sleep: &impl Fn(Duration)) {
    let patience = if board.is_stopped() { GRACE } else { order.timeout + GRACE };
    let deadline = Instant::now() + patience;
    while board.live() > 0 && Instant::now() < deadline {
        sleep(LOOK);
    }
    if !board.is_stopped() {
        board.count_timed_out(board.live());
    }
}
