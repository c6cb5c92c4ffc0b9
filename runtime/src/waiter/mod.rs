//! Floor 3: waiters: the wait word, the kinds of waiter, wait strategies, select tokens and the parked thread.

pub(crate) mod description;
pub(crate) mod kind;
pub(crate) mod list;
pub(crate) mod select_token;
pub(crate) mod strategy;
pub(crate) mod thread;
pub(crate) mod word;
