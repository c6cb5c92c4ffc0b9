//! The right to send one message without waiting.

#![forbid(unsafe_code)]

use super::error::SendError;
use super::places::Grant;
use super::shared::Shared;
use crate::wait;

/// The right to send one message without waiting.
///
/// [`Sender::reserve`](super::Sender::reserve) and its variants return it. Dropped unused, it gives its place in the channel
/// back, to the longest waiting sender. Until then the channel has one place less, so a permit that is leaked keeps its place
/// for ever.
///
/// # Examples
/// ```
/// use fibra_sync::channel;
/// let (sender, receiver) = channel::bounded(1);
/// let permit = sender.reserve().unwrap();
/// assert!(sender.is_full() && sender.try_send(1).is_err());
/// permit.send(2).unwrap();
/// assert_eq!(receiver.recv(), Ok(2));
/// ```
#[must_use = "a permit that is dropped gives its place back"]
pub struct Permit<'a, T> {
    channel: &'a Shared<T>,
    /// None if no receiver is left, or after use.
    grant: Option<Grant<T>>,
}

impl<'a, T> Permit<'a, T> {
    pub(super) fn new(channel: &'a Shared<T>, grant: Option<Grant<T>>) -> Self {
        Permit { channel, grant }
    }

    /// Sends a message, without waiting.
    ///
    /// # Errors
    /// Gives the message back if all receivers are gone.
    ///
    /// # Examples
    /// ```
    /// let (sender, receiver) = fibra_sync::channel::bounded(1);
    /// let permit = sender.reserve().unwrap();
    /// drop(receiver);
    /// assert_eq!(permit.send(1).unwrap_err().into_inner(), 1);
    /// ```
    pub fn send(self, message: T) -> Result<(), SendError<T>> {
        wait::point();
        self.send_in_poll(message)
    }

    /// Sends a message from inside the poll of a future, where the task must not yield.
    pub(super) fn send_in_poll(mut self, message: T) -> Result<(), SendError<T>> {
        match self.grant.take() {
            Some(Grant::Room) => self.channel.fulfil(message),
            Some(Grant::Partner(partner)) => {
                partner.give(|place| place.give(message));
                Ok(())
            }
            None => Err(SendError(message)),
        }
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        let Some(grant) = self.grant.take() else { return };
        wait::point();
        match grant {
            Grant::Room => self.channel.release(),
            // Wakes the receiver without a message.
            Grant::Partner(partner) => drop(partner),
        }
    }
}
