//! The load itself, in a process of its own: reads an order, makes the load, says what it saw.
//!
//! Two clients share the payload, the pacing, the conductor and the board: `fibra`, a task per connection (`closed` and
//! `open` loops over a `link`, which is an echo over a stream, over `datagram`s, or `http`), and `plain`, one epoll loop,
//! which has nothing of fibra in it and so does not share its faults.

mod batch;
mod board;
mod closed;
mod conductor;
mod connect;
mod datagram;
mod http;
mod link;
mod open;
mod pace;
mod payload;
mod plain;
mod reply;

use crate::child;
use crate::sys;
use crate::wire::{Client, Event, Order, Protocol, STOP};
use board::{Board, Fault};
use conductor::{Connections, Plan};
use connect::Connection;
use datagram::Datagrams;
use fibra::net::TcpStream;
use http::Http;
use link::{Echo, Link};
use pace::Pace;
use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What passes between a connection that could not be used and the next, where every request has its own.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) use board::new_histogram;
pub(crate) use connect::{any_like, patience};

/// Reads the order from standard input and carries it out.
pub(crate) fn main() -> ExitCode {
    child::obey("generator: ", carry_out)
}

fn carry_out(order: Order) -> io::Result<()> {
    sys::sharpen_timers();
    let board = Arc::new(Board::new());
    listen_for_stop(Arc::clone(&board))?;
    match order.client {
        Client::Plain => plain::run(&order, &board),
        Client::Fibra => {
            let runtime = fibra::Runtime::builder().workers(1).build()?;
            runtime.run(|| run(&Arc::new(order), &board));
            Ok(())
        }
    }
}

/// Stops the run at the line `stop`, or when the orchestrator has gone.
fn listen_for_stop(board: Arc<Board>) -> io::Result<()> {
    let listen = move || {
        let mut lines = io::stdin().lock().lines();
        while lines.next().is_some_and(|line| line.is_ok_and(|line| line != STOP)) {}
        board.stop();
    };
    thread::Builder::new().name("stop".into()).spawn(listen).map(drop)
}

/// The fibra client: connects, starts a task for every connection, and conducts.
fn run(order: &Arc<Order>, board: &Arc<Board>) {
    let idle = connect::connect_all(order, order.idle, board).into_iter().map(Into::into).collect();
    let streams: Vec<Option<TcpStream>> = match order.protocol {
        Protocol::Tcp | Protocol::Http if !order.churn => {
            connect::connect_all(order, order.connections, board).into_iter().map(Some).collect()
        }
        _ => (0..order.connections).map(|_| None).collect(),
    };
    let connections = Connections { busy: streams.len(), idle };
    say(&Event::Connected(connections.busy));
    let plan = Plan::new(order);
    for (id, stream) in streams.into_iter().enumerate() {
        board.connection_starts();
        let (order, board) = (Arc::clone(order), Arc::clone(board));
        fibra::spawn(move || board.connection_ends(drive(stream, id, &order, plan, &board)));
    }
    conductor::conduct(order, plan, board, &connections, fibra::sleep);
    // All is said. Connections that a silent server keeps waiting need not be unwound one by one.
    std::process::exit(0);
}

fn drive(
    stream: Option<TcpStream>,
    id: usize,
    order: &Arc<Order>,
    plan: Plan,
    board: &Board,
) -> Result<(), Fault> {
    let line = Connection::new(order, stream);
    match order.protocol {
        Protocol::Tcp => pursue(&mut Echo::new(line, id as u32, order, board), id, order, plan, board),
        Protocol::Udp => pursue(&mut Datagrams::new(id as u32, order, board)?, id, order, plan, board),
        Protocol::Http => pursue(&mut Http::new(line, order, board), id, order, plan, board),
    }
}

fn pursue(link: &mut dyn Link, id: usize, order: &Order, plan: Plan, board: &Board) -> Result<(), Fault> {
    fibra::sleep_until(plan.start);
    match order.rate {
        None => closed::drive(link, order.pipeline, order.churn, board),
        Some(rate) => {
            let pace = Pace::new(rate, id, order.connections, plan.start);
            open::drive(link, pace, order.pipeline, order.churn, plan.end, board)
        }
    }
}

/// A fault is the end of a lane, but where every request has a connection of its own it is that of one request.
fn survive(outcome: Result<(), Fault>, churn: bool, board: &Board) -> Result<(), Fault> {
    match outcome {
        Err(fault) if churn && !board.is_over() => {
            board.count(&fault);
            fibra::sleep(PAUSE);
            Ok(())
        }
        outcome => outcome,
    }
}

/// Says one event to the orchestrator. Once that one is gone there is nothing to work for.
fn say(event: &Event) {
    if child::say(event).is_err() {
        std::process::exit(1);
    }
}
