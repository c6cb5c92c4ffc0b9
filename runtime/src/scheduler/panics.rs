//! Panics of tasks: the message that names the task, and the count that std keeps per thread.
//!
//! std counts the panics under way on each thread. A task may suspend while it unwinds (a
//! destructor that locks or joins). Its panic would stay in its thread's count. Other tasks on that
//! thread would read `panicking()` as true, and poison mutexes that they rightly hold. So when a
//! task is off its stack with panics under way, the worker moves them out of the count, and moves
//! them back in before it resumes the task.
//!
//! The count is std's own and has no setter. What can change it is a panic. A [`PanicCounter`] is a small coroutine that holds
//! panics in the middle. A panic raised on one thread adds one to that thread's count. Caught on another thread it subtracts
//! one from the count of that thread. std does both for any panic; only the two different threads
//! move the count.
//!
//! ```text
//!  task suspends, panicking           settle a held panic here   −1; the task owes 1
//!  task is to be resumed, owes 1      raise a held panic here    +1; the task owes 0
//! ```
//!
//! The first panics are raised on a helper thread that ends right after: when the first task of the process suspends while it
//! unwinds, and when more tasks do so at once than ever before. From then on it costs a few microseconds per suspension, and
//! only there. No panic is raised before it is needed: while none is under way anywhere, `panicking()` reads one word, and each
//! lock and unlock of a std mutex calls it. The price: if no thread or stack is left at that moment, the process aborts with a
//! message. Once no task owes any more, as many panics stay raised as were ever owed at once, some hundreds of bytes each. With
//! `panic = "abort"` no task suspends so: a panic there is about to end the process.
//!
//! Rejected: a stack for each panic. It takes two pages or more, and thousands of tasks owe at once where thousands of
//! connections are cancelled whose destructors wait.

use std::fmt;
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, MutexGuard, Once};
use std::thread;

use crate::base::abort::{Bomb, say};
use crate::base::limit::Refusal;
use crate::coroutine::panic_counter::PanicCounter;
use crate::scheduler::current;
use crate::scheduler::driver_here;
use crate::scheduler::task_panic::TaskPanic;
use crate::tasks::cancel::CAN_UNWIND;
use crate::tasks::context;
use crate::tasks::task::Task;

/// All panic counters of the process that no thread changes at the moment.
static COUNTERS: Mutex<Vec<PanicCounter>> = Mutex::new(Vec::new());

/// Locks the counters. Not held over a raise or a settle: the count that changes there would poison the guard.
fn counters() -> MutexGuard<'static, Vec<PanicCounter>> {
    COUNTERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Takes a counter that holds a fitting number of panics.
fn take_counter(fits: impl Fn(usize) -> bool) -> Option<PanicCounter> {
    let mut counters = counters();
    let place = counters.iter().rposition(|counter| fits(counter.raised()))?;
    Some(counters.swap_remove(place))
}

/// Takes all panics out of this thread's count, and returns how many there were.
#[cold]
pub(crate) fn take_out() -> u32 {
    let mut taken = 0;
    while CAN_UNWIND && thread::panicking() {
        let mut counter = take_counter(|raised| raised > 0).unwrap_or_else(raise_elsewhere);
        counter.settle();
        counters().push(counter);
        taken += 1;
    }
    taken
}

/// Adds `taken` panics to this thread's count.
#[cold]
pub(crate) fn put_back(taken: u32) {
    for _ in 0..taken {
        let mut counter = with_room();
        counter.raise();
        counters().push(counter);
    }
}

/// Takes a counter that can hold one more panic.
fn with_room() -> PanicCounter {
    let spare = take_counter(|raised| raised < PanicCounter::MOST);
    spare.unwrap_or_else(|| had(PanicCounter::new()))
}

/// Fills a counter on another thread, where none holds a panic.
fn raise_elsewhere() -> PanicCounter {
    let raise = || {
        let mut counter = with_room();
        while counter.raised() < PanicCounter::MOST {
            counter.raise();
        }
        counter
    };
    let builder = thread::Builder::new().name("fibra-panics".to_owned());
    let helper = driver_here::unpinned(|| builder.spawn(raise));
    let helper = had(helper.map_err(|error| Refusal::of_thread("a thread for that", error)));
    helper.join().expect("raising a held panic does not panic outwards")
}

/// Unwraps what a counter needs, or aborts: a panic that stayed in the count would be charged to other tasks.
fn had<T>(result: Result<T, impl fmt::Display>) -> T {
    result.unwrap_or_else(|error| {
        say(format_args!("a task cannot be suspended while it unwinds ({error}), aborting"));
        std::process::abort()
    })
}

/// Installs, once for the process, a panic hook that names the task before the hook that was there says the rest.
///
/// The hook that was there runs on the worker's stack, which is large enough for a backtrace; what it calls may not
/// switch to another task, so waits block the thread there. A hook that a user sets later replaces this one, and runs as
/// any code of the task.
///
/// A panicking thread may not change the hook, so it leaves that to the next thread that makes a
/// runtime. (Rejected: another thread on its behalf. That thread would have to wait until no hook
/// runs, while other threads may panic meanwhile, some of which the running hook may wait for.)
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    if thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| report(&*previous, info)));
    });
}

fn report(previous: &(dyn Fn(&PanicHookInfo<'_>) + Send + Sync), info: &PanicHookInfo<'_>) {
    let Some(task) = context::task() else {
        return match context::pool_task() {
            Some(task) => report_of(Task::counted(task), previous, info),
            None => previous(info),
        };
    };
    let _in_hook = context::enter_hook(task);
    let call = OnThisThread(|| report_of(Task::counted(*task), previous, info));
    // SAFETY: the hook runs in the task that panics, on its stack, and waits do not suspend in here.
    unsafe { task.header().on_worker_stack(move || call.call()) }
}

/// Names the panicking task and calls the previous hook for the rest, or calls the hook of its
/// runtime for both.
fn report_of(task: Task, previous: &(dyn Fn(&PanicHookInfo<'_>) + Send + Sync), info: &PanicHookInfo<'_>) {
    let runtime = current::runtime();
    match runtime.as_ref().and_then(|runtime| runtime.config.on_task_panic.as_deref()) {
        Some(hook) => {
            // A panic with a message is an abort here already, by std, which prints that message. One without goes on.
            let bomb = Bomb::of_user("the hook for panics of tasks has panicked");
            hook(&TaskPanic { task, info, previous });
            bomb.defuse();
        }
        None => {
            say(format_args!("{task} panicked"));
            previous(info);
        }
    }
}

/// Wraps a closure that runs on another stack of its thread.
struct OnThisThread<F>(F);

// SAFETY: it is called before `on_worker_stack` returns, on the same thread.
unsafe impl<F> Send for OnThisThread<F> {}

impl<F: FnOnce()> OnThisThread<F> {
    fn call(self) {
        (self.0)();
    }
}
