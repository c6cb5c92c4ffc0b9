//! What a task waits for, with its owner by name.

#![forbid(unsafe_code)]

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::clock;
use crate::base::payload::drop_quietly;
use crate::base::peer;
use crate::scheduler::runtimes;
use crate::scheduler::shared::{OnThread, Shared};
use crate::scheduler::threads::{self, OwnerThread};
use crate::tasks::sleeper::{Sleep, TaskState};
use crate::tasks::task::Task;
use crate::waiter::description::{Direction, EndedBy, Found, OwnerMark};

/// Tells what a task waits for.
///
/// See [`Task::waits_for`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WaitsFor {
    /// The name of the wait: `mutex`, `join`, `descriptor`, …
    pub kind: String,
    /// Which party may end the wait, beside the deadline and a cancel.
    pub ended_by: EndedBy,
    /// The address of the object; 0 if there is none.
    pub object: usize,
    /// The owner of the lock, the initializer of the cell, or the joined task.
    pub owner: Option<Owner>,
    /// The file descriptor.
    pub descriptor: Option<i32>,
    /// Whether the descriptor is to be readable or writable.
    pub direction: Option<Direction>,
    /// The address at the other end of the connection.
    pub peer: Option<SocketAddr>,
    /// When the wait ends by itself, by the clock of the runtime. Timers are rounded up to 16 µs.
    pub deadline: Option<Instant>,
    /// How long the task has been waiting: coarse, and too long by the run before it.
    pub waited: Duration,
    /// What each arm of a `select!` waits for.
    pub arms: Vec<WaitsFor>,
}

/// Tells the owner of an object that a task waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Owner {
    /// A task. One on the blocking pool is found by its thread, so it is the one that runs there now.
    Task(Task),
    /// A plain thread, or one of the blocking pool that runs no task now.
    Thread {
        /// The number of the thread as an owner, which no task and no other thread has.
        number: u64,
        /// The name of the thread.
        name: Option<String>,
    },
    /// A task or a thread that has ended: with its number, if that is known.
    Gone(Option<u64>),
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(descriptor) = self.descriptor {
            write!(f, " {descriptor}")?;
            self.peer.map_or(Ok(()), |peer| write!(f, ", peer {peer}"))?;
            self.direction.map_or(Ok(()), |direction| write!(f, ", {}", direction.name()))?;
        }
        match &self.owner {
            Some(Owner::Task(owner)) => write!(f, " of {owner}")?,
            Some(Owner::Thread { name: Some(name), .. }) => write!(f, " of thread '{name}'")?,
            Some(Owner::Thread { number, name: None }) => {
                write!(f, " of a thread without a name (owner {number})")?
            }
            Some(Owner::Gone(Some(number))) => write!(f, " of owner {number}, which has ended")?,
            Some(Owner::Gone(None)) => write!(f, " of an owner that has ended")?,
            None => {}
        }
        for (index, arm) in self.arms.iter().enumerate() {
            write!(f, "{}{arm}", if index == 0 { " (" } else { ", " })?;
        }
        if self.arms.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// Finds the owners of what tasks wait for, and the threads of tasks.
pub(crate) struct Owners {
    runtimes: Vec<Arc<Shared>>,
    /// The tasks that run on pools, once one is looked for.
    on_pools: OnceCell<Vec<OnThread>>,
    /// The tasks of all runtimes, by their numbers and by their addresses, once a wait has an owner.
    tasks: OnceCell<HashMap<OwnerMark, Task>>,
}

impl Owners {
    pub(crate) fn new() -> Self {
        Owners { runtimes: runtimes::all(), on_pools: OnceCell::new(), tasks: OnceCell::new() }
    }

    fn on_pools(&self) -> &[OnThread] {
        let all = || self.runtimes.iter().flat_map(|shared| shared.pool.on_threads()).collect();
        self.on_pools.get_or_init(all)
    }

    fn task(&self, owner: OwnerMark) -> Option<&Task> {
        let marked = |task: Task| {
            let address = OwnerMark::Address(task.as_ref().as_ptr().addr());
            [(OwnerMark::Number(task.id()), task.clone()), (address, task)]
        };
        let all = || self.runtimes.iter().flat_map(|shared| shared.tasks()).flat_map(marked).collect();
        self.tasks.get_or_init(all).get(&owner)
    }

    /// Returns the system's number of the thread that runs a task of that state, if one does.
    pub(crate) fn thread_of(&self, task: &Task, state: TaskState) -> Option<i32> {
        match state {
            TaskState::Running => runtimes::block_of(&self.runtimes, task.header().home())?.thread(),
            TaskState::Blocking => self.on_pools().iter().find(|(running, _)| running == task)?.1,
            _ => None,
        }
    }

    /// Tells what `task` waits for in that sleep.
    pub(crate) fn resolve(&self, task: &Task, sleep: &Sleep) -> WaitsFor {
        let header = task.header();
        let block = || runtimes::block_of(&self.runtimes, header.home());
        let deadline = sleep.tick.and_then(|tick| block()?.moment_of(tick));
        let mut waits = self.resolve_found(&sleep.found);
        (waits.deadline, waits.waited) = (deadline, header.waited());
        if header.waiter.word.why() != sleep.word {
            // The descriptor may have been closed meanwhile, and its number used again.
            waits.forget_peers();
        }
        waits
    }

    fn of_thread(&self, found: OwnerThread) -> Owner {
        let is_there = |(_, thread): &&OnThread| thread.is_some() && *thread == found.thread;
        match self.on_pools().iter().find(is_there) {
            Some((task, _)) => Owner::Task(task.clone()),
            None => Owner::Thread { number: found.number, name: found.name },
        }
    }

    fn resolve_found(&self, found: &Found) -> WaitsFor {
        let owner = found.owner.map(|mark| {
            let task = self.task(mark).cloned().map(Owner::Task);
            let thread = || threads::find(mark).map(|thread| self.of_thread(thread));
            task.or_else(thread).unwrap_or(Owner::Gone(match mark {
                OwnerMark::Number(number) => Some(number),
                OwnerMark::Address(_) => None,
            }))
        });
        WaitsFor {
            kind: found.name.clone(),
            ended_by: found.ended_by,
            object: found.object,
            owner,
            descriptor: found.descriptor,
            direction: found.direction,
            peer: found.descriptor.and_then(peer::of),
            deadline: None,
            waited: Duration::ZERO,
            arms: found.arms.iter().map(|arm| self.resolve_found(arm)).collect(),
        }
    }
}

impl Drop for Owners {
    /// Drops the runtimes, of which this may be the last holder: that drops hooks of users.
    fn drop(&mut self) {
        drop_quietly(mem::take(&mut self.runtimes));
    }
}

impl WaitsFor {
    /// Returns how long it is until the deadline.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(clock::now()))
    }

    fn forget_peers(&mut self) {
        self.peer = None;
        self.arms.iter_mut().for_each(WaitsFor::forget_peers);
    }
}
