//! The costs of structured concurrency, every runtime with two workers: `cargo bench -p fibra-bench --bench structured_two_workers`.

mod comparison;
mod structured;

fn main() {
    structured::compare(2);
}
