//! What `SCALING.md` says of sizes: it is not to drift. The sanitizer's coroutines are larger.

#![forbid(unsafe_code)]
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(feature = "sanitizer")))]

use crate::scheduler::block::Block;
use crate::scheduler::worker::Worker;
use crate::tasks::header::Header;

#[test]
fn the_note_on_scaling_tells_how_large_things_are() {
    let note = include_str!("../../../../SCALING.md");
    let bytes = size_of::<Worker>();
    let worker = format!("{},{:03} and {} bytes", bytes / 1000, bytes % 1000, size_of::<Block>());
    let header = format!("a header of {}", size_of::<Header>());
    for said in [worker, header] {
        assert!(note.contains(&said), "it does not say: {said}");
    }
}
