#![doc = include_str!("../README.md")]

mod manual_reset_event;
mod primitive;

// The wait core, by a path that the models can give another meaning.
use fibra_runtime::wait;

pub use manual_reset_event::ManualResetEvent;
