//! The comparison with rivals by criterion, every runtime with one worker: `cargo bench -p fibra-bench --features rivals
//! --bench one_worker`.

mod criterion_driver;

fn main() {
    criterion_driver::run(1);
}
