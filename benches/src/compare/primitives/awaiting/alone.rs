//! What one task does with a primitive that nobody else wants.

use std::hint::black_box;
use std::time::Instant;

use super::{Asked, task};

/// What can be done over and over without a wait. What it is the question says; of each library there is one for it.
pub(super) trait Deed: Send + Sync + 'static {
    fn new() -> Self;
    fn run(&self) -> impl Future<Output = ()> + Send;
}

pub(super) fn repeat<D: Deed>(operations: u64) -> Asked {
    let thing = D::new();
    task(async move {
        let begin = Instant::now();
        for _ in 0..operations {
            black_box(&thing).run().await;
        }
        begin.elapsed()
    })
}
