//! Stops the threads of another process, and lets them go on; the only file with `unsafe`.

use std::collections::HashSet;
use std::ffi::{c_int, c_uint, c_void};
use std::time::{Duration, Instant};
use std::{fs, io, ptr, thread};

use fibra_runtime::stacks::SavedContext;

use crate::image;

/// How long the threads may take to stop in all, and how often one is looked at meanwhile.
const PATIENCE: Duration = Duration::from_millis(500);
const ROUND: Duration = Duration::from_micros(100);

/// How a stop is marked that no signal has caused.
const EVENT_STOP: c_int = 128;

/// The general registers, as a set of the kernel's.
const GENERAL: usize = 1;

/// Threads that stand still. They go on when this is dropped, and when the calling thread ends in any way: the kernel sees to
/// that.
pub(crate) struct Stopped {
    /// The numbers, and the signals that were about to be handled.
    threads: Vec<(i32, c_int)>,
}

impl Stopped {
    /// Stops all threads of a process. One that the kernel does not let stop in time is left out: it stops later, if the calling
    /// thread has not ended before.
    pub(crate) fn stop(pid: i32) -> io::Result<Self> {
        let (mut seen, mut stopped) = (HashSet::new(), Stopped { threads: Vec::new() });
        let (mut refused, end) = (Ok(()), Instant::now() + PATIENCE);
        // Until there is none that was started meanwhile.
        loop {
            let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
            let tids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            let new: Vec<i32> = tids.filter(|tid| seen.insert(*tid)).collect();
            if new.is_empty() {
                break;
            }
            for tid in &new {
                let seized = trace(libc::PTRACE_SEIZE, *tid, 0, ptr::null_mut());
                match seized.and_then(|()| trace(libc::PTRACE_INTERRUPT, *tid, 0, ptr::null_mut())) {
                    Ok(()) => stopped.threads.push((*tid, 0)),
                    // It has ended, which is refused in the case of the first one.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => refused = Err(error),
                }
            }
            stopped.threads.retain_mut(|(tid, signal)| match new.contains(tid) {
                true => wait(*tid, end).inspect(|pending| *signal = *pending).is_some(),
                false => true,
            });
        }
        if stopped.threads.is_empty() { refused.map(|()| stopped) } else { Ok(stopped) }
    }

    /// Returns where the threads are.
    pub(crate) fn contexts(&self) -> Vec<SavedContext> {
        self.threads.iter().filter_map(|(tid, _)| registers(*tid)).collect()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for (tid, signal) in &self.threads {
            // One that was killed is gone.
            _ = trace(libc::PTRACE_DETACH, *tid, 0, ptr::without_provenance_mut(*signal as usize));
        }
    }
}

/// Waits until a thread stands still, or until then. Returns the signal that it is about to handle, or 0.
fn wait(tid: i32, end: Instant) -> Option<c_int> {
    loop {
        let mut status = 0;
        // SAFETY: the status is a valid place.
        match unsafe { libc::waitpid(tid, &mut status, libc::__WALL | libc::WNOHANG) } {
            0 if Instant::now() < end => thread::sleep(ROUND),
            found if found == tid && libc::WIFSTOPPED(status) => {
                let is_event = status >> 16 == EVENT_STOP;
                return Some(if is_event { 0 } else { libc::WSTOPSIG(status) });
            }
            _ => return None,
        }
    }
}

fn registers(tid: i32) -> Option<SavedContext> {
    let mut registers = [0_u64; 64];
    let mut place = libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of_val(&registers) };
    trace(libc::PTRACE_GETREGSET, tid, GENERAL, ptr::from_mut(&mut place).cast()).ok()?;
    image::context(&registers[..place.iov_len / size_of::<u64>()])
}

/// `data` is a valid place for those requests that write to it.
fn trace(request: c_uint, tid: i32, address: usize, data: *mut c_void) -> io::Result<()> {
    // SAFETY: of the requests in this file only that for registers writes to memory: at most as much as its place says.
    let refused = unsafe { libc::ptrace(request, tid, address, data) };
    if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
