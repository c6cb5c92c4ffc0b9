#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod attributes;
mod readiness;
mod runtime;
pub mod signal;
#[cfg(feature = "tracing")]
pub mod tracing;

#[doc = include_str!("../DIFFERENCES.md")]
pub mod differences {}
#[doc = include_str!("../METRICS.md")]
pub mod metrics;
#[doc = include_str!("half_done.md")]
pub mod half_done {}

#[cfg(feature = "insight")]
pub use fibra_insight as insight;
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio", feature = "tokio-io"))]
pub use fibra_io::compat;
pub use fibra_io::{Pollable, fs, io, net, os, process};
/// Runs a function as the first task of a runtime.
///
/// The function becomes a plain one, which does what [`run`] does with the body: the calling thread is worker 0, and
/// the value may be of any type, `Result` and `!` included.
///
/// `workers = 4` sets the number of workers. Unless set it is that of [`Builder::workers`]. `start_paused = true`, with one
/// worker, makes time [virtual](crate::time#virtual-time). The other arguments of a [`test`](macro@test) are for tests only.
///
/// # Panics
/// The function panics as [`run`] does.
///
/// # Examples
/// ```
/// #[fibra::main(workers = 2)]
/// fn main() -> Result<(), fibra::JoinError> {
///     assert_eq!(fibra::Handle::current().workers(), 2);
///     assert_eq!(fibra::spawn(|| 6 * 7).join()?, 42);
///     Ok(())
/// }
/// ```
pub use fibra_macros::main;
/// Makes a function a test, whose body runs as a task.
///
/// The body may wait in every way, and return whatever a test of std may. The test has a runtime of its own, whose threads and
/// task have its name. What they print goes through the capture of the test harness. `#[ignore]`, `#[should_panic]` and
/// other attributes mean what they mean to `#[test]`.
///
/// # Arguments
///
/// | argument | sets |
/// | --- | --- |
/// | `workers = 4` | the number of workers; 1 unless set |
/// | `timeout = "500ms"` | how long the body may run, in real time: a number with `ms`, `s`, `m` or `h`; a minute unless set |
/// | `start_paused = true` | that time is [virtual](crate::time#virtual-time) ([`Builder::start_paused`]); with one worker |
///
/// Two more arguments run the body in simulations of the crate `fibra-sim`, which the test's crate has to depend on. Their failures
/// are those of that crate, and tasks that are left on the main host. `timeout` then limits the real time of each run: after
/// it the process tells the seed and what its tasks wait for, and exits.
///
/// | argument | sets |
/// | --- | --- |
/// | `seeds = 1000` | the number of runs, with the seeds from 0; 100 unless set |
/// | `schedule = "pct(3)"` | the schedule: `fifo`, `random`, `pct(depth)` or `exhaustive(preemptions)`; random unless set. The last two need a build with `--cfg fibra_sim` |
///
/// # Failures
///
/// A test fails as any test does: when the body panics, or returns an error. It also fails in the cases below. Its output then
/// names the tasks and tells what each of them waits for. With `#[should_panic]`, only a panic of the body passes.
///
/// * **A task panicked, and no caller has observed that**, because its handle was dropped or forgotten. A join of any kind
///   observes, whatever it does with the error; so does the scope of a task. An error that outlives the runtime, in a static,
///   does not count.
/// * **The body has returned, and tasks are left.** They get at least a second to end by themselves, after their sockets and
///   channels to the body have closed. The body looks 200 times, with a sleep of 5 ms before the next look. What is left then
///   is a leak: a task that sleeps, one that goes on, a closure on the blocking pool. A body that panics may leave tasks.
/// * **All tasks sleep in virtual time, and nothing can wake one.**
/// * **The body does not end in time.** It is cancelled, which unwinds it at its next
///   [cancellation point](crate::task#cancellation). If it panics nevertheless, the test fails with that panic.
///
/// A body that does not end within five seconds after that, or tasks that do not within five seconds of the runtime's end,
/// stay in the way of all other tests. So the process says what they wait for, and exits with code 101.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// #[fibra::test(workers = 2, timeout = "10s")]
/// fn a_message_arrives() -> Result<(), fibra::JoinError> {
///     let (sender, receiver) = fibra::sync::channel::bounded(1);
///     let late = fibra::spawn(move || {
///         fibra::sleep(Duration::from_millis(5));
///         sender.send("hello").unwrap();
///     });
///     assert_eq!(receiver.recv(), Ok("hello"));
///     late.join()
/// }
///
/// #[fibra::test]
/// #[should_panic = "no luck"]
/// fn a_panic_is_passed_on() {
///     fibra::spawn(|| panic!("no luck")).join().unwrap();
/// }
/// ```
pub use fibra_macros::test;
pub use fibra_runtime::{
    CancelToken, Elapsed, Handle, JoinError, JoinHandle, StackGuards, Stall, Task, TaskGroup, TaskPanic,
    block_on, join, parallel_for, parallel_for_each, parallel_map, race, race_local, scope, sleep,
    sleep_until, spawn, spawn_blocking, spawn_local, structured, task, task_local, time, timeout, timeout_at,
    unblock, yield_now,
};
#[doc(hidden)]
pub use fibra_runtime::{driver, wait};
pub use fibra_sync as sync;
pub use fibra_sync::{select, select_biased};
pub use readiness::Readiness;
pub use runtime::{Builder, Runtime, run};
