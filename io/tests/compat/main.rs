//! The adapters for `async` crates.

#[path = "../common/abstract_name.rs"]
mod abstract_name;
#[path = "../common/both_ways.rs"]
mod both_ways;
#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/count.rs"]
mod count;
#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "../common/folder.rs"]
mod folder;
#[path = "../../../runtime/tests/common/paused.rs"]
mod paused;
#[path = "../common/refused.rs"]
mod refused;
#[path = "../../../runtime/tests/common/rerun.rs"]
mod rerun;
#[path = "../common/until_full.rs"]
mod until_full;

mod datagrams;
mod endpoints;
mod hyper;
mod reqwest;
mod sockets;
mod tokio;
mod unix;
