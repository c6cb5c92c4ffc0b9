//! A bounded queue of a mutex and two conditions, by which producers and consumers tell each other no more than they have to.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Side, beside, beside_in_a_thread, everywhere, in_tasks};
use fibra_sync::{Condvar, Mutex, MutexGuard};

struct Queue {
    items: Mutex<Items>,
    filled: Condvar,
    emptied: Condvar,
    style: Style,
}

#[derive(Default)]
struct Items {
    items: VecDeque<u64>,
    /// No more values come.
    is_over: bool,
}

#[derive(Clone, Copy)]
struct Style {
    /// A put into an empty queue or a take from a full one notifies all, others none; or each notifies one.
    all: bool,
    timeout: Option<Duration>,
    limit: usize,
}

impl Queue {
    fn new(style: Style) -> Arc<Self> {
        let items = Mutex::default();
        Arc::new(Queue { items, filled: Condvar::new(), emptied: Condvar::new(), style })
    }

    fn wait(&self, condvar: &Condvar, guard: &mut MutexGuard<'_, Items>) {
        match self.style.timeout {
            None => condvar.wait(guard),
            Some(timeout) => _ = condvar.wait_for(guard, timeout),
        }
    }

    fn notify(&self, condvar: &Condvar, some_may_wait: bool) {
        match self.style.all {
            true if some_may_wait => _ = condvar.notify_all(),
            true => {}
            false => _ = condvar.notify_one(),
        }
    }

    fn put(&self, item: u64) {
        let mut guard = self.items.lock();
        while guard.items.len() == self.style.limit {
            self.wait(&self.emptied, &mut guard);
        }
        let was_empty = guard.items.is_empty();
        guard.items.push_back(item);
        drop(guard);
        self.notify(&self.filled, was_empty);
    }

    /// The next item, unless it is over and there is none.
    fn take(&self) -> Option<u64> {
        let mut guard = self.items.lock();
        while guard.items.is_empty() && !guard.is_over {
            self.wait(&self.filled, &mut guard);
        }
        let was_full = guard.items.len() == self.style.limit;
        let item = guard.items.pop_front();
        drop(guard);
        self.notify(&self.emptied, was_full);
        item
    }

    fn end(&self) {
        self.items.lock().is_over = true;
        self.filled.notify_all();
    }
}

/// How a test starts the sides.
#[derive(Clone, Copy)]
struct Starts {
    putting: fn(Box<dyn FnOnce() + Send>) -> Side<()>,
    taking: fn(Box<dyn FnOnce() -> u64 + Send>) -> Side<u64>,
}

const ALIKE: Starts = Starts { putting: beside, taking: beside };

fn all_pass_through(producers: u64, consumers: usize, each: u64, style: Style, starts: Starts) {
    let queue = Queue::new(style);
    let taking: Vec<_> = (0..consumers)
        .map(|_| {
            let queue = Arc::clone(&queue);
            (starts.taking)(Box::new(move || std::iter::from_fn(|| queue.take()).sum()))
        })
        .collect();
    let putting: Vec<_> = (0..producers)
        .map(|_| {
            let queue = Arc::clone(&queue);
            (starts.putting)(Box::new(move || (0..each).for_each(|item| queue.put(item))))
        })
        .collect();
    putting.into_iter().for_each(Side::join);
    queue.end();
    let sum: u64 = taking.into_iter().map(Side::join).sum();
    assert_eq!(sum, producers * each * (each - 1) / 2);
}

const COUNTS: [(u64, usize); 5] = [(1, 1), (1, 10), (10, 1), (4, 4), (10, 10)];

fn in_each_count(style: Style) {
    for (producers, consumers) in COUNTS {
        let each = 300 / producers;
        everywhere(|| all_pass_through(producers, consumers, each, style, ALIKE));
    }
}

#[test]
fn through_one_slot_all_pass_when_each_tells_one() {
    in_each_count(Style { all: false, timeout: None, limit: 1 });
}

#[test]
fn through_one_slot_all_pass_when_all_are_told() {
    in_each_count(Style { all: true, timeout: None, limit: 1 });
}

#[test]
fn through_a_hundred_slots_all_pass_when_each_tells_one() {
    in_each_count(Style { all: false, timeout: None, limit: 100 });
}

#[test]
fn through_a_hundred_slots_all_pass_when_all_are_told_of_the_first() {
    in_each_count(Style { all: true, timeout: None, limit: 100 });
}

#[test]
fn through_three_slots_all_pass_beside_waits_that_time_out() {
    let timeout = Some(Duration::from_millis(1));
    for all in [false, true] {
        in_each_count(Style { all, timeout, limit: 3 });
    }
}

#[test]
fn from_tasks_to_threads_and_from_threads_to_tasks_all_pass() {
    let from_threads = Starts { putting: beside_in_a_thread, taking: beside };
    let to_threads = Starts { putting: beside, taking: beside_in_a_thread };
    for all in [false, true] {
        for limit in [1, 100] {
            let style = Style { all, timeout: None, limit };
            in_tasks(|| all_pass_through(3, 20, 200, style, from_threads));
            in_tasks(|| all_pass_through(20, 3, 30, style, to_threads));
        }
    }
}
