//! The second client: a thread of std for each connection, nothing of fibra.
//!
//! It checks the figures of the fibra client.

use super::batch::Batch;
use super::board::Board;
use super::conductor::{self, Plan};
use super::drive::drive;
use super::link::{Link, WRITE_ASIDE, collect};
use super::{connect, say};
use crate::wire::{Event, Order};
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Bytes of a thread's stack, since there may be thousands.
const STACK: usize = 128 * 1024;

/// Runs `order` to its end.
pub(super) fn run(order: &Arc<Order>, board: &Arc<Board>) {
    let idle = connect::connect_plainly(order, order.idle, board);
    let streams = connect::connect_plainly(order, order.connections, board);
    let busy = streams.len();
    say(&Event::Connected(busy));
    let plan = Plan::new(order);
    for (id, stream) in streams.into_iter().enumerate() {
        board.connection_starts();
        let (order, shared) = (Arc::clone(order), Arc::clone(board));
        let run = move || {
            let (batch, replies) = (Batch::new(id as u32, &order), vec![0; order.batch_bytes()]);
            let mut echo = PlainEcho { stream, batch, replies, board: &shared };
            shared.connection_ends(drive(&mut echo, id, &order, plan, &shared, sleep_until));
        };
        if let Err(error) = thread::Builder::new().stack_size(STACK).spawn(run) {
            board.connection_ends(Err(error));
        }
    }
    conductor::conduct(order, plan, board, busy, &idle, thread::sleep);
}

fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// Echo over a socket of std.
struct PlainEcho<'a> {
    stream: TcpStream,
    batch: Batch,
    replies: Vec<u8>,
    board: &'a Board,
}

impl Link for PlainEcho<'_> {
    fn exchange(&mut self, dues: &mut Vec<Instant>) -> io::Result<()> {
        self.batch.make(dues.len());
        let Self { stream, batch, replies, board } = self;
        let batch = &*batch;
        let mut writer = &*stream;
        if batch.length() < WRITE_ASIDE {
            writer.write_all(batch.bytes())?;
            return collect(&*stream, batch, replies, dues, board);
        }
        thread::scope(|scope| {
            scope.spawn(move || writer.write_all(batch.bytes()).is_ok());
            let outcome = collect(&*stream, batch, replies, dues, board);
            if outcome.is_err() {
                // Ends the writer's wait. A dead connection is no error here.
                let _ = stream.shutdown(Shutdown::Both);
            }
            outcome
        })
    }
}
