//! The files of the mutex, where its models and those of the condition find them.

#[path = "../../src/mutex/core.rs"]
pub(crate) mod core;
#[path = "../../src/mutex/state.rs"]
pub(crate) mod state;
