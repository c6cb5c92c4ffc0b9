//! Calls of the operating system apart from memory, with fall-backs.
//!
//! A system owes: [`Processors`] (may do nothing), [`has_several_processors`].

#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::thread;

use particular::has_several_processors;
pub(crate) use particular::{Processors, thread_id};

/// Returns true if polling workers take no processor from other threads.
///
/// That is so if the machine has several processors, and the process may use one for each worker.
pub(crate) fn may_poll(workers: usize, usable: usize) -> bool {
    cfg!(unix) && has_several_processors() && usable >= workers
}

/// Returns how many processors the calling thread may use.
pub(crate) fn usable_processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(target_os = "linux")]
mod particular {
    use std::fs;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// Returns true if the machine has several processors, whether this process may use them or not.
    pub(super) fn has_several_processors() -> bool {
        // Ranges and numbers, as in `0-3,6`.
        match fs::read_to_string("/sys/devices/system/cpu/online") {
            Ok(online) => online.trim().contains(['-', ',']),
            Err(_) => super::usable_processors() > 1,
        }
    }

    /// Returns the system's number of the calling thread, if it has such numbers.
    pub(crate) fn thread_id() -> Option<i32> {
        Some(rustix::thread::gettid().as_raw_nonzero().get())
    }

    /// The processors that a thread may use; `None` where the system does not say.
    #[derive(Clone, Copy)]
    pub(crate) struct Processors(Option<CpuSet>);

    /// Restores the processors of the thread when it is dropped.
    pub(crate) struct Moved(Processors);

    impl Processors {
        /// Returns the processors of the calling thread.
        pub(crate) fn of_caller() -> Self {
            Processors(sched_getaffinity(None).ok().filter(|set| set.count() > 0))
        }

        /// Binds the calling thread to the `index`-th of them, modulo their number. Does nothing if
        /// refused.
        pub(crate) fn pin(&self, index: usize) -> Moved {
            let before = Processors::of_caller();
            if let Some(set) = &self.0 {
                let mut allowed = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
                let mut one = CpuSet::new();
                allowed.nth(index % set.count() as usize).into_iter().for_each(|cpu| one.set(cpu));
                Processors(Some(one)).allow();
            }
            Moved(before)
        }

        /// Lets the calling thread use all of them. A refusal leaves it where it is.
        pub(crate) fn allow(&self) {
            _ = self.0.map(|set| sched_setaffinity(None, &set));
        }

        /// Lets the calling thread use all of them, until the returned guard is dropped.
        pub(crate) fn lend(&self) -> Moved {
            let before = Processors::of_caller();
            self.allow();
            Moved(before)
        }
    }

    impl Drop for Moved {
        fn drop(&mut self) {
            self.0.allow();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod particular {
    pub(super) fn has_several_processors() -> bool {
        super::usable_processors() > 1
    }

    pub(crate) fn thread_id() -> Option<i32> {
        None
    }

    /// Nothing is bound here.
    #[derive(Clone, Copy)]
    pub(crate) struct Processors;

    pub(crate) struct Moved;

    impl Processors {
        pub(crate) fn of_caller() -> Self {
            Processors
        }

        pub(crate) fn pin(&self, _index: usize) -> Moved {
            Moved
        }

        pub(crate) fn lend(&self) -> Moved {
            Moved
        }
    }
}
