//! What is said when a library that switches stacks by itself mixes tasks up.
//!
//! By the native switch: the portable one does not notice it.

#![cfg(all(target_arch = "x86_64", not(feature = "sanitizer")))]

use std::cell::Cell;
use std::ptr;

use crate::common::{hang_guard, runtime};
use crate::rerun::{errors, is_child, rerun};
use corosensei::{Coroutine, Yielder};
use fibra_runtime::{self as fibra, task};

thread_local! {
    /// The running generator of this thread, as some libraries record it.
    static RUNNING: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

/// Waits inside a generator, which then yields.
fn wait_in_a_generator() {
    let mut generator = Coroutine::new(|yielder: &Yielder<(), ()>, ()| {
        RUNNING.set(yielder);
        fibra::yield_now();
        // SAFETY: the generators live until the end of the process.
        unsafe { &*RUNNING.get() }.suspend(());
    });
    _ = generator.resume(());
    std::mem::forget(generator);
}

#[test]
fn a_generator_that_returns_to_another_task_is_named_as_the_cause() {
    if is_child() {
        return runtime(1).run(|| {
            let [first, second] =
                ["first", "second"].map(|name| task::Builder::new().name(name).spawn(wait_in_a_generator));
            first.join().unwrap();
            second.join().unwrap();
        });
    }
    let _guard = hang_guard();
    let output = rerun("generators::a_generator_that_returns_to_another_task_is_named_as_the_cause");
    let text = errors(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("'first'") && text.contains("a generator of another library"), "{text}");
    assert!(!text.contains("this is an error in the runtime"), "{text}");
}
