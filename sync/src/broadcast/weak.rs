//! A sender that does not count.

use std::fmt;
use std::sync::Arc;

use super::Sender;
use super::ring::Ring;

/// A handle to a [`channel`](super::channel) that can become a [`Sender`], and does not keep the channel open.
///
/// For who should send only as long as others do, such as a registry of channels, or a task that also receives and would
/// never be told of the end by a sender of its own. It keeps the memory of the channel, but none of its messages.
///
/// # Examples
/// ```
/// # use fibra_sync as sync;
/// use sync::broadcast::error::TryRecvError;
///
/// let (sender, mut receiver) = sync::broadcast::channel(16);
/// let weak = sender.downgrade();
/// weak.upgrade().unwrap().send("news").unwrap();
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// assert_eq!(receiver.try_recv(), Ok("news"));
/// assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
/// ```
pub struct WeakSender<T> {
    ring: Arc<Ring<Arc<T>>>,
}

// A panic in a clone leaves the channel as it is.
impl<T> std::panic::UnwindSafe for WeakSender<T> {}
impl<T> std::panic::RefUnwindSafe for WeakSender<T> {}

impl<T> WeakSender<T> {
    pub(super) fn new(ring: Arc<Ring<Arc<T>>>) -> Self {
        ring.with(|state| state.add_weak_sender());
        WeakSender { ring }
    }

    /// Makes a sender, unless all are dropped: once that is so it stays so.
    ///
    /// An upgrade beside the drop of the last sender comes before it, and the channel stays open, or after it and fails.
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let open = self.ring.with(|state| state.upgrade());
        open.then(|| Sender { ring: Arc::clone(&self.ring) })
    }

    /// How many senders there are, weak ones not counted. Zero is final.
    pub fn strong_count(&self) -> usize {
        self.ring.with(|state| state.senders())
    }

    /// How many weak senders there are, this one included.
    pub fn weak_count(&self) -> usize {
        self.ring.with(|state| state.weak_senders())
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender::new(Arc::clone(&self.ring))
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.ring.with(|state| state.remove_weak_sender());
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").field("senders", &self.strong_count()).finish_non_exhaustive()
    }
}
