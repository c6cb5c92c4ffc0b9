//! Code on a stack of its own within its task.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::message::message;
use crate::rest::until_others_sleep;
use fibra_runtime::{self as fibra, Runtime, task, timeout};

const BIG: usize = 8 << 20;
const LONG: Duration = Duration::from_secs(3600);

/// Touches at least `kib` KiB of stack, without optimization three times as much.
fn descend(kib: usize, last: &mut dyn FnMut()) -> usize {
    let frame = std::hint::black_box([1_u8; 1024]);
    match kib {
        0 => last(),
        _ => _ = descend(kib - 1, last),
    }
    std::hint::black_box(frame).len() + kib
}

#[test]
fn deep_code_runs_and_may_wait_at_its_deepest() {
    for workers in [1, 2] {
        let _guard = hang_guard();
        runtime(workers).run(|| {
            let tasks: Vec<_> = (0..20_u64)
                .map(|number| {
                    fibra::spawn(move || {
                        let me = task::current();
                        let mut turns = 0;
                        task::on_big_stack(BIG, || {
                            descend(1000, &mut || {
                                for _ in 0..20 {
                                    fibra::yield_now();
                                    fibra::sleep(Duration::from_micros(number));
                                    assert_eq!(task::current(), me);
                                    turns += 1;
                                }
                            })
                        });
                        assert_eq!(turns, 20);
                        fibra::yield_now();
                    })
                })
                .collect();
            tasks.into_iter().for_each(|task| task.join().unwrap());
        });
    }
}

#[test]
fn calls_nest() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let sum = task::on_big_stack(BIG, || {
            fibra::yield_now();
            let inner = task::on_big_stack(2 * BIG, || {
                fibra::yield_now();
                descend(1000, &mut fibra::yield_now)
            });
            fibra::yield_now();
            inner + 1
        });
        assert_eq!(sum, 2025);
        fibra::yield_now();
    });
}

#[test]
fn a_panic_comes_out_and_a_cancel_unwinds_through() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let caught = catch_unwind(|| task::on_big_stack(BIG, || descend(1000, &mut || panic!("deep"))));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"deep"));
        let late = timeout(Duration::from_millis(2), || task::on_big_stack(BIG, || fibra::sleep(LONG)));
        assert!(late.is_err());
        let sleeper = fibra::spawn(|| task::on_big_stack(BIG, || fibra::sleep(LONG)));
        fibra::yield_now();
        sleeper.cancel();
        assert!(sleeper.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_destructor_may_wait_while_deep_code_unwinds() {
    struct Waits<'a>(&'a Cell<u32>);
    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            task::on_big_stack(BIG, || fibra::sleep(Duration::from_micros(100)));
            self.0.set(self.0.get() + 1);
        }
    }
    let _guard = hang_guard();
    runtime(1).run(|| {
        let beside = fibra::spawn_local(|| {
            for _ in 0..100 {
                assert!(!std::thread::panicking());
                fibra::sleep(Duration::from_micros(10));
            }
        });
        let waited = Cell::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            task::on_big_stack(BIG, || {
                let _waits = Waits(&waited);
                panic!("unwinds");
            })
        }));
        assert!(caught.is_err());
        assert_eq!(waited.get(), 1);
        beside.join().unwrap();
    });
}

#[test]
fn a_plain_thread_gets_one_too() {
    assert_eq!(task::on_big_stack(BIG, || descend(1500, &mut || ())), 2524);
    let caught = catch_unwind(|| task::on_big_stack(BIG, || panic!("deep")));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"deep"));
}

#[test]
fn a_stack_that_fits_nowhere_is_a_panic_that_says_so_in_a_task_and_on_a_thread() {
    let _guard = hang_guard();
    let refused = || {
        for size in [usize::MAX, usize::MAX - 4096, usize::MAX / 2, usize::MAX / 8 + 2] {
            let message = message(|| task::on_big_stack(size, || ()));
            assert!(message.starts_with(&format!("no stack of {size} bytes can be had: ")), "{message}");
            assert!(message.ends_with("does not fit into the address space"), "{message}");
        }
    };
    runtime(1).run(refused);
    refused();
}

fn three_stacks() -> Runtime {
    Runtime::builder().workers(1).max_stacks(3).stack_patience(LONG).build().unwrap()
}

#[test]
fn a_big_stack_is_had_where_unused_stacks_of_another_size_fill_the_limit() {
    let _guard = hang_guard();
    three_stacks().run(|| {
        let tasks: Vec<_> = (0..2).map(|_| fibra::spawn(fibra::yield_now)).collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        // No end is waited for: an unused stack is had at once.
        let _here = task::forbid_suspend();
        assert_eq!(task::on_big_stack(BIG, || 42), 42);
    });
}

#[test]
fn where_all_stacks_are_in_use_a_task_waits_for_a_big_one_through_its_cancellation() {
    let _guard = hang_guard();
    three_stacks().run(|| {
        let holder = fibra::spawn(task::park);
        let waiter = fibra::spawn(|| task::on_big_stack(BIG, || 42));
        until_others_sleep();
        waiter.cancel();
        until_others_sleep();
        assert!(!waiter.is_finished());
        holder.task().unpark();
        assert_eq!(waiter.join().unwrap(), 42);
    });
}

#[test]
fn a_task_that_must_not_suspend_is_told_at_once_which_limit_leaves_no_big_stack() {
    let _guard = hang_guard();
    three_stacks().run(|| {
        let holders: Vec<_> = (0..2).map(|_| fibra::spawn(task::park)).collect();
        until_others_sleep();
        let message = message(|| {
            let _here = task::forbid_suspend();
            task::on_big_stack(BIG, || ())
        });
        assert!(message.contains("max_stacks"), "{message}");
        for holder in holders {
            holder.task().unpark();
            holder.join().unwrap();
        }
    });
}
