//! The wait core as primitives and sockets see it: sleeps, wakes and what a primitive knows of its caller.

#![forbid(unsafe_code)]

pub use crate::api::join_handle::JoinArm;
pub use crate::api::sleep::{sleep_to, sleep_within};
pub use crate::base::abort::take_back;
pub use crate::base::spin_lock::{Lock, LockGuard};
pub use crate::scheduler::budget::{charge, charge_after, charge_poll};
pub use crate::scheduler::oracle::{Asked, Oracle};
pub use crate::scheduler::simulated::point;
pub use crate::sleep::any::{Arm, Chosen, Enlisted, Link, look_at_all, wait_any};
pub use crate::sleep::back_off::{Looks, back_off_until};
pub use crate::sleep::caller::{
    WorkerId, begin_thread_wait, charged_waiter_address, current_worker, describe_caller, in_task,
    may_end_early, others_are_asleep, owner, owner_in_hook, waiter_address,
};
pub use crate::sleep::cancel_points::{
    cancellation_point, checkpoint, checkpoint_before_spin, fails_if_cancelled, note_cancelled_here,
    unwind_cancelled, unwinds_cancelled,
};
pub use crate::sleep::lock_wait::LockWait;
pub use crate::sleep::polled::Polled;
pub use crate::sleep::queue::arm::{ArmPolicy, ArmRules, QueueArm};
pub use crate::sleep::queue::lane::Lent;
pub use crate::sleep::queue::wait::{Admit, Left, Outcome, Until};
pub use crate::sleep::queue::waiters::Waiters;
pub use crate::sleep::queue::{LockedQueue, ServingQueue, WaitQueue};
pub use crate::sleep::task_sleep::{sleep, sleep_by_driver, sleep_or_cancel, sleep_or_fail, sleep_shielded};
pub use crate::sleep::waker_signal::WakerSignal;
pub use crate::tasks::cancel::CAN_UNWIND;
pub use crate::tasks::forbid::{check_may_suspend, forbid_thread_waits, may_suspend};
pub use crate::waiter::description::{Direction, EndedBy, WaitDescription, WaitRecord};
pub use crate::waiter::kind::{RawWake, WakeHandle, call_waker, wake_each};
pub use crate::waiter::select_token::Claim;
pub use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

/// The list of waiters.
pub mod list {
    pub use crate::waiter::list::{List, Node};
}
