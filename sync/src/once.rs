//! Initialization that happens once.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use fibra_runtime::time;

use crate::turn;
use crate::wait::list::Node;
use crate::wait::{self, Asleep, Polled, WaitStrategy, WakeHandle, Waking, Withdrawal};

mod raw;

pub(crate) use raw::End;
use raw::{Begun, Phase, RawOnce, Role};

/// An initialization that happens once, whoever comes first.
///
/// A call that finds it done costs one load. The initializer runs shielded from the cancellation of its task, so that it
/// is never left half done: the cancellation waits for the first cancellation point after it.
///
/// # Fairness
/// All who wait for a completion are woken by it. After an initializer that panicked, one of those who would
/// [force](Once::call_once_force) another runs, no matter which, and the others wait for that one.
///
/// # Deadlocks
/// An initializer that runs is as the holder of a lock: two that wait for each other hang, and so does a panic hook that waits
/// for the initialization whose initializer panics, since that has not come to its end yet. See
/// [`Mutex`](crate::Mutex#deadlocks).
///
/// # Differences from std
/// Waiting leaves the thread to other tasks. A task that comes back to an initialization of its own panics, where std may
/// wait for ever. There is [`wait_timeout`](Once::wait_timeout). There is no `async` form, since the owner of a run is a task or a
/// thread; [`OnceCell::wait_async`](crate::OnceCell::wait_async) waits for a value.
///
/// # Examples
/// ```
/// # use fibra_sync as sync;
/// static START: sync::Once = sync::Once::new();
/// let mut runs = 0;
/// START.call_once(|| runs += 1);
/// START.call_once(|| runs += 1);
/// assert_eq!(runs, 1);
/// assert!(START.is_completed());
/// ```
pub struct Once {
    raw: RawOnce,
}

/// What the initializer of [`Once::call_once_force`] is told.
pub struct OnceState {
    poisoned: bool,
}

impl OnceState {
    /// True if an earlier initializer panicked.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

/// How a panic names what is initialized.
#[derive(Clone, Copy)]
pub(crate) struct Name(pub(crate) &'static str);

const ONCE: Name = Name("Once");

impl Once {
    /// Makes an initialization that has not happened.
    pub const fn new() -> Self {
        Once { raw: RawOnce::new() }
    }

    /// One that has happened.
    pub(crate) const fn completed() -> Self {
        Once { raw: RawOnce::completed() }
    }

    /// Runs `f` if no other call did, and returns once an initializer has run to its end.
    ///
    /// While another caller's initializer runs, this waits for its end, untimed as in std: a call that gave up would have
    /// neither run `f` nor found it done. [`wait_timeout`](Once::wait_timeout) waits with a limit, and runs nothing. What the
    /// initializer wrote is visible after.
    ///
    /// # Cancellation
    /// As the acquisition of a lock, this is no cancellation point, and `f` runs shielded.
    ///
    /// # Panics
    /// If `f` does, which poisons this for all calls but [`call_once_force`](Once::call_once_force); if it is poisoned
    /// already; and if the caller runs in this very initialization.
    #[inline]
    #[track_caller]
    pub fn call_once(&self, f: impl FnOnce()) {
        if self.is_completed() {
            return;
        }
        self.call(ONCE, false, |_| {
            f();
            End::Complete
        });
    }

    /// As [`call_once`](Once::call_once), but runs `f` also after initializers that panicked: `f` is told.
    ///
    /// # Cancellation
    /// As for [`call_once`](Once::call_once).
    ///
    /// # Panics
    /// If `f` does, which poisons this, and if the caller runs in this very initialization.
    #[inline]
    #[track_caller]
    pub fn call_once_force(&self, f: impl FnOnce(&OnceState)) {
        if self.is_completed() {
            return;
        }
        self.call(ONCE, true, |state| {
            f(state);
            End::Complete
        });
    }

    /// True if an initializer has run to its end. What it wrote is then visible.
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.raw.is_complete()
    }

    /// Waits until an initializer has run to its end.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// If an initializer panicked and none has completed since, and if the caller runs in this very initialization.
    #[track_caller]
    pub fn wait(&self) {
        self.wait_to(ONCE, Role::Listener, None);
    }

    /// As [`wait`](Once::wait), but goes on to wait after initializers that panicked.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// If the caller runs in this very initialization.
    #[track_caller]
    pub fn wait_force(&self) {
        self.await_completion(ONCE, None);
    }

    /// As [`wait`](Once::wait), but no longer than `timeout`. True if an initializer has run to its end.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// As for [`wait`](Once::wait).
    #[track_caller]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_to(ONCE, Role::Listener, time::deadline(timeout))
    }

    /// As [`wait`](Once::wait), but no longer than to `deadline`. True if an initializer has run to its end.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// As for [`wait`](Once::wait).
    #[track_caller]
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.wait_to(ONCE, Role::Listener, Some(deadline))
    }

    /// Runs `f`, unless that was done, and takes what it answers for the end of its run.
    #[cold]
    #[track_caller]
    pub(crate) fn call(&self, name: Name, force: bool, f: impl FnOnce(&OnceState) -> End) {
        let me = wait::owner();
        let role = if force { Role::Successor } else { Role::Listener };
        loop {
            match self.raw.begin(me, force) {
                Begun::Run { poisoned } => return self.run(&OnceState { poisoned }, f),
                Begun::Complete => return,
                Begun::Poisoned => poisoned(name),
                Begun::Recursive => recursive(name),
                Begun::Busy => {
                    let until = UntilEnd { raw: &self.raw, node: Node::with(role) };
                    wait::sleep_shielded(&until, None);
                }
            }
        }
    }

    /// As `wait`, until `deadline`.
    #[track_caller]
    pub(crate) fn await_success(&self, name: Name, deadline: Option<Instant>) {
        self.wait_to(name, Role::Listener, deadline);
    }

    /// As `wait_force`, until `deadline`.
    #[track_caller]
    pub(crate) fn await_completion(&self, name: Name, deadline: Option<Instant>) {
        self.wait_to(name, Role::Finisher, deadline);
    }

    /// As `wait_force`, as a future.
    pub(crate) async fn await_completion_async(&self, name: Name) {
        if self.is_completed() {
            return turn::charge().await;
        }
        while !self.has_ended(name, Role::Finisher) {
            let mut sleep = pin!(Polled::new(UntilEnd { raw: &self.raw, node: Node::with(Role::Finisher) }));
            // Asked at each poll: the one that comes during the sleep may be that of the initializer itself.
            poll_fn(|context| match self.has_ended(name, Role::Finisher) {
                true => Poll::Ready(()),
                false => sleep.as_mut().poll(context).map(drop),
            })
            .await;
        }
    }

    fn run(&self, state: &OnceState, f: impl FnOnce(&OnceState) -> End) {
        let mut run = Run { raw: &self.raw, end: End::Poisoned };
        run.end = fibra_runtime::task::shield(|| f(state));
    }

    #[track_caller]
    fn wait_to(&self, name: Name, role: Role, deadline: Option<Instant>) -> bool {
        wait::checkpoint();
        while !self.has_ended(name, role) {
            match wait::sleep(&UntilEnd { raw: &self.raw, node: Node::with(role) }, deadline) {
                Waking::Notified => {}
                Waking::TimedOut => return self.is_completed(),
                Waking::Cancelled => wait::unwind_cancelled(),
            }
        }
        true
    }

    /// True if it is completed. Panics if the caller cannot wait for that.
    #[track_caller]
    fn has_ended(&self, name: Name, role: Role) -> bool {
        match self.raw.phase() {
            Phase::Complete => true,
            Phase::Poisoned if role == Role::Listener => poisoned(name),
            Phase::Running { owner } if owner == wait::owner().get() => recursive(name),
            Phase::Incomplete | Phase::Poisoned | Phase::Running { .. } => false,
        }
    }
}

#[cold]
#[track_caller]
fn poisoned(name: Name) -> ! {
    panic!("{} has been poisoned: an earlier initializer panicked", name.0)
}

#[cold]
#[track_caller]
fn recursive(name: Name) -> ! {
    panic!(
        "{} waits for a {} that it is itself initializing; do not reach it from its own initializer",
        wait::describe_caller(),
        name.0
    )
}

/// The run of an initializer. Ends it when dropped, by an unwinding as poisoned, and wakes.
struct Run<'a> {
    raw: &'a RawOnce,
    end: End,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.raw.end(self.end);
        let mut successor = false;
        wait::wake_all(self.raw.waiters(), |waiters| self.raw.next_after(waiters, &mut successor));
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

// An initializer that panics is what poisoning is for.
impl UnwindSafe for Once {}
impl RefUnwindSafe for Once {}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("completed", &self.is_completed()).finish_non_exhaustive()
    }
}

impl fmt::Debug for OnceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceState").field("poisoned", &self.poisoned).finish()
    }
}

/// One sleep until the run of an initializer ends.
struct UntilEnd<'a> {
    raw: &'a RawOnce,
    node: Node<Role>,
}

// SAFETY: the node's data does not change, and the rest of it is only touched under the lock of its list.
unsafe impl Send for UntilEnd<'_> {}

impl WaitStrategy for UntilEnd<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        // SAFETY: the node is in no list and stays until the sleep is over, and its wake is taken out of it under the
        // lock of the list; `before_awake` answers `Served` from then on.
        match unsafe { self.raw.enter(&self.node, me.raw()) } {
            true => Asleep::Stay,
            false => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        if why == Waking::Notified {
            return Withdrawal::Withdrawn;
        }
        // SAFETY: it was entered there.
        match unsafe { self.raw.leave(&self.node) } {
            true => Withdrawal::Withdrawn,
            false => Withdrawal::Served,
        }
    }
}
