//! The numbers of hosts.

#![forbid(unsafe_code)]

/// Identifies a host. The first one is that of the main task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(crate) struct HostId(pub(crate) u16);
