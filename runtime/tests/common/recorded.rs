//! A strategy that writes down which of its hooks were called, and where to try one.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use fibra_runtime::wait::{Asleep, WaitStrategy, WakeHandle, Waking, Withdrawal};

use crate::common::{hang_guard, runtime};

pub(crate) fn after(duration: Duration) -> Option<Instant> {
    Some(Instant::now() + duration)
}

/// Writes down the hooks that were called; publishes what `publish` wants.
pub(crate) struct Recorded<P> {
    calls: Mutex<Vec<String>>,
    publish: P,
}

impl<P: Fn(WakeHandle<'_>) -> Asleep> Recorded<P> {
    pub(crate) fn new(publish: P) -> Self {
        Recorded { calls: Mutex::default(), publish }
    }

    fn note(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

impl<P: Fn(WakeHandle<'_>) -> Asleep> WaitStrategy for Recorded<P> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        self.note("published");
        (self.publish)(me)
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        self.note(format!("withdrawn after {why:?}"));
        Withdrawal::Withdrawn
    }
}

pub(crate) fn stay(_me: WakeHandle<'_>) -> Asleep {
    Asleep::Stay
}

pub(crate) fn in_a_task_and_on_a_thread(check: fn()) {
    let _guard = hang_guard();
    [1, 2].map(runtime).iter().for_each(|runtime| runtime.run(check));
    thread::spawn(check).join().unwrap();
}
