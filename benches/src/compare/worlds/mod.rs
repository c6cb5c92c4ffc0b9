//! Where tasks run.
//!
//! | file | holds |
//! | --- | --- |
//! | `fibra.rs`, `may.rs`, `threads.rs` | tasks that block |
//! | `tokio.rs`, `smol.rs` | tasks that wait by `await` |

pub(super) mod fibra;
pub(super) mod may;
pub(super) mod smol;
pub(super) mod threads;
pub(super) mod tokio;
