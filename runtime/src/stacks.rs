//! The seam between dumps and the crate that walks stacks, and what readers of other processes share with dumps.

#![forbid(unsafe_code)]

pub use crate::base::abort_dump::left_at;
pub use crate::base::memory::read;
pub use crate::base::unwinder::{SavedContext, Symbol, Unwinder, install};
pub use crate::scheduler::note::VERSION;
pub use crate::tasks::header::Layout;
pub use crate::tasks::join_error::describe;
pub use crate::tasks::sleeper::counts_by_state;
pub use crate::waiter::description::{EndedBy, Found, OwnerMark, interpret};
