//! The state machines of this crate under loom: every order in which two or three threads can take their steps, and every
//! value that the memory model lets a load see.
//!
//! Run with `ci/loom.sh`, or `RUSTFLAGS="--cfg loom" cargo test -p fibra-io --release --test loom`.
//!
//! The models build the very source files of the library, by path, beside modules `primitive` and `wait` of their own.
//! Each model has a sentence on the race that it looks for.

#![cfg(loom)]
#![expect(dead_code, unreachable_pub, reason = "a model uses what it needs of the files that it includes")]

#[path = "../../runtime/tests/loom/floors.rs"]
mod floors;
#[path = "../../runtime/tests/loom/payload.rs"]
mod payload;
#[path = "../../runtime/tests/loom/primitive.rs"]
mod primitive;
#[path = "loom/reactor.rs"]
mod reactor;
#[path = "../src/readiness/mod.rs"]
mod readiness;
#[path = "loom/sys.rs"]
mod sys;
#[expect(unused_imports, reason = "the bridge serves the other rooms' models as well")]
#[path = "../../runtime/tests/loom/wait.rs"]
mod wait;

#[path = "loom/waiting.rs"]
mod waiting;

use floors::{base, sleep, waiter};

#[path = "loom/readiness_models.rs"]
mod readiness_models;
#[path = "loom/source_models.rs"]
mod source_models;
