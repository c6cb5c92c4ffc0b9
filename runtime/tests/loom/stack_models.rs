//! The stacks of two workers, and the exchange between them.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use crate::primitive::check_bounded;
use crate::stack::{Config, Pool, Stack, StackGuards, Stacks, Trim, sys};

/// So large that a region has one stack.
const SIZE: usize = 64 * 1024 * 1024;

/// The stacks of a runtime that may have `limit` of them.
fn stacks(limit: usize) -> Arc<Stacks> {
    let config =
        Config { size: SIZE, guards: StackGuards::Auto, max_stacks: Some(limit), trim_after: Duration::ZERO };
    let stacks = Stacks::new(config).expect("it fits");
    // Each of loom's objects is made by its first use.
    assert!(works(&mut stacks.pool()));
    stacks
}

fn use_stack(stack: &Stack) {
    sys::touch(stack.base().get() - 1);
}

/// Takes a stack, uses it and gives it back. True if there was one.
fn works(pool: &mut Pool) -> bool {
    let Ok(stack) = pool.take() else { return false };
    use_stack(&stack);
    pool.give(stack);
    pool.empty();
    true
}

/// A worker.
fn spawn<R: 'static>(stacks: &Arc<Stacks>, f: impl FnOnce(Pool) -> R + 'static) -> thread::JoinHandle<R> {
    let stacks = Arc::clone(stacks);
    thread::spawn(move || f(stacks.pool()))
}

/// Loom is told of the end of each stack.
fn end(stacks: Arc<Stacks>) {
    drop(stacks);
    assert_eq!(sys::mappings(), 0, "a stack is lost");
}

/// Finds: one stack with two owners, or two stacks where one is allowed; a stack, or the right to one, that is lost on the way;
/// a write to it that its next owner does not see.
#[test]
fn a_stack_goes_from_one_worker_to_the_other() {
    check_bounded(3, || {
        let stacks = stacks(1);
        let other = spawn(&stacks, |mut pool| works(&mut pool));
        let here = works(&mut stacks.pool());
        assert!(other.join().unwrap() || here, "the first to ask has it");
        assert_eq!(sys::mappings(), 1, "more are not allowed");
        assert!(works(&mut stacks.pool()));
        end(stacks);
    });
}

/// Finds: a stack whose memory is given back while a task runs on it.
#[test]
fn a_stack_is_trimmed_or_taken() {
    check_bounded(3, || {
        let stacks = stacks(2);
        let trims = spawn(&stacks, |mut pool| while pool.trim() > Trim::Clean {});
        assert!(works(&mut stacks.pool()));
        trims.join().unwrap();
        end(stacks);
    });
}
