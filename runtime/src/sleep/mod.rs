//! Floor 6: blocking the caller: the task's sleep, wait queues, polled futures, back-off and the budget.

pub(crate) mod any;
pub(crate) mod back_off;
pub(crate) mod caller;
pub(crate) mod cancel_points;
pub(crate) mod lock_wait;
pub(crate) mod polled;
pub(crate) mod queue;
pub(crate) mod task_sleep;
pub(crate) mod waker_signal;
