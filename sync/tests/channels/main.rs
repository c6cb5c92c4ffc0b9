//! The promises of channels of every kind.

#[path = "../common/channels.rs"]
mod channels;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/future.rs"]
mod future;
#[path = "../../../runtime/tests/common/paused.rs"]
mod paused;

mod broadcast;
mod broadcast_lag;
mod broadcast_weak;
mod channel;
mod channel_async;
mod channel_bounded;
mod channel_cancel;
mod channel_disconnect;
mod channel_drain;
mod channel_errors;
mod channel_iter;
mod channel_kinds;
mod channel_programs;
mod channel_races;
mod channel_rendezvous;
mod channel_reserve;
mod channel_timers;
mod channel_unbounded;
mod channel_weak;
mod mpsc;
mod oneshot;
mod watch;
