//! The result of a trim of a pool.

#![forbid(unsafe_code)]

/// Tells what is left to do after a [`Pool::trim`](crate::stack::pool::Pool::trim).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "cold memory stays resident unless trimming goes on"]
pub(crate) enum Trim {
    /// Nothing: no unused stack holds more than its topmost page.
    Clean,
    /// Some unused stacks hold memory but are not old enough: call again after [`Config::trim_after`](crate::stack::stacks::Config).
    Later,
    /// One lot is done and more is ready: look for work, then call again.
    More,
}
