//! Echo over datagrams, of which some may be lost, late, or in another order.

use super::batch::Batch;
use super::board::Board;
use super::connect;
use super::link::Link;
use crate::wire::Order;
use fibra::net::UdpSocket;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// By these first bytes a reply is known: they name the connection and the request (see `payload`).
const NAME: usize = 8;

/// A socket of its own, connected to the server's.
pub(crate) struct Datagrams<'a> {
    socket: UdpSocket,
    board: &'a Board,
    batch: Batch,
    timeout: Duration,
    /// Whether the reply to each request of the batch is missing.
    open: Vec<bool>,
    reply: Vec<u8>,
}

impl<'a> Datagrams<'a> {
    pub(crate) fn new(id: u32, order: &Order, board: &'a Board) -> io::Result<Self> {
        // A byte more than the longest, so that a reply that is too long is seen.
        let reply = vec![0; order.sizes.largest() + 1];
        let socket = UdpSocket::bind(connect::any_like(order.address))?;
        socket.connect(order.address)?;
        Ok(Self {
            socket,
            board,
            batch: Batch::new(id, order),
            timeout: order.timeout,
            open: Vec::new(),
            reply,
        })
    }

    /// Sends the batch and takes down the replies that come within the timeout.
    fn send_and_receive(&mut self, dues: &[Instant]) -> io::Result<()> {
        for place in 0..dues.len() {
            self.socket.send(self.batch.request(place))?;
        }
        self.socket.set_read_deadline(Some(Instant::now() + self.timeout));
        while self.open.contains(&true) {
            match self.socket.recv(&mut self.reply) {
                Ok(length) => self.take_down(length, dues),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Records a reply, unless it answers an earlier batch.
    fn take_down(&mut self, length: usize, dues: &[Instant]) {
        let reply = &self.reply[..length];
        let is_named_so = |&place: &usize| reply.starts_with(&self.batch.request(place)[..NAME]);
        match (0..dues.len()).find(is_named_so) {
            Some(place) if !self.open[place] => self.board.count_wrong_bytes(),
            Some(place) => {
                self.open[place] = false;
                match reply == self.batch.request(place) {
                    true => self.board.record(&dues[place..=place], Instant::now()),
                    false => self.board.count_wrong_bytes(),
                }
            }
            None if self.batch.may_be_earlier(reply) => {}
            None => self.board.count_wrong_bytes(),
        }
    }
}

impl Link for Datagrams<'_> {
    fn exchange(&mut self, dues: &mut Vec<Instant>) -> io::Result<()> {
        self.batch.make(dues.len());
        self.open.clear();
        self.open.resize(dues.len(), true);
        let outcome = self.send_and_receive(dues);
        let mut open = self.open.iter();
        dues.retain(|_| open.next() == Some(&true));
        outcome?;
        let now = Instant::now();
        dues.drain(..).for_each(|due| self.board.record_unanswered(due, now));
        Ok(())
    }
}
