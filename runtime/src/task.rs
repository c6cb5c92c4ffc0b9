//! Tasks: their spawn, join, park and cancellation, and what they may rely on.
//!
//! # What a task may rely on
//!
//! A task that has started stays on the thread of its worker for life. Thread-locals, `Rc`, a held
//! [`std::sync::MutexGuard`] and everything else that is tied to a thread stay valid over every suspension. Limits that
//! remain, as in every library of stackful tasks:
//!
//! * Thread-locals that assume nesting in last-in-first-out order see the tasks of one worker interleave: `scoped-tls`,
//!   an entered tracing span (unless the crate `fibra` has the feature `tracing`), and std's lazy
//!   [`thread_local!`](std::thread_local) when its *initializer* suspends
//!   (two tasks may then initialize it, and the value that the first one borrowed is dropped under it). Do not suspend
//!   inside an initializer of a `thread_local!`; those with a `const` initializer are immune.
//!   [`Builder::on_switch`] puts such things right at each switch, or that of a [runtime](crate::Builder::on_switch) for all its
//!   tasks. For values of a task's own there is [`task_local!`](crate::task_local).
//! * [`std::process::exit`] drops the thread-locals of its thread in sequence, in the task that
//!   calls it. Do not suspend inside the *destructor* of a `thread_local!`, even with a `const`
//!   initializer. Other tasks of the worker would go on, and may have borrowed a dropped value.
//!   Where thread-locals have such destructors, end the process from a thread that runs no tasks,
//!   for example by a return from `main`.
//! * A std lock that is held over a suspension blocks the whole worker if another task of that
//!   worker wants it. std holds a lock while a panic hook runs. A hook that is set after the first
//!   runtime was made runs in the task that panics. If it waits, a [`std::panic::set_hook`] or
//!   `take_hook` of another task of that worker waits for it for ever.
//! * An `extern "C"` frame between a cancellation point and the task's root aborts the process when it is unwound.
//! * After `fork` only `exec` is of use: the workers do not exist in the child.
//!
//! # Cancellation
//!
//! A task is asked to end by [`Task::cancel`] (or by the end of its runtime), a block of code inside it by the deadline of a
//! [`timeout`] or by the token of a [`CancelToken::scope`]. Each takes effect at the next *cancellation point*,
//! which unwinds the stack as a panic does, but with a private payload: destructors run, no message is printed, and the
//! unwinding ends at the root of the task ([`JoinError::is_cancelled`]) or at the `timeout` or `scope` that caused it.
//! Where several have caused it, it ends at the outermost.
//!
//! | operation | a point? |
//! | --- | --- |
//! | [`sleep`](crate::sleep()), [`yield_now`], [`park`](park()), [`check_cancelled`], [`yield_if_due`] | yes, also when nothing has to wait |
//! | [`JoinHandle::join`] | yes, while the task runs |
//! | the end of a [`scope`](scope()) | yes; it first cancels the children and waits for them |
//! | [`block_on`] | yes, also when the future is ready at once |
//! | channels, events, semaphores, barriers, conditions, `select!` | yes; nothing that was received or acquired is lost by it |
//! | reads, writes, accepts and connects of sockets | yes, when they have to wait |
//! | [`unblock`](crate::unblock) | yes, before its closure has started; then it runs to its end and its value counts |
//! | locking a mutex or a read-write lock, also a condition's re-lock | no: the holder may need it to unwind |
//! | initializers of `Once`, `OnceCell`, `LazyLock`, and the wait for one | no |
//! | anything inside [`shield`] | no, for what was set up outside of it |
//! | anything while the task unwinds | no; I/O that has to wait then fails with `TimedOut`, from a panic once the task is cancelled |
//! | destructors at task exit: locals, unclaimed result, unstarted closure | no; I/O fails so once the task is cancelled, unless it is in a [`shield`] there |
//! | plain threads, [`spawn_blocking`] | for a [`timeout`] there, except calls in the system that run in place |
//!
//! * **Priority.** A notification has precedence over a passed deadline, and a deadline over a
//!   cancel.
//! * **An operation's own deadline** (`recv_timeout`) is a result of the operation; an enclosing
//!   deadline is a cancellation.
//! * **Poisoning.** std's mutexes take the unwinding for a panic and are poisoned by it. Those of `fibra::sync` know no
//!   poisoning.
//! * **Swallowing.** Code that catches the unwinding with `catch_unwind` and goes on meets it again at its next point, is
//!   made to yield each time, and is named on standard error after a hundred times.
//! * **Before the start.** A task that is cancelled before it has run never enters its body; what its closure captured is
//!   dropped on a worker.
//! * **Destructors that wait.** A wait in a destructor is a cancellation point where its task does not unwind: the unwinding
//!   leaves the destructor half done, and the rest of a map or a foreign guard leaks. So wait in a [`shield`] in `drop`, and keep
//!   foreign values whose destructors wait in a [`Shielded`]. This library shields what it drops: messages in a channel,
//!   replaced messages, unclaimed results, values of the losers of a race, task-locals.
//! * **Destructors that wait in an unwinding** are no points. Each suspension there takes some
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
//! | an operation without one ([`park`](park()), [`sleep`](crate::sleep()), `recv`, [`JoinHandle::join`], [`unblock`](crate::unblock)) | goes on until it has what it waits for |
//! | [`timeout`], [`CancelToken::scope`] | return the value of their closure, however late it comes |
//! | a [`scope`](scope()), [`join`](fn@crate::join), [`race`](fn@crate::race) | tell their children, and wait for them |
//! | a task that has not started | is dropped un-run; but all that take part in a race run |
//!
//! So let a loop poll [`is_cancelled`] in each round, and give long operations a limit. A task that
//! is told again and again and goes on is made to yield, and is named after a hundred times, like a
//! task that swallows its unwinding. The end of a runtime waits for every task that does not end by
//! itself, and names these tasks after five seconds.

#![forbid(unsafe_code)]

pub use crate::api::big_stack::on_big_stack;
pub use crate::api::block_on::block_on;
pub use crate::api::builder::Builder;
pub use crate::api::cancel_token::{CancelToken, Cancelled, DropGuard};
pub use crate::api::join_handle::JoinHandle;
pub use crate::api::park::{park, park_timeout};
pub use crate::api::scope::{Scope, ScopedJoinHandle, scope};
pub use crate::api::spawn::spawn_call;
pub use crate::api::spawn::{spawn, spawn_blocking, spawn_local};
pub use crate::api::task_local::{AccessError, TaskLocal};
pub use crate::api::timeout::{Elapsed, timeout, timeout_at};
pub use crate::api::yield_now::{unconstrained, yield_now};
pub use crate::base::unwinder::Symbol;
#[doc(hidden)]
pub use crate::blocking::unblock::end_with_runtime;
pub use crate::runtime::deadlock::Deadlock;
pub use crate::runtime::dump::Dump;
#[doc(hidden)]
pub use crate::runtime::spawn_on::spawn_internal;
pub use crate::runtime::wait_graph::WaitGraph;
pub use crate::scheduler::backtrace::{Backtrace, Frame};
pub use crate::scheduler::waits::TaskDump;
pub use crate::scheduler::waits_for::{Owner, WaitsFor};
pub use crate::sleep::cancel_points::{check_cancelled, is_cancelled, yield_if_due};
pub use crate::tasks::forbid::{ForbidSuspend, forbid_suspend};
pub use crate::tasks::hook_maker::NewTask;
pub use crate::tasks::join_error::JoinError;
pub use crate::tasks::shield::{Shielded, shield};
pub use crate::tasks::sleeper::TaskState;
pub use crate::tasks::switch_hook::Switch;
pub use crate::tasks::task::{Task, current, try_current};
pub use crate::waiter::description::{Direction, EndedBy};
