//! Simulation: an oracle decides which task runs next.
//!
//! A simulated runtime has one worker, whose clock is virtual. All its ready tasks stand in the worker's
//! own queue. At each pick the oracle chooses one of them. In builds with `cfg(fibra_sim)` it is asked at
//! each [`point`] as well, and may preempt the running task there. So it decides on every order of
//! operations that several workers could produce.

#![forbid(unsafe_code)]

use crate::coroutine::stop::Stop;
use crate::scheduler::current;
use crate::scheduler::oracle::{Asked, Simulation};
use crate::scheduler::worker::Worker;
use crate::tasks::context;
use crate::tasks::header::TaskRef;
use crate::tasks::task::Task;

impl Worker {
    /// Takes the task that the oracle chooses.
    pub(super) fn next_simulated(&self, simulation: &Simulation) -> Option<TaskRef> {
        self.count_pick();
        self.gather();
        let chosen = simulation.chosen.take();
        let last = self.local.len().checked_sub(1)?;
        let index = chosen.unwrap_or_else(|| self.ask(simulation, Asked::Pick, None));
        self.local.take(index.min(last))
    }

    /// Moves all ready tasks into the local queue.
    fn gather(&self) {
        self.take_inbox();
        self.check_cancelled();
        while let Some(task) = self.next_unstarted().or_else(|| self.next_from_others()) {
            self.local.push(task);
        }
    }

    /// Asks for the index of the next task, among those of the queue and the running one, if that is given.
    fn ask(&self, simulation: &Simulation, asked: Asked, running: Option<TaskRef>) -> usize {
        let mut ids = simulation.ids.borrow_mut();
        ids.clear();
        let tasks = || running.into_iter().chain(self.local.iter());
        ids.extend(tasks().map(|task| task.header().id.get()));
        let task = |index| Task::counted(tasks().nth(index).expect("the task is one of those"));
        simulation.oracle.choose(asked, &ids, &task)
    }

    /// Returns true if another task is to run before the running one goes on.
    fn preempts(&self, simulation: &Simulation, running: TaskRef) -> bool {
        self.gather();
        if self.local.is_empty() {
            return false;
        }
        // The running task goes to the end of the queue, so the others keep their places.
        let other = self.ask(simulation, Asked::Point, Some(running)).checked_sub(1);
        simulation.chosen.set(other);
        other.is_some()
    }
}

/// Marks an operation that other tasks can see. In a simulation the running task may be preempted here.
///
/// Each operation has one, before the first thing that others can see of it. Operations that
/// [`charge`](crate::wait::charge) or begin with a [`checkpoint`](crate::wait::checkpoint) have it
/// there. Polls and hooks of a wait have none.
///
/// Does nothing in builds without `cfg(fibra_sim)`. The caller holds no lock of the runtime.
#[inline(always)]
pub fn point() {
    if cfg!(fibra_sim) {
        preempt();
    }
}

#[inline(never)]
fn preempt() {
    let Some(task) = context::task() else { return };
    let header = task.header();
    if header.unconstrained.get() || header.is_forbidden() {
        return;
    }
    let preempted = current::with_worker(|worker| match &worker.simulation {
        // The oracle itself may come to a point.
        Some(simulation) => simulation.ids.try_borrow_mut().is_ok() && worker.preempts(simulation, *task),
        None => false,
    });
    if preempted == Some(true) {
        task.suspend(Stop::Yielded);
    }
}
