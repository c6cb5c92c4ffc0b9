//! Floor 4: the record of a task: header, lifecycle, join state, cancellation state and task-locals.

pub(crate) mod bounds;
pub(crate) mod cancel;
pub(crate) mod cancel_flags;
pub(crate) mod context;
pub(crate) mod enclosing;
pub(crate) mod forbid;
pub(crate) mod header;
pub(crate) mod hook_maker;
pub(crate) mod join_error;
pub(crate) mod join_state;
pub(crate) mod live_tasks;
pub(crate) mod locals;
pub(crate) mod overflow_report;
pub(crate) mod panic_log;
pub(crate) mod parking;
pub(crate) mod raw;
pub(crate) mod refs;
pub(crate) mod shield;
pub(crate) mod slab_cache;
pub(crate) mod sleeper;
pub(crate) mod slow_path_flags;
pub(crate) mod switch_hook;
pub(crate) mod switching;
pub(crate) mod task;
pub(crate) mod thread_deadlines;
