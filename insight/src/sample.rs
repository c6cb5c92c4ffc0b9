//! The stack of a thread that runs, or waits in the kernel.

#![forbid(unsafe_code)]

use std::fs;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fibra_runtime::stacks::{self, SavedContext};

use crate::sys::{self, Copied};
use crate::walk::Walker;

/// How long a thread may take to handle the signal.
const ROUNDS: u32 = 1000;
const ROUND: Duration = Duration::from_micros(100);

/// The most frames of a thread that is about to abort: those of a recursion that has filled its stack.
const DEEPEST: usize = 64 * 1024;

/// A frame pointer that is not known: a walk that needs it ends there.
const UNKNOWN: usize = 1;

/// The signal to use; 0 for the default.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

pub(crate) fn sample_by(signal: i32) {
    SIGNAL.store(signal, Ordering::Relaxed);
}

/// Appends the frames of a thread, which may be the caller's own. Returns true if the walk has come to the root.
///
/// A thread that waits in a handler for the dump before its abort is taken as it was. One that waits in the kernel is not
/// interrupted if the frame pointer, which is not known then, is not needed.
pub(crate) fn sample(walker: &mut Walker, tid: i32, frames: &mut Vec<usize>) -> bool {
    if let Some(context) = stacks::left_at(tid) {
        return sys::registers_at(context).is_some_and(|from| walker.walk(DEEPEST, from, &mut word, frames));
    }
    let begin = frames.len();
    if tid != sys::own_tid()
        && let Some(from) = waits_at(tid)
        && walker.walk(Walker::MOST_FRAMES, from, &mut word, frames)
        && waits_at(tid) == Some(from)
    {
        return true;
    }
    frames.truncate(begin);
    interrupt(tid).is_some_and(|copied| {
        walker.walk(Walker::MOST_FRAMES, copied.registers, &mut |at| copied.word(at), frames)
    })
}

/// Returns where a thread waits in the kernel.
fn waits_at(tid: i32) -> Option<SavedContext> {
    // `running`, or the number of the call, its six arguments, the stack pointer and the address to return to. A thread
    // that waits outside of a call has -1 and no arguments.
    let line = fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).ok()?;
    let mut words =
        line.split_whitespace().rev().map(|word| usize::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let (pc, sp) = (words.next()??, words.next()??);
    Some(SavedContext { pc, sp, fp: UNKNOWN })
}

fn word(address: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    stacks::read(address, &mut bytes)?;
    Some(u64::from_ne_bytes(bytes))
}

/// Interrupts a thread by the signal.
fn interrupt(tid: i32) -> Option<Copied> {
    static ONE: Mutex<()> = Mutex::new(());

    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let signal = match SIGNAL.load(Ordering::Relaxed) {
        0 => sys::default_signal(),
        signal => signal,
    };
    sys::handle(signal).ok()?;
    let mut rounds = 0..ROUNDS;
    sys::ask(tid, signal, || {
        thread::sleep(ROUND);
        rounds.next().is_some()
    })
}

impl Copied {
    fn word(&self, address: usize) -> Option<u64> {
        let bytes = self.stack.get(address.checked_sub(self.registers.sp)?..)?.first_chunk()?;
        Some(u64::from_ne_bytes(*bytes))
    }
}
