//! A future's wait for room in the queue of a Unix receiver that its socket is not connected to.

#![forbid(unsafe_code)]

use std::io;

use socket2::SockAddr;

use super::endpoints::{EventSource, Polls};
use super::watch::Watch;
use crate::net::unix::probe::Probe;
use crate::sys::Direction;

/// See the [module](self).
pub(super) struct Detour {
    /// Before the probe: it leaves its lists before that closes.
    pub(super) watch: Watch,
    pub(super) probe: Probe,
    receiver: SockAddr,
}

impl Detour {
    /// Returns the detour to that receiver, pending since the poll before or new. Returns `None` if
    /// that receiver cannot be waited for.
    pub(super) fn to<'a>(
        kept: &'a mut Option<Box<Detour>>,
        receiver: &SockAddr,
    ) -> io::Result<Option<&'a mut Detour>> {
        if kept.as_ref().is_none_or(|kept| kept.receiver != *receiver) {
            let make = |probe| {
                Box::new(Detour { watch: Watch::new(Direction::Write), probe, receiver: receiver.clone() })
            };
            *kept = Probe::of(receiver)?.map(make);
        }
        Ok(kept.as_deref_mut())
    }
}

impl Polls for Probe {
    fn events(&self, direction: Direction) -> EventSource<'_> {
        EventSource::of(self.io(), direction)
    }
}
