//! The comparison with rivals, every runtime with two workers: `cargo bench -p fibra-bench --bench two_workers`.
//!
//! A program of its own, since may takes its number of workers once for a process.

mod comparison;
mod rivals;

fn main() {
    rivals::compare(2);
}
