//! What a reader outside of the tasks sees of a runtime: its tasks, and what they wait for.

#![forbid(unsafe_code)]

use std::time::Duration;

use crate::runtime::dump::Dump;
use crate::runtime::handle::Handle;
use crate::runtime::report;
use crate::runtime::wait_graph::WaitGraph;
use crate::scheduler::backtrace::Backtrace;
use crate::scheduler::waits::{TaskDump, describe, look_at};
use crate::scheduler::waits_for::WaitsFor;
use crate::tasks::sleeper::{Reader, TaskState};
use crate::tasks::task::Task;

impl Handle {
    /// Returns all tasks that have started and not ended.
    ///
    /// A task that starts or ends during the call may be missing. Callable from any thread, also
    /// while workers are stuck in tasks.
    #[doc(hidden)]
    pub fn started_tasks(&self) -> Vec<Task> {
        report::tasks(self.shared())
    }

    /// Returns the tasks of the runtime: those that have started and not ended, and those that wait for a thread of the
    /// blocking pool.
    ///
    /// Tasks that wait for a worker are not among them, as their queues cannot be walked;
    /// [`Dump::unstarted`](crate::runtime::dump::Dump::unstarted) counts them. A task that starts or ends during the
    /// call may be missing. Callable from any thread, also while workers are stuck in tasks.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let parked = fibra::spawn(fibra::task::park);
    /// fibra::yield_now();
    /// assert!(fibra::Handle::current().tasks().contains(parked.task()));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn tasks(&self) -> Vec<Task> {
        report::all(self.shared()).0
    }

    /// Lists started tasks, each on a line with what it waits for, and with its stack. Each line follows a line break.
    #[doc(hidden)]
    pub fn describe_waits(&self, tasks: Vec<Task>) -> String {
        describe(self.shared(), tasks)
    }

    /// Looks at tasks of the runtime, with their stacks, for profiles.
    #[doc(hidden)]
    pub fn look_at(&self, tasks: Vec<Task>) -> Vec<TaskDump> {
        look_at(tasks, !self.shared().is_simulated())
    }

    /// Lists all tasks as they were when none of them could be woken any more, in virtual time.
    #[doc(hidden)]
    pub fn take_deadlock(&self) -> Option<String> {
        self.shared().virtual_time.take_deadlock()
    }

    /// Counts the tasks and the closures for the pool that have not started.
    #[doc(hidden)]
    pub fn unstarted_tasks(&self) -> u64 {
        report::unstarted(self.shared(), self.started_tasks().len())
    }

    /// Takes a dump of all tasks of the runtime: what each does, what it waits for, and its stack.
    ///
    /// Callable from any thread, also while all workers compute. No task or worker takes part, and none is stopped:
    /// a suspended task is copied from memory between two looks at it, and the thread of a running one is
    /// sampled. A ready task is listed without a stack. Tasks that change meanwhile may be
    /// missing, and the parts of a dump are of slightly different moments.
    ///
    /// There are stacks where the program has an unwinder, as it has by the feature `insight` of the crate `fibra`,
    /// which is on by default. Their functions have names where the binary has symbols, and lines where it has line
    /// tables (`debug = "line-tables-only"` in the profile).
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let parked = fibra::task::Builder::new().name("parked").spawn(fibra::task::park);
    /// fibra::yield_now();
    /// let dump = fibra::Handle::current().dump();
    /// let found = dump.tasks().iter().find(|found| found.task() == parked.task()).unwrap();
    /// assert_eq!(found.state(), fibra::task::TaskState::Suspended);
    /// assert_eq!(found.waits_for().unwrap().kind, "park");
    /// assert!(dump.to_string().contains("task 'parked'"));
    /// assert!(dump.to_json().contains("\"threadDump\""));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn dump(&self) -> Dump {
        Dump::of(self.shared())
    }

    /// Returns which tasks of the runtime wait for which.
    ///
    /// Callable from any thread, also while all workers compute. No task or worker takes part. It takes as long as a
    /// [`dump`](Handle::dump) without stacks.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let parked = fibra::spawn(fibra::task::park);
    /// let target = parked.task().clone();
    /// let joiner = fibra::spawn(move || parked.join());
    /// fibra::yield_now();
    /// let graph = fibra::Handle::current().wait_graph();
    /// assert!(graph.cycles().is_empty());
    /// let edge = format!("t{} -> t{} [label=\"join\"]", joiner.task().id(), target.id());
    /// assert!(graph.to_dot().contains(&edge));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn wait_graph(&self) -> WaitGraph {
        WaitGraph::of(self.shared(), false)
    }
}

impl Task {
    /// Returns the state by one look, with the epoch of its sleep if it is in one, for profiles.
    #[doc(hidden)]
    pub fn glance(&self) -> (TaskState, Option<u64>) {
        self.as_ref().glance()
    }

    /// Returns what the task does at this moment.
    ///
    /// Callable from any thread. The task goes on meanwhile, so the answer may be old when it comes.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use fibra::task::{self, TaskState};
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let parked = fibra::spawn(task::park);
    /// assert_eq!(parked.task().state(), TaskState::Unstarted);
    /// fibra::yield_now();
    /// assert_eq!(parked.task().state(), TaskState::Suspended);
    /// assert_eq!(task::current().state(), TaskState::Running);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn state(&self) -> TaskState {
        Reader::new(false).look(self.as_ref()).0
    }

    /// Returns what the task waits for, or `None` if it does not sleep.
    ///
    /// It may be `None` while the task falls asleep or wakes. Callable from any thread. It takes as long as there are
    /// tasks where the wait has an owner, which is looked for among all tasks of the process;
    /// [`Handle::dump`] does that once for all tasks.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime::{self as fibra, task};
    /// use std::time::Duration;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let sleeper = fibra::spawn(|| fibra::sleep(Duration::from_secs(3600)));
    /// fibra::yield_now();
    /// let waits_for = sleeper.task().waits_for().unwrap();
    /// assert_eq!(waits_for.kind, "sleep");
    /// assert!(waits_for.deadline.unwrap() > fibra::time::now());
    /// assert_eq!(task::current().waits_for(), None);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn waits_for(&self) -> Option<WaitsFor> {
        look_at(vec![self.clone()], false).pop()?.waits_for
    }

    /// Returns the stack of the task. `None` where there is none to be had.
    ///
    /// A suspended task has one, and a running one, which is sampled; neither takes part. A ready or an unstarted
    /// task and the caller itself have none. Callable from any thread. [`Handle::dump`] tells where stacks come from.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let parked = fibra::spawn(fibra::task::park);
    /// fibra::yield_now();
    /// // The crate `fibra-runtime` alone has no unwinder.
    /// assert!(parked.task().backtrace().is_none_or(|stack| stack.is_complete()));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn backtrace(&self) -> Option<Backtrace> {
        look_at(vec![self.clone()], true).pop()?.backtrace()
    }

    /// Returns how long ago the task was spawned, to some ten milliseconds.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime::{self as fibra, task};
    /// use std::time::Duration;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// assert!(task::current().age() < Duration::from_secs(60));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn age(&self) -> Duration {
        self.header().age()
    }
}
