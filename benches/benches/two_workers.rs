//! The comparison with rivals by criterion, every runtime with two workers: `cargo bench -p fibra-bench --features rivals
//! --bench two_workers`.
//!
//! A program of its own, since may takes its number of workers once for a process.

mod criterion_driver;

fn main() {
    criterion_driver::run(2);
}
