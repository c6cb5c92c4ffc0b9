//! The promises of files, pipes and copies.

#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/folder.rs"]
mod folder;
#[path = "../../../runtime/tests/common/paused.rs"]
mod paused;
#[path = "../common/terminal.rs"]
mod terminal;

mod buf_reader;
mod copy;
mod copy_both_ways;
mod duplex;
mod endless;
mod fifo;
mod file_locks;
mod fs;
mod pipe;
mod pollable;
