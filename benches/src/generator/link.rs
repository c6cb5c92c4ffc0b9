//! One lane of the load: a batch of requests out, their replies in.

use super::batch::Batch;
use super::board::Board;
use super::connect::Connection;
use crate::wire::Order;
use fibra::net::TcpStream;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Instant;

/// From this many bytes on, a batch is written by a task of its own: an echo server answers while it is still
/// being asked, and without a reader both sides would end up writing into full buffers.
pub(super) const WRITE_ASIDE: usize = 16 * 1024;

/// A connection of some protocol.
pub(crate) trait Link {
    /// Sends one request for each of `dues`, waits for all the replies, and takes each down as soon as it is
    /// whole. After a fault those are left in `dues` to which none came.
    fn exchange(&mut self, dues: &mut Vec<Instant>) -> io::Result<()>;
}

/// Echo over a stream: the replies are the requests, byte for byte.
pub(crate) struct Echo<'a> {
    line: Connection,
    board: &'a Board,
    batch: Batch,
    replies: Vec<u8>,
}

impl<'a> Echo<'a> {
    pub(crate) fn new(line: Connection, id: u32, order: &Arc<Order>, board: &'a Board) -> Self {
        Self { line, board, batch: Batch::new(id, order), replies: vec![0; order.batch_bytes()] }
    }
}

impl Link for Echo<'_> {
    fn exchange(&mut self, dues: &mut Vec<Instant>) -> io::Result<()> {
        self.batch.make(dues.len());
        let stream = self.line.take()?;
        let mut collect = || collect(&stream, &self.batch, &mut self.replies, dues, self.board);
        if self.batch.length() < WRITE_ASIDE {
            (&stream).write_all(self.batch.bytes())?;
            collect()?;
        } else {
            write_aside(&stream, self.batch.bytes(), collect)?;
        }
        if self.line.is_for_one() {
            look_for_more(&stream, self.board);
        }
        self.line.keep(stream);
        Ok(())
    }
}

/// Looks once whether more has come than was asked for; on a connection that is kept the next reply shows it.
fn look_for_more(mut stream: &TcpStream, board: &Board) {
    // What is there is read without a wait: more than that a deadline that has passed does not allow.
    stream.set_read_deadline(Some(Instant::now()));
    if stream.read(&mut [0]).is_ok_and(|count| count > 0) {
        board.count_wrong_bytes();
    }
}

/// Writes in a task of its own while `collect` reads.
fn write_aside(
    stream: &TcpStream,
    requests: &[u8],
    collect: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    fibra::scope(|scope| {
        let mut writer = stream;
        scope.spawn(move || writer.write_all(requests).is_ok());
        let outcome = collect();
        if outcome.is_err() {
            // Ends the writer's wait. A dead connection is no error here.
            let _ = stream.shutdown(Shutdown::Both);
        }
        outcome
    })
}

/// Reads the replies to a batch.
pub(super) fn collect(
    mut stream: impl Read,
    batch: &Batch,
    replies: &mut [u8],
    dues: &mut Vec<Instant>,
    board: &Board,
) -> io::Result<()> {
    let (mut filled, mut done) = (0, 0);
    while !dues.is_empty() {
        match stream.read(&mut replies[filled..batch.length()])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
        let whole = batch.whole(done, filled);
        batch.compare(replies, done..whole, dues.drain(..whole - done).as_slice(), board);
        done = whole;
    }
    Ok(())
}
