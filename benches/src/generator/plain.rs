//! The other client: one thread, one epoll, connections as state machines, nothing of fibra.
//!
//! It exists to contradict the fibra client where that one errs. Under a fixed rate it waits on the epoll descriptor
//! with a timeout in nanoseconds, since an epoll wait is a whole millisecond coarse and lateness counts as latency.

use super::batch::Batch;
use super::board::{Board, Fault};
use super::conductor::{self, Connections, Plan};
use super::pace::Pace;
use super::{connect, say};
use crate::sys;
use crate::wire::{Event, Order};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two searches for connections on which nothing moves.
const SEARCH: Duration = Duration::from_millis(50);

/// Runs `order` to its end.
pub(super) fn run(order: &Order, board: &Arc<Board>) -> io::Result<()> {
    let idle = connect::connect_plainly(order, order.idle, board);
    let streams = connect::connect_plainly(order, order.connections, board);
    let connections = Connections { busy: streams.len(), idle };
    say(&Event::Connected(connections.busy));
    let plan = Plan::new(order);
    let mut client = Plain::new(order, plan, board, streams)?;
    let watched = Arc::clone(board);
    let worker = thread::Builder::new().name("plain".into()).spawn(move || client.drive())?;
    conductor::conduct(order, plan, &watched, &connections, thread::sleep);
    match worker.is_finished().then(|| worker.join()) {
        Some(Ok(outcome)) => outcome,
        _ => Ok(()),
    }
}

/// The loop and its connections; the place of a connection is its token.
struct Plain {
    order: Order,
    plan: Plan,
    board: Arc<Board>,
    poll: Poll,
    conns: Vec<Option<Conn>>,
    /// When idle connections have something to send, soonest first; each is in it once at the most.
    agenda: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Plain {
    fn new(
        order: &Order,
        plan: Plan,
        board: &Arc<Board>,
        streams: Vec<std::net::TcpStream>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut conns = Vec::with_capacity(streams.len());
        for (id, stream) in streams.into_iter().enumerate() {
            let mut conn = Conn::new(stream, id, order, plan)?;
            poll.registry().register(&mut conn.stream, Token(id), Interest::READABLE | Interest::WRITABLE)?;
            board.connection_starts();
            conns.push(Some(conn));
        }
        Ok(Self {
            order: order.clone(),
            plan,
            board: Arc::clone(board),
            poll,
            conns,
            agenda: BinaryHeap::new(),
        })
    }

    fn drive(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        thread::sleep(self.plan.start.saturating_duration_since(Instant::now()));
        let mut search = Instant::now() + SEARCH;
        (0..self.conns.len()).for_each(|id| self.advance(id));
        while self.board.live() > 0 {
            match self.wait(&mut events, search) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => events.iter().for_each(|event| self.advance(event.token().0)),
            }
            self.advance_due();
            if Instant::now() >= search {
                self.search_silent();
                search = Instant::now() + SEARCH;
            }
        }
        Ok(())
    }

    /// Waits for events, for the next request to be due, or for the next search.
    fn wait(&mut self, events: &mut Events, search: Instant) -> io::Result<()> {
        let Some(&Reverse((due, _))) = self.agenda.peek() else {
            return self.poll.poll(events, Some(SEARCH));
        };
        let patience = due.min(search).saturating_duration_since(Instant::now());
        sys::wait_readable(self.poll.registry().as_fd(), patience)?;
        self.poll.poll(events, Some(Duration::ZERO))
    }

    /// Moves one connection on as far as it goes, and takes it out at its end.
    fn advance(&mut self, id: usize) {
        let Some(conn) = self.conns[id].as_mut() else { return };
        match conn.advance(&self.order, &self.board) {
            Ok(Step::Waits) => {
                if let Some(due) = conn.next_to_list() {
                    self.agenda.push(Reverse((due, id)));
                }
            }
            Ok(Step::Ends) => self.remove(id, Ok(())),
            Err(fault) => self.remove(id, Err(fault)),
        }
    }

    /// Moves on the connections on which a request has come due.
    fn advance_due(&mut self) {
        let now = Instant::now();
        while let Some(&Reverse((due, id))) = self.agenda.peek().filter(|Reverse((due, _))| *due <= now) {
            self.agenda.pop();
            if let Some(conn) = self.conns[id].as_mut().filter(|conn| conn.listed == Some(due)) {
                conn.listed = None;
                self.advance(id);
            }
        }
    }

    /// Ends what is over or has been silent for too long.
    fn search_silent(&mut self) {
        for id in 0..self.conns.len() {
            let Some(conn) = &self.conns[id] else { continue };
            if !conn.dues.is_empty() && conn.moved.elapsed() >= self.order.timeout {
                self.remove(id, Err(io::Error::from(io::ErrorKind::TimedOut).into()));
            } else if self.board.is_over() {
                self.advance(id);
            }
        }
    }

    fn remove(&mut self, id: usize, how: Result<(), Fault>) {
        let Some(mut conn) = self.conns[id].take() else { return };
        // The stream is closed next, whatever the registry says.
        let _ = self.poll.registry().deregister(&mut conn.stream);
        if let Some(pace) = conn.pace.take() {
            self.board.leave(&how, conn.dues, pace);
        }
        self.board.connection_ends(how);
    }
}

/// How far a connection got.
enum Step {
    /// To a wait for the socket or for a due time.
    Waits,
    /// To the end of the run.
    Ends,
}

/// A connection between two events: a batch on its way while `dues` is not empty.
struct Conn {
    stream: TcpStream,
    pace: Option<Pace>,
    dues: Vec<Instant>,
    batch: Batch,
    written: usize,
    replies: Vec<u8>,
    read: usize,
    /// Replies of the batch that were whole and are taken down; their dues are gone.
    done: usize,
    /// When a byte last came or the batch was begun.
    moved: Instant,
    /// Its entry on the agenda.
    listed: Option<Instant>,
}

impl Conn {
    fn new(stream: std::net::TcpStream, id: usize, order: &Order, plan: Plan) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: TcpStream::from_std(stream),
            pace: order.rate.map(|rate| Pace::new(rate, id, order.connections, plan.start)),
            dues: Vec::with_capacity(order.pipeline),
            batch: Batch::new(id as u32, order),
            written: 0,
            replies: vec![0; order.batch_bytes()],
            read: 0,
            done: 0,
            moved: Instant::now(),
            listed: None,
        })
    }

    /// When it wants to be moved on, if it is idle and that is not on the agenda yet.
    fn next_to_list(&mut self) -> Option<Instant> {
        if !self.dues.is_empty() || self.listed.is_some() {
            return None;
        }
        self.listed = self.pace.as_ref().map(Pace::next_due);
        self.listed
    }

    fn advance(&mut self, order: &Order, board: &Board) -> Result<Step, Fault> {
        loop {
            if self.dues.is_empty() {
                if board.is_over() {
                    return Ok(Step::Ends);
                }
                // The replies raise an event; to look for them now would be a system call for nothing.
                if self.begin_batch(order) {
                    while self.write()? {}
                }
                return Ok(Step::Waits);
            }
            let (wrote, read) = (self.write()?, self.read(board)?);
            if !wrote && !read {
                return Ok(Step::Waits);
            }
        }
    }

    /// Makes the requests that are due; false if none is.
    fn begin_batch(&mut self, order: &Order) -> bool {
        self.moved = Instant::now();
        match &mut self.pace {
            Some(pace) => pace.take_due(self.moved, order.pipeline, &mut self.dues),
            None => self.dues.resize(order.pipeline, self.moved),
        }
        self.batch.make(self.dues.len());
        (self.written, self.read, self.done) = (0, 0, 0);
        !self.dues.is_empty()
    }

    /// Writes once; true if something went out and there is more.
    fn write(&mut self) -> io::Result<bool> {
        let end = self.batch.length();
        if self.written == end {
            return Ok(false);
        }
        let count = unless_blocked(self.stream.write(&self.batch.bytes()[self.written..]))?;
        self.written += count.unwrap_or(0);
        Ok(count.is_some() && self.written < end)
    }

    /// Reads once and takes down what is whole; true if something came.
    fn read(&mut self, board: &Board) -> Result<bool, Fault> {
        let end = self.batch.length();
        let Some(count) = unless_blocked(self.stream.read(&mut self.replies[self.read..end]))? else {
            return Ok(false);
        };
        if count == 0 {
            return Err(Fault::Closed);
        }
        self.read += count;
        self.moved = Instant::now();
        let whole = self.batch.whole(self.done, self.read);
        let dues = self.dues.drain(..whole - self.done);
        self.batch.compare(&self.replies, self.done..whole, dues.as_slice(), board);
        self.done = whole;
        Ok(true)
    }
}

fn unless_blocked(outcome: io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
