//! The promises of waits: parking, the wait core, time, cancellation and futures.

#[path = "../common/at_end.rs"]
mod at_end;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/counted.rs"]
mod counted;
#[path = "../common/ending.rs"]
mod ending;
#[path = "../common/message.rs"]
mod message;
#[path = "../common/paused.rs"]
mod paused;
#[path = "../common/recorded.rs"]
mod recorded;
#[path = "../common/rerun.rs"]
mod rerun;
#[path = "../common/rest.rs"]
mod rest;
#[path = "../common/rounds.rs"]
mod rounds;
#[path = "../common/tokens.rs"]
mod tokens;
#[path = "../common/workers.rs"]
mod workers;

mod block_on;
mod cancel;
mod cancel_scenarios;
mod cancel_tokens;
mod deadline_scenarios;
mod interval;
mod join_future;
mod park;
mod time;
mod timeouts;
mod virtual_time;
mod wait_any;
mod wait_kinds;
mod wait_races;
mod wait_rules;

/// Runs a test with the machine's clock, on one, on two and on four workers, and in virtual time.
fn in_both_times(test: impl Fn() + Send + Sync) {
    workers::on_workers(&test);
    paused::paused(test);
}
