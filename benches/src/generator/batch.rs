//! A batch of requests that are sent together, and the end of each.

use super::board::Board;
use super::payload;
use crate::sizes::Sizes;
use crate::wire::Order;
use std::ops::Range;
use std::slice;
use std::time::Instant;

/// Requests of one connection; the buffer is used again for every batch.
pub(crate) struct Batch {
    connection: u32,
    sizes: Sizes,
    /// Requests made so far.
    made: u32,
    bytes: Vec<u8>,
    /// Where each request of the batch ends.
    ends: Vec<usize>,
}

impl Batch {
    pub(crate) fn new(connection: u32, order: &Order) -> Self {
        let (bytes, ends) = (vec![0; order.batch_bytes()], Vec::with_capacity(order.pipeline));
        Self { connection, sizes: order.sizes.clone(), made: 0, bytes, ends }
    }

    /// Makes the next `count` requests, at most as many as the order allows.
    pub(crate) fn make(&mut self, count: usize) {
        self.ends.clear();
        for _ in 0..count {
            let size = self.sizes.of(self.connection, self.made);
            let begin = self.length();
            payload::fill(&mut self.bytes[begin..begin + size], self.connection, self.made);
            self.made = self.made.wrapping_add(1);
            self.ends.push(begin + size);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of all requests.
    pub(crate) fn length(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length()]
    }

    /// Returns one of the requests.
    pub(crate) fn request(&self, place: usize) -> &[u8] {
        &self.bytes[self.range(place)]
    }

    fn range(&self, place: usize) -> Range<usize> {
        place.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[place]
    }

    /// How many replies are whole when so many bytes of them have come, if `done` were before.
    pub(crate) fn whole(&self, done: usize, filled: usize) -> usize {
        done + self.ends[done..].iter().take_while(|&&end| end <= filled).count()
    }

    /// True for what begins like a request of an earlier batch; of requests of eight bytes and more.
    pub(crate) fn may_be_earlier(&self, reply: &[u8]) -> bool {
        let first = self.made.wrapping_sub(self.count() as u32);
        match payload::name(reply) {
            Some((connection, number)) => connection == self.connection && number < first,
            None => false,
        }
    }

    /// Compares the replies at the given places with their requests, which were due at `dues`, and records
    /// both outcomes.
    pub(crate) fn compare(&self, replies: &[u8], places: Range<usize>, dues: &[Instant], board: &Board) {
        if places.is_empty() {
            return;
        }
        let now = Instant::now();
        let bytes = self.range(places.start).start..self.range(places.end - 1).end;
        if replies[bytes.clone()] == self.bytes[bytes] {
            return board.record(dues, now);
        }
        for (place, due) in places.zip(dues) {
            match replies[self.range(place)] == *self.request(place) {
                true => board.record(slice::from_ref(due), now),
                false => board.count_wrong_bytes(),
            }
        }
    }
}
