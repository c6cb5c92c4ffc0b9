//! One connection: a batch of requests out, their replies in, byte for byte.

use super::board::{Board, Fault};
use super::payload;
use crate::wire::Order;
use fibra::net::TcpStream;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Instant;

/// From this many bytes on, a batch is written by a task of its own: an echo server answers while it is still being
/// asked, and if nobody read, both sides would end up writing into full buffers.
const WRITE_ASIDE: usize = 16 * 1024;

/// A connection and the buffers that it uses again for every batch.
pub(crate) struct Link<'a> {
    stream: TcpStream,
    board: &'a Board,
    id: u32,
    size: usize,
    /// Requests made so far.
    made: u32,
    requests: Vec<u8>,
    replies: Vec<u8>,
}

impl<'a> Link<'a> {
    /// Takes charge of a fresh connection.
    pub(crate) fn new(stream: TcpStream, id: usize, order: &Order, board: &'a Board) -> Result<Self, Fault> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(order.timeout))?;
        stream.set_write_timeout(Some(order.timeout))?;
        let bytes = order.batch_bytes();
        let (requests, replies) = (vec![0; bytes], vec![0; bytes]);
        Ok(Self { stream, board, id: id as u32, size: order.size, made: 0, requests, replies })
    }

    /// Sends one request for each of `dues` and waits for all the replies.
    pub(crate) fn exchange(&mut self, dues: &[Instant]) -> Result<(), Fault> {
        self.make_requests(dues.len());
        let requests = &self.requests[..dues.len() * self.size];
        if requests.len() < WRITE_ASIDE {
            (&self.stream).write_all(requests)?;
            return collect(&self.stream, requests, &mut self.replies, self.size, dues, self.board);
        }
        fibra::scope(|scope| {
            scope.spawn(|| (&self.stream).write_all(requests).is_ok());
            let outcome = collect(&self.stream, requests, &mut self.replies, self.size, dues, self.board);
            if outcome.is_err() {
                // Lets go of the writer; that the connection is dead already is no error here.
                let _ = self.stream.shutdown(Shutdown::Both);
            }
            outcome
        })
    }

    fn make_requests(&mut self, count: usize) {
        for request in self.requests.chunks_exact_mut(self.size).take(count) {
            payload::fill(request, self.id, self.made);
            self.made = self.made.wrapping_add(1);
        }
    }
}

/// Reads the replies to `requests`, and takes each down as soon as it is whole.
fn collect(
    mut stream: &TcpStream,
    requests: &[u8],
    replies: &mut [u8],
    size: usize,
    dues: &[Instant],
    board: &Board,
) -> Result<(), Fault> {
    let (mut filled, mut done) = (0, 0);
    while done < dues.len() {
        match stream.read(&mut replies[filled..requests.len()])? {
            0 => return Err(Fault::Closed),
            count => filled += count,
        }
        let whole = filled / size;
        let bytes = done * size..whole * size;
        compare(&replies[bytes.clone()], &requests[bytes], size, &dues[done..whole], board);
        done = whole;
    }
    Ok(())
}

/// Takes down whole replies: those that are their request, and those that are not.
pub(crate) fn compare(replies: &[u8], requests: &[u8], size: usize, dues: &[Instant], board: &Board) {
    let now = Instant::now();
    if replies == requests {
        return board.record(dues, now);
    }
    let pairs = replies.chunks_exact(size).zip(requests.chunks_exact(size));
    for ((reply, request), due) in pairs.zip(dues) {
        if reply == request {
            board.record(std::slice::from_ref(due), now);
        } else {
            board.count_wrong_bytes();
        }
    }
}
