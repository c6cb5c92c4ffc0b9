//! The calls to the operating system that `std` does not offer: the only `unsafe` of this package.
//!
//! What is Linux's own has a fallback that does nothing or says "unsupported", so that the harness runs (unpinned, and
//! without the processor time of the server) wherever fibra does.

mod semaphore;

pub(crate) use semaphore::Semaphore;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Lifts the soft limit of open files to the hard one and returns it.
///
/// # Errors
///
/// What `getrlimit` or `setrlimit` answered.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live `rlimit` of our own, which the call fills.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the pointer is to a live, initialized `rlimit`, which the call only reads.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(limit.rlim_cur)
}

/// Waits until `fd` has something to read, for `timeout` at the most, to the nanosecond where the system can.
///
/// # Errors
///
/// What the system answered; an interruption is none, since waits may end early.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    match wait(&mut poll, timeout) {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()).or_else(|error| match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        }),
    }
}

#[cfg(target_os = "linux")]
fn wait(poll: &mut libc::pollfd, timeout: Duration) -> libc::c_int {
    let seconds = libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX);
    let time = libc::timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: the first pointer is to the one live `pollfd` that the count says, with a descriptor that is borrowed for
    // the call; the second is to a live time that is only read; no signal mask is a null pointer.
    unsafe { libc::ppoll(poll, 1, &raw const time, std::ptr::null()) }
}

#[cfg(not(target_os = "linux"))]
fn wait(poll: &mut libc::pollfd, timeout: Duration) -> libc::c_int {
    let millis = libc::c_int::try_from(timeout.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the pointer is to the one live `pollfd` that the count says, with a descriptor borrowed for the call.
    unsafe { libc::poll(poll, 1, millis) }
}

/// Kills all processes of a group.
///
/// # Errors
///
/// What `kill` answered, such as that there are none.
pub(crate) fn kill_group(group: u32) -> io::Result<()> {
    let group = libc::pid_t::try_from(group).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes two integers, of which any are allowed, and touches no memory of ours.
    check(unsafe { libc::killpg(group, libc::SIGKILL) })
}

/// The processor time this process has used, user and system, all threads.
pub(crate) fn own_cpu_time() -> io::Result<Duration> {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live `timespec` of our own, which the call fills; any clock id is allowed.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)))
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
pub(crate) use linux::{allowed_cpus, cpu_time_of, die_with_parent, pin_to, sharing_a_core, sharpen_timers};
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{
    allowed_cpus, cpu_time_of, die_with_parent, pin_to, sharing_a_core, sharpen_timers,
};

#[cfg(target_os = "linux")]
mod linux {
    use super::{check, read_clock};
    use std::time::Duration;
    use std::{io, mem};

    /// The processors this process may run on, in order.
    pub(crate) fn allowed_cpus() -> Vec<usize> {
        let mut set = no_cpus();
        // SAFETY: 0 is this process; the pointer is to a live set of the size that is passed, which the call fills.
        let answer = unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &raw mut set) };
        if answer != 0 {
            return Vec::new();
        }
        let most = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
        // SAFETY: every index is below CPU_SETSIZE, the number of bits of a set.
        (0..most).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
    }

    /// The processors that are threads of the same core as this one, itself among them. None where the system does not tell.
    pub(crate) fn sharing_a_core(cpu: usize) -> Vec<usize> {
        let list = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        std::fs::read_to_string(list).map_or_else(|_| Vec::new(), |list| super::listed(&list))
    }

    /// Keeps the calling thread, and those that it starts from now on, on one processor.
    pub(crate) fn pin_to(cpu: usize) -> io::Result<()> {
        let mut set = no_cpus();
        if cpu >= usize::try_from(libc::CPU_SETSIZE).unwrap_or(0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the index is below CPU_SETSIZE, the number of bits of a set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        // SAFETY: 0 is this thread; the pointer is to a live set of the size that is passed, which the call only reads.
        check(unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set) })
    }

    /// Has the kernel kill this process when the thread that started it ends, however it ends.
    pub(crate) fn die_with_parent() -> io::Result<()> {
        // SAFETY: PR_SET_PDEATHSIG takes one integer, a signal's number, and touches no memory of ours.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
    }

    /// Has this thread, and those that it starts, woken as near to the time asked for as the kernel can.
    pub(crate) fn sharpen_timers() {
        let nanosecond: libc::c_ulong = 1;
        // SAFETY: PR_SET_TIMERSLACK takes one long integer and touches no memory of ours.
        // It cannot fail, and if it did the only harm were the usual 50 µs.
        let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanosecond) };
    }

    /// The processor time that process `pid` has used: user and system, all its threads, also those that have ended.
    pub(crate) fn cpu_time_of(pid: u32) -> io::Result<Duration> {
        let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut clock = 0;
        // SAFETY: the pointer is to a live clock id of our own, which the call fills; any pid is allowed.
        match unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } {
            0 => read_clock(clock),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    fn no_cpus() -> libc::cpu_set_t {
        // SAFETY: a set is an array of integers, for which all bits zero is a value: the empty set.
        unsafe { mem::zeroed() }
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
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_a_pid_is_that_of_the_process() {
        let own = || own_cpu_time().expect("our own clock");
        let before = loop {
            match own() {
                little if little < Duration::from_millis(5) => {}
                enough => break enough,
            }
        };
        let outside = cpu_time_of(std::process::id()).expect("our own clock");
        let after = own();
        assert!((before..=after).contains(&outside), "{outside:?} is read between {before:?} and {after:?}");
    }

    #[test]
    fn lists_of_processors_have_ranges() {
        assert_eq!(listed("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!((listed("3"), listed("\n")), (vec![3], vec![]));
    }

    #[test]
    fn some_processor_is_allowed() {
        assert!(!allowed_cpus().is_empty());
    }
}
