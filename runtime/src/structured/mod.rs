//! Structured concurrency: work that is done beside its caller and is over when the call is.
//!
//! | file | holds |
//! | --- | --- |
//! | `fork.rs` | a closure on offer while its owner runs another one |
//! | `join.rs` | `join`: two closures beside each other |
//! | `range.rs` | `parallel_for`: halves of a range on offer |
//! | `each.rs` | `parallel_for_each`: an iterator that all helpers pull from |
//! | `group.rs`, `group_error.rs` | `TaskGroup`: a growing set of tasks |
//! | `race.rs`, `field.rs` | `race`: the first to end wins; and the closures that take part |
//! | `pace.rs` | how much both do at a time, and when they let others run |

mod each;
mod field;
mod fork;
mod group;
mod group_error;
mod join;
mod pace;
mod race;
mod range;

pub use each::parallel_for_each;
#[doc(hidden)]
pub use field::{Entry, Field, FinishLine, Lost};
pub use group::TaskGroup;
pub use group_error::{GroupError, StillRunning};
pub use join::join;
#[doc(hidden)]
pub use race::run as run_race;
pub use race::{Either, race};
pub use range::{Number, parallel_for};
