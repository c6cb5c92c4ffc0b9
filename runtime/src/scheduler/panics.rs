//! Panics of tasks: the message that names the task, and the count that std keeps per thread.
//!
//! std counts the panics under way on each thread. A task that suspends while it unwinds (a destructor that locks or
//! joins) would leave its panic in its thread's count: the tasks beside it would read `panicking()` as true, and poison
//! mutexes that they rightly hold. So when a task is off its stack with panics under way, the worker moves them out
//! of the count, and moves them back in before it resumes the task.
//!
//! The count is std's own and has no setter. What can change it is a panic. A credit is a panic that is held in the middle by a
//! small coroutine, [`Credits`]: raised on one thread it adds one to that thread's count, allowed to be caught on another it
//! takes one from that one's. Both halves are what std does for any panic; that they happen on two threads is what moves the
//! count.
//!
//! ```text
//!  task suspends, panicking           settle a raised credit here   −1; the task owes 1
//!  task is to be resumed, owes 1      raise a credit here           +1; the task owes 0
//! ```
//!
//! The first are raised on a helper thread that ends right after, when the first task of the process suspends while it unwinds,
//! and wherever more do at once than ever before. From then on it costs a few microseconds per suspension, and only there. None
//! is raised before it is needed: as long as no panic is under way anywhere `panicking()` is one look at a word, and each lock
//! and unlock of a std mutex asks it. The price: where no thread or no stack can be had at that moment the process ends, with a
//! message; and once no task owes any more, as many credits stay raised as were ever owed at once, some hundreds of bytes each.
//! In a build with `panic = "abort"` no task suspends so: who is counted there is about to end the process.
//!
//! Rejected: a stack for each credit. It keeps two pages or more of memory, and thousands of tasks owe at once where thousands
//! of connections are cancelled whose destructors wait.

use std::fmt;
use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, MutexGuard, Once};
use std::thread;

use crate::base::abort::{Bomb, say};
use crate::base::limit::Refusal;
use crate::coroutine::credit::Credits;
use crate::scheduler::current;
use crate::scheduler::driver_here;
use crate::scheduler::task_panic::TaskPanic;
use crate::tasks::cancel::CAN_UNWIND;
use crate::tasks::context;
use crate::tasks::task::Task;

/// All credits of the process, by how many of theirs are raised.
struct Purse {
    none: Vec<Credits>,
    some: Vec<Credits>,
    all: Vec<Credits>,
}

static PURSE: Mutex<Purse> = Mutex::new(Purse { none: Vec::new(), some: Vec::new(), all: Vec::new() });

impl Purse {
    fn put(&mut self, credits: Credits) {
        let shelf = match credits.raised() {
            0 => &mut self.none,
            Credits::MOST => &mut self.all,
            _ => &mut self.some,
        };
        shelf.push(credits);
    }
}

/// The lock is not held while credits are raised or settled: its guard would be poisoned by the very count that is changed.
fn purse() -> MutexGuard<'static, Purse> {
    PURSE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Takes all panics out of this thread's count, and tells how many those were.
#[cold]
pub(crate) fn take_out() -> u32 {
    let mut taken = 0;
    while CAN_UNWIND && thread::panicking() {
        let mut credits = with_raised();
        credits.settle();
        purse().put(credits);
        taken += 1;
    }
    taken
}

/// Puts so many panics that were taken out back into this thread's count.
#[cold]
pub(crate) fn put_back(taken: u32) {
    for _ in 0..taken {
        let mut credits = with_room();
        credits.raise();
        purse().put(credits);
    }
}

/// Takes some of which one can be raised.
fn with_room() -> Credits {
    let spare = {
        let mut purse = purse();
        purse.some.pop().or_else(|| purse.none.pop())
    };
    spare.unwrap_or_else(|| had(Credits::new()))
}

/// Takes some of which one is raised.
fn with_raised() -> Credits {
    let spare = {
        let mut purse = purse();
        purse.some.pop().or_else(|| purse.all.pop())
    };
    spare.unwrap_or_else(raise_elsewhere)
}

/// Raises some on another thread, where there are none to spare.
fn raise_elsewhere() -> Credits {
    let raise = || {
        let mut credits = with_room();
        while credits.raised() < Credits::MOST {
            credits.raise();
        }
        credits
    };
    let builder = thread::Builder::new().name("fibra-credit".to_owned());
    let helper = driver_here::unpinned(|| builder.spawn(raise));
    let helper = had(helper.map_err(|error| Refusal::of_thread("a thread for that", error)));
    helper.join().expect("raising a credit does not panic outwards")
}

/// What credits need, or the end of the process: a panic that stayed in the count would be everybody's.
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
/// Not by a thread that panics, which may not change the hook; the next one that makes a runtime does it then. (Rejected: another thread on its
/// behalf. That one would have to wait until no hook is running, and keep waiting whoever else panics meanwhile: those for
/// whom the running hook waits as well.)
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
    let _in_hook = context::enter_hook();
    let call = OnThisThread(|| report_of(Task::counted(task), previous, info));
    // SAFETY: the hook runs in the task that panics, on its stack, and waits do not suspend in here.
    unsafe { task.header().on_worker_stack(move || call.call()) }
}

/// Says which task panics, and has the hook of before say the rest; or has the hook of its runtime do both.
fn report_of(task: Task, previous: &(dyn Fn(&PanicHookInfo<'_>) + Send + Sync), info: &PanicHookInfo<'_>) {
    let runtime = current::runtime();
    match runtime.as_ref().and_then(|runtime| runtime.config.on_task_panic.as_deref()) {
        Some(hook) => {
            // A panic with a message is an abort here already, by std, which prints that message. One without goes on.
            let bomb = Bomb::of_user("the hook for panics of tasks has panicked");
            hook(&TaskPanic { task, info });
            bomb.defuse();
        }
        None => {
            say(format_args!("{task} panicked"));
            previous(info);
        }
    }
}

/// A closure that goes to another stack of the same thread.
struct OnThisThread<F>(F);

// SAFETY: it is called before `on_worker_stack` returns, on the same thread.
unsafe impl<F> Send for OnThisThread<F> {}

impl<F: FnOnce()> OnThisThread<F> {
    fn call(self) {
        (self.0)();
    }
}
