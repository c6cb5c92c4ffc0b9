//! What servers need for a request, and how long their clients wait for the answer. Each server is a process
//! on a processor of its own, with one worker; the generator of `load` is another.
//!
//! | file | holds |
//! | --- | --- |
//! | `question.rs` | the questions |
//! | `served.rs` | a server under load |
//! | `migratable.rs` | fibra's echo server with tasks that migrate; the others are examples, or in `rival` |

mod migratable;
mod question;
mod served;

use std::env;
use std::process::ExitCode;

use super::entrant::{Entrant, always};
use crate::rival::{echo, http};
use crate::servers::Server;
use crate::wire::Protocol;
use question::{MANY, Question};
use served::Served;

/// The name of the yardstick.
pub(super) const EVENT_LOOP: &str = "event loop";

pub(super) const ENTRANTS: [Entrant<Question>; 8] = [
    Entrant::ours("fibra", |_| Served::start("echo_server", "http_server"), always),
    Entrant::ours("fibra migr.", |_| Served::start(migratable::SERVICE.name, ""), by_echo),
    Entrant::theirs("may", |_| Served::start("may", "may_minihttp"), always),
    Entrant::theirs("tokio current", |_| Served::start("tokio-current", "hyper"), always),
    Entrant::theirs("tokio multi", |_| Served::start("tokio-multi", ""), by_echo),
    Entrant::theirs("smol", |_| Served::start("smol", ""), by_echo),
    Entrant::theirs("std threads", |_| Served::start("echo_threads", ""), by_few),
    Entrant::floor(EVENT_LOOP, |_| Served::start("echo_callbacks", ""), by_echo),
];

fn by_echo(question: Question, _: usize) -> bool {
    question.protocol == Protocol::Tcp
}

/// A thread for each connection is asked of the system some thousand times at the most.
fn by_few(question: Question, workers: usize) -> bool {
    by_echo(question, workers) && question.connections < MANY
}

/// Runs the server of that name, an example or a rival, at the address in the first argument.
pub(super) fn serve(name: &str, servers: &[Server]) -> ExitCode {
    if let Some(server) = servers.iter().find(|server| server.name == name) {
        return (server.main)();
    }
    let mut services = echo::SERVICES.iter().chain(&http::SERVICES).chain([&migratable::SERVICE]);
    match (services.find(|service| service.name == name), env::args().nth(1)) {
        (Some(service), Some(address)) => service.run(&address),
        _ => ExitCode::FAILURE,
    }
}
