//! The floors of the library, as the files that are included import from them: each name leads to the module of the models that
//! stands for it.

pub(crate) mod base {
    pub(crate) use crate::wait::lock as spin_lock;
    pub(crate) use crate::{payload, primitive};

    pub(crate) mod clock {
        use std::time::Instant;

        pub(crate) fn now() -> Instant {
            Instant::now()
        }
    }
}

pub(crate) mod waiter {
    pub(crate) use crate::wait::{claim as select_token, description, list, strategy, waiter as kind, word};
}

pub(crate) mod sleep {
    pub(crate) use crate::wait::queues::queue;
    pub(crate) use crate::wait::{self as task_sleep, self as cancel_points, any, polled};
}
