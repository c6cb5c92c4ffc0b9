//! What the tests share: a runtime in one word, and a guard against hangs.

mod hang;

use fibra_runtime::Runtime;

pub(crate) use hang::hang_guard;

pub(crate) fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("a runtime")
}
