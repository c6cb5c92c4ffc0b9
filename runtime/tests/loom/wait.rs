//! The files of the wait core; and a sleeper that goes through them step by step as `wait/sleep.rs` does, without a stack to
//! leave.

#[path = "../../src/sleep/any.rs"]
pub(crate) mod any;
#[path = "../../src/waiter/select_token.rs"]
pub(crate) mod claim;
#[path = "../../src/waiter/description.rs"]
pub(crate) mod description;
#[path = "../../src/waiter/list.rs"]
pub(crate) mod list;
#[path = "../../src/base/spin_lock.rs"]
pub(crate) mod lock;
#[path = "../../src/sleep/polled.rs"]
pub(crate) mod polled;
#[path = "../../src/sleep"]
pub(crate) mod queues {
    pub(crate) mod queue;
}
#[path = "../../src/waiter/strategy.rs"]
pub(crate) mod strategy;
#[path = "../../src/waiter/thread.rs"]
pub(crate) mod thread;
#[path = "../../src/waiter/kind.rs"]
pub(crate) mod waiter;
#[path = "../../src/waiter/word.rs"]
pub(crate) mod word;

use std::cell::Cell;
use std::num::NonZeroU64;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};
use std::time::Instant;

use loom::sync::{Condvar, Mutex};

pub(crate) use any::{Arm, Chosen, Enlisted, Link, look_at_all, wait_any};
pub(crate) use claim::Claim;
pub(crate) use description::{Direction, EndedBy, WaitDescription, WaitRecord};
pub(crate) use lock::{Lock, LockGuard};
pub(crate) use polled::Polled;
pub(crate) use queues::queue::arm::{ArmPolicy, ArmRules, QueueArm};
pub(crate) use queues::queue::lane::Lent;
pub(crate) use queues::queue::wait::{Admit, Left, Outcome, Until};
pub(crate) use queues::queue::waiters::Waiters;
pub(crate) use queues::queue::{LockedQueue, WaitQueue};
pub(crate) use strategy::{Asleep, WaitStrategy, Waking, Withdrawal};
pub(crate) use waiter::{Kind, RawWake, Waiter, WakeHandle, call_waker, wake_each};
use word::{CancelPolicy, Epoch, Fallen, Snapshot, Woke, Word};

/// Sleeps as a plain thread does.
pub(crate) fn sleep(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    thread::sleep(how, deadline, |done| done())
}

/// As `sleep`: no task can cancel a thread.
pub(crate) fn sleep_shielded(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    thread::sleep(how, deadline, |done| done())
}

/// As `sleep`: no task can cancel a thread.
pub(crate) fn sleep_or_cancel(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    thread::sleep(how, deadline, |done| done())
}

/// As `sleep`: no task can cancel a thread.
pub(crate) fn sleep_or_fail(how: &impl WaitStrategy, deadline: Option<Instant>) -> Waking {
    thread::sleep(how, deadline, |done| done())
}

/// Does nothing: no task can cancel a thread.
pub(crate) fn checkpoint() {}

/// Does nothing: no task can cancel a thread.
pub(crate) fn cancellation_point() {}

/// Allows a spin: a thread has no cancellation to check.
pub(crate) fn checkpoint_before_spin() -> bool {
    true
}

pub(crate) const CAN_UNWIND: bool = true;

pub(crate) fn unwind_cancelled() -> ! {
    unreachable!("no task can cancel a thread")
}

/// A thread has no driver.
pub(crate) fn sleep_by_driver<Id>(
    _wakes: impl FnOnce(Id) -> bool,
    _how: &impl WaitStrategy,
) -> Option<Waking> {
    None
}

/// A deadline that is over: the sleep ends in any of the moments after its begin that loom explores.
pub(crate) fn over() -> Instant {
    Instant::now()
}

/// How often a spin looks.
#[derive(Clone, Copy)]
pub(crate) enum Looks {
    Often,
    Seldom,
}

/// One look stands for a spin.
pub(crate) fn back_off_until(_looks: Looks, mut done: impl FnMut() -> bool) -> bool {
    done()
}

/// A thread has no turn that could be used up.
pub(crate) fn charge() {}

/// As `charge`.
pub(crate) fn charge_after() {}

/// Does nothing: loom decides on the order of the threads.
pub(crate) fn point() {}

/// A polled future has no budget either.
pub(crate) fn charge_poll() -> bool {
    false
}

/// A thread may always wait.
pub(crate) fn may_suspend() -> bool {
    true
}

/// Does nothing: a thread may always wait.
pub(crate) fn check_may_suspend() {}

pub(crate) fn sleep_to(_deadline: Option<Instant>) {
    unreachable!("no model waits for a time alone");
}

pub(crate) fn sleep_within(deadline: Option<Instant>) {
    sleep_to(deadline);
}

/// What panics in a model ends it anyway.
pub(crate) fn take_back<T>(take: impl FnOnce() -> T) -> T {
    take()
}

loom::thread_local! {
    static OWNER: Cell<u64> = Cell::new(1);
}

/// From here on the calling thread is number `number` among the owners of locks, in place of 1.
pub(crate) fn own_as(number: u64) {
    OWNER.with(|owner| owner.set(number));
}

pub(crate) fn owner() -> NonZeroU64 {
    NonZeroU64::new(OWNER.with(Cell::get)).expect("numbers begin with 1")
}

pub(crate) fn describe_caller() -> String {
    format!("thread {}", owner())
}

/// The head of a task, reduced to what a sleep and its wakers touch.
#[repr(C)]
pub(crate) struct Sleeper {
    waiter: Waiter,
    /// Stands for the queue in which a woken task waits. Outlives the sleeper, as a queue does.
    queue: Arc<Tickets>,
    /// How often it was queued. Of std: a count of the model, not of the modelled.
    queued: AtomicU32,
    /// How often it left its stack for good, and was taken out of the queue.
    left: AtomicU32,
}

static KIND: Kind = Kind { notify: waiter::notify_by_word, queue };

impl Deref for Sleeper {
    type Target = Waiter;

    fn deref(&self) -> &Waiter {
        &self.waiter
    }
}

impl Sleeper {
    pub(crate) fn new() -> Arc<Self> {
        let sleeper = Sleeper {
            waiter: Waiter::new(&KIND),
            queue: Arc::new(Tickets::new()),
            queued: AtomicU32::new(0),
            left: AtomicU32::new(0),
        };
        Arc::new(sleeper)
    }

    /// The present sleep, for raw wakes.
    pub(crate) fn handle(&self) -> WakeHandle<'_> {
        WakeHandle::new(NonNull::from(self).cast::<Waiter>(), &())
    }

    /// The right to wake the present sleep once. Its publisher keeps the sleeper until then, as a strategy does.
    pub(crate) fn raw(&self) -> RawWake {
        // SAFETY: the models hold each sleep to what is said there.
        unsafe { self.handle().raw() }
    }

    /// What a waker does with the answer of its wake.
    pub(crate) fn settle(&self, woke: Woke) {
        if woke == Woke::Queue {
            self.queue();
        }
    }

    fn queue(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        // The sleeper may go with the ticket.
        let queue = Arc::clone(&self.queue);
        queue.put();
    }

    pub(crate) fn queued(&self) -> u32 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Once all wakers have ended: no waker queued it unless it was asleep.
    pub(crate) fn assert_even(&self) {
        assert_eq!(self.queued(), self.left.load(Ordering::Relaxed), "queued as often as it slept");
    }

    /// One that stays on its worker, which is the calling thread, and has slept there.
    pub(crate) fn at_home() -> Arc<Self> {
        let sleeper = Self::new();
        let _ = sleeper.word.begin(false);
        assert_eq!(sleeper.word.fall_asleep_at_home(), Fallen::Asleep);
        sleeper.settle(sleeper.word.notify_at_home());
        sleeper.take_turn();
        sleeper
    }

    /// True if it is queued.
    pub(crate) fn is_ready(&self) -> bool {
        self.queued() > self.left.load(Ordering::Relaxed)
    }

    /// Runs again, once it is queued.
    pub(crate) fn take_turn(&self) {
        self.queue.take();
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    /// Off the stack until queued. True if it had to be.
    pub(crate) fn leave_stack(&self) -> bool {
        self.leave_stack_and(|| ())
    }

    /// The same; `meanwhile` is what its worker does once it is off its stack.
    pub(crate) fn leave_stack_and(&self, meanwhile: impl FnOnce()) -> bool {
        let asleep = self.word.fall_asleep() == Fallen::Asleep;
        if asleep {
            meanwhile();
            self.take_turn();
        }
        asleep
    }

    /// Until the notification lands that is on its way.
    pub(crate) fn await_landing(&self) {
        while !self.word.await_landing() {
            self.leave_stack();
        }
    }

    /// Begins a sleep as a task does that does not spin: with AT_HOME it is asleep from now on.
    pub(crate) fn begin_at_once(&self) -> Epoch {
        self.word.begin_in_task(CancelPolicy::Open, true)
    }

    /// As `Worker::settle`, of a task that stays there: true if it is asleep, and has to be queued.
    pub(crate) fn fall_at_home(&self) -> bool {
        self.word.is_down() || self.word.fall_asleep_at_home() == Fallen::Asleep
    }

    /// Off the stack on its home worker until queued; `meanwhile` is what that worker does once it is off its stack.
    pub(crate) fn leave_stack_at_home_and(&self, meanwhile: impl FnOnce()) {
        if self.fall_at_home() {
            meanwhile();
            self.take_turn();
        }
    }

    /// Goes on without a sleep; true if it has not had to leave its stack for that.
    pub(crate) fn stay(&self) -> bool {
        let rises = self.word.rise();
        if !rises {
            self.leave_stack_at_home_and(|| ());
        }
        rises
    }

    /// Until the notification lands that is on its way, of a task with AT_HOME.
    pub(crate) fn await_landing_at_home(&self) {
        while !self.word.await_landing() {
            self.leave_stack_at_home_and(|| ());
        }
    }
}

unsafe fn queue(waiter: NonNull<Waiter>) -> Option<Waker> {
    // SAFETY: a waiter of this kind is the first field of a sleeper, which stays until it is queued.
    unsafe { waiter.cast::<Sleeper>().as_ref() }.queue();
    None
}

/// Wake-ups that are counted and kept: a queue of ready tasks, the driver in which a worker parks, or the thread that polls a
/// future.
pub(crate) struct Tickets {
    count: Mutex<u32>,
    more: Condvar,
}

impl Tickets {
    pub(crate) fn new() -> Self {
        Tickets { count: Mutex::new(0), more: Condvar::new() }
    }

    pub(crate) fn put(&self) {
        *self.count.lock().unwrap() += 1;
        self.more.notify_one();
    }

    pub(crate) fn take(&self) {
        let mut count = self.count.lock().unwrap();
        while *count == 0 {
            count = self.more.wait(count).unwrap();
        }
        *count -= 1;
    }
}

impl Wake for Tickets {
    fn wake(self: Arc<Self>) {
        self.put();
    }
}

/// Identifies a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorkerId(usize);

impl WorkerId {
    pub(crate) fn is_current(self) -> bool {
        current_worker() == Some(self)
    }
}

/// Returns `None`: the waiters are threads.
pub(crate) fn current_worker() -> Option<WorkerId> {
    None
}

/// The order of priority in which `wait/sleep.rs` reads the word.
pub(crate) fn waking(why: Snapshot) -> Waking {
    match (why.notified, why.timed_out) {
        (true, _) => Waking::Notified,
        (false, true) => Waking::TimedOut,
        (false, false) => Waking::Cancelled,
    }
}

/// Counts nothing.
pub(crate) struct LockWait;

impl LockWait {
    pub(crate) fn begin() -> Self {
        LockWait
    }
}
