//! What is counted during a run.

use std::cell::{Cell, RefCell};

use crate::task::TaskRef;

/// What came of it. Times are nanoseconds of virtual time.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    pub(crate) tasks: u64,
    pub(crate) ended: u64,
    /// Tasks that started or ended more than once.
    pub(crate) twice: u64,
    /// Time that tasks have computed for.
    pub(crate) useful: u64,
    /// When the last task ended.
    pub(crate) last: u64,
    /// Steals that brought something, and the tasks that they brought.
    pub(crate) steals: u64,
    pub(crate) stolen: u64,
    /// Batches taken out of the common queue.
    pub(crate) batches: u64,
    /// Sleeping workers that others woke.
    pub(crate) wakes: u64,
    /// Watches that ran out.
    pub(crate) ticks: u64,
    /// From the spawn to the start: of all tasks together, and the longest.
    pub(crate) waited: u64,
    pub(crate) longest: u64,
    /// The longest that a task waited to start while all the time some worker slept, and none came to work.
    pub(crate) neglected: u64,
    pub(crate) most_searching: u64,
}

#[derive(Default)]
pub(crate) struct Tally {
    counts: Cell<Counts>,
    searching: Cell<u64>,
    sleepers: Cell<usize>,
    /// When a worker slept, and none took waiting work. The last span is open while `sleepers` is not 0.
    idle: RefCell<Vec<(u64, u64)>>,
}

impl Tally {
    /// Changes some of the counts.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    pub(crate) fn counts(&self, tasks: u64) -> Counts {
        Counts { tasks, ..self.counts.get() }
    }

    pub(crate) fn falls_asleep(&self, now: u64) {
        if self.sleepers.get() == 0 {
            self.idle.borrow_mut().push((now, u64::MAX));
        }
        self.sleepers.set(self.sleepers.get() + 1);
    }

    pub(crate) fn wakes_up(&self, now: u64) {
        self.sleepers.set(self.sleepers.get() - 1);
        if self.sleepers.get() == 0 {
            self.idle.borrow_mut().last_mut().expect("a worker slept").1 = now;
        }
    }

    /// A worker has taken work that waited elsewhere.
    pub(crate) fn helps(&self, now: u64) {
        if self.sleepers.get() > 0 {
            let mut idle = self.idle.borrow_mut();
            idle.last_mut().expect("a worker slept").1 = now;
            idle.push((now, u64::MAX));
        }
    }

    pub(crate) fn begins_search(&self) {
        self.searching.set(self.searching.get() + 1);
        let searching = self.searching.get();
        self.note(|counts| counts.most_searching = counts.most_searching.max(searching));
    }

    pub(crate) fn ends_search(&self) {
        self.searching.set(self.searching.get() - 1);
    }

    pub(crate) fn starts(&self, task: TaskRef, now: u64) {
        let again = task.header().started.replace(true);
        let born = task.header().born.get();
        let neglected = self.longest_idle(born, now);
        self.note(|counts| {
            counts.twice += u64::from(again);
            counts.waited += now - born;
            counts.longest = counts.longest.max(now - born);
            counts.neglected = counts.neglected.max(neglected);
        });
    }

    pub(crate) fn ends(&self, task: TaskRef, now: u64) {
        let again = task.header().ended.replace(true);
        self.note(|counts| {
            counts.twice += u64::from(again);
            counts.ended += 1;
            counts.last = now;
        });
    }

    /// The longest part of a span that such a span of idleness covers.
    fn longest_idle(&self, from: u64, to: u64) -> u64 {
        let idle = self.idle.borrow();
        let spans = idle.iter().rev().take_while(|(_, end)| *end > from);
        spans.map(|(begin, end)| to.min(*end).saturating_sub(from.max(*begin))).max().unwrap_or(0)
    }
}
