//! What the tests of the channels share: the kinds of channel as a table, the partners at the other end, and values that
//! are counted, so that none is lost and none is there twice.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fibra_runtime::wait;
use fibra_sync::channel::{Receiver, Sender, bounded, unbounded};

use crate::common::{Side, beside, beside_in_a_thread, everywhere, in_tasks};

/// The capacities that every promise is tried with: a rendezvous, one slot, a few, and no bound.
pub(crate) const KINDS: [Option<usize>; 4] = [Some(0), Some(1), Some(5), None];

/// The kinds that keep a value without a receiver.
pub(crate) const KEEPING: [Option<usize>; 3] = [Some(1), Some(5), None];

/// Those of them that a sender may have to wait for.
pub(crate) const LIMITED: [usize; 3] = [0, 1, 5];

/// Makes a channel of this capacity, `None` for one without a bound.
pub(crate) fn make<T>(capacity: Option<usize>) -> (Sender<T>, Receiver<T>) {
    capacity.map_or_else(unbounded, bounded)
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn us(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

/// Where the other ends of a channel are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Other {
    /// With the caller: tasks if it is one, else threads.
    Alike,
    /// In threads, also if the caller is a task.
    Thread,
}

impl Other {
    /// Starts `f` there.
    pub(crate) fn runs<T: Send + 'static>(self, f: impl FnOnce() -> T + Send + 'static) -> Side<T> {
        match self == Other::Thread && wait::in_task() {
            true => beside_in_a_thread(f),
            false => beside(f),
        }
    }

    /// Starts `count` of them, every other one with the caller.
    pub(crate) fn starts_many<T, F>(self, count: usize, f: impl Fn(usize) -> F) -> Vec<Side<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let there = |number: usize| if number.is_multiple_of(2) { self } else { Other::Alike };
        (0..count).map(|number| there(number).runs(f(number))).collect()
    }
}

/// Runs `promise` with both ends in threads, with both in tasks of one, two and four workers, and with one end in a task
/// and the other in a thread.
pub(crate) fn anywhere(promise: impl Fn(Other) + Send + Sync) {
    everywhere(|| promise(Other::Alike));
    in_tasks(|| promise(Other::Thread));
}

pub(crate) fn join_all<T: Send>(sides: Vec<Side<T>>) -> Vec<T> {
    sides.into_iter().map(Side::join).collect()
}

/// Sleeps: the task or the thread.
pub(crate) fn sleep(time: Duration) {
    match wait::in_task() {
        true => fibra_runtime::sleep(time),
        false => std::thread::sleep(time),
    }
}

/// What became of the values of a test.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    made: AtomicUsize,
    received: AtomicUsize,
    returned: AtomicUsize,
    dropped: AtomicUsize,
}

/// A value whose end is counted.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) number: usize,
    tally: Arc<Tally>,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Received,
    Returned,
    Dropped,
}

impl Tally {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Makes the next value.
    pub(crate) fn value(self: &Arc<Self>) -> Value {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Value { number, tally: Arc::clone(self), end: End::Dropped }
    }

    pub(crate) fn received(&self) -> usize {
        self.received.load(Ordering::SeqCst)
    }

    pub(crate) fn returned(&self) -> usize {
        self.returned.load(Ordering::SeqCst)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// How many values are still somewhere.
    pub(crate) fn alive(&self) -> usize {
        self.made() - self.received() - self.returned() - self.dropped()
    }

    /// Every value has ended once.
    pub(crate) fn assert_settled(&self) {
        assert_eq!(self.made(), self.received() + self.returned() + self.dropped(), "{self:?}");
    }
}

impl Value {
    /// Ends the value as one that came out of the channel.
    pub(crate) fn receive(mut self) -> usize {
        self.end = End::Received;
        self.number
    }

    /// Ends the value as one that an error gave back.
    pub(crate) fn take_back(mut self) -> usize {
        self.end = End::Returned;
        self.number
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        let count = match self.end {
            End::Received => &self.tally.received,
            End::Returned => &self.tally.returned,
            End::Dropped => &self.tally.dropped,
        };
        count.fetch_add(1, Ordering::SeqCst);
    }
}
