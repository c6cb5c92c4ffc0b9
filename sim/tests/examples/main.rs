//! The examples as simulated programs: on hosts of their own, with clients, over a network with faults.
//!
//! `FIBRA_SIM_RUNS` sets the number of seeds.

#[expect(dead_code, reason = "a simulated program starts no runtime, so it does not run `main`")]
#[path = "../../../examples/chat.rs"]
mod chat;
#[expect(dead_code, reason = "a simulated program starts no runtime, so it does not run `main`")]
#[path = "../../../examples/graceful_shutdown.rs"]
mod graceful_shutdown;
#[expect(dead_code, reason = "a simulated program starts no runtime, so it does not run `main`")]
#[path = "../../../examples/resp_server/main.rs"]
mod resp_server;
#[expect(dead_code, reason = "a simulated program starts no runtime, so it does not run `main`")]
#[path = "../../../examples/tcp_proxy.rs"]
mod tcp_proxy;

mod chat_room;
mod forwarding;
mod key_values;
mod shutdown;
mod weather;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fibra_sim::Sim;

const SECOND: Duration = Duration::from_secs(1);

/// Runs a program twice for each of some seeds: both runs take the same course.
fn check_determinism(program: fn()) {
    for seed in 0..5 {
        Sim::builder().seed(seed).check_determinism(true).run(program);
    }
}

/// What several hosts and the test write and read. No task waits while it has the lock.
#[derive(Default)]
struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}
