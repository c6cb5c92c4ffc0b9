//! Tasks: the handle, the allocation behind it, and how tasks are made, joined, parked and cancelled.
//!
//! | file | holds |
//! | --- | --- |
//! | `header.rs` | the untyped part of a task, and who may touch which field |
//! | `raw.rs` | the one allocation: header, closure, result |
//! | `join.rs` | the end of a task: `JoinHandle`, `JoinError` |
//! | `park.rs`, `parking.rs` | `park` and `unpark`, and the state of their token |
//! | `block_on.rs`, `signal.rs` | futures on a task, and the flag that their waker raises |
//! | `refs.rs` | how many vouch for a task |
//! | `cancel.rs`, `marks.rs` | the marks, and the unwinding |
//! | `bounds.rs` | what may end the code of a task early: deadlines, tokens, shields around it |
//! | `timeout.rs`, `token.rs` | `timeout`, `CancelToken` |
//! | `big_stack.rs` | code that needs more stack than its task has |
//! | `forbid.rs` | code that must not suspend |
//! | `shelf.rs` | memory of ended tasks, kept for new ones |
//! | `local.rs`, `locals.rs` | `task_local!`, and where the values live |
//! | `switch.rs` | hooks around the switches of a task |
//! | `quirks.rs` | what is unusual about a task that is about to switch |
//! | `scope.rs`, `family.rs` | tasks that borrow from their spawner, and what they share with it |
//! | `builder.rs` | `Builder` and the `spawn` family |
//!
//! # What a task may rely on
//!
//! A task that has started stays on the thread of its worker for life. Thread-locals, `Rc`, a held
//! [`std::sync::MutexGuard`] and everything else that is tied to a thread stay valid over every suspension. Limits that
//! remain, as in every library of stackful tasks:
//!
//! * Thread-locals that assume nesting in last-in-first-out order see the tasks of one worker interleave: `scoped-tls`,
//!   an entered tracing span, and std's lazy [`thread_local!`](std::thread_local) when its *initializer* suspends
//!   (two tasks may then initialize it, and the value that the first one borrowed is dropped under it). Do not suspend
//!   inside an initializer of a `thread_local!`; those with a `const` initializer are immune.
//!   [`Builder::on_switch`] puts such things right at each switch. For values of a task's own there is [`task_local!`](crate::task_local).
//! * [`std::process::exit`] drops the thread-locals of its thread one after the other, in the task that calls it. Do not suspend
//!   inside the *destructor* of a `thread_local!`, also of one with a `const` initializer: the tasks beside that one would go on,
//!   and may have borrowed what is gone. Where thread-locals have such destructors, end the process from a thread that runs no
//!   tasks: by returning from the main one, for example.
//! * A std lock that is held over a suspension blocks the whole worker if another task of that worker wants it. std holds one
//!   while a panic hook runs. A hook that is set after the first runtime was made runs in the task that panics; should it wait,
//!   a [`std::panic::set_hook`] or `take_hook` of another task of that worker waits for it for ever.
//! * An `extern "C"` frame between a cancellation point and the task's root aborts the process when it is unwound.
//! * After `fork` only `exec` is of use: the workers do not exist in the child.
//!
//! # Cancellation
//!
//! A task is asked to end by [`Task::cancel`] (or by the end of its runtime), a block of code inside it by the deadline of a
//! [`timeout`](crate::timeout) or by the token of a [`CancelToken::scope`]. Each is heeded at the next *cancellation point*,
//! which unwinds the stack as a panic does, but with a private payload: destructors run, no message is printed, and the
//! unwinding ends at the root of the task ([`JoinError::is_cancelled`]) or at the `timeout` or `scope` that caused it.
//! Where several have caused it, it ends at the outermost.
//!
//! | operation | a point? |
//! | --- | --- |
//! | [`sleep`](crate::sleep), [`yield_now`], [`park`](park()), [`check_cancelled`], [`yield_if_due`] | yes, also when nothing has to wait |
//! | [`JoinHandle::join`] | yes, while the task runs |
//! | the end of a [`scope`](scope()) | yes; it first cancels the children and waits for them |
//! | [`block_on`](crate::block_on) | yes, also when the future is ready at once |
//! | channels, events, semaphores, barriers, conditions, `select!` | yes; nothing that was received or acquired is lost by it |
//! | reads, writes, accepts and connects of sockets | yes, when they have to wait |
//! | [`unblock`](crate::unblock) | yes, before its closure has started; then it runs to its end and its value counts |
//! | locking a mutex or a read-write lock, also a condition's re-lock | no: the holder may be anybody |
//! | initializers of `Once`, `OnceCell`, `LazyLock`, and the wait for one | no |
//! | anything inside [`shield`] | no, for what was set up outside of it |
//! | anything while the task unwinds | no; I/O that has to wait then fails with `TimedOut`, from a panic once the task is cancelled |
//! | anything in what its end drops: task-locals, a result that nobody wants, what it never began with | no; I/O fails so once the task is cancelled, unless it is in a [`shield`] there |
//! | plain threads, [`spawn_blocking`] | no: [`is_cancelled`] tells nothing there |
//!
//! * **Priority.** A notification that came goes before a deadline that has passed, and that goes before a cancel.
//! * **An operation's own deadline** (`recv_timeout`) is a result of the operation; one around it is a cancellation.
//! * **Poisoning.** std's mutexes take the unwinding for a panic and are poisoned by it. Those of `fibra::sync` know no
//!   poisoning.
//! * **Swallowing.** Code that catches the unwinding with `catch_unwind` and goes on meets it again at its next point, is
//!   made to yield each time, and is named on standard error after a hundred times.
//! * **Before the start.** A task that is cancelled before it has run never enters its body; what its closure captured is
//!   dropped on a worker.
//! * **Destructors that wait.** They may, while their task unwinds from a panic too. Each suspension there takes some
//!   microseconds more, and the process keeps about a KiB for each of as many tasks as were ever suspended so at once. Where
//!   the system refuses a thread or memory for that, the process ends, with a message.
//! * **Foreign frames.** An `extern "C"` frame that is unwound aborts the process.
//!
//! ## Builds without unwinding
//!
//! With `panic = "abort"` nothing can be unwound, and a panic of any task ends the process. A cancellation, of a task, by a
//! deadline or by a token, is then a wish that the code looks at by itself:
//!
//! | what | does when it is cancelled |
//! | --- | --- |
//! | [`is_cancelled`] | says so, as ever; [`check_cancelled`] and all other points do nothing |
//! | reads, writes, accepts and connects of sockets | fail with `TimedOut` instead of waiting |
//! | an operation with a limit of its own ([`park_timeout`], `recv_timeout`, [`JoinHandle::join_timeout`]) | ends as if that had passed |
//! | an operation without one ([`park`](park()), [`sleep`](crate::sleep), `recv`, [`JoinHandle::join`], [`unblock`](crate::unblock)) | goes on until it has what it waits for |
//! | [`timeout`](crate::timeout), [`CancelToken::scope`] | return the value of their closure, however late it comes |
//! | a [`scope`](scope()), [`join`](crate::join), [`race`](fn@crate::race) | tell their children, and wait for them |
//! | a task that has not started | is dropped un-run; but all that take part in a race run |
//!
//! So a loop asks [`is_cancelled`] in each round, and what may take long is given a limit. A task that is told again and
//! again and goes on is made to yield and is named after a hundred times, as one that swallows its unwinding; and the end
//! of a runtime waits for every task that does not end by itself, and after five seconds names them.

mod big_stack;
mod block_on;
pub(crate) mod bounds;
mod builder;
pub(crate) mod cancel;
mod family;
pub(crate) mod forbid;
mod header;
mod join;
mod join_state;
mod local;
pub(crate) mod locals;
mod marks;
mod park;
mod parking;
mod quirks;
pub(crate) mod raw;
mod refs;
mod scope;
pub(crate) mod shelf;
mod signal;
mod stop;
mod switch;
mod timeout;
mod token;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{RefUnwindSafe, UnwindSafe};

#[doc(hidden)]
pub use crate::blocking::heed_end;
pub use big_stack::on_big_stack;
pub use block_on::block_on;
pub use bounds::shield;
pub(crate) use builder::discard_here;
pub use builder::{Builder, spawn, spawn_blocking, spawn_local, unconstrained, yield_now};
#[doc(hidden)]
pub use builder::{spawn_call, spawn_long_call, spawn_servant};
pub use cancel::{check_cancelled, is_cancelled, yield_if_due};
pub use forbid::{ForbidSuspend, forbid_suspend};
pub(crate) use header::{Header, Nature, TaskRef};
pub(crate) use join::UntilDone;
pub use join::{JoinError, JoinHandle};
#[doc(hidden)]
pub use join_state::Joiner;
pub(crate) use join_state::{Join, JoinState};
pub use local::{AccessError, TaskLocal};
pub use park::{park, park_timeout};
pub(crate) use raw::Kin;
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use switch::Switch;
pub use timeout::{Elapsed, timeout, timeout_at};
pub use token::{CancelToken, Cancelled, DropGuard};

use crate::current as here;

/// A handle to a task: cheap to clone, keeps the task's record but not its result.
pub struct Task(TaskRef);

impl Task {
    /// # Safety
    /// The caller gives one of its counts.
    pub(crate) unsafe fn from_count(task: TaskRef) -> Self {
        Task(task)
    }

    /// Makes a handle with a count of its own; the caller vouches for the task being alive.
    pub(crate) fn counted(task: TaskRef) -> Self {
        task.retain();
        Task(task)
    }

    pub(crate) fn as_ref(&self) -> TaskRef {
        self.0
    }

    pub(crate) fn header(&self) -> &Header {
        self.0.header()
    }

    /// The number of the task, of which no other task of this process has the same.
    pub fn id(&self) -> u64 {
        self.header().id
    }

    /// The name it was built with.
    pub fn name(&self) -> Option<&str> {
        self.header().name()
    }

    /// True once the task has ended.
    pub fn is_finished(&self) -> bool {
        self.header().join.is_done()
    }

    /// Asks the task to end: its next cancellation point unwinds it, and if it never ran its body is not entered.
    ///
    /// Destructors run as in a panic, but no message is printed. What the cancellation points are, and what happens to code
    /// that catches the unwinding, is told in the [module's docs](crate::task#cancellation).
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl Clone for Task {
    fn clone(&self) -> Self {
        Task::counted(self.0)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: this handle owns a count and is gone after this.
        unsafe { self.0.release() }
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Task {}

impl Hash for Task {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

// What a handle does to a task is atomic, so a panic between two uses leaves nothing half done.
impl UnwindSafe for Task {}
impl RefUnwindSafe for Task {}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "task '{name}' (id {})", self.id()),
            None => write!(f, "task (id {})", self.id()),
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Task");
        out.field("id", &self.id()).field("name", &self.name()).field("finished", &self.is_finished());
        out.finish()
    }
}

/// The task that this code runs in.
///
/// # Panics
/// On a thread that runs no task; [`try_current`] answers `None` there.
///
/// # Examples
/// ```
/// # use fibra_runtime::{self as fibra, task};
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let handle = task::Builder::new().name("greeter").spawn(|| task::current().name().unwrap().to_owned());
/// assert_eq!(handle.join().unwrap(), "greeter");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn current() -> Task {
    try_current()
        .expect("this thread runs no task: call from inside `fibra::run`, `Runtime::run` or a spawned task")
}

/// The task that this code runs in, if it runs in one.
pub fn try_current() -> Option<Task> {
    here::task().map(Task::counted)
}
