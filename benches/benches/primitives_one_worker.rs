//! The comparison of primitives, every runtime with one worker: `cargo bench -p fibra-bench --bench primitives_one_worker`.

mod comparison;
mod primitives;

fn main() {
    primitives::compare(1);
}
