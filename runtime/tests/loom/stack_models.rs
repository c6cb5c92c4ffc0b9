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
    stacks.pool().answer();
    assert!(works(&mut stacks.pool()));
    stacks
}

fn use_stack(stack: &Stack) {
    sys::touch(stack.base().get() - 1);
}

/// Takes a stack, uses it and gives it back. True if there was one.
fn works(pool: &mut Pool) -> bool {
    let Ok(stack) = pool.take() else { return false };
    pool.leave_queue();
    use_stack(&stack);
    pool.give(stack);
    pool.answer();
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

/// Finds: a request for a stack that the pool with an unused one misses, or that a pool without one answers.
#[test]
fn a_pool_with_an_unused_stack_answers_a_request() {
    check_bounded(3, || {
        let stacks = stacks(1);
        let mut pool = stacks.pool();
        let stack = pool.take().expect("the only pool");
        let needy = spawn(&stacks, |mut pool| {
            let found = works(&mut pool);
            // It rests, and leaves the request to a pool that has a stack.
            pool.answer();
            (pool, found)
        });
        use_stack(&stack);
        pool.give(stack);
        pool.answer();
        let (mut other, found) = needy.join().unwrap();
        pool.answer();
        assert!(found || works(&mut other), "it was asked for, and has come");
        drop((pool, other));
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

/// Finds: a stack that its giver leaves to a waiting pool, and that neither pool finds, as each relies on its peer.
#[test]
fn a_stack_left_to_a_pool_that_waits_is_there_for_it() {
    check_bounded(3, || {
        let stacks = stacks(1);
        let (mut giver, mut needy) = (stacks.pool(), stacks.pool());
        let stack = giver.take().expect("the only pool");
        assert!(needy.take().is_err());
        let needy = thread::spawn(move || {
            works(&mut needy);
            needy
        });
        use_stack(&stack);
        giver.give(stack);
        giver.answer();
        works(&mut giver);
        let mut needy = needy.join().unwrap();
        let found = works(&mut needy) || {
            giver.answer();
            works(&mut needy) || works(&mut giver)
        };
        assert!(found, "the stack lies in this pool or in the exchange");
        drop((giver, needy));
        end(stacks);
    });
}
