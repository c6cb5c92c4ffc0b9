//! Calls of the operating system apart from memory, with fall-backs.
//!
//! A system owes: [`Processors`] (may do nothing), [`processors`], [`register_membarrier`] (may say no).

use std::num::NonZeroUsize;
use std::thread;

#[cfg(target_os = "linux")]
use crate::base::abort::Bomb;

/// Returns true if polling workers take no processor from other threads.
///
/// That is so if the machine has several processors, and the process may use one for each worker.
pub(crate) fn may_poll(workers: usize, usable: usize) -> bool {
    cfg!(unix) && processors() > 1 && usable >= workers
}

/// Returns how many processors the calling thread may use.
pub(crate) fn usable_processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The processors of the machine, whether this process may use them or not.
#[cfg(unix)]
fn processors() -> usize {
    // SAFETY: `sysconf` takes any number and touches no memory of ours.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(online).unwrap_or(1)
}

#[cfg(not(unix))]
fn processors() -> usize {
    usable_processors()
}

/// Registers the process for [`membarrier`]. Returns false where there is none.
#[cfg(target_os = "linux")]
pub(crate) fn register_membarrier() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    command_membarrier(REGISTER_PRIVATE_EXPEDITED)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn register_membarrier() -> bool {
    false
}

/// Runs a full fence on every thread of the process, and then returns.
#[cfg(target_os = "linux")]
pub(crate) fn membarrier() {
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    if !command_membarrier(PRIVATE_EXPEDITED) {
        Bomb::of_user("the system has begun to refuse `membarrier`").go_off();
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn membarrier() {
    unreachable!("never registered here");
}

#[cfg(target_os = "linux")]
fn command_membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes a command, flags and a processor number, and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// The processors that a thread may use.
#[derive(Clone, Copy)]
pub(crate) struct Processors {
    #[cfg(target_os = "linux")]
    set: Option<libc::cpu_set_t>,
}

/// Restores the processors of the thread when it is dropped.
pub(crate) struct Moved {
    #[cfg(target_os = "linux")]
    before: Processors,
}

#[cfg(target_os = "linux")]
impl Processors {
    /// Returns the processors of the calling thread.
    pub(crate) fn of_caller() -> Self {
        Processors { set: affinity() }
    }

    /// Binds the calling thread to the `index`-th of them, modulo their number. Does nothing if
    /// refused.
    pub(crate) fn pin(&self, index: usize) -> Moved {
        let before = Processors::of_caller();
        let Some(set) = &self.set else { return Moved { before } };
        // SAFETY: `cpu_set_t` is plain bits, and the processors asked for are below its size.
        let allowed: Vec<usize> =
            (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, set) }).collect();
        // SAFETY: as above; all zero is the empty set.
        let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        unsafe { libc::CPU_SET(allowed[index % allowed.len()], &mut one) };
        set_affinity(&one);
        Moved { before }
    }

    /// Lets the calling thread use all of them.
    pub(crate) fn allow(&self) {
        if let Some(set) = &self.set {
            set_affinity(set);
        }
    }

    /// Lets the calling thread use all of them, until the returned guard is dropped.
    pub(crate) fn lend(&self) -> Moved {
        let before = Processors::of_caller();
        self.allow();
        Moved { before }
    }
}

/// Nothing is bound here.
#[cfg(not(target_os = "linux"))]
impl Processors {
    pub(crate) fn of_caller() -> Self {
        Processors {}
    }

    pub(crate) fn pin(&self, _index: usize) -> Moved {
        Moved {}
    }

    pub(crate) fn allow(&self) {}

    pub(crate) fn lend(&self) -> Moved {
        Moved {}
    }
}

#[cfg(target_os = "linux")]
fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: all zero is the empty set; the call writes no more than the size it is told.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let result = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (result == 0 && libc::CPU_COUNT(&set) > 0).then_some(set)
    }
}

#[cfg(target_os = "linux")]
fn set_affinity(set: &libc::cpu_set_t) {
    // SAFETY: the set is read only, of the size that is told. A refusal leaves the thread where it is.
    _ = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
}

#[cfg(target_os = "linux")]
impl Drop for Moved {
    fn drop(&mut self) {
        self.before.allow();
    }
}
