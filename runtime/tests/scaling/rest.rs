//! A simulated worker without work: it searches and parks, as in `worker/rest.rs`.

use std::cmp::Reverse;
use std::mem;
use std::sync::atomic::Ordering;

use crate::block::Block;
use crate::costs::{MOVE, POLL, SLACK, SLEEP, WATCH_FIRST, WATCH_MOST};
use crate::idle::Sight;
use crate::worker::Worker;

impl Worker {
    /// Waits until there may be something to run.
    pub(crate) fn rest(&self) {
        let mut watch = WATCH_FIRST;
        loop {
            if self.search() || self.park(watch) {
                return;
            }
            watch = (watch * 2).min(WATCH_MOST);
        }
    }

    fn has_work(&self) -> bool {
        !self.local.is_empty() || !self.stealable.is_empty() || !self.block().placed.is_empty()
    }

    fn search(&self) -> bool {
        if !self.searching.get() {
            if !self.model.try_search(self.index) {
                return false;
            }
            self.searching.set(true);
        }
        self.take_shared() || self.steal()
    }

    fn steal(&self) -> bool {
        let looks = self.looks.borrow();
        if self.model.workers() == 1 || !looks.is_ripe(self.instant()) {
            return false;
        }
        let mut cost = 0;
        let found = self.others().any(|block| {
            cost += self.model.reading(self.index, block.index);
            looks.has_waited(block) && {
                self.spend(mem::take(&mut cost));
                self.steal_from(block)
            }
        });
        self.spend(cost);
        found
    }

    pub(crate) fn steal_from(&self, victim: &Block) -> bool {
        self.model.write_block(self.index, victim.index);
        let before = self.stealable.len();
        let came = victim.thief.steal_half(&self.stealable) || victim.placed.steal_batch(&self.stealable);
        if came {
            let stolen = (self.stealable.len() - before) as u64;
            self.model.tally.helps(self.now());
            self.model.tally.note(|counts| {
                counts.steals += 1;
                counts.stolen += stolen;
            });
            self.spend(MOVE * stolen);
            self.model.write_block(self.index, self.index);
        }
        came
    }

    pub(crate) fn found_work(&self) {
        self.searching.set(false);
        if self.model.end_search(self.index) && self.leaves_work() {
            self.model.tell_thieves(self.index);
        }
    }

    fn leaves_work(&self) -> bool {
        let waits_here = self.block().waiting() > 0;
        !self.model.is_injector_empty(self.index) || waits_here || self.tempts_elsewhere()
    }

    /// Looks at the others' queues, up to the first in which something waits.
    fn tempts_elsewhere(&self) -> bool {
        let mut cost = 0;
        let found = self.others().any(|block| {
            cost += self.model.reading(self.index, block.index);
            block.waiting() > 0
        });
        self.spend(cost);
        found
    }

    fn others(&self) -> impl Iterator<Item = &Block> {
        let blocks = &self.model.blocks;
        (1..blocks.len()).map(move |step| &*blocks[(self.index + step) % blocks.len()])
    }

    /// True if something came after all, or is here now.
    fn park(&self, watch: u64) -> bool {
        let sight = self.look();
        let searching = self.searching.replace(false);
        let watching = self.model.park(self.index, searching, sight);
        let came = if self.block().state.begin_park() {
            let came = self.sees_work(sight);
            if came {
                self.poll_driver();
            } else {
                self.sleep(watching.then_some(watch));
            }
            came
        } else {
            true
        };
        self.block().state.end_park();
        let woken = !self.model.unpark(self.index);
        self.searching.set(woken || (searching && came && self.model.try_search(self.index)));
        let leaves = came || self.has_work();
        if watching && leaves && !self.searching.get() && self.leaves_work() {
            self.model.tell_thieves(self.index);
        }
        leaves
    }

    fn sees_work(&self, sight: Sight) -> bool {
        self.has_work()
            || !self.model.is_injector_empty(self.index)
            || (sight == Sight::Nothing && self.tempts_elsewhere())
    }

    fn look(&self) -> Sight {
        if self.model.workers() == 1 {
            return Sight::Nothing;
        }
        self.model.scan(self.index);
        self.looks.borrow_mut().look(self.instant(), &self.model.blocks, self.index)
    }

    /// Sleeps in the driver until an event, the end of the watch, or a wake.
    fn sleep(&self, watch: Option<u64>) {
        self.spend(SLEEP);
        let event = self.events.borrow().peek().map(|Reverse((at, _))| *at);
        let tick = watch.map(|watch| self.now() + watch + SLACK);
        let until = [event, tick].into_iter().flatten().min();
        let woken = until.is_some_and(|at| at <= self.now()) || self.model.sleep(self.index, until);
        if !woken && tick.is_some() && tick == until {
            self.model.tally.note(|counts| counts.ticks += 1);
        }
        self.take_events();
    }

    pub(crate) fn poll_driver(&self) {
        self.spend(POLL);
        self.take_events();
    }

    fn take_events(&self) {
        let mut events = self.events.borrow_mut();
        while let Some(Reverse((at, place))) = events.peek().copied() {
            if at > self.now() {
                break;
            }
            events.pop();
            let task = self.known.borrow()[place];
            if !task.header().started.get() {
                // One that was here from the beginning.
                task.header().born.set(self.now());
                self.model.tally.starts(task, self.now());
                self.block().load.fetch_add(1, Ordering::Relaxed);
            }
            self.local.push(task);
        }
    }
}
