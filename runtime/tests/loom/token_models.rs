//! Tokens, the scopes under them, and the sleeps in those.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::context;
use crate::primitive::{check, check_bounded};
use crate::task::bounds::Look;
use crate::task::token::CancelToken;
use crate::task::{Header, Task};
use crate::wait::{Chosen, Until, over, wait_any};

/// A task, and the tokens that it runs code under.
struct Stage<const TOKENS: usize> {
    task: Task,
    tokens: [CancelToken; TOKENS],
}

impl<const TOKENS: usize> Stage<TOKENS> {
    fn new() -> Self {
        let stage = Stage { task: Task::new(), tokens: std::array::from_fn(|_| CancelToken::new()) };
        // Each of loom's objects is made by its first use.
        stage.tokens.iter().for_each(|token| stage.touch(token));
        stage
    }

    fn touch(&self, token: &CancelToken) {
        assert!(!token.is_cancelled());
        context::run_as(self.task.as_ref(), || token.scope(|| ()).unwrap());
    }

    /// Makes a token below that one.
    fn child(&self, parent: &CancelToken) -> CancelToken {
        let child = parent.child_token();
        self.touch(&child);
        child
    }

    fn header(&self) -> &Header {
        self.task.header()
    }

    /// Runs `f` under that token.
    fn scope(&self, index: usize, f: impl FnOnce()) {
        context::run_as(self.task.as_ref(), || self.tokens[index].scope(f).unwrap());
    }

    fn spawn_cancel(&self, index: usize) -> thread::JoinHandle<()> {
        let token = self.tokens[index].clone();
        thread::spawn(move || token.cancel())
    }
}

/// Finds: a cancel beside a scope that begins and sleeps, which neither the scope sees nor its sleep is told of.
#[test]
fn a_token_ends_the_sleep_of_a_scope() {
    check_bounded(3, || {
        let stage = Stage::<1>::new();
        let canceller = stage.spawn_cancel(0);
        stage.scope(0, || stage.header().sleep_until_cancelled());
        canceller.join().unwrap();
        stage.header().sleeper.assert_even();
    });
}

/// Finds: a token that touches the bound of a scope which has ended.
#[test]
fn a_scope_that_ends_beside_a_cancel_is_not_touched_after() {
    check(|| {
        let stage = Stage::<1>::new();
        let canceller = stage.spawn_cancel(0);
        stage.scope(0, || ());
        canceller.join().unwrap();
        assert!(stage.header().hit(Look::Flags).is_none(), "no scope is left");
    });
}

/// Finds: a flag for the outer scope that the end of the inner one clears with its own.
#[test]
fn the_end_of_a_scope_leaves_the_mark_of_the_one_around_it() {
    check_bounded(2, || {
        let stage = Stage::<2>::new();
        let cancellers = [0, 1].map(|index| stage.spawn_cancel(index));
        stage.scope(0, || {
            stage.tokens[1].scope(|| ()).unwrap();
            stage.header().sleep_until_cancelled();
        });
        cancellers.into_iter().for_each(|canceller| canceller.join().unwrap());
    });
}

/// Finds: a token that is made below another as that is cancelled, and is not cancelled with it.
#[test]
fn a_child_is_cancelled_with_its_parent() {
    check_bounded(3, || {
        let stage = Stage::<1>::new();
        let canceller = stage.spawn_cancel(0);
        let child = stage.tokens[0].child_token();
        canceller.join().unwrap();
        assert!(child.is_cancelled());
    });
}

/// Finds: a cancel that returns because another cancel was first, and leaves the child tokens to it; of this token, or of one in
/// between.
#[test]
fn all_below_are_cancelled_when_any_cancel_returns() {
    for own in [0, 1] {
        check_bounded(3, move || {
            let stage = Stage::<1>::new();
            let middle = stage.child(&stage.tokens[0]);
            let leaf = stage.child(&middle);
            let canceller = stage.spawn_cancel(0);
            [&stage.tokens[0], &middle][own].cancel();
            assert!(leaf.is_cancelled());
            canceller.join().unwrap();
        });
    }
}

/// A token, and data that is written before its cancel.
struct Told {
    token: CancelToken,
    data: UnsafeCell<u32>,
}

// SAFETY: the data is handed over by the cancel, which is what the models check.
unsafe impl Sync for Told {}
// SAFETY: as above.
unsafe impl Send for Told {}

impl Told {
    fn new() -> Arc<Self> {
        let told = Told { token: CancelToken::new(), data: UnsafeCell::new(0) };
        assert!(!told.token.is_cancelled());
        Arc::new(told)
    }

    fn spawn_cancel(self: &Arc<Self>) -> thread::JoinHandle<()> {
        let told = Arc::clone(self);
        thread::spawn(move || {
            // SAFETY: no thread reads it before the cancel.
            told.data.with_mut(|data| unsafe { *data = 7 });
            told.token.cancel();
        })
    }

    fn assert_cancelled(&self) {
        assert!(self.token.is_cancelled());
        // SAFETY: no thread writes it after the cancel.
        assert_eq!(self.data.with(|data| unsafe { *data }), 7);
    }
}

/// Finds: a waiter that arrives as the cancel comes and is not woken; writes before the cancel that are not seen after it.
#[test]
fn a_cancel_wakes_a_waiter_and_shows_what_was_done() {
    check_bounded(3, || {
        let told = Told::new();
        let canceller = told.spawn_cancel();
        told.token.cancelled();
        told.assert_cancelled();
        canceller.join().unwrap();
    });
}

/// Finds: a flag that is seen, where the writes before it are not, by a caller that takes no lock.
#[test]
fn a_look_at_the_flag_alone_shows_what_was_done() {
    check_bounded(3, || {
        let told = Told::new();
        let canceller = told.spawn_cancel();
        if told.token.is_cancelled() {
            told.assert_cancelled();
        }
        canceller.join().unwrap();
    });
}

/// Finds: an arm of a select that a cancel serves after the select has left.
#[test]
fn a_cancel_serves_an_arm_or_leaves_it() {
    check_bounded(3, || {
        let told = Told::new();
        let canceller = told.spawn_cancel();
        let arm = told.token.queue_arm();
        match wait_any([(&arm as &_, 1)].into_iter(), Until::shielded(Some(over()))) {
            Chosen::Served(number) => assert_eq!(number, 1),
            Chosen::Ready => told.assert_cancelled(),
            Chosen::TimedOut => {}
            Chosen::Cancelled => unreachable!("it is shielded"),
        }
        drop(arm);
        canceller.join().unwrap();
    });
}
