//! The costs of structured concurrency, every runtime with one worker: `cargo bench -p fibra-bench --bench structured_one_worker`.

mod comparison;
mod structured;

fn main() {
    structured::compare(1);
}
