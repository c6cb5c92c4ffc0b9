//! The state machines of the runtime under loom: every order in which two or three threads can take their steps, and
//! every value that the memory model lets a load see.
//!
//! Run with `ci/loom.sh`, or
//! `RUSTFLAGS="--cfg loom" cargo test -p fibra-runtime --release --test loom`.
//!
//! The models build the very source files of the library, by path, beside a `primitive` module of their own. Switching
//! stacks is not modelled: the state words are. Each model has a sentence on the race that it looks for; those that must fail
//! show that the model would find it.

#![cfg(loom)]
#![expect(dead_code, unreachable_pub, reason = "a model uses what it needs of the files that it includes")]

#[path = "../src/scheduler/cancelled.rs"]
mod cancelled;
#[path = "loom/clock.rs"]
mod clock;
#[path = "loom/context.rs"]
mod context;
#[path = "../src/scheduler/ending.rs"]
mod ending;
#[path = "../src/scheduler/event_ring.rs"]
mod event_ring;
#[path = "loom/gate.rs"]
mod gate;
#[path = "loom/holders.rs"]
mod holders;
#[path = "../src/scheduler/idle/mod.rs"]
mod idle;
#[path = "../src/scheduler/inbox.rs"]
mod inbox;
#[path = "../src/tasks/join_state.rs"]
mod join_state;
#[path = "../src/scheduler/park_state.rs"]
mod park_state;
#[path = "../src/tasks/parking.rs"]
mod parking;
#[path = "loom/payload.rs"]
mod payload;
#[path = "loom/primitive.rs"]
mod primitive;
#[path = "../src/scheduler/run_watch.rs"]
mod run_watch;
#[path = "../src/scheduler/task_counts.rs"]
mod task_counts;
/// The stacks of a runtime, over memory that is only counted.
#[path = "../src/stack"]
mod stack {
    pub(crate) mod cache;
    pub(crate) mod exchange;
    pub(crate) mod fresh;
    pub(crate) mod guard;
    pub(crate) mod handle;
    pub(crate) mod pool;
    pub(crate) mod region;
    pub(crate) mod size;
    pub(crate) mod stacks;
    #[path = "../../tests/loom/memory.rs"]
    pub(crate) mod sys;

    pub(crate) use exchange::Trim;
    pub(crate) use guard::StackGuards;
    pub(crate) use handle::Stack;
    pub(crate) use pool::Pool;
    pub(crate) use stacks::{Config, Stacks};
}
#[path = "loom/task.rs"]
mod task;
#[path = "loom/time.rs"]
mod time;
#[expect(unused_imports, reason = "the bridge serves the primitives' models as well")]
#[path = "loom/wait.rs"]
mod wait;

/// The floors of the library, as the files that are included import from them: each name leads to the module that stands for it.
mod base {
    pub(crate) use crate::wait::lock as spin_lock;
    pub(crate) use crate::{clock, payload, primitive};
}
mod waiter {
    pub(crate) use crate::wait::{claim as select_token, description, strategy, waiter as kind, word};
}
mod sleep {
    pub(crate) use crate::wait::queues::queue;
    pub(crate) use crate::wait::{self as task_sleep, self as cancel_points, any, polled};
}
mod scheduler {
    pub(crate) use crate::wait::{self as budget, self as simulated};
    pub(crate) use crate::{idle, task_counts};
}
mod tasks {
    pub(crate) use crate::context;
    pub(crate) use crate::task::{self as header, self as task, bounds, cancel};
}
mod api {
    pub(crate) use crate::time as sleep;
}

#[path = "loom/any_models.rs"]
mod any_models;
#[path = "loom/cancel_flags_models.rs"]
mod cancel_flags_models;
#[path = "loom/event_ring_models.rs"]
mod event_ring_models;
#[path = "loom/home_models.rs"]
mod home_models;
#[path = "loom/idle_models.rs"]
mod idle_models;
#[path = "loom/inbox_models.rs"]
mod inbox_models;
#[path = "loom/join_models.rs"]
mod join_models;
#[path = "loom/lock_models.rs"]
mod lock_models;
#[path = "loom/park_models.rs"]
mod park_models;
#[path = "loom/polled_models.rs"]
mod polled_models;
#[path = "loom/sleep_models.rs"]
mod sleep_models;
#[path = "loom/sleeper_models.rs"]
mod sleeper_models;
#[path = "loom/stack_models.rs"]
mod stack_models;
#[path = "loom/task_counts_models.rs"]
mod task_counts_models;
#[path = "loom/thread_models.rs"]
mod thread_models;
#[path = "loom/token_models.rs"]
mod token_models;
#[path = "loom/watch_models.rs"]
mod watch_models;
#[path = "loom/word_models.rs"]
mod word_models;
