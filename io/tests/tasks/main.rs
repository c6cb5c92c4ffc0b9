//! What tasks are promised beside sockets and files.

#[path = "../../../runtime/tests/common/at_end.rs"]
mod at_end;
#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../runtime/tests/common/ending.rs"]
mod ending;
#[path = "../common/folder.rs"]
mod folder;
#[path = "../common/silent.rs"]
mod silent;

mod abort;
mod cancel;
mod end_of_runtime;
mod left_behind;
mod looks;
mod stuck_worker;
mod tasks;
