//! Watch channel: keeps the last value only, and tells its receivers of changes.
//!
//! Names and meaning are those of tokio, without `async`. Waiting allocates nothing.
//!
//! A [`select!`](crate::select) waits for a change by `wait(receiver)`, as at [`oneshot`](crate::oneshot).
//!
//! ```
//! # use fibra_runtime as fibra;
//! # use fibra_sync as sync;
//! # fibra::Runtime::builder().workers(1).build()?.run(|| {
//! let (sender, mut receiver) = sync::watch::channel("starting");
//! let task = fibra::spawn(move || receiver.wait_for(|state| *state == "ready").map(|state| *state));
//! sender.send("ready").unwrap();
//! assert_eq!(task.join().unwrap(), Ok("ready"));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::fmt;
use std::mem;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibra_runtime::task::Shielded;
use fibra_runtime::time;

use crate::budget;
use crate::messages::shown;
use crate::rwlock::{RwLock, RwLockReadGuard, admits_readers, try_read_in_poll};
use crate::wait::{self, ArmPolicy, QueueArm, Waiters};
use error::{RecvError, RecvTimeoutError, SendError};
use versions::Versions;

pub(crate) use versions::Counts;

pub mod error;
mod versions;

/// Makes a channel with its first value, and its first receiver.
///
/// The receiver counts that value as seen.
///
/// # Examples
/// ```
/// let (sender, mut receiver) = fibra_sync::watch::channel(1);
/// assert!(!receiver.has_changed().unwrap());
/// sender.send(2).unwrap();
/// assert_eq!(*receiver.wait_for(|value| *value > 1).unwrap(), 2);
/// ```
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// Changes the value of a [`channel`]. Clones share the channel.
///
/// Changes and borrows wait as for a lock and have no timed forms: keep borrows short. Waits for a
/// change have timed forms.
///
/// # Deadlocks
/// A change waits for all borrows to end. So a task that holds a [`Ref`] of the value waits for ever.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// Learns of changes of a [`channel`].
///
/// A clone has seen what its original has seen.
///
/// # Fairness
/// A change wakes all waiting receivers in the order of arrival.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version that it saw last.
    seen: u64,
}

struct Shared<T> {
    /// No cancellation cuts the destructor short.
    value: Shielded<RwLock<T>>,
    versions: Versions,
}

impl<T> Shared<T> {
    /// Keeps the `value` borrowed if it is `wanted`, and marks its version as `seen` in any case.
    fn see<'a>(
        &self,
        value: RwLockReadGuard<'a, T>,
        seen: &mut u64,
        wanted: &mut impl FnMut(&T) -> bool,
    ) -> Option<RwLockReadGuard<'a, T>> {
        *seen = self.versions.look().version;
        wanted(&value).then_some(value)
    }
}

/// Announces a change once the sender has unlocked the value, also if it unwinds.
struct Announcement<'a> {
    versions: &'a Versions,
    has_changed: bool,
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        self.versions.announce(self.has_changed);
    }
}

/// Borrows the value of a [`channel`], locked for reading.
///
/// It may be held over a suspension of the task; senders wait for it.
///
/// # Deadlocks
/// Like a read guard of [`RwLock`]: a task that borrows twice hangs if a sender starts to wait in between.
pub struct Ref<'a, T> {
    value: RwLockReadGuard<'a, T>,
    has_changed: bool,
}

impl<T> Ref<'_, T> {
    /// Returns true if the receiver had not seen this value. False for a [`Sender`]'s.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Sender<T> {
    /// Makes a channel without a receiver.
    ///
    /// # Examples
    /// ```
    /// let sender = fibra_sync::watch::Sender::new(1);
    /// sender.closed();
    /// assert!(sender.send(2).is_err());
    /// assert_eq!(*sender.borrow(), 1);
    /// ```
    pub fn new(value: T) -> Self {
        Sender {
            shared: Arc::new(Shared { value: Shielded::new(RwLock::new(value)), versions: Versions::new() }),
        }
    }

    /// Replaces the value and tells the receivers. Waits while it is borrowed.
    ///
    /// # Cancellation
    /// As the acquisition of a lock, this is no cancellation point.
    ///
    /// # Errors
    /// Gives the new value back, and keeps the old, if there is no receiver.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::watch::{self, error::SendError};
    /// let (sender, mut receiver) = watch::channel("first");
    /// sender.send("second").unwrap();
    /// assert!(receiver.changed().is_ok() && *receiver.borrow() == "second");
    /// drop(receiver);
    /// assert_eq!(sender.send("third"), Err(SendError("third")));
    /// assert_eq!(*sender.borrow(), "second");
    /// ```
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        wait::point();
        if self.receivers() == 0 {
            return Err(SendError(value));
        }
        let mut value = Shielded::new(value);
        self.send_modify(|old| mem::swap(old, &mut value));
        Ok(())
    }

    /// Changes the value and tells the receivers. Waits while it is borrowed.
    ///
    /// It does so also if there are no receivers.
    ///
    /// If `modify` panics no receiver is told, and the value stays as it is.
    ///
    /// # Cancellation
    /// As the acquisition of a lock, this is no cancellation point. `modify` may contain one.
    ///
    /// # Deadlocks
    /// If `modify` borrows the value.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::watch::channel(1);
    /// sender.send_modify(|value| *value += 1);
    /// assert!(receiver.has_changed().unwrap());
    /// assert!(!sender.send_if_modified(|_| false), "no receiver is told");
    /// assert_eq!(sender.send_replace(5), 2);
    /// assert_eq!(*receiver.borrow(), 5);
    /// ```
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value, and tells the receivers if `modify` returns true.
    ///
    /// Returns what `modify` returned.
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let versions = &self.shared.versions;
        // Before the lock, so that it is dropped after it.
        let mut announcement = Announcement { versions, has_changed: false };
        let mut value = self.shared.value.write();
        let modified = modify(&mut value);
        if modified {
            versions.advance();
            announcement.has_changed = true;
        }
        modified
    }

    /// Replaces the value, tells the receivers, and returns the former value.
    ///
    /// Waits while the value is borrowed. It need not have a receiver.
    ///
    /// # Cancellation
    /// As the acquisition of a lock, this is no cancellation point.
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|old| mem::swap(old, &mut value));
        value
    }

    /// Borrows the value. Waits while a sender changes it.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref { value: self.shared.value.read(), has_changed: false }
    }

    /// Makes a receiver that counts the present value as seen.
    pub fn subscribe(&self) -> Receiver<T> {
        wait::point();
        self.shared.versions.with(|counts| counts.receivers += 1);
        Receiver { seen: self.shared.versions.look().version, shared: Arc::clone(&self.shared) }
    }

    /// Counts the receivers.
    pub fn receiver_count(&self) -> usize {
        wait::charge();
        self.receivers()
    }

    fn receivers(&self) -> usize {
        self.shared.versions.with(|counts| counts.receivers)
    }

    /// Counts the senders.
    pub fn sender_count(&self) -> usize {
        wait::charge();
        self.shared.versions.with(|counts| counts.senders)
    }

    /// Returns true if there is no receiver.
    ///
    /// [`subscribe`](Sender::subscribe) makes one.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let (sender, receiver) = fibra_sync::watch::channel(1);
    /// assert_eq!((sender.is_closed(), sender.receiver_count(), sender.sender_count()), (false, 1, 1));
    /// assert!(!sender.closed_timeout(Duration::from_millis(1)));
    /// drop(receiver);
    /// assert!(sender.is_closed() && sender.closed_deadline(Instant::now()));
    /// let receiver = sender.subscribe();
    /// assert!(!sender.is_closed() && receiver.same_channel(&receiver.clone()));
    /// ```
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until there is no receiver.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn closed(&self) {
        self.closed_to(None);
    }

    /// Waits until there is no receiver, at most for `timeout`.
    ///
    /// Returns true if there is none.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn closed_timeout(&self, timeout: Duration) -> bool {
        self.closed_to(time::deadline(timeout))
    }

    /// Waits until there is no receiver, at most until `deadline`.
    ///
    /// Returns true if there is none.
    ///
    /// # Cancellation
    /// A cancellation point.
    pub fn closed_deadline(&self, deadline: Instant) -> bool {
        self.closed_to(Some(deadline))
    }

    /// Waits until there is no receiver, as a future that may be dropped at any time.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use fibra_sync as sync;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let (sender, receiver) = sync::watch::channel(0);
    /// let task = fibra::spawn(move || drop(receiver));
    /// fibra::block_on(sender.closed_async());
    /// assert!(sender.send(1).is_err());
    /// # task.join().unwrap();
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn closed_async(&self) {
        budget::charge().await;
        self.shared.versions.wait_closed_async().await;
    }

    fn closed_to(&self, deadline: Option<Instant>) -> bool {
        wait::checkpoint();
        self.shared.versions.wait_closed(deadline)
    }

    /// Returns true if both senders belong to one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.versions.with(|counts| counts.senders += 1);
        Sender { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Sender::new(T::default())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        wait::point();
        self.shared.versions.remove_sender();
    }
}

impl<T> Receiver<T> {
    /// Borrows the value, and does not count it as seen.
    ///
    /// It waits while a sender changes the value.
    pub fn borrow(&self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        Ref { value, has_changed: self.shared.versions.look().version != self.seen }
    }

    /// Borrows the value, and counts it as seen. Waits while a sender changes it.
    ///
    /// # Examples
    /// ```
    /// let (sender, mut receiver) = fibra_sync::watch::channel(1);
    /// sender.send(2).unwrap();
    /// assert!(receiver.borrow().has_changed());
    /// assert_eq!(*receiver.borrow_and_update(), 2);
    /// assert!(!receiver.has_changed().unwrap());
    /// receiver.mark_changed();
    /// assert!(receiver.has_changed().unwrap());
    /// receiver.mark_unchanged();
    /// assert!(!receiver.has_changed().unwrap());
    /// ```
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        // With the value locked, so that it is the version of this value.
        let version = self.shared.versions.look().version;
        let seen = mem::replace(&mut self.seen, version);
        Ref { value, has_changed: version != seen }
    }

    /// Returns true if there is a value that this receiver has not seen.
    ///
    /// # Errors
    /// Fails if all senders are dropped.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        wait::charge();
        self.look_for_change()
    }

    fn look_for_change(&self) -> Result<bool, RecvError> {
        let now = self.shared.versions.look();
        match now.closed {
            true => Err(RecvError),
            false => Ok(now.version != self.seen),
        }
    }

    /// Returns true if all senders are dropped. Their last value may still be unseen.
    ///
    /// # Examples
    /// ```
    /// # use fibra_sync as sync;
    /// let (sender, mut receiver) = sync::watch::channel("first");
    /// sender.send("last").unwrap();
    /// assert!(!receiver.is_closed());
    /// drop(sender);
    /// assert!(receiver.is_closed());
    /// assert_eq!(receiver.changed().map(|()| *receiver.borrow()), Ok("last"));
    /// assert!(receiver.changed().is_err());
    /// ```
    pub fn is_closed(&self) -> bool {
        wait::charge();
        self.shared.versions.look().closed
    }

    /// Counts the present value as not seen.
    pub fn mark_changed(&mut self) {
        // No version has this number.
        self.seen = u64::MAX;
    }

    /// Counts the present value as seen.
    pub fn mark_unchanged(&mut self) {
        wait::point();
        self.seen = self.shared.versions.look().version;
    }

    /// Waits for a value that this receiver has not seen, and counts it as seen.
    ///
    /// # Cancellation
    /// A cancellation point, which loses no change.
    ///
    /// # Errors
    /// Fails if all senders are dropped and their last value is seen.
    pub fn changed(&mut self) -> Result<(), RecvError> {
        self.shared.versions.wait_changed(&mut self.seen, None).map_err(closed)
    }

    /// Waits for a value that this receiver has not seen, at most for `timeout`.
    ///
    /// # Cancellation
    /// A cancellation point, which loses no change.
    ///
    /// # Errors
    /// As for [`changed`](Receiver::changed), and if no change came in time.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::watch::{self, error::RecvTimeoutError};
    /// use std::time::{Duration, Instant};
    /// let (sender, mut receiver) = watch::channel(1);
    /// let early = receiver.changed_timeout(Duration::from_millis(1));
    /// assert_eq!(early, Err(RecvTimeoutError::Timeout));
    /// sender.send(2).unwrap();
    /// assert_eq!(receiver.changed_deadline(Instant::now()), Ok(()));
    /// sender.send(3).unwrap();
    /// assert_eq!(fibra_runtime::block_on(receiver.changed_async()), Ok(()));
    /// ```
    pub fn changed_timeout(&mut self, timeout: Duration) -> Result<(), RecvTimeoutError> {
        self.shared.versions.wait_changed(&mut self.seen, time::deadline(timeout))
    }

    /// Waits for a value that this receiver has not seen, at most until `deadline`.
    ///
    /// # Cancellation
    /// A cancellation point, which loses no change.
    ///
    /// # Errors
    /// As for [`changed_timeout`](Receiver::changed_timeout).
    pub fn changed_deadline(&mut self, deadline: Instant) -> Result<(), RecvTimeoutError> {
        self.shared.versions.wait_changed(&mut self.seen, Some(deadline))
    }

    /// Waits for a value that this receiver has not seen, as a future.
    ///
    /// Dropped early it loses no change.
    ///
    /// # Errors
    /// As for [`changed`](Receiver::changed).
    pub async fn changed_async(&mut self) -> Result<(), RecvError> {
        budget::charge().await;
        self.shared.versions.wait_changed_async(&mut self.seen).await
    }

    /// Waits until the value is `wanted`, borrows it and counts it as seen.
    ///
    /// The present value is tried first, and each value once.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Errors
    /// Fails if all senders are dropped and their last value is not wanted.
    pub fn wait_for(&mut self, wanted: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, RecvError> {
        self.wait_for_to(wanted, None).map_err(closed)
    }

    /// Waits until the value is `wanted`, at most for `timeout`, and borrows it.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Errors
    /// As for [`wait_for`](Receiver::wait_for), and if no such value came in time.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, Instant};
    /// let (sender, mut receiver) = fibra_sync::watch::channel(1);
    /// assert!(receiver.wait_for_timeout(|value| *value > 1, Duration::from_millis(1)).is_err());
    /// sender.send(2).unwrap();
    /// assert_eq!(*receiver.wait_for_deadline(|value| *value > 1, Instant::now()).unwrap(), 2);
    /// ```
    pub fn wait_for_timeout(
        &mut self,
        wanted: impl FnMut(&T) -> bool,
        timeout: Duration,
    ) -> Result<Ref<'_, T>, RecvTimeoutError> {
        self.wait_for_to(wanted, time::deadline(timeout))
    }

    /// Waits until the value is `wanted`, at most until `deadline`, and borrows it.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Errors
    /// As for [`wait_for_timeout`](Receiver::wait_for_timeout).
    pub fn wait_for_deadline(
        &mut self,
        wanted: impl FnMut(&T) -> bool,
        deadline: Instant,
    ) -> Result<Ref<'_, T>, RecvTimeoutError> {
        self.wait_for_to(wanted, Some(deadline))
    }

    fn wait_for_to(
        &mut self,
        mut wanted: impl FnMut(&T) -> bool,
        deadline: Option<Instant>,
    ) -> Result<Ref<'_, T>, RecvTimeoutError> {
        wait::checkpoint();
        let Receiver { shared, seen } = self;
        let first = *seen;
        loop {
            if let Some(value) = shared.see(shared.value.read(), seen, &mut wanted) {
                return Ok(Ref { value, has_changed: *seen != first });
            }
            shared.versions.wait_changed(seen, deadline)?;
        }
    }

    /// Waits until the value is `wanted`, as a future, and borrows it.
    ///
    /// Dropped early it has counted the values that were not wanted as seen. A poll that finds the
    /// value locked by a sender does not wait: the future is woken when the sender is done.
    ///
    /// # Errors
    /// As for [`wait_for`](Receiver::wait_for).
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// # use fibra_sync as sync;
    /// # fibra::Runtime::builder().workers(1).build()?.run(|| {
    /// let (sender, mut receiver) = sync::watch::channel("starting");
    /// let task = fibra::spawn(move || sender.send("ready"));
    /// fibra::block_on(receiver.wait_for_async(|state| *state == "ready")).unwrap();
    /// # task.join().unwrap().unwrap();
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn wait_for_async(
        &mut self,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, RecvError> {
        budget::charge().await;
        let Receiver { shared, seen } = self;
        let first = *seen;
        loop {
            let Some(value) = try_read_in_poll(&shared.value) else {
                shared.versions.wait_unlocked_async(|| admits_readers(&shared.value)).await;
                continue;
            };
            if let Some(value) = shared.see(value, seen, &mut wanted) {
                return Ok(Ref { value, has_changed: *seen != first });
            }
            shared.versions.wait_changed_async(seen).await?;
        }
    }

    /// Returns true if both receivers belong to one channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns true if a wait for a change would end at once.
    pub(crate) fn has_outcome(&self) -> bool {
        self.shared.versions.has_changed(self.seen)
    }

    /// Makes an arm of a select.
    pub(crate) fn queue_arm(&self) -> QueueArm<'_, Counts, (), 3, Self> {
        self.shared.versions.arm(self)
    }
}

impl<T> ArmPolicy<Counts, (), 3> for Receiver<T> {
    fn is_ready(&self, _: &Counts, (): &mut (), _waiters: &Waiters<'_, (), 3>) -> bool {
        self.has_outcome()
    }
}

fn closed(error: RecvTimeoutError) -> RecvError {
    match error {
        RecvTimeoutError::Closed => RecvError,
        RecvTimeoutError::Timeout => unreachable!("there is no deadline"),
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.versions.with(|counts| counts.receivers += 1);
        Receiver { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        wait::point();
        self.shared.versions.remove_receiver();
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

shown!([T] Sender<T>: it => receivers: it.receivers());
shown!([T] Receiver<T>: it => has_changed: it.look_for_change());
