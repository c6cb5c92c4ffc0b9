//! The stacks of one size in one worker's pool.

#![forbid(unsafe_code)]

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::clock;
use crate::stack::exchange::{Class, Trim};
use crate::stack::fresh::Fresh;
use crate::stack::handle::Stack;
use crate::stack::stacks::Stacks;

/// A cache that is this full sends a batch to the exchange.
const FULL: usize = 96;

/// How many stacks cross the exchange's mutex at a time.
const BATCH: usize = 32;

/// Warm stacks of one size, and a range of fresh ones.
pub(super) struct Cache {
    size: usize,
    /// The warmest is the last.
    warm: Vec<Stack>,
    /// So many at the bottom have not moved since `marked`.
    still: usize,
    marked: Instant,
    /// Fresh stacks, cut one by one when nothing warm is left.
    fresh: Option<Fresh>,
    class: Arc<Class>,
}

impl Cache {
    pub(super) fn new(class: Arc<Class>) -> Self {
        Self {
            size: class.size(),
            warm: Vec::with_capacity(FULL),
            still: 0,
            marked: clock::machine(),
            fresh: None,
            class,
        }
    }

    #[inline]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns true if a take needs nothing from the exchange.
    pub(super) fn has_any(&self) -> bool {
        !self.warm.is_empty() || self.fresh.as_ref().is_some_and(|fresh| fresh.len() > 0)
    }

    /// Returns how many stacks it has, cut or not.
    pub(super) fn len(&self) -> usize {
        self.warm.len() + self.fresh.as_ref().map_or(0, Fresh::len)
    }

    /// Takes the warmest stack.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Stack> {
        let stack = self.warm.pop()?;
        // In a burst of starts the next task takes that stack, which has left the processor's cache
        // by then.
        if let Some(next) = self.warm.last() {
            next.prefetch();
        }
        self.still = self.still.min(self.warm.len());
        Some(stack)
    }

    /// Takes a stack when none is warm.
    pub(super) fn take_slow(&mut self, stacks: &Stacks) -> io::Result<Stack> {
        if let Some(Ok(stack)) = self.cut(stacks) {
            return Ok(stack);
        }
        self.restock(stacks)?;
        self.pop_or_cut(stacks)
    }

    #[inline]
    pub(super) fn give(&mut self, stack: Stack, stacks: &Stacks) {
        if self.warm.len() == FULL {
            self.send_batch(stacks);
        }
        self.warm.push(stack);
    }

    /// Gives memory back that was unused for `age`, here and in the exchange.
    pub(super) fn trim(&mut self, stacks: &Stacks, now: Instant, age: Duration) -> Trim {
        let here = self.trim_here(stacks, now, age);
        here.max(self.class.trim(now, age))
    }

    /// Gives everything to the exchange.
    pub(super) fn empty(&mut self, stacks: &Stacks) {
        self.send(self.warm.len(), stacks);
        self.return_fresh(stacks);
    }

    fn pop_or_cut(&mut self, stacks: &Stacks) -> io::Result<Stack> {
        match self.pop() {
            Some(stack) => Ok(stack),
            None => self.cut(stacks).expect("a restocked cache has a stack"),
        }
    }

    /// Cuts a fresh stack, if there is a range. A range that cannot be cut any more goes back.
    fn cut(&mut self, stacks: &Stacks) -> Option<io::Result<Stack>> {
        let result = self.fresh.as_mut()?.cut();
        if !matches!(result, Some(Ok(_))) {
            self.return_fresh(stacks);
        }
        result
    }

    /// Fetches a batch: from the exchange, or else of fresh stacks.
    fn restock(&mut self, stacks: &Stacks) -> io::Result<()> {
        let reserved = stacks.reserve(batch(stacks))?;
        let fetched = self.class.fetch(reserved, &mut self.warm);
        if fetched > 0 {
            stacks.release(reserved - fetched);
            return Ok(());
        }
        let fresh = self.class.fetch_fresh(reserved).inspect_err(|_| stacks.release(reserved))?;
        stacks.release(reserved - fresh.len());
        self.fresh = Some(fresh);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn send_batch(&mut self, stacks: &Stacks) {
        self.send(BATCH, stacks);
    }

    /// Sends the coldest stacks to the exchange.
    fn send(&mut self, count: usize, stacks: &Stacks) {
        self.class.put(self.warm.drain(..count));
        self.still = self.still.saturating_sub(count);
        stacks.release(count);
    }

    fn return_fresh(&mut self, stacks: &Stacks) {
        if let Some(fresh) = mem::take(&mut self.fresh) {
            let count = fresh.len();
            self.class.put_fresh(fresh);
            stacks.release(count);
        }
    }

    /// Gives the stacks to the exchange that have not moved for `age`.
    fn trim_here(&mut self, stacks: &Stacks, now: Instant, age: Duration) -> Trim {
        if now.saturating_duration_since(self.marked) >= age {
            self.send(self.still, stacks);
            self.still = self.warm.len();
            self.marked = now;
        }
        if self.warm.is_empty() { Trim::Clean } else { Trim::Later }
    }
}

/// Where stacks are limited no worker hoards them.
fn batch(stacks: &Stacks) -> usize {
    stacks.config().max_stacks.map_or(BATCH, |limit| (limit / 64).clamp(1, BATCH))
}
