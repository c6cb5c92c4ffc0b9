//! How other threads look at a task: its state, what it waits for, and its stack while it sleeps.
//!
//! ```text
//!  the task and its worker                      the reader, with a count of the task
//!
//!  begin     word := next epoch                 1  the word, and the saved stack pointer:
//!            the record                            asleep, and off its stack
//!  switch    saved pointer := where it is       2  copies the record, what it leads to, and the stack
//!  …                                            3  a fence, the pointer, the word: both as they were,
//!                                                  or the copy is dropped
//!  resume    saved pointer := 0
//! ```
//!
//! * With AT_HOME the word says ASLEEP while the task is still on its stack. So the reader goes by the
//!   saved pointer: it is 0 from the resume on, which comes before the next begin, and a reader that
//!   finds an epoch finds that 0 or a later pointer.
//! * One epoch may sleep twice: a cancel that does not concern a sleep, or the wait for a landing, leaves
//!   the epoch as it is. If the saved pointers are equal as well, the task has run in between in the
//!   frames of the sleep alone, so that all frames further out are the same.
//! * A fence follows that 0, and the wake comes before it. So a reader that has copied anything that the task wrote
//!   later finds the 0 or a later pointer at its second look, and the wake or a later epoch. No epoch comes again.
//! * The kernel copies ([`memory`]), so nothing here is a data race, and a stack that is unmapped
//!   meanwhile is no fault. A copy reads no page of a stack that the task has not used.
//!
//! Nothing is locked, and no task or worker takes part.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::sync::atomic::{Ordering, fence};
use std::thread;

use crate::base::memory::{self, Words};
use crate::base::unwinder;
use crate::coroutine::switch::Coroutine;
use crate::tasks::header::{BigStack, Header, TaskRef};
use crate::waiter::description::{self, Found};
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

/// Counts started tasks by state, as text. A comma comes before each count.
pub fn counts_by_state(states: impl Iterator<Item = TaskState> + Clone) -> String {
    let known = [TaskState::Running, TaskState::Ready, TaskState::Suspended, TaskState::Blocking];
    let count = |state: TaskState| states.clone().filter(|found| *found == state).count();
    known.map(|state| format!(", {} {}", count(state), state.name())).concat()
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
    pub(crate) size: usize,
    pub(crate) owner: Option<u64>,
}

/// How many tasks are copied by one call of the system.
const BATCH: usize = 64;

/// How much of a stack is copied at once.
const WINDOW: usize = 2048;

/// The least distance between a stack and what does not lie on it.
const FAR: usize = 1 << 30;

/// Looks at tasks; what it allocates serves for all of them.
pub(crate) struct Reader {
    words: Words,
    with_stacks: bool,
    /// Records and descriptions that are constants, by their addresses.
    constants: HashMap<usize, Vec<u8>>,
}

impl TaskRef {
    /// Returns the state by one look. A task that is about to leave its stack runs.
    pub(crate) fn state(self) -> TaskState {
        self.glance().0
    }

    /// Returns the state by one look, with the epoch of its sleep if it is in one.
    pub(crate) fn glance(self) -> (TaskState, Option<u64>) {
        match Glance::at(self) {
            Glance::Asleep(word, _) => (self.state_asleep(), Some(word.epoch)),
            Glance::Leaving => (TaskState::Running, None),
            Glance::State(state) => (state, None),
        }
    }

    /// Returns the state of a task that sleeps.
    fn state_asleep(self) -> TaskState {
        let is_on_pool = self.record() == description::ON_POOL.address().addr();
        if is_on_pool { TaskState::Blocking } else { TaskState::Suspended }
    }

    /// Returns the set of tasks that the task belongs to.
    pub(crate) fn container(self) -> Option<ContainerId> {
        let container = self.header().vtable.container?;
        let number = |address: usize| {
            let mut bytes = [0; 8];
            memory::read(address, &mut bytes).map(|()| u64::from_ne_bytes(bytes))
        };
        let address = word_at(self.as_ptr().addr() + container.pointer)?;
        let owner = container.owner.and_then(|offset| number(address.checked_add(offset)?));
        // A set may go once the last of its tasks has ended.
        let is_there = !self.header().join.is_done();
        is_there.then_some(ContainerId {
            kind: container.kind,
            address,
            size: container.size,
            owner: owner.filter(|owner| *owner > 0),
        })
    }
}

impl Reader {
    pub(crate) fn new(with_stacks: bool) -> Self {
        Reader { words: Words::new(), with_stacks, constants: HashMap::new() }
    }

    /// Returns the state of each task, with its sleep if it is in one.
    ///
    /// There may be no sleep where there should be one, if the task runs again and again.
    pub(crate) fn look_at_all(&mut self, tasks: &[TaskRef]) -> Vec<(TaskState, Option<Sleep>)> {
        let mut all = Vec::with_capacity(tasks.len());
        let mut copies = vec![0; BATCH * WINDOW];
        for batch in tasks.chunks(BATCH) {
            let looks: Vec<_> = batch.iter().map(|task| Glance::at(*task)).collect();
            let window = |saved: usize| (saved, memory::rest_of_page(saved).min(WINDOW));
            let stacks: Vec<_> = looks.iter().filter_map(Glance::stack).map(window).collect();
            let copied = memory::read_many(&stacks, &mut copies);
            let (mut stacks, mut rest) = (stacks[..copied].iter(), copies.as_slice());
            for (task, glance) in batch.iter().zip(looks) {
                let stack = glance.stack().and_then(|_| stacks.next());
                let sleep = stack.and_then(|(address, len)| {
                    let copy;
                    (copy, rest) = rest.split_at(*len);
                    self.words.keep(*address, copy);
                    self.copy(*task, glance)
                });
                all.push(sleep.unwrap_or_else(|| self.look(*task)));
            }
        }
        all
    }

    /// Returns the state of a task, with its sleep if it is in one.
    pub(crate) fn look(&mut self, task: TaskRef) -> (TaskState, Option<Sleep>) {
        for _ in 0..TRIES {
            self.words.forget();
            let found = match Glance::at(task) {
                Glance::State(state) => return (state, None),
                Glance::Leaving => None,
                asleep => self.copy(task, asleep),
            };
            match found {
                Some(found) => return found,
                None => thread::yield_now(),
            }
        }
        // It changes all the time, or its memory cannot be read.
        (task.state(), None)
    }

    /// Copies what a sleep waits for and its stack, if the task is in that sleep all the while.
    fn copy(&mut self, task: TaskRef, glance: Glance) -> Option<(TaskState, Option<Sleep>)> {
        let Glance::Asleep(word, saved) = glance else { return None };
        let frames = if self.with_stacks { self.walk(task) } else { None };
        let mut read = |address, into: &mut [u8]| self.read(saved.get(), address, into);
        let found = description::interpret(task.record(), &mut read)?;
        let header = task.header();
        let state = task.state_asleep();
        let tick = if header.is_timed() { header.timer.armed_tick() } else { None };
        fence(Ordering::SeqCst);
        if header.coroutine.suspended() != Some(saved) || header.waiter.word.why() != word {
            return None;
        }
        Some((state, Some(Sleep { word, found, tick, frames })))
    }

    /// Copies memory for the interpretation of a record. What lies far from the stack and is a description, or the record of
    /// one, is a constant, and copied once.
    fn read(&mut self, stack: usize, address: usize, into: &mut [u8]) -> Option<()> {
        if let Some(known) = self.constants.get(&address).filter(|known| known.len() == into.len()) {
            into.copy_from_slice(known);
            return Some(());
        }
        self.words.copy(address, into)?;
        let is_far = || address.abs_diff(stack) > FAR;
        if description::is_description(into) || (description::is_record(into, &self.constants) && is_far()) {
            self.constants.insert(address, into.to_vec());
        }
        Some(())
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
            let words = &mut self.words;
            let (coroutine, context) = match away {
                0 => (own, header.coroutine.context(|at| words.at(at))?),
                away => {
                    let coroutine = away + offset_of!(BigStack, coroutine);
                    (coroutine, Coroutine::context_at(coroutine, |at| words.at(at))?)
                }
            };
            // What was copied first is of the page of the innermost frame.
            let mut base = None;
            let mut read = |at: usize| {
                if at < context.sp {
                    return None;
                }
                if !words.has(at) {
                    let base = *base.get_or_insert_with(|| word_at(coroutine + Coroutine::BASE).unwrap_or(0));
                    if at >= base {
                        return None;
                    }
                }
                words.at(at).map(|word| word as u64)
            };
            addresses.clear();
            frames.is_complete &= unwinder.walk(context, &mut read, &mut addresses);
            let places = addresses.iter().enumerate();
            frames.addresses.extend(places.map(|(index, address)| (*address, index > 0)));
            if away == 0 {
                return Some(frames);
            }
            away = word_at(away + offset_of!(BigStack, outer))?;
        }
    }
}

/// What one look at a task's header finds.
#[derive(Clone, Copy)]
enum Glance {
    /// Asleep and off its stack: the wait word, and the saved stack pointer.
    Asleep(Snapshot, NonZeroUsize),
    /// About to leave its stack.
    Leaving,
    State(TaskState),
}

impl Glance {
    fn at(task: TaskRef) -> Self {
        let header = task.header();
        if header.join.is_done() {
            return Glance::State(TaskState::Ended);
        }
        if !header.is_started() {
            return Glance::State(TaskState::Unstarted);
        }
        if header.nature.is_on_pool() {
            return Glance::State(TaskState::Blocking);
        }
        let word = header.waiter.word.why();
        match header.coroutine.suspended() {
            Some(saved) if word.is_asleep() => Glance::Asleep(word, saved),
            None if word.is_asleep() => Glance::Leaving,
            Some(_) => Glance::State(TaskState::Ready),
            None => Glance::State(TaskState::Running),
        }
    }

    /// Returns where the stack of a sleeper begins.
    fn stack(&self) -> Option<usize> {
        match self {
            Glance::Asleep(_, saved) => Some(saved.get()),
            _ => None,
        }
    }
}

/// Reads a word.
fn word_at(address: usize) -> Option<usize> {
    let mut bytes = [0; size_of::<usize>()];
    memory::read(address, &mut bytes)?;
    Some(usize::from_ne_bytes(bytes))
}
