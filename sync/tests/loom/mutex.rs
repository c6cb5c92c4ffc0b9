//! The files of the mutex, where its models and those of the condition find them.

#[path = "../../src/mutex/line.rs"]
pub(crate) mod line;
#[path = "../../src/mutex/state.rs"]
pub(crate) mod state;
