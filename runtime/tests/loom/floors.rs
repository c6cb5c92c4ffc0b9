//! The floors of the library, as the files that are included import from them: each name leads to the module of the models that
//! stands for it.

#[path = "clock.rs"]
pub(crate) mod clock;

pub(crate) mod base {
    pub(crate) use super::clock;
    pub(crate) use crate::wait::lock as spin_lock;
    pub(crate) use crate::{payload, primitive};
}

pub(crate) mod waiter {
    pub(crate) use crate::wait::{claim as select_token, description, strategy, waiter as kind, word};
}

pub(crate) mod sleep {
    pub(crate) use crate::wait::queues::queue;
    pub(crate) use crate::wait::{self as task_sleep, self as cancel_points, any, polled};
}
