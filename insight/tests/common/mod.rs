//! What the tests share.

use std::fs;

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
