//! Stacks of threads that run, and of those that wait in the kernel.

mod common;

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use common::{names, own_tid};

/// Runs `f` a few calls deep on a thread, and returns what a sample of it shows, and whether it is whole.
fn sampled(f: impl FnOnce() + Send + 'static, after: Duration, end: impl FnOnce()) -> (Vec<String>, bool) {
    let (tid, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        tid.send(own_tid()).unwrap();
        outer(f);
    });
    let tid = told.recv().unwrap();
    thread::sleep(after);
    let mut frames = Vec::new();
    let is_whole = fibra_insight::unwinder().sample(tid, &mut frames);
    end();
    thread.join().unwrap();
    (names(&frames), is_whole)
}

#[inline(never)]
fn outer(f: impl FnOnce()) {
    inner(f);
    hint::black_box(());
}

#[inline(never)]
fn inner(f: impl FnOnce()) {
    f();
    hint::black_box(());
}

#[track_caller]
fn assert_shows_the_calls(names: &[String]) {
    let at = |name: &str| names.iter().position(|function| function.contains(name));
    let (inner, outer) = (at("samples::inner"), at("samples::outer"));
    assert!(inner.is_some() && inner < outer, "{names:#?}");
}

#[test]
fn a_thread_that_runs_is_interrupted() {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let spin = move || {
        while !theirs.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
    };
    let (names, is_whole) = sampled(spin, Duration::from_millis(20), || stop.store(true, Ordering::Relaxed));
    assert_shows_the_calls(&names);
    assert!(is_whole, "{names:#?}");
}

#[test]
fn a_thread_that_waits_in_the_kernel_is_read() {
    let (end, ended) = mpsc::channel::<()>();
    let wait = move || _ = ended.recv();
    let (names, _) = sampled(wait, Duration::from_millis(50), || drop(end));
    assert_shows_the_calls(&names);
}

#[test]
fn the_caller_is_sampled_as_well() {
    let mut frames = Vec::new();
    outer(|| _ = fibra_insight::unwinder().sample(own_tid(), &mut frames));
    assert_shows_the_calls(&names(&frames));
}

#[test]
fn a_thread_that_is_gone_has_no_stack() {
    let mut frames = Vec::new();
    let tid = thread::spawn(own_tid).join().unwrap();
    // The kernel is done with it a little later.
    thread::sleep(Duration::from_millis(20));
    assert!(!fibra_insight::unwinder().sample(tid, &mut frames) && frames.is_empty());
}
