//! A program that handles the signal itself: a binary of its own, since the signal is the process's.

use std::ffi::c_int;
use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

mod common;

use common::{names, own_tid};

static HANDLED: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn handler(_: c_int) {
    HANDLED.store(true, Ordering::Relaxed);
}

#[test]
fn a_signal_with_a_handler_is_left_alone_and_another_can_be_named() {
    let handler = handler as extern "C" fn(c_int) as usize;
    // SAFETY: the handler stores to an atomic only.
    unsafe { libc::signal(libc::SIGRTMIN() + 3, handler) };
    let (tid, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        tid.send(own_tid()).unwrap();
        while !STOP.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
    });
    let tid = told.recv().unwrap();
    let mut frames = Vec::new();
    assert!(!fibra_insight::unwinder().sample(tid, &mut frames));
    assert!(frames.is_empty() && !HANDLED.load(Ordering::Relaxed));

    fibra_insight::sample_by(libc::SIGUSR2);
    fibra_insight::unwinder().sample(tid, &mut frames);
    STOP.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    let names = names(&frames);
    assert!(names.iter().any(|name| name.contains("signal::")), "{names:#?}");
}
