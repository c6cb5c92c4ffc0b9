//! The load itself, in a process of its own: reads an order, makes the load, says what it saw.
//!
//! Two clients share the payload, the pacing, the conductor and the board: `fibra`, a task per connection (`link`,
//! `closed`, `open`), and `plain`, one epoll loop, which has nothing of fibra in it and so does not share its faults.

mod board;
mod closed;
mod conductor;
mod connect;
mod link;
mod open;
mod pace;
mod payload;
mod plain;

use crate::sys;
use crate::wire::{Client, Event, Order, STOP};
use board::{Board, Fault};
use conductor::Plan;
use fibra::net::TcpStream;
use link::Link;
use pace::Pace;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

pub(crate) use board::new_histogram;
pub(crate) use connect::PATIENCE;

/// Reads the order from standard input and carries it out.
pub(crate) fn main() -> ExitCode {
    match carry_out() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("generator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
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

/// Stops the run at the line `stop`, or when whoever would say it has gone.
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
    let streams = connect::connect_all(order, board);
    let connected = streams.len();
    say(&Event::Connected(connected));
    let plan = Plan::new(order);
    for (id, stream) in streams.into_iter().enumerate() {
        board.connection_starts();
        let (order, board) = (Arc::clone(order), Arc::clone(board));
        fibra::spawn(move || board.connection_ends(drive(stream, id, &order, plan, &board)));
    }
    conductor::conduct(order, plan, board, connected, fibra::sleep);
    // All is said. Connections that a silent server keeps waiting need not be unwound one by one.
    std::process::exit(0);
}

fn drive(stream: TcpStream, id: usize, order: &Order, plan: Plan, board: &Board) -> Result<(), Fault> {
    let mut link = Link::new(stream, id, order, board)?;
    fibra::sleep_until(plan.start);
    match order.rate {
        None => closed::drive(&mut link, order.pipeline, board),
        Some(rate) => {
            let pace = Pace::new(rate, id, order.connections, plan.start, plan.end);
            open::drive(&mut link, pace, order.pipeline, board)
        }
    }
}

/// Says one event to the orchestrator. Once that one is gone there is nobody to work for.
fn say(event: &Event) {
    let Ok(mut line) = serde_json::to_vec(event) else { return };
    line.push(b'\n');
    let mut out = io::stdout().lock();
    if out.write_all(&line).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}
