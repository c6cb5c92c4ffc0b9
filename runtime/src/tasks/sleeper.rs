//! How other threads look at a task: its state, what it waits for, and its stack while it sleeps.
//!
//! ```text
//!  the task and its worker                      the reader, who has a count of the task
//!
//!  begin     word := next epoch                 1  the word, and the saved stack pointer:
//!            the record                            asleep, and off its stack
//!  switch    saved pointer := where it is       2  copies the record, what it leads to, and the stack
//!  …                                            3  both again: the same, or the copy is dropped
//!  resume    saved pointer := 0
//! ```
//!
//! * With AT_HOME the word says ASLEEP while the task is still on its stack. So the reader goes by the
//!   saved pointer: it is 0 from the resume on, which comes before the next begin, and a reader that
//!   finds an epoch finds that 0 or a later pointer.
//! * One epoch may sleep twice: a cancel that does not concern a sleep, or the wait for a landing, leaves
//!   the epoch as it is. If the saved pointers are equal as well, the task has run in between in the
//!   frames of the sleep alone, so that all frames further out are the same.
//! * The kernel copies ([`memory`]), so nothing here is a data race, and a stack that is unmapped
//!   meanwhile is no fault. A copy reads no page of a stack that the task has not used.
//!
//! Nothing is locked, and no task or worker takes part.

#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::sync::atomic::{Ordering, fence};
use std::thread;

use crate::base::memory::{self, Words};
use crate::base::unwinder;
use crate::coroutine::switch::Coroutine;
use crate::tasks::header::{BigStack, Header, TaskRef};
use crate::timer::ring::Node;
use crate::waiter::description::{self, EndedBy, Found};
use crate::waiter::word::Snapshot;

/// How often a reader tries to copy a task that runs meanwhile.
const TRIES: usize = 4;

/// Tells what a task does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TaskState {
    /// It waits for its first run.
    Unstarted,
    /// It waits for its turn on its worker.
    Ready,
    /// Its worker runs it.
    Running,
    /// It sleeps until what it waits for comes.
    Suspended,
    /// It runs on the blocking pool, or sleeps for a closure there.
    Blocking,
    /// It has returned, panicked or been cancelled.
    Ended,
}

impl TaskState {
    /// Returns the name of the state, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Unstarted => "unstarted",
            TaskState::Ready => "ready",
            TaskState::Running => "running",
            TaskState::Suspended => "suspended",
            TaskState::Blocking => "blocking",
            TaskState::Ended => "ended",
        }
    }
}

/// The frames of a stack.
#[derive(Clone, Default, Debug)]
pub(crate) struct Frames {
    /// The addresses, innermost first, and whether each is a return address.
    pub(crate) addresses: Vec<(usize, bool)>,
    /// The walk has come to the root.
    pub(crate) is_complete: bool,
}

/// One sleep of a task, as a reader has found it.
pub(crate) struct Sleep {
    /// The wait word.
    pub(crate) word: Snapshot,
    pub(crate) found: Found,
    /// The tick of the worker's wheel at which its deadline comes.
    pub(crate) tick: Option<u64>,
    pub(crate) frames: Option<Frames>,
}

/// Names a set of tasks: a scope, by its address and the id of its task, or a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct ContainerId {
    pub(crate) kind: &'static str,
    pub(crate) address: usize,
    pub(crate) owner: Option<u64>,
}

/// Looks at tasks; what it allocates serves for all of them.
pub(crate) struct Reader {
    words: Words,
    with_stacks: bool,
}

impl TaskRef {
    /// Returns the set of tasks that the task belongs to.
    pub(crate) fn container(self) -> Option<ContainerId> {
        let container = self.header().vtable.container?;
        let number = |address: usize| {
            let mut bytes = [0; 8];
            memory::read(address, &mut bytes).map(|()| u64::from_ne_bytes(bytes))
        };
        let mut bytes = [0; size_of::<usize>()];
        memory::read(self.as_ptr().addr() + container.pointer, &mut bytes)?;
        let address = usize::from_ne_bytes(bytes);
        let owner = container.owner.and_then(|offset| number(address.checked_add(offset)?));
        // A set may go once the last of its tasks has ended.
        let is_there = !self.header().join.is_done();
        is_there.then_some(ContainerId {
            kind: container.kind,
            address,
            owner: owner.filter(|owner| *owner > 0),
        })
    }
}

impl Reader {
    pub(crate) fn new(with_stacks: bool) -> Self {
        Reader { words: Words::new(), with_stacks }
    }

    /// Returns the state of a task, with its sleep if it is in one.
    ///
    /// There may be no sleep where there should be one, if the task runs again and again.
    pub(crate) fn look(&mut self, task: TaskRef) -> (TaskState, Option<Sleep>) {
        let header = task.header();
        if header.join.is_done() {
            return (TaskState::Ended, None);
        }
        if !header.is_started() {
            return (TaskState::Unstarted, None);
        }
        if header.nature.is_on_pool() {
            return (TaskState::Blocking, None);
        }
        let look = || (header.waiter.word.why(), header.coroutine.suspended());
        for _ in 0..TRIES {
            let seen = look();
            match seen {
                (word, None) if word.is_asleep() => thread::yield_now(),
                (_, None) => return (TaskState::Running, None),
                (word, Some(_)) if !word.is_asleep() => return (TaskState::Ready, None),
                (word, Some(_)) => {
                    let sleep = self.copy(task, word);
                    fence(Ordering::SeqCst);
                    if let Some(sleep) = sleep
                        && look() == seen
                    {
                        let is_blocking = sleep.found.ended_by == EndedBy::Pool;
                        let state = if is_blocking { TaskState::Blocking } else { TaskState::Suspended };
                        return (state, Some(sleep));
                    }
                }
            }
        }
        // It changes all the time.
        (TaskState::Running, None)
    }

    fn copy(&mut self, task: TaskRef, word: Snapshot) -> Option<Sleep> {
        let header = task.header();
        self.words.forget();
        let frames = if self.with_stacks { self.walk(task) } else { None };
        let mut read = |address, into: &mut [u8]| self.words.copy(address, into);
        let found = description::interpret(task.record(), &mut read)?;
        let node = task.timer().as_ptr().addr();
        let tick = if header.is_timed() { Node::tick_at(node, memory::read) } else { None };
        Some(Sleep { word, found, tick, frames })
    }

    /// Walks the stacks of a suspended task, from the innermost big one to its own.
    fn walk(&mut self, task: TaskRef) -> Option<Frames> {
        let unwinder = unwinder::installed()?;
        let header = task.header();
        let own = task.as_ptr().addr() + offset_of!(Header, coroutine);
        let mut frames = Frames { addresses: Vec::new(), is_complete: true };
        let mut addresses = Vec::new();
        let mut away = header.away().addr();
        loop {
            let coroutine = if away == 0 { own } else { away + offset_of!(BigStack, coroutine) };
            let (context, base) = Coroutine::context_at(coroutine, |at| self.words.at(at))?;
            addresses.clear();
            let mut read = |at: usize| {
                let word = if (context.sp..base).contains(&at) { self.words.at(at) } else { None };
                word.map(|word| word as u64)
            };
            frames.is_complete &= unwinder.walk(context, &mut read, &mut addresses);
            let places = addresses.iter().enumerate();
            frames.addresses.extend(places.map(|(index, address)| (*address, index > 0)));
            if away == 0 {
                return Some(frames);
            }
            away = self.words.at(away + offset_of!(BigStack, outer))?;
        }
    }
}
