//! Stack overflows end the process with one line that names the task; other faults stay what they are.

mod common;
#[path = "common/rerun.rs"]
mod rerun;

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::time::Duration;

use common::{hang_guard, runtime};
use fibra_runtime::{self as fibra, Runtime, StackGuards, task};
use rerun::{errors, is_child, rerun};

/// The usual size of a stack.
const USUAL: &str = if cfg!(debug_assertions) { "1 MiB" } else { "256 KiB" };

#[expect(unconditional_recursion, reason = "the overflow is what is tested")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    recurse(depth + 1) + black_box(frame)[3]
}

/// The one line of the report; nothing else came.
fn report_of(output: &Output) -> String {
    let text = errors(output);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{:?}: {text}", output.status);
    let lines: Vec<_> = text.lines().filter(|line| line.contains("overflow")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(!text.contains("panicked"), "{text}");
    lines[0].to_owned()
}

fn overflow_in_a_named_task(guards: StackGuards) {
    let runtime = Runtime::builder().workers(2).stack_guards(guards).build().unwrap();
    runtime.run(|| {
        fibra::spawn(|| fibra::sleep(Duration::MAX));
        let deep = task::Builder::new().name("digger").spawn(|| recurse(0));
        _ = deep.join();
    });
}

#[test]
fn an_overflow_names_the_task_its_size_and_the_knob() {
    if is_child() {
        return overflow_in_a_named_task(StackGuards::Auto);
    }
    let _guard = hang_guard();
    let line = report_of(&rerun("an_overflow_names_the_task_its_size_and_the_knob"));
    assert!(line.contains("'digger'") && line.contains(USUAL), "{line}");
    assert!(line.contains("Builder::stack_size") && line.contains("on_big_stack"), "{line}");
}

#[test]
fn an_overflow_onto_a_protected_page_is_reported_alike() {
    if is_child() {
        return overflow_in_a_named_task(StackGuards::Protect);
    }
    let _guard = hang_guard();
    let line = report_of(&rerun("an_overflow_onto_a_protected_page_is_reported_alike"));
    assert!(line.contains("'digger'") && line.contains(USUAL), "{line}");
}

#[test]
fn an_overflow_of_a_task_without_a_name_tells_its_number() {
    if is_child() {
        return runtime(1).run(|| {
            let deep = fibra::spawn(|| recurse(0));
            eprintln!("number {}", deep.task().id());
            _ = deep.join();
        });
    }
    let _guard = hang_guard();
    let output = rerun("an_overflow_of_a_task_without_a_name_tells_its_number");
    let line = report_of(&output);
    let number =
        errors(&output).lines().find_map(|line| line.strip_prefix("number ").map(str::to_owned)).unwrap();
    assert!(line.contains(&format!("(id {number}, spawned at ")) && line.contains("overflow.rs:"), "{line}");
}

#[test]
fn an_overflow_of_the_main_task_names_its_size_and_its_knob() {
    if is_child() {
        _ = Runtime::builder().workers(1).run(|| recurse(0));
        return;
    }
    let _guard = hang_guard();
    let line = report_of(&rerun("an_overflow_of_the_main_task_names_its_size_and_its_knob"));
    assert!(line.contains("'main'") && line.contains("8 MiB") && line.contains("main_stack_size"), "{line}");
}

#[test]
fn an_overflow_of_a_task_with_its_own_size_tells_that_size() {
    if is_child() {
        return runtime(1).run(|| {
            _ = task::Builder::new().stack_size(1 << 20).name("wide").spawn(|| recurse(0)).join();
        });
    }
    let _guard = hang_guard();
    let line = report_of(&rerun("an_overflow_of_a_task_with_its_own_size_tells_that_size"));
    assert!(line.contains("'wide'") && line.contains("1 MiB"), "{line}");
}

#[test]
fn an_overflow_of_a_big_stack_tells_the_size_of_that() {
    if is_child() {
        return runtime(1).run(|| {
            let deepest = || {
                fibra::sleep(Duration::from_micros(50));
                recurse(0)
            };
            let deep = move || task::on_big_stack(1 << 20, || task::on_big_stack(2 << 20, deepest));
            _ = task::Builder::new().name("diver").spawn(deep).join();
        });
    }
    let _guard = hang_guard();
    let line = report_of(&rerun("an_overflow_of_a_big_stack_tells_the_size_of_that"));
    assert!(line.contains("'diver'") && line.contains("2 MiB; give task::on_big_stack"), "{line}");
}

#[test]
fn an_overflow_back_from_a_big_stack_tells_the_size_of_the_one_before() {
    if is_child() {
        return runtime(1).run(|| {
            let outer = || {
                task::on_big_stack(2 << 20, || fibra::sleep(Duration::from_micros(50)));
                recurse(0)
            };
            _ = task::Builder::new().name("diver").spawn(move || task::on_big_stack(1 << 20, outer)).join();
        });
    }
    let _guard = hang_guard();
    let line = report_of(&rerun("an_overflow_back_from_a_big_stack_tells_the_size_of_the_one_before"));
    assert!(line.contains("'diver'") && line.contains("1 MiB"), "{line}");
}

#[test]
fn an_overflow_after_many_suspensions_is_reported() {
    if is_child() {
        return Runtime::builder().workers(2).build().unwrap().run(|| {
            let deep = task::Builder::new().name("late").spawn(|| {
                (0..20).for_each(|_| fibra::sleep(Duration::from_micros(50)));
                recurse(0)
            });
            _ = deep.join();
        });
    }
    let _guard = hang_guard();
    assert!(report_of(&rerun("an_overflow_after_many_suspensions_is_reported")).contains("'late'"));
}

#[test]
fn an_overflow_of_a_plain_thread_is_reported_by_std() {
    if is_child() {
        let _runtime = runtime(1);
        let thread = std::thread::Builder::new().name("plain".into()).spawn(|| recurse(0)).unwrap();
        _ = thread.join();
        return;
    }
    let _guard = hang_guard();
    let output = rerun("an_overflow_of_a_plain_thread_is_reported_by_std");
    let text = errors(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{text}");
    assert!(text.contains("has overflowed its stack") && !text.contains("fibra:"), "{text}");
}

#[test]
fn deep_code_of_main_has_the_stack_of_a_main_thread() {
    fn depth(levels: u32) -> u32 {
        let frame = black_box([levels; 256]);
        if levels == 0 { 0 } else { depth(levels - 1) + black_box(frame)[3] / levels }
    }
    // At least 1 KiB a level.
    let levels = 1000;
    assert_eq!(Runtime::builder().workers(1).run(|| depth(levels)).unwrap(), levels);
    assert_eq!(runtime(1).run(|| depth(levels)), levels);
    let small = Runtime::builder().workers(1).main_stack_size(64 << 10);
    assert_eq!(small.run(|| task::on_big_stack(8 << 20, || depth(levels))).unwrap(), levels);
}

fn touch_the_null_page() {
    // SAFETY: it is not; the fault is what is tested, in a process of its own.
    _ = black_box(unsafe { std::ptr::without_provenance::<u8>(8).read_volatile() });
}

#[test]
fn a_fault_that_is_no_overflow_is_a_plain_segmentation_fault() {
    if is_child() {
        return runtime(1).run(touch_the_null_page);
    }
    let _guard = hang_guard();
    let output = rerun("a_fault_that_is_no_overflow_is_a_plain_segmentation_fault");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{}", errors(&output));
    assert!(!errors(&output).contains("overflow"), "{}", errors(&output));
}

#[test]
fn a_fault_on_a_plain_thread_beside_a_runtime_is_a_plain_segmentation_fault() {
    if is_child() {
        let _runtime = runtime(1);
        return touch_the_null_page();
    }
    let _guard = hang_guard();
    let output = rerun("a_fault_on_a_plain_thread_beside_a_runtime_is_a_plain_segmentation_fault");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{}", errors(&output));
}
