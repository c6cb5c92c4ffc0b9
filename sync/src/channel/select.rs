//! A select over operations that are known at run time only.

use std::marker::PhantomData;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use super::arm::Purpose;
use super::choice::{Limit, Order, choose};
use super::error::{
    ReadyTimeoutError, RecvError, SelectTimeoutError, SendError, TryReadyError, TrySelectError,
};
use super::operation::{Erased, Target};
use super::receive_arm::RecvArm;
use super::receiver::Receiver;
use super::selectable::Selectable;
use super::send_arm::SendArm;
use super::sender::Sender;
use super::wait_arm::WaitArm;

/// Selects one operation from a list.
///
/// There are two ways to use it. [`select`](Select::select) begins an operation, which the [`SelectedOperation`] completes.
/// [`ready`](Select::ready) waits until an operation is ready, for the caller to try; another task may be quicker. An operation
/// is ready if it need not wait, also when it fails because the channel is disconnected.
///
/// Adding an operation allocates, waiting does not. For a fixed list there is [`select!`](crate::select).
///
/// # Fairness
/// Among several ready operations all have an equal chance. A [biased](Select::new_biased) select
/// prefers the first. A select waits in the queue of a channel as any other waiter does.
///
/// A selected send operation has room reserved for it. At a rendezvous it holds a receiver, which
/// takes no further message until the operation is completed; see [`select!`](crate::select).
///
/// # Examples
/// ```
/// use fibra_sync::channel::{self, Select};
/// let ends: Vec<_> = (0..3).map(|_| channel::unbounded()).collect();
/// ends[1].0.send("here").unwrap();
/// let mut select = Select::new();
/// for (_, receiver) in &ends {
///     select.recv(receiver);
/// }
/// let operation = select.select();
/// assert_eq!(operation.index(), 1);
/// assert_eq!(operation.recv(&ends[1].1), Ok("here"));
/// ```
pub struct Select<'a> {
    arms: Vec<(Erased, usize)>,
    next_index: usize,
    order: Order,
    borrowed: PhantomData<&'a ()>,
}

impl<'a> Select<'a> {
    /// Makes an empty list.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{Select, TrySelectError};
    /// assert!(matches!(Select::new().try_select(), Err(TrySelectError)));
    /// ```
    pub fn new() -> Self {
        Select::with(Order::Chance)
    }

    /// Makes an empty list that prefers the operation that was added first.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, Select};
    /// let (first, second) = (channel::never::<i32>(), channel::after(std::time::Duration::ZERO));
    /// let mut select = Select::new_biased();
    /// select.recv(&first);
    /// let ready = select.recv(&second);
    /// assert_eq!(select.ready(), ready);
    /// select.remove(ready);
    /// assert!(select.try_ready().is_err());
    /// ```
    pub fn new_biased() -> Self {
        Select::with(Order::Listed)
    }

    fn with(order: Order) -> Self {
        Select { arms: Vec::new(), next_index: 0, order, borrowed: PhantomData }
    }

    /// Adds a send operation and returns its index.
    ///
    /// Indices begin with 0, and are not used again. The type's example adds operations.
    pub fn send<T>(&mut self, sender: &'a Sender<T>) -> usize {
        self.add(Erased::new(SendArm::new(sender)))
    }

    /// Adds a receive operation and returns its index.
    ///
    /// Indices begin with 0, and are not used again. The type's example adds operations.
    pub fn recv<T>(&mut self, receiver: &'a Receiver<T>) -> usize {
        self.add(Erased::new(RecvArm::new(receiver)))
    }

    /// Adds a wait for an event, a semaphore, a token or a receiver, and returns its index.
    ///
    /// Indices begin with 0, and are not used again. Such an operation is selected only: [`ready`](Select::ready) and its
    /// variants panic if the list has one.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::{Semaphore, channel::Select};
    /// let permits = Semaphore::new(1);
    /// let mut select = Select::new();
    /// select.wait(&permits);
    /// let permit = select.select().wait(&permits);
    /// assert_eq!(permits.available_permits(), 0);
    /// # drop(permit);
    /// ```
    pub fn wait<S: Selectable + Sync>(&mut self, source: &'a S) -> usize {
        self.add(Erased::new(WaitArm::new(source)))
    }

    fn add(&mut self, arm: Erased) -> usize {
        let index = self.next_index;
        self.arms.push((arm, index));
        self.next_index += 1;
        index
    }

    /// Removes an operation from the list, for instance of a disconnected channel.
    ///
    /// # Panics
    /// Panics if no operation has this index, or if it was removed before.
    #[track_caller]
    pub fn remove(&mut self, index: usize) {
        match self.arms.iter().position(|(_, number)| *number == index) {
            // Keeps the order, which counts if the select is biased.
            Some(place) => drop(self.arms.remove(place)),
            None if index < self.next_index => panic!("operation {index} was removed before"),
            None => panic!("there is no operation {index}: {} were added", self.next_index),
        }
    }

    /// Selects an operation that is ready, without waiting.
    ///
    /// # Errors
    /// Fails if all operations would have to wait.
    pub fn try_select(&mut self) -> Result<SelectedOperation<'a>, TrySelectError> {
        self.selected(Limit::Now).ok_or(TrySelectError)
    }

    /// Selects an operation, waiting until one is ready.
    ///
    /// # Cancellation
    /// A cancellation point. An operation that was selected when the cancel came stays selected.
    ///
    /// # Panics
    /// Panics if the list is empty.
    #[track_caller]
    pub fn select(&mut self) -> SelectedOperation<'a> {
        self.assert_any();
        self.selected(Limit::Never).expect("without a limit it is never late")
    }

    /// Selects an operation, waiting no longer than `timeout`.
    ///
    /// # Errors
    /// Fails if no operation was ready in time.
    ///
    /// # Cancellation
    /// A cancellation point, like [`select`](Select::select).
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, Select};
    /// use std::time::{Duration, Instant};
    /// let (sender, receiver) = channel::unbounded();
    /// let mut select = Select::new();
    /// let index = select.recv(&receiver);
    /// let brief = Duration::from_millis(1);
    /// assert!(select.select_timeout(brief).is_err() && select.ready_timeout(brief).is_err());
    /// sender.send(1).unwrap();
    /// assert_eq!(select.ready_deadline(Instant::now()), Ok(index));
    /// let operation = select.select_deadline(Instant::now()).unwrap();
    /// assert_eq!(operation.recv(&receiver), Ok(1));
    /// ```
    pub fn select_timeout(&mut self, timeout: Duration) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.selected(Limit::after(timeout)).ok_or(SelectTimeoutError)
    }

    /// Selects an operation, waiting no longer than until `deadline`.
    ///
    /// # Errors
    /// Fails if no operation was ready in time.
    ///
    /// # Cancellation
    /// A cancellation point, like [`select`](Select::select).
    pub fn select_deadline(
        &mut self,
        deadline: Instant,
    ) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.selected(Limit::At(deadline)).ok_or(SelectTimeoutError)
    }

    /// Returns the index of an operation that is ready, without waiting.
    ///
    /// # Errors
    /// Fails if no operation is ready.
    ///
    /// # Panics
    /// Panics if an operation is a [`wait`](Select::wait).
    #[track_caller]
    pub fn try_ready(&mut self) -> Result<usize, TryReadyError> {
        self.ready_within(Limit::Now).ok_or(TryReadyError)
    }

    /// Waits until an operation is ready, and returns its index.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if the list is empty, or if an operation is a [`wait`](Select::wait).
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, Select};
    /// let (sender, receiver) = channel::unbounded();
    /// let mut select = Select::new();
    /// let index = select.recv(&receiver);
    /// assert!(select.try_ready().is_err());
    /// sender.send(1).unwrap();
    /// assert_eq!((select.ready(), receiver.try_recv()), (index, Ok(1)));
    /// ```
    #[track_caller]
    pub fn ready(&mut self) -> usize {
        self.assert_any();
        self.ready_within(Limit::Never).expect("without a limit it is never late")
    }

    /// Waits at most `timeout` until an operation is ready, and returns its index.
    ///
    /// # Errors
    /// Fails if no operation was ready in time.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if an operation is a [`wait`](Select::wait).
    #[track_caller]
    pub fn ready_timeout(&mut self, timeout: Duration) -> Result<usize, ReadyTimeoutError> {
        self.ready_within(Limit::after(timeout)).ok_or(ReadyTimeoutError)
    }

    /// Waits until an operation is ready or `deadline`, and returns its index.
    ///
    /// # Errors
    /// Fails if no operation was ready in time.
    ///
    /// # Cancellation
    /// A cancellation point.
    ///
    /// # Panics
    /// Panics if an operation is a [`wait`](Select::wait).
    #[track_caller]
    pub fn ready_deadline(&mut self, deadline: Instant) -> Result<usize, ReadyTimeoutError> {
        self.ready_within(Limit::At(deadline)).ok_or(ReadyTimeoutError)
    }

    #[track_caller]
    fn assert_any(&self) {
        assert!(!self.arms.is_empty(), "a select without operations would wait for ever: add one");
    }

    fn selected(&mut self, limit: Limit) -> Option<SelectedOperation<'a>> {
        for (arm, _) in &mut self.arms {
            // An arm whose operation is incomplete keeps its outcome.
            match arm.is_selected() {
                true => *arm = arm.renew(),
                false => arm.begin(),
            }
        }
        let index = choose(&mut self.arms, limit, self.order, Purpose::Act)?;
        let (arm, _) = self.arms.iter().find(|(_, number)| *number == index)?;
        Some(SelectedOperation {
            arm: Some(arm.clone()),
            index,
            borrowed: PhantomData,
            not_send: PhantomData,
        })
    }

    #[track_caller]
    fn ready_within(&mut self, limit: Limit) -> Option<usize> {
        let all_are_of_channels = self.arms.iter().all(|(arm, _)| !matches!(arm.target(), Target::Waits(_)));
        assert!(all_are_of_channels, "only operations of channels are watched: select the others");
        choose(&mut self.arms, limit, self.order, Purpose::Watch)
    }
}

impl Clone for Select<'_> {
    fn clone(&self) -> Self {
        let arms = self.arms.iter().map(|(arm, index)| (arm.renew(), *index)).collect();
        Select { arms, ..*self }
    }
}

impl Default for Select<'_> {
    fn default() -> Self {
        Select::new()
    }
}

/// An operation that was selected and has begun.
///
/// [`send`](SelectedOperation::send), [`recv`](SelectedOperation::recv) or [`wait`](SelectedOperation::wait) completes it, as
/// the example of [`Select`] shows.
///
/// # Panics
/// When it is dropped incomplete, unless by a panic. Its room, set or permit then goes to the next waiter, and its receiver
/// waits on. A message that it had received is leaked.
#[must_use = "a selected operation is to be completed"]
pub struct SelectedOperation<'a> {
    /// None once it is complete.
    arm: Option<Erased>,
    index: usize,
    borrowed: PhantomData<&'a ()>,
    not_send: PhantomData<*const ()>,
}

impl SelectedOperation<'_> {
    /// Returns the index of the operation in its [`Select`].
    pub fn index(&self) -> usize {
        self.index
    }

    /// Sends `message`, without waiting.
    ///
    /// # Errors
    /// Gives the message back if all receivers are gone.
    ///
    /// # Panics
    /// Panics if this is not an operation that was added for `sender` or a clone of it.
    ///
    /// # Examples
    /// ```
    /// use fibra_sync::channel::{self, Select};
    /// let (sender, receiver) = channel::bounded(1);
    /// let mut select = Select::new();
    /// select.send(&sender);
    /// select.select().send(&sender, "sent").unwrap();
    /// assert_eq!(receiver.try_recv(), Ok("sent"));
    /// ```
    #[track_caller]
    pub fn send<T>(mut self, sender: &Sender<T>, message: T) -> Result<(), SendError<T>> {
        let arm = self.completed(sender.target());
        // SAFETY: by its target it is a send arm, and for the channel of this sender, so for messages of its type, in which
        // senders are invariant.
        let permit = unsafe { &*ptr::from_ref(&*arm).cast::<SendArm<'_, T>>() }.permit();
        permit.send(message)
    }

    /// Receives the message, without waiting.
    ///
    /// # Errors
    /// Fails if the channel is empty and all senders are gone.
    ///
    /// # Panics
    /// Panics if this is not an operation that was added for `receiver` or a clone of it.
    #[track_caller]
    pub fn recv<T>(mut self, receiver: &Receiver<T>) -> Result<T, RecvError> {
        let arm = self.completed(receiver.target());
        // SAFETY: by its target it is a receive arm, and for the channel of this receiver, so for messages of its type, in
        // which receivers are invariant.
        unsafe { &*ptr::from_ref(&*arm).cast::<RecvArm<'_, T>>() }.complete()
    }

    /// Takes the permit of a semaphore, or nothing of an event, without waiting.
    ///
    /// # Panics
    /// Panics if this is not the operation that was added for `source`, by this very reference, or if the semaphore is closed.
    #[track_caller]
    pub fn wait<S: Selectable>(mut self, source: &S) -> S::Outcome<'_> {
        let arm = self.completed(Target::Waits(ptr::from_ref(source).cast()));
        source.outcome(arm.take().expect("the arm was selected"))
    }

    #[track_caller]
    fn completed(&mut self, target: Target) -> Erased {
        let own = self.arm.as_ref().map(|arm| arm.target());
        assert!(own == Some(target), "operation {} was selected for something else", self.index);
        self.arm.take().expect("it was looked at above")
    }
}

impl Drop for SelectedOperation<'_> {
    fn drop(&mut self) {
        let Some(arm) = self.arm.take() else { return };
        arm.abandon();
        if !thread::panicking() {
            panic!("operation {} was selected and not completed", self.index);
        }
    }
}
