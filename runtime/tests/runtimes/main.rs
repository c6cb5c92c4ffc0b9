//! The promises of runtimes: their builder, drivers, pools and limits, and how they end.

#[path = "../common/at_end.rs"]
mod at_end;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/ledger.rs"]
mod ledger;
#[path = "../common/message.rs"]
mod message;

mod blocking;
mod driver;
mod dump;
mod inspect;
mod lacking;
mod metrics;
mod runtimes;
mod shortage;
mod shutdown;
mod shutdown_waits;
