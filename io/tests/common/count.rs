//! A waker that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn wakes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls with that waker, at the begin of a turn: it does not give way.
pub(crate) fn polled<T>(count: &Arc<Count>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    fibra_runtime::yield_now();
    poll(&mut Context::from_waker(&Waker::from(Arc::clone(count))))
}
