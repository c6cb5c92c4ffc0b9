//! Structured concurrency: work that is done beside its caller and is over when the call is.
//!
//! | file | holds |
//! | --- | --- |
//! | `fork.rs` | a closure on offer while its owner runs another one |
//! | `join.rs` | `join`: two closures beside each other |
//! | `range.rs` | `parallel_for`: halves of a range on offer |
//! | `each.rs` | `parallel_for_each`: an iterator that all helpers pull from |
//! | `pace.rs` | how much both do at a time, and when they let others run |

mod each;
mod fork;
mod join;
mod pace;
mod range;

pub use each::parallel_for_each;
pub use join::join;
pub use range::{Number, parallel_for};
