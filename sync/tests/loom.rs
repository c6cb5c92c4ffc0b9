//! The state machines of the primitives under loom: every order in which two or three threads can take their steps, and
//! every value that the memory model lets a load see.
//!
//! Run with `ci/loom.sh`, or
//! `RUSTFLAGS="--cfg loom" cargo test -p fibra-sync --release --test loom`.
//!
//! The models build the very source files of the library, by path, beside modules `primitive` and `wait` of their own.
//! Each model has a sentence on the race that it looks for.

#![cfg(loom)]
#![expect(dead_code, unreachable_pub, reason = "a model uses what it needs of the files that it includes")]

#[path = "../src/budget.rs"]
mod budget;
/// The channel, but for the waits that belong to tasks.
#[path = "../src/channel"]
mod channel {
    mod arm;
    mod choice;
    mod counted;
    pub(crate) mod error;
    mod futures;
    mod iter;
    mod operation;
    mod outcome;
    mod permit;
    mod places;
    mod queue;
    mod receive_arm;
    mod receiver;
    mod reserve;
    mod select;
    pub(crate) mod selectable;
    mod send_arm;
    mod sender;
    mod shared;
    mod sources;
    mod state;
    mod timers;
    mod wait_arm;
    mod weak;

    pub(crate) use arm::{Arm, Purpose};
    pub(crate) use permit::Permit;
    pub(crate) use receive_arm::RecvArm;
    pub(crate) use receiver::Receiver;
    pub(crate) use select::Select;
    pub(crate) use send_arm::SendArm;
    pub(crate) use sender::Sender;

    use crate::primitive::Arc;

    pub(crate) fn ends<T>(capacity: Option<usize>) -> (Sender<T>, Receiver<T>) {
        let channel = Arc::new(counted::Counted::new(capacity));
        (Sender { channel: Arc::clone(&channel) }, Receiver { source: receiver::Source::Senders(channel) })
    }
}
#[path = "../src/countdown.rs"]
mod countdown;
#[path = "../src/drop_all.rs"]
mod drop_all;
/// The public types, for models that go through the public interface.
#[path = "../src/messages.rs"]
mod messages;
#[path = "../src"]
mod typed {
    pub(crate) mod auto_reset_event;
    pub(crate) mod barrier;
    pub(crate) mod countdown_event;
    pub(crate) mod manual_reset_event;
    pub(crate) mod notify;
    pub(crate) mod once;
    pub(crate) mod semaphore;
    pub(crate) mod wait_group;
}
#[path = "../../runtime/tests/loom/floors.rs"]
mod floors;
#[path = "../../runtime/tests/loom/gate.rs"]
mod gate_in_small;
#[path = "loom/mutex.rs"]
mod mutex;
#[path = "../src/oneshot"]
mod oneshot {
    mod state;

    pub(crate) use state::{Half, Side, pair};
}
#[path = "../src/patience.rs"]
mod patience;
#[path = "../../runtime/tests/loom/primitive.rs"]
mod primitive;
#[path = "../src/rwlock"]
mod rwlock {
    mod raw;
    pub(crate) mod state;

    pub(crate) use raw::RawRwLock;
}
#[path = "../../runtime/tests/loom/payload.rs"]
mod payload;
#[expect(unused_imports, reason = "the bridge serves the runtime's models as well")]
#[path = "../../runtime/tests/loom/wait.rs"]
mod wait;
#[path = "../src/watch"]
mod watch {
    mod error;
    pub(crate) mod versions;
}

use floors::{base, sleep, waiter};

use typed::{auto_reset_event, countdown_event, manual_reset_event, notify, semaphore, wait_group};

#[path = "loom/barrier_models.rs"]
mod barrier_models;
#[path = "loom/channel_end_models.rs"]
mod channel_end_models;
#[path = "loom/channel_models.rs"]
mod channel_models;
#[path = "loom/choice_models.rs"]
mod choice_models;
#[path = "loom/condvar_models.rs"]
mod condvar_models;
#[path = "loom/countdown_models.rs"]
mod countdown_models;
#[path = "loom/gate_models.rs"]
mod gate_models;
#[path = "loom/mutex_models.rs"]
mod mutex_models;
#[path = "loom/once_models.rs"]
mod once_models;
#[path = "loom/oneshot_models.rs"]
mod oneshot_models;
#[path = "loom/permits_models.rs"]
mod permits_models;
#[path = "loom/rwlock_models.rs"]
mod rwlock_models;
#[path = "loom/select_models.rs"]
mod select_models;
#[path = "loom/watch_models.rs"]
mod watch_models;
