//! The promises of select, with and without the macro.

#[path = "../common/channels.rs"]
mod channels;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/future.rs"]
mod future;

mod arms;
mod dynamic;
mod events;
mod fairness;
mod joins;
mod macros;
mod messages;
mod races;
mod ready;
mod receivers;
