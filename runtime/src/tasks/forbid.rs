//! Forbids suspensions in a piece of code.

#![forbid(unsafe_code)]

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Once;

use crate::base::abort::say;
use crate::base::memory;
use crate::tasks::context;
use crate::tasks::header::Header;
use crate::tasks::task;
use crate::tasks::task::Task;
use crate::waiter::description::{self, WaitRecord};

/// Makes a suspension a panic until it is dropped; see [`forbid_suspend`].
#[must_use = "a suspension is forbidden until this is dropped"]
pub struct ForbidSuspend {
    task: Option<Task>,
    not_send: PhantomData<*const ()>,
}

/// Forbids the running task to suspend until the guard is dropped.
///
/// A wait that would have to sleep, and a `yield_now`, panic instead, at their call site. The guard
/// is for code that holds a std lock or a reference to a thread-local that other tasks of the
/// worker use as well.
///
/// Operations that complete without a wait are not affected, and the operation budget is not
/// enforced meanwhile. Guards nest. Off a task the guard does nothing.
///
/// # Panics
/// This function never panics, but a forbidden suspension does. In a destructor that runs during a
/// panic, that ends the process. A forbidden wait also ends the process where memory of another
/// task depends on it: at the end of a scope that has tasks, or of a `join` whose second half was
/// taken, if the guard was made meanwhile.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let sleepy = fibra::spawn(|| {
///     let _here = task::forbid_suspend();
///     fibra::yield_now();
/// });
/// assert!(sleepy.join().unwrap_err().is_panic());
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn forbid_suspend() -> ForbidSuspend {
    let task = task::try_current();
    if let Some(task) = &task {
        task.header().forbid();
    }
    ForbidSuspend { task, not_send: PhantomData }
}

impl Drop for ForbidSuspend {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.header().permit();
        }
    }
}

/// Panics if the caller is a task that must not suspend.
///
/// For operations that give something up before they may have to wait to get it back, and must not
/// unwind between the two.
///
/// # Panics
/// Where [`forbid_suspend`] forbids a suspension.
#[track_caller]
pub fn check_may_suspend() {
    if let Some(task) = context::task() {
        check(task.header());
    }
}

/// Panics if the caller must not wait for other tasks, be it a task or a plain thread.
#[track_caller]
pub(crate) fn check_may_await_tasks() {
    check_may_suspend();
    if context::task().is_none() {
        check_thread_wait(|| "other tasks".to_owned());
    }
}

/// Returns true unless [`forbid_suspend`] is in force here.
pub fn may_suspend() -> bool {
    context::task().is_none_or(|task| !task.header().is_forbidden())
}

/// Panics if the running task, whose header this is, must not suspend.
#[inline]
#[track_caller]
pub(crate) fn check(header: &Header) {
    if header.is_forbidden() {
        forbidden();
    }
}

#[cold]
#[track_caller]
fn forbidden() -> ! {
    panic!("{} would suspend where `forbid_suspend` forbids it", task::current())
}

thread_local! {
    /// What waits on this plain thread would hold up; none where they may wait.
    static SERVES: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Makes waits on the calling plain thread panic from now on: it runs all tasks of the runtime `whom`.
///
/// Locks still wait, since their holders let go of them soon. The first contended one of the process
/// is reported on standard error, with its place.
pub fn forbid_thread_waits(whom: &'static str) {
    SERVES.set(Some(whom));
}

/// Panics if the running task, whose header this is, must not wait for what the record tells.
#[inline]
#[track_caller]
pub(crate) fn check_wait(header: &Header, record: *const WaitRecord) {
    if header.is_forbidden() {
        panic!(
            "{} would wait for {} where `forbid_suspend` forbids it, as in a poll of `compat::tokio::block_on`: await \
             its async form there, or do it in a task of its own",
            task::current(),
            name_of(record)
        );
    }
}

/// Panics if this plain thread must not wait for what the record tells.
#[inline]
#[track_caller]
pub(crate) fn check_thread_wait(name: impl FnOnce() -> String) {
    if let Some(whom) = SERVES.get() {
        let name = name();
        panic!(
            "a wait for {name} would block the only thread of {whom}, and so all of its tasks: await its async form there, \
             or move the call to a task of fibra (`Handle::spawn`), whose handle is a future"
        );
    }
}

/// Reports the first contended lock on a thread that must not wait.
#[track_caller]
pub(crate) fn note_thread_lock(record: *const WaitRecord) {
    static REPORTED: Once = Once::new();
    let place = Location::caller();
    if let Some(whom) = SERVES.get() {
        REPORTED.call_once(|| {
            let frames = Backtrace::force_capture();
            let name = name_of(record);
            say(format_args!(
                "a contended {name}, locked at {place}, blocks the only thread of {whom}, and so all of its tasks, until it \
                 is free\n{frames}"
            ));
        });
    }
}

/// Names a wait and the address of its object.
pub(crate) fn name_of(record: *const WaitRecord) -> String {
    match description::interpret(record.addr(), &mut memory::read) {
        Some(found) => format!("{} at {:#x}", found.name, found.object),
        None => "something".to_owned(),
    }
}
