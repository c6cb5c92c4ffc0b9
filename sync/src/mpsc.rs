//! Channels by the names of `std::sync::mpsc`.
//!
//! `use std::sync::mpsc` becomes `use fibra::sync::mpsc`. All of it are names of [`channel`](crate::channel): [`channel`] is
//! [`unbounded`](crate::channel::unbounded), [`sync_channel`] is [`bounded`](crate::channel::bounded).
//!
//! # Differences from std
//! [`Sender`] and [`SyncSender`] are one type, and a [`Receiver`] can be cloned and shared.
//!
//! # Examples
//! ```
//! # use fibra_runtime as fibra;
//! use fibra_sync::mpsc::{self, Receiver, SyncSender};
//! # fibra::Runtime::builder().workers(1).build()?.run(|| {
//! let (sender, receiver) = mpsc::channel();
//! fibra::spawn(move || sender.send(1));
//! assert_eq!(receiver.recv(), Ok(1));
//! let (sender, receiver): (SyncSender<i32>, Receiver<i32>) = mpsc::sync_channel(0);
//! assert_eq!(sender.try_send(2), Err(mpsc::TrySendError::Full(2)));
//! # drop(receiver);
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

pub use crate::channel::{
    IntoIter, Iter, Receiver, RecvError, RecvTimeoutError, SendError, Sender, Sender as SyncSender, TryIter,
    TryRecvError, TrySendError, bounded as sync_channel, unbounded as channel,
};
