//! The stacks of one worker.

#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::base::clock;
use crate::stack::cache::Cache;
use crate::stack::exchange::{Class, Trim};
use crate::stack::handle::Stack;
use crate::stack::size;
use crate::stack::stacks::Stacks;
use crate::stack::sys;

/// Holds one worker's stacks: a cache for each size it has met, the usual size first.
///
/// When dropped, it gives all its stacks to the exchange.
pub(crate) struct Pool {
    usual: Cache,
    /// A few at most, since sizes are powers of two: searched in line.
    others: Vec<Cache>,
    stacks: Arc<Stacks>,
}

impl Pool {
    pub(super) fn new(stacks: Arc<Stacks>, usual: Arc<Class>) -> Self {
        Self { usual: Cache::new(usual), others: Vec::new(), stacks }
    }

    /// Takes a stack of the usual size, the warmest first.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` where the limit of the runtime or of the system is reached; the text names which and how to raise it.
    /// Later takes may succeed, once stacks were given back to any pool of the runtime.
    #[inline]
    pub(crate) fn take(&mut self) -> io::Result<Stack> {
        match self.usual.pop() {
            Some(stack) => Ok(stack),
            None => self.take_slow(self.usual.size()),
        }
    }

    /// Takes a stack of at least `bytes` of address space, guard included.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take), and `InvalidInput` where no such stack fits into the address space.
    #[inline]
    pub(crate) fn take_sized(&mut self, bytes: usize) -> io::Result<Stack> {
        let size = size::class_of(bytes, sys::page_size())?;
        match self.cache(size).0.pop() {
            Some(stack) => Ok(stack),
            None => self.take_slow(size),
        }
    }

    /// Takes a stack that is not warm here.
    #[cold]
    #[inline(never)]
    fn take_slow(&mut self, size: usize) -> io::Result<Stack> {
        let (cache, stacks) = self.cache(size);
        cache.take_slow(stacks).or_else(|error| self.take_again(size, error))
    }

    /// Tries a last time: unused stacks of other sizes in this pool may be what fills the limit.
    fn take_again(&mut self, size: usize, error: io::Error) -> io::Result<Stack> {
        if error.kind() != io::ErrorKind::OutOfMemory || !self.has_any() {
            return Err(error);
        }
        self.empty();
        let (cache, stacks) = self.cache(size);
        cache.take_slow(stacks)
    }

    /// Gives a stack back that any pool of the runtime handed out, and on which no code runs any
    /// more.
    #[inline]
    pub(crate) fn give(&mut self, stack: Stack) {
        let (cache, stacks) = self.cache(stack.size());
        cache.give(stack, stacks);
    }

    /// Gives memory back that no task has used for a while: in this pool, and a lot of it in the exchange.
    ///
    /// For an idle worker. Takes well below a millisecond a size; while it returns [`Trim::Later`], the worker does not park for
    /// longer than the age that is configured, and while it returns [`Trim::More`], it does not park at all.
    pub(crate) fn trim(&mut self) -> Trim {
        let (now, age) = (clock::machine(), self.stacks.config().trim_after);
        let mut verdict = self.usual.trim(&self.stacks, now, age);
        for cache in &mut self.others {
            verdict = verdict.max(cache.trim(&self.stacks, now, age));
        }
        verdict
    }

    /// Gives all unused stacks to the exchange.
    pub(crate) fn empty(&mut self) {
        self.usual.empty(&self.stacks);
        self.others.iter_mut().for_each(|cache| cache.empty(&self.stacks));
    }

    /// Returns the cache of a size, and the stacks that it serves.
    #[inline]
    fn cache(&mut self, size: usize) -> (&mut Cache, &Stacks) {
        let cache = match size == self.usual.size() {
            true => &mut self.usual,
            false => cache_of(&mut self.others, &self.stacks, size),
        };
        (cache, &self.stacks)
    }

    /// Returns how many stacks it has that are not in use.
    pub(crate) fn len(&self) -> usize {
        self.usual.len() + self.others.iter().map(Cache::len).sum::<usize>()
    }

    /// Returns true if it has stacks that are not in use.
    pub(crate) fn has_any(&self) -> bool {
        self.usual.has_any() || self.others.iter().any(Cache::has_any)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.empty();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.usual.size()).finish_non_exhaustive()
    }
}

/// Returns the cache of an unusual size, which is made when the size is first met.
#[inline(never)]
fn cache_of<'a>(others: &'a mut Vec<Cache>, stacks: &Stacks, size: usize) -> &'a mut Cache {
    let known = others.iter().position(|cache| cache.size() == size);
    let index = known.unwrap_or_else(|| {
        others.push(Cache::new(stacks.class(size)));
        others.len() - 1
    });
    &mut others[index]
}

impl Stacks {
    /// Makes the pool of one more worker.
    pub(crate) fn pool(self: &Arc<Self>) -> Pool {
        Pool::new(Arc::clone(self), self.class(self.config().size))
    }
}
