//! The comparison with rivals, every runtime with one worker: `cargo bench -p fibra-bench --bench one_worker`.

mod comparison;
mod rivals;

fn main() {
    rivals::compare(1);
}
