#![doc = include_str!("../README.md")]

#[cfg(not(target_os = "linux"))]
compile_error!("fibra-sim needs Linux, whose sockets and epoll its network is made of");

mod answers;
#[doc(hidden)]
pub mod attributes;
mod blocking;
mod context;
mod explore;
mod host;
mod host_id;
#[doc(hidden)]
pub mod interpose;
pub mod net;
mod oracle;
mod script;
mod scripted;
mod sim;
mod strategy;

pub use blocking::allow_threads;
pub use context::{buggify, point, random, random_below};
pub use explore::{Exploration, check, check_exhaustive, check_pct, replay};
pub use host::{Host, host, restarting_host};
pub use scripted::Scripted;
pub use sim::{Builder, Failure, Report, Sim};
pub use strategy::Schedule;
