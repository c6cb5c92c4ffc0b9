//! The feature `insight`.

#![cfg(all(feature = "insight", target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::time::Duration;

use fibra::task::TaskState;

#[test]
fn a_task_of_a_default_build_has_a_stack() {
    let stack = fibra::run(|| {
        let sleeper = fibra::spawn(|| fibra::sleep(Duration::from_secs(3600)));
        while sleeper.task().state() != TaskState::Suspended {
            fibra::yield_now();
        }
        sleeper.task().backtrace().expect("the stack of a sleeper").to_string()
    });
    assert!(stack.contains("a_task_of_a_default_build_has_a_stack"), "{stack}");
}
