#![doc = include_str!("README.md")]

mod caller;
mod claim;
mod crowd;
pub mod list;
mod lock;
mod polled;
mod sleep;
mod spin;
mod strategy;
mod thread;
mod waiter;
pub(crate) mod word;

pub use caller::{Home, charged_owner, describe_caller, home, others_are_asleep, owner, owner_in_hook};
pub use claim::Claim;
pub(crate) use crowd::wake_each_by;
pub use crowd::{wake_all, wake_each, wake_present};
pub use lock::{Lock, LockGuard};
pub use polled::Polled;
pub use sleep::{sleep, sleep_by_driver, sleep_or_cancel, sleep_or_fail, sleep_shielded};
pub(crate) use spin::count_processors;
pub use spin::{back_off_until, spin_until, stand_back, stand_back_until};
pub use strategy::{Asleep, WaitStrategy, Waking, Withdrawal};
pub(crate) use waiter::{Kind, Waiter};
pub use waiter::{RawWake, RetainedWake, WakeHandle, call_waker};

pub use crate::fences::{bare_light_fence, has_bare_light_fence, heavy_fence, prepare as prepare_fences};
pub use crate::report::take_back;
pub use crate::task::cancel::{
    CAN_UNWIND, cancellation_point, checkpoint, checkpoint_before_spin, fails_if_cancelled,
    note_cancelled_here, unwind_cancelled, unwinds_cancelled,
};
pub use crate::task::forbid::{check_may_suspend, may_suspend};
pub use crate::time::{sleep_to, sleep_within};
pub use crate::worker::budget::{charge, charge_poll};

/// True where the caller is a task, false on a plain thread (also inside a panic hook, where a wait blocks the thread).
pub fn in_task() -> bool {
    crate::current::task().is_some()
}
