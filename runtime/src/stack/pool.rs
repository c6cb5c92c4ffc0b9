//! The stacks of one worker.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::base::clock;
use crate::stack::exchange::Class;
use crate::stack::handle::Stack;
use crate::stack::line::{Next, Who};
use crate::stack::shelf::Shelf;
use crate::stack::size;
use crate::stack::stacks;
use crate::stack::stacks::Stacks;
use crate::stack::sys;
use crate::stack::trim::Trim;

/// One worker's stacks: a shelf for each size it has met, the usual size first.
///
/// When dropped, all it has goes to the exchange.
pub(crate) struct Pool {
    usual: Shelf,
    /// A few at most, since sizes are powers of two: searched in line.
    others: Vec<Shelf>,
    stacks: Arc<Stacks>,
    number: Who,
    /// The pool is in the line, or was.
    waits: bool,
    /// Who is to have a chance before this pool takes anything from the exchange.
    before: Option<Who>,
    /// How often a stack had come back when this pool's last take failed.
    served: u64,
}

impl Pool {
    pub(super) fn new(stacks: Arc<Stacks>, usual: Arc<Class>) -> Self {
        let number = stacks.line.number();
        Self {
            usual: Shelf::new(usual),
            others: Vec::new(),
            stacks,
            number,
            waits: false,
            before: None,
            served: 0,
        }
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

    /// Takes a stack of the usual size, for what can do without one: if there is one that nobody else waits for.
    pub(crate) fn take_spare(&mut self) -> Option<Stack> {
        if self.stacks.line.is_hungry() {
            return None;
        }
        self.usual.pop().or_else(|| self.usual.take_slow(&self.stacks).ok())
    }

    /// Takes a stack of at least `bytes` of address space, guard included.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take), and `InvalidInput` where no such stack fits into the address space.
    #[inline]
    pub(crate) fn take_sized(&mut self, bytes: usize) -> io::Result<Stack> {
        let size = size::class_of(bytes, sys::page_size())?;
        match self.shelf(size).0.pop() {
            Some(stack) => Ok(stack),
            None => self.take_slow(size),
        }
    }

    /// Takes one that does not lie warm here. Where there is none, the pool gets in line.
    #[cold]
    #[inline(never)]
    fn take_slow(&mut self, size: usize) -> io::Result<Stack> {
        let taken = self.take_elsewhere(size);
        match taken {
            Ok(_) if self.waits => {
                self.waits = false;
                self.stacks.line.leave(self.number);
            }
            Ok(_) => {}
            Err(_) => {
                self.waits = true;
                self.stacks.line.join(self.number);
                self.served = self.stacks.line.served();
            }
        }
        taken
    }

    fn take_elsewhere(&mut self, size: usize) -> io::Result<Stack> {
        if self.before.take().is_some_and(|other| self.stacks.line.is_told(other)) {
            return Err(stacks::promised());
        }
        let (shelf, stacks) = self.shelf(size);
        let taken = shelf.take_slow(stacks);
        taken.or_else(|error| self.take_again(size, error))
    }

    /// The last try, after one has failed: stacks of other sizes that lie unused here may be what fills the limit.
    fn take_again(&mut self, size: usize, error: io::Error) -> io::Result<Stack> {
        if error.kind() != io::ErrorKind::OutOfMemory || !self.has_any() {
            return Err(error);
        }
        self.empty();
        let (shelf, stacks) = self.shelf(size);
        shelf.take_slow(stacks)
    }

    /// True if a stack may be had that could not before: one came back for this pool.
    pub(crate) fn is_served(&self) -> bool {
        self.waits && self.served != self.served_so_far() && self.stacks.line.is_told(self.number)
    }

    /// How often a stack came back that some worker waited for.
    pub(crate) fn served_so_far(&self) -> u64 {
        self.stacks.line.served()
    }

    /// Gives a stack back that any pool of the runtime handed out, and on which nothing runs any more.
    #[inline]
    pub(crate) fn give(&mut self, stack: Stack) {
        let (shelf, stacks) = self.shelf(stack.size());
        shelf.give(stack, stacks);
        if self.stacks.line.is_hungry() {
            self.share();
        }
    }

    /// Sees to it that a stack which came back goes to who waits for one, be it this pool itself.
    #[cold]
    #[inline(never)]
    fn share(&mut self) {
        match self.stacks.line.after_give(self.number) {
            Next::Nobody => {}
            Next::Own => self.stacks.line.serve_own(self.number),
            Next::Other { who, again } => {
                self.empty();
                self.stacks.line.tell(who);
                self.before = again.then_some(who);
            }
        }
    }

    /// Gives memory back that no task has used for a while: in this pool, and a lot of it in the exchange.
    ///
    /// For an idle worker. Takes well below a millisecond a size; while it returns [`Trim::Later`], the worker does not park for
    /// longer than the age that is configured, and while it returns [`Trim::More`], it does not park at all.
    pub(crate) fn trim(&mut self) -> Trim {
        self.answer_hunger();
        let (now, age) = (clock::machine(), self.stacks.config().trim_after);
        let mut verdict = self.usual.trim(&self.stacks, now, age);
        for shelf in &mut self.others {
            verdict = verdict.max(shelf.trim(&self.stacks, now, age));
        }
        verdict
    }

    /// Gives all to the exchange, if there is any and another worker's take has failed.
    #[inline]
    pub(crate) fn answer_hunger(&mut self) {
        if self.stacks.line.is_hungry() {
            self.answer_hunger_slow();
        }
    }

    #[cold]
    #[inline(never)]
    fn answer_hunger_slow(&mut self) {
        // A pool that has nothing leaves the word to one that has.
        if self.has_any()
            && let Some(other) = self.stacks.line.beside(self.number)
        {
            self.empty();
            self.stacks.line.tell(other);
        }
    }

    /// The shelf of a size, and whom it serves.
    #[inline]
    fn shelf(&mut self, size: usize) -> (&mut Shelf, &Stacks) {
        let shelf = match size == self.usual.size() {
            true => &mut self.usual,
            false => shelf_of(&mut self.others, &self.stacks, size),
        };
        (shelf, &self.stacks)
    }

    fn has_any(&self) -> bool {
        self.usual.has_any() || self.others.iter().any(Shelf::has_any)
    }

    fn empty(&mut self) {
        self.usual.empty(&self.stacks);
        self.others.iter_mut().for_each(|shelf| shelf.empty(&self.stacks));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stacks.line.leave(self.number);
        self.empty();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.usual.size()).finish_non_exhaustive()
    }
}

/// The shelf of a size that is not the usual one, made when it is first met.
#[inline(never)]
fn shelf_of<'a>(others: &'a mut Vec<Shelf>, stacks: &Stacks, size: usize) -> &'a mut Shelf {
    let known = others.iter().position(|shelf| shelf.size() == size);
    let index = known.unwrap_or_else(|| {
        others.push(Shelf::new(stacks.class(size)));
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
