//! flume's channels, awaited by tasks of tokio.

use flume::{Receiver, Sender, bounded, unbounded};

use super::asked::library::{self, Library, Thing};
use super::asked::pairs::Channel;
use crate::compare::primitives::question::SLOTS;
use crate::compare::worlds::tokio::Tokio;

pub(in crate::compare) struct Flume;

impl Library<Tokio> for Flume {
    const THINGS: &'static [Thing] = &[
        library::one_slot::<Bounded<1>>,
        library::no_slot::<Bounded<0>>,
        library::slots::<Bounded<SLOTS>>,
        library::unbounded::<Unbounded>,
    ];
}

channels! {
    Bounded[SLOTS] = Sender, Receiver, bounded(SLOTS), |to, message| to.send_async(message).await, |from| from.recv_async().await;
    Unbounded = Sender, Receiver, unbounded(), |to, message| to.send(message), |from| from.recv_async().await;
}
