//! HTTP/1.1: a GET that is repeated. Its replies must be whole and have the status 200.

use super::board::Board;
use super::connect::Connection;
use super::link::Link;
use super::reply::{Length, Reply};
use crate::wire::Order;
use fibra::net::TcpStream;
use std::io::{self, Read, Write};
use std::slice;
use std::sync::Arc;
use std::time::Instant;

/// Bytes that are read at a time, at the least.
const PIECE: usize = 16 * 1024;

/// The longest accepted reply.
const LONGEST: usize = 64 << 20;

/// A connection, kept alive as far as the server likes.
pub(crate) struct Http<'a> {
    line: Connection,
    board: &'a Board,
    /// The requests of a full batch, all alike.
    requests: Vec<u8>,
    request: usize,
    /// The bytes received. Those from `done` to `filled` are not parsed yet.
    input: Vec<u8>,
    done: usize,
    filled: usize,
}

impl<'a> Http<'a> {
    pub(crate) fn new(line: Connection, order: &Arc<Order>, board: &'a Board) -> Self {
        let request = request(order);
        let requests = request.repeat(order.pipeline);
        Self { line, board, requests, request: request.len(), input: vec![0; PIECE], done: 0, filled: 0 }
    }

    /// Reads a reply for each of `dues`, and counts them in `replied`; true if the server closes the
    /// connection after the last.
    fn read_replies(
        &mut self,
        stream: &TcpStream,
        dues: &[Instant],
        replied: &mut usize,
    ) -> io::Result<bool> {
        let mut closes = false;
        for due in dues {
            if closes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let reply = self.read_reply(stream)?;
            closes = reply.closes;
            match reply.status {
                200 => self.board.record(slice::from_ref(due), Instant::now()),
                _ => self.board.count_wrong_status(),
            }
            *replied += 1;
        }
        Ok(closes)
    }

    /// Reads one reply to its end.
    fn read_reply(&mut self, mut stream: &TcpStream) -> io::Result<Reply> {
        let mut wanted = 1;
        loop {
            if self.filled - self.done >= wanted {
                match Reply::parse(&self.input[self.done..self.filled])? {
                    Length::Whole(reply) => {
                        self.done += reply.length;
                        return Ok(reply);
                    }
                    Length::AtLeast(length) => wanted = length,
                }
            }
            self.make_room(wanted)?;
            match stream.read(&mut self.input[self.filled..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.filled += count,
            }
        }
    }

    /// Has room for a reply of so many bytes, and for some in any case.
    fn make_room(&mut self, wanted: usize) -> io::Result<()> {
        self.input.copy_within(self.done..self.filled, 0);
        (self.done, self.filled) = (0, self.filled - self.done);
        let room = wanted.max(self.filled + 1);
        if room > LONGEST {
            return Err(io::Error::other("a reply is longer than 64 MiB"));
        }
        if room > self.input.len() {
            self.input.resize(room.next_multiple_of(PIECE).max(self.input.len() * 2), 0);
        }
        Ok(())
    }
}

impl Link for Http<'_> {
    fn exchange(&mut self, dues: &mut Vec<Instant>) -> io::Result<()> {
        let stream = self.line.take()?;
        (self.done, self.filled) = (0, 0);
        (&stream).write_all(&self.requests[..self.request * dues.len()])?;
        let mut replied = 0;
        let outcome = self.read_replies(&stream, dues, &mut replied);
        dues.drain(..replied);
        let closes = outcome?;
        if self.done < self.filled {
            // More than was asked for.
            self.board.count_wrong_bytes();
        }
        if !closes {
            self.line.keep(stream);
        }
        Ok(())
    }
}

fn request(order: &Order) -> Vec<u8> {
    let Order { path, host, churn, .. } = order;
    let close = if *churn { "Connection: close\r\n" } else { "" };
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n{close}\r\n").into_bytes()
}
