//! The comparison of primitives, every runtime with two workers: `cargo bench -p fibra-bench --bench
//! primitives_two_workers`.
//!
//! A program of its own, since may takes its number of workers once for a process.

mod comparison;
mod primitives;

fn main() {
    primitives::compare(2);
}
