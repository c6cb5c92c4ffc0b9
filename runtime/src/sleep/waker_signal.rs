//! A waker that a task or a thread sleeps for.

#![forbid(unsafe_code)]

use std::mem;
use std::sync::Arc;
use std::task::{Wake, Waker};

use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::{Admit, Outcome, Until};
use crate::sleep::queue::waiters::Waiters;

/// The flag that a waker raises: set until the sleeper takes it, unless the sleeper is woken.
///
/// A waker that is kept for ever finds no sleeper and raises the flag, no more.
pub struct WakerSignal(WaitQueue<bool, ()>);

impl WakerSignal {
    /// Makes a signal and its waker.
    pub fn new() -> (Arc<WakerSignal>, Waker) {
        let signal = Arc::new(WakerSignal(WaitQueue::new(false)));
        let waker = Waker::from(Arc::clone(&signal));
        (signal, waker)
    }

    /// Takes the flag, and returns true if it was raised.
    pub fn take(&self) -> bool {
        self.0.with(|raised, _| mem::take(raised))
    }

    /// Sleeps until the flag is raised, and takes it.
    #[track_caller]
    pub fn sleep(&self, until: Until) -> Outcome<()> {
        let admit =
            |raised: &mut bool, (): &mut (), _: &mut Waiters<'_, (), 1>| Admit::if_ready(mem::take(raised));
        self.0.wait(0, (), until, admit, || (), |_, (), _, _| ()).0
    }
}

impl Wake for WakerSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.with(|raised, waiters| *raised = waiters.serve_front(0, |()| ()).is_none());
    }
}
