//! The promises of tasks: joins, scopes, groups, locals, home workers and fairness.

#[path = "../common/at_end.rs"]
mod at_end;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/counted.rs"]
mod counted;
#[path = "../common/message.rs"]
mod message;
#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "../common/recorded.rs"]
mod recorded;
#[path = "../common/rest.rs"]
mod rest;
#[path = "../common/rounds.rs"]
mod rounds;
#[path = "../common/workers.rs"]
mod workers;

mod at_home;
mod big_stack;
mod fairness;
mod home;
mod join;
mod panics;
mod parallel_for;
mod race;
mod scope;
mod structured_join;
mod task_group;
mod task_local;
mod tasks;
