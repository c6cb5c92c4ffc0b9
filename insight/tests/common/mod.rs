//! What the tests share.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

use std::fs;
use std::hint::black_box;
use std::thread;

use fibra_runtime::Task;
use fibra_runtime::task::{Backtrace, TaskState};

/// Calls `f` that many calls further in.
#[inline(never)]
pub(crate) fn deep(calls: usize, f: &mut dyn FnMut()) -> usize {
    let local = black_box([calls; 4]);
    let depth = match calls {
        0 => {
            f();
            0
        }
        _ => deep(calls - 1, f),
    };
    // Not the last call, or it would be a jump.
    depth + black_box(&local).len()
}

/// Returns how often `deep` is on a stack.
pub(crate) fn deep_calls(backtrace: &Backtrace) -> usize {
    functions(backtrace).iter().filter(|function| function.contains("common::deep")).count()
}

/// Returns the functions on a stack, innermost first.
pub(crate) fn functions(backtrace: &Backtrace) -> Vec<String> {
    let symbols = backtrace.frames().iter().flat_map(|frame| frame.symbols());
    symbols.map(|symbol| symbol.function.clone()).collect()
}

/// Waits until the task sleeps.
pub(crate) fn until_asleep(task: &Task) {
    while task.state() != TaskState::Suspended {
        thread::yield_now();
    }
}

/// Returns the number of the calling thread.
pub(crate) fn own_tid() -> i32 {
    let own = fs::read_link("/proc/thread-self").expect("its folder");
    own.file_name().and_then(|tid| tid.to_str()?.parse().ok()).expect("a number")
}

/// Returns the functions at the addresses of a stack, innermost first.
pub(crate) fn names(frames: &[usize]) -> Vec<String> {
    let addresses: Vec<_> = frames.iter().enumerate().map(|(index, frame)| (*frame, index > 0)).collect();
    let functions = fibra_insight::unwinder().resolve(&addresses);
    functions.into_iter().flatten().map(|symbol| symbol.function).collect()
}
