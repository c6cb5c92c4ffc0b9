//! Threads that park, over loom's.
//!
//! An unpark of loom's ends whatever its thread waits for at that moment, be it a mutex or the end of another thread. So the
//! token of a park has a mutex and a condition of its own here.

use std::time::Duration;

use loom::sync::{Condvar, Mutex};

/// A thread, as its waker knows it.
#[derive(Clone)]
pub(crate) struct Thread(std::sync::Arc<Token>);

struct Token {
    is_there: Mutex<bool>,
    came: Condvar,
}

loom::thread_local! {
    static CURRENT: Thread = Thread::new();
}

pub(crate) fn current() -> Thread {
    CURRENT.with(Thread::clone)
}

pub(crate) fn park() {
    current().take_token();
}

/// Deadlines of models are over before they begin: there is no time.
pub(crate) fn park_timeout(_timeout: Duration) {
    unreachable!("a sleep with a deadline does not park");
}

impl Thread {
    fn new() -> Self {
        Thread(std::sync::Arc::new(Token { is_there: Mutex::new(false), came: Condvar::new() }))
    }

    pub(crate) fn unpark(&self) {
        *self.0.is_there.lock().unwrap() = true;
        self.0.came.notify_one();
    }

    fn take_token(&self) {
        let mut is_there = self.0.is_there.lock().unwrap();
        while !*is_there {
            is_there = self.0.came.wait(is_there).unwrap();
        }
        *is_there = false;
    }
}
