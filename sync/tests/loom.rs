//! The state machines of the primitives under loom: every order in which two or three threads can take their steps, and
//! every value that the memory model lets a load see.
//!
//! Run with `ci/loom.sh`, or
//! `RUSTFLAGS="--cfg loom" cargo test -p fibra-sync --release --test loom`.
//!
//! The models build the very source files of the library, by path, beside modules `primitive` and `wait` of their own.
//! Each model has a sentence on the race it hunts.

#![cfg(loom)]
#![expect(dead_code, unreachable_pub, reason = "a model uses what it needs of the files that it includes")]

#[path = "../src/barrier/round.rs"]
mod barrier_round;
#[path = "../src/broadcast/ring.rs"]
mod broadcast;
#[path = "loom/channel.rs"]
mod channel;
#[path = "../src/countdown.rs"]
mod countdown;
#[path = "../src/crowd.rs"]
mod crowd;
#[path = "../src/gate.rs"]
mod gate;
#[path = "loom/mutex.rs"]
mod mutex;
#[path = "../src/once/raw.rs"]
mod once;
#[path = "../src/oneshot/word.rs"]
mod oneshot;
#[path = "../src/permits.rs"]
mod permits;
#[expect(unused_imports, reason = "the bridge serves the runtime's models as well")]
#[path = "../../runtime/tests/loom/primitive.rs"]
mod primitive;
#[path = "../src/rwlock/raw.rs"]
mod rwlock;
#[path = "../../runtime/tests/loom/wait.rs"]
mod wait;
#[path = "../src/watch/versions.rs"]
mod watch;

#[path = "loom/barrier_models.rs"]
mod barrier_models;
#[path = "loom/broadcast_models.rs"]
mod broadcast_models;
#[path = "loom/channel_models.rs"]
mod channel_models;
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
