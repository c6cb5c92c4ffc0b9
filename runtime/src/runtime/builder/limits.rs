//! Settings of sizes, numbers and limits.

#![forbid(unsafe_code)]

use std::time::Duration;

use crate::base::limit::MOST_WORKERS;
use crate::runtime::builder::Builder;
use crate::runtime::owner::Runtime;
use crate::stack::guard::StackGuards;

impl<R: From<Runtime>> Builder<R> {
    /// Sets the number of workers.
    ///
    /// Unless set it is the environment variable `FIBRA_WORKERS`, or else the number of
    /// processors that the process may use, and 4096 at the most.
    ///
    /// # Panics
    /// Panics if `workers` is 0 or more than 4096.
    #[track_caller]
    pub fn workers(mut self, workers: usize) -> Self {
        assert!(
            (1..=MOST_WORKERS).contains(&workers),
            "a runtime has 1 to {MOST_WORKERS} workers, not {workers}"
        );
        self.workers = Some(workers);
        self
    }

    /// Sets the size of the tasks' stacks in bytes of address space.
    ///
    /// The guard is included, and the size is rounded up to a power of two. Unless set it is 256 KiB,
    /// and 1 MiB in builds with debug assertions. Only what a task touches becomes memory, and most
    /// tasks need one page of 4 KiB. The main task has a [size of its own](Builder::main_stack_size).
    ///
    /// The lowest 16 KiB of a stack are its guard; up to 32 KiB the size is doubled, to make room for
    /// it. Rust code touches each page of its frames, so it never steps over a guard. A frame of C code
    /// that is larger than 16 KiB may, unless it is compiled with stack probes
    /// (`-fstack-clash-protection`). The guard does not catch that, whatever the size of the stack.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stacks.size = bytes;
        self
    }

    /// Sets the size of the stack of the main task, the closure of a `run`, in bytes of address space.
    ///
    /// The guard is included, and the size is rounded up to a power of two. 8 MiB unless set, as a main
    /// thread has. Only what the task touches becomes memory.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// let runtime = fibra::Runtime::builder().workers(1).main_stack_size(64 << 20);
    /// assert_eq!(runtime.run(|| std::hint::black_box([1_u8; 10 << 20]).len())?, 10 << 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn main_stack_size(mut self, bytes: usize) -> Self {
        self.config.main_stack_size = bytes;
        self
    }

    /// Limits the number of stacks over all workers. Unlimited unless set.
    ///
    /// A task without a stack waits for one in a queue. When no stack has become free for a second,
    /// it ends un-run, with an error that names the limit.
    pub fn max_stacks(mut self, stacks: usize) -> Self {
        self.stacks.max_stacks = Some(stacks);
        self
    }

    /// Sets how long a task that finds no stack waits for one; for tests.
    ///
    /// A busy machine may hold a test up for as long as the default.
    #[doc(hidden)]
    pub fn stack_patience(mut self, patience: Duration) -> Self {
        self.config.stack_patience = patience;
        self
    }

    /// Sets what the stacks' guards are made of. [`StackGuards::Auto`] unless set.
    ///
    /// It is for tests of the fall-back.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use fibra::{Runtime, StackGuards};
    /// let runtime = Runtime::builder().workers(1).stack_guards(StackGuards::Protect).build()?;
    /// assert_eq!(runtime.spawn(|| 42).join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stack_guards(mut self, guards: StackGuards) -> Self {
        self.stacks.guards = guards;
        self
    }

    /// Limits the number of live tasks. Unlimited unless set.
    ///
    /// A spawn beyond the limit returns a handle whose join fails. Tasks of the blocking pool and
    /// internal tasks are not counted.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use fibra::Runtime;
    /// let runtime = Runtime::builder().workers(1).max_tasks(2).build()?;
    /// runtime.run(|| {
    ///     let first = fibra::spawn(fibra::task::park);
    ///     let second = fibra::spawn(fibra::task::park);
    ///     assert!(second.join().unwrap_err().is_not_started());
    ///     first.cancel();
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.config.max_tasks = Some(tasks);
        self
    }

    /// Limits the threads of the blocking pool. 512 unless set.
    ///
    /// Calls that may never end, such as lookups of names and opens of FIFOs, have threads of their
    /// own with an equal limit. So closures always find threads.
    ///
    /// # Panics
    /// Panics if `threads` is 0.
    #[track_caller]
    pub fn max_blocking_threads(mut self, threads: usize) -> Self {
        assert!(threads > 0, "the blocking pool has one thread at the least");
        self.blocking.max_threads = threads;
        self
    }

    /// Sets how long an idle thread of the blocking pool is kept; 10 seconds if unset.
    pub fn blocking_keep_alive(mut self, keep: Duration) -> Self {
        self.blocking.keep_alive = keep;
        self
    }

    /// Limits the blocking pool to so many threads at a time; for tests.
    ///
    /// It stands for a system that has no more threads.
    #[doc(hidden)]
    pub fn startable_blocking_threads(mut self, threads: usize) -> Self {
        self.blocking.startable = threads;
        self
    }
}
