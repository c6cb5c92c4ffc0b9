//! The generator, a process of its own: reads an order, makes the load, reports events.
//!
//! Two clients share the payload, the pacing, the loops of `drive`, the conductor and the board: a task of
//! fibra for each connection, whose `link` is an echo over a stream, over `datagram`s, or `http`; and
//! `plain`, a thread of std for each, which does not share fibra's faults.

mod batch;
mod board;
mod conductor;
mod connect;
mod datagram;
mod drive;
mod http;
mod link;
mod pace;
mod payload;
mod plain;
mod reply;

use crate::child;
use crate::sys;
use crate::wire::{Client, Event, Order, Protocol, STOP};
use board::Board;
use conductor::Plan;
use connect::Connection;
use datagram::Datagrams;
use fibra::net::TcpStream;
use http::Http;
use link::{Echo, Link};
use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

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
    let order = Arc::new(order);
    match order.client {
        Client::Plain => plain::run(&order, &board),
        Client::Fibra => {
            let runtime = fibra::Runtime::builder().workers(1).build()?;
            runtime.run(|| run(&order, &board));
        }
    }
    Ok(())
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
    let idle: Vec<_> = connect::connect_all(order, order.idle, board).into_iter().map(Into::into).collect();
    let streams: Vec<Option<TcpStream>> = match order.protocol {
        Protocol::Tcp | Protocol::Http if !order.churn => {
            connect::connect_all(order, order.connections, board).into_iter().map(Some).collect()
        }
        _ => (0..order.connections).map(|_| None).collect(),
    };
    let busy = streams.len();
    say(&Event::Connected(busy));
    let plan = Plan::new(order);
    for (id, stream) in streams.into_iter().enumerate() {
        board.connection_starts();
        let (order, board) = (Arc::clone(order), Arc::clone(board));
        fibra::spawn(move || board.connection_ends(pursue(stream, id, &order, plan, &board)));
    }
    conductor::conduct(order, plan, board, busy, &idle, fibra::sleep);
    // All is said. Connections that a silent server keeps waiting need not be unwound one by one.
    std::process::exit(0);
}

fn pursue(
    stream: Option<TcpStream>,
    id: usize,
    order: &Arc<Order>,
    plan: Plan,
    board: &Board,
) -> io::Result<()> {
    let line = Connection::new(order, stream);
    let mut link: Box<dyn Link> = match order.protocol {
        Protocol::Tcp => Box::new(Echo::new(line, id as u32, order, board)),
        Protocol::Udp => Box::new(Datagrams::new(id as u32, order, board)?),
        Protocol::Http => Box::new(Http::new(line, order, board)),
    };
    drive::drive(&mut *link, id, order, plan, board, fibra::sleep_until)
}

/// Tells the orchestrator one event, and exits once it is gone.
fn say(event: &Event) {
    if child::say(event).is_err() {
        std::process::exit(1);
    }
}
