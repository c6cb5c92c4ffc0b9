//! The calls to the operating system that `std` does not offer.
//!
//! The `unsafe` of this package is here, and where coroutines of other libraries are spawned.
//!
//! Calls of Linux have a fallback that does nothing or returns "unsupported". So the harness runs wherever
//! fibra does: unpinned, and without the processor time of the server.

mod semaphore;

pub(crate) use semaphore::Semaphore;

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Lifts the soft limit of open files to the hard one and returns it.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Kills all processes of a group.
pub(crate) fn kill_group(group: u32) -> io::Result<()> {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process_group(group, Signal::KILL)?)
}

/// The processor time this process has used, user and system, all threads.
pub(crate) fn own_cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// The numbers of a list of the kernel's, such as `0-2,8`. What is none is left out.
#[cfg(any(target_os = "linux", test))]
fn listed(list: &str) -> Vec<usize> {
    let numbers = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(numbers).flatten().collect()
}

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::*;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::num::NonZero;
    use std::time::Duration;

    use rustix::process::{Signal, set_parent_process_death_signal};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

    /// The processors this process may run on, in order.
    pub(crate) fn allowed_cpus() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
    }

    /// The processors that are threads of the same core as this one, itself among them. None where the system
    /// does not tell.
    pub(crate) fn sharing_a_core(cpu: usize) -> Vec<usize> {
        let list = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        std::fs::read_to_string(list).map_or_else(|_| Vec::new(), |list| super::listed(&list))
    }

    /// Keeps the calling thread, and those that it starts from now on, on one processor.
    pub(crate) fn pin_to(cpu: usize) -> io::Result<()> {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut set = CpuSet::new();
        set.set(cpu);
        Ok(sched_setaffinity(None, &set)?)
    }

    /// Has the kernel kill this process when the thread that started it ends, however it ends.
    pub(crate) fn die_with_parent() -> io::Result<()> {
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    }

    /// Has this thread, and those that it starts, woken as near to the time asked for as the kernel can.
    pub(crate) fn sharpen_timers() {
        // If it failed, the only harm would be the usual 50 µs.
        let _ = set_current_timer_slack(NonZero::new(1));
    }

    /// The processor time that process `pid` has used: user and system, all its threads, also those that have
    /// ended.
    pub(crate) fn cpu_time_of(pid: u32) -> io::Result<Duration> {
        let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: the pointer is to a live clock id of our own, which the call fills; any pid is allowed.
        match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
            0 => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
        // SAFETY: the pointer is to a live `timespec` of our own, which the call fills; any clock id is
        // allowed.
        match unsafe { libc::clock_gettime(clock, &raw mut time) } {
            0 => Ok(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;
    use std::time::Duration;

    /// The processors this process may run on: unknown here.
    pub(crate) fn allowed_cpus() -> Vec<usize> {
        Vec::new()
    }

    /// Unknown here.
    pub(crate) fn sharing_a_core(_: usize) -> Vec<usize> {
        Vec::new()
    }

    /// Not offered here.
    pub(crate) fn pin_to(_: usize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Not offered here: the guard of the parent alone ends its children.
    pub(crate) fn die_with_parent() -> io::Result<()> {
        Ok(())
    }

    /// Nothing to do here.
    pub(crate) fn sharpen_timers() {}

    /// Not offered here.
    pub(crate) fn cpu_time_of(_: u32) -> io::Result<Duration> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests;
