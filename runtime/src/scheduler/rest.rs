//! A worker without work: searches, polls a little, parks.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::base::clock;
use crate::scheduler::event::Event;
use crate::scheduler::idle::Sight;
use crate::scheduler::polling;
use crate::scheduler::stack_queue::STACK_RETRY;
use crate::scheduler::tuning::{WATCH_FIRST, WATCH_MOST};
use crate::scheduler::worker::Worker;
use crate::stack::exchange::Trim;

/// The interval between two checks of unused stacks, while there are warm ones.
const TRIM: Duration = Duration::from_millis(500);

impl Worker {
    /// Waits until there may be something to run. Returns false when the runtime has ended.
    pub(crate) fn rest(&self) -> bool {
        // A worker that lacks stacks leaves what is placed here to thieves.
        self.block.set_resting(!self.lacks_stacks());
        let (counters, begin) = (&self.block.counters, clock::machine());
        counters.idle_since.set(clock::nanos(begin - self.shared.started).max(1));
        let goes_on = self.wait_for_work(begin);
        let end = clock::machine();
        counters.idle_nanos.add(clock::nanos(end - begin));
        counters.idle_since.set(0);
        self.coarse.set(clock::coarse_at(end));
        self.block.set_resting(false);
        goes_on
    }

    fn wait_for_work(&self, begin: Instant) -> bool {
        let mut watch = WATCH_FIRST;
        self.publish_counts();
        self.block.counters.idle_periods.add(1);
        self.block.run.end();
        loop {
            self.check_shutdown();
            if self.shared.is_ending() && self.shared.end_if_quiescent() {
                return false;
            }
            self.share_stacks();
            if self.search() || self.jump() || self.poll() {
                return true;
            }
            if self.park(watch, begin) {
                return true;
            }
            watch = (watch * 2).min(WATCH_MOST);
        }
    }

    /// Returns true if this worker's own queues hold work.
    pub(crate) fn has_work(&self) -> bool {
        let startable = || !self.stealable.is_empty() || !self.block.placed.is_empty();
        !self.local.is_empty()
            || !self.block.inbox.is_empty()
            || !self.block.cancelled.is_empty()
            || (!self.lacks_stacks() && startable())
    }

    /// Looks for work that any worker may run. Returns true if some came.
    fn search(&self) -> bool {
        if self.lacks_stacks() {
            self.retry_stackless();
            return self.has_work();
        }
        self.lacking_since.set(None);
        if !self.searching.get() {
            if !self.shared.idle.try_search() {
                return false;
            }
            self.searching.set(true);
        }
        self.take_shared() || self.steal()
    }

    fn steal(&self) -> bool {
        let looks = self.looks.borrow();
        self.has_peers
            && looks.is_ripe(clock::machine())
            && self.peers().filter(|block| looks.has_waited(block)).any(|block| self.take_from(block))
    }

    /// Ends the search: this worker runs a task.
    ///
    /// The last searcher wakes one more worker if work is left, since producers relied on it
    /// meanwhile.
    #[cold]
    pub(crate) fn found_work(&self) {
        self.searching.set(false);
        // Leave first, look after: the pair of a producer's push and its load of the counters.
        if self.shared.idle.end_search() && self.leaves_work() {
            self.tell_thieves();
        }
    }

    /// Returns true if there is work that another worker could run.
    fn leaves_work(&self) -> bool {
        !self.shared.injector.is_empty() || self.sees_startable()
    }

    /// Returns true if a task waits at some worker that thieves may take.
    fn sees_startable(&self) -> bool {
        self.shared.blocks.iter().any(|block| block.waiting() > 0)
    }

    /// Polls the driver for a short time, if polls helped lately. Returns true if work came.
    ///
    /// A timer ends the poll, but the poll has not helped then: a park would have ended in time, too.
    fn poll(&self) -> bool {
        if !self.polling.begin() {
            return false;
        }
        let fired = || self.block.counters.timers.get();
        let (fired_before, mut begin) = (fired(), None);
        loop {
            let events = self.poll_driver(Some(Duration::ZERO));
            self.expire_due();
            if self.has_work() || self.take_shared() {
                self.polling.end(fired() == fired_before, events);
                return true;
            }
            let now = clock::machine();
            if now - *begin.get_or_insert(now) >= polling::LONGEST {
                self.polling.end(false, 0);
                return false;
            }
        }
    }

    /// Parks in the driver, unless work came meanwhile. Returns true if work came or is here now.
    ///
    /// No task has run since `begin`.
    fn park(&self, watch: Duration, begin: Instant) -> bool {
        let now = clock::machine();
        let blocks = &self.shared.blocks;
        let sight = match blocks.len() {
            1 => Sight::Nothing,
            _ => self.looks.borrow_mut().look(now, blocks, self.block.index),
        };
        let timer = self.wheel.next_deadline();
        let timeout = self.timeout(timer, now);
        let searching = self.searching.replace(false);
        let watching = self.shared.idle.park(self.block.index, searching, sight);
        let timeout = [timeout, watching.then_some(watch)].into_iter().flatten().min();
        let came = if self.block.begin_park() {
            let came = self.sees_work(sight);
            self.block.counters.parks.add(u64::from(!came));
            let events = match came {
                true => self.poll_driver(Some(Duration::ZERO)),
                false => self.park_in_driver(timeout),
            };
            self.polling.note_batch(events);
            self.note_waited(timer, begin);
            came
        } else {
            true
        };
        self.block.end_park();
        // A producer that wakes a worker counts it as a searcher. A worker that searched before and
        // found work at its second look searches on: producers may have relied on it for more than
        // it takes now.
        let woken = !self.shared.idle.unpark(self.block.index);
        self.searching.set(woken || (searching && came && self.shared.idle.try_search()));
        self.expire_due();
        let leaves = came || self.has_work();
        self.block.counters.idle_parks.add(u64::from(!leaves));
        if watching && leaves && !self.searching.get() && self.leaves_work() {
            // Other work ends the watch: another worker takes over.
            self.tell_thieves();
        }
        leaves
    }

    fn park_in_driver(&self, timeout: Option<Duration>) -> usize {
        self.record(Event::Parks);
        let events = self.poll_driver(timeout);
        self.record(Event::Unparks);
        events
    }

    /// Looks for work after the worker is counted as parked: the load of the store-load pairs of
    /// `idle` and `Block`.
    fn sees_work(&self, sight: Sight) -> bool {
        self.has_work()
            || (!self.shared.injector.is_empty() && !self.lacks_stacks())
            || (sight == Sight::Nothing && self.sees_startable())
            || self.must_check_shutdown()
            || self.may_jump()
    }

    /// Returns how long to park at most, unless the worker is to watch. `timer` is the next timer, and `now` the machine's time.
    fn timeout(&self, timer: Option<Instant>, now: Instant) -> Option<Duration> {
        let timer = timer.map(|at| at.saturating_duration_since(clock::now()));
        let stackless = self.lacks_stacks().then_some(STACK_RETRY);
        [timer, stackless, self.trim(now)].into_iter().flatten().min()
    }

    /// Gives cold stacks back now and then. Returns how long until the next look, if one is owed.
    fn trim(&self, now: Instant) -> Option<Duration> {
        let next = self.next_trim.get();
        if next > now {
            return self.trim_owed.get().then(|| next - now);
        }
        self.context().slabs.borrow_mut().trim();
        let (wait, owed) = match self.stacks.borrow_mut().trim() {
            Trim::Clean => (TRIM, false),
            Trim::Later => (TRIM, true),
            Trim::More => (Duration::from_millis(1), true),
        };
        self.next_trim.set(now + wait);
        self.trim_owed.set(owed);
        owed.then_some(wait)
    }

    /// Cancels the tasks bound to this worker, once the runtime is to end.
    pub(crate) fn check_shutdown(&self) {
        if self.must_check_shutdown() {
            self.told.set(true);
            self.block.registry.walk(|task| {
                if !task.header().is_sheltered() {
                    task.cancel_for_shutdown();
                }
            });
        }
    }

    fn must_check_shutdown(&self) -> bool {
        self.shared.is_ending() && !self.told.get()
    }
}
