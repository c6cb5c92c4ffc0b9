//! What `fibra-dump` and the script for gdb show of other processes and of core files.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod bad_input;
#[path = "../../../insight/tests/common/mod.rs"]
mod common;
mod core_files;
mod gdb;
mod processes;
mod program;
#[expect(dead_code, reason = "also for tests that read what a child says of its death")]
#[path = "../../../runtime/tests/common/rerun.rs"]
mod rerun;
