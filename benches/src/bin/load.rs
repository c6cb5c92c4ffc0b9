//! Loads echo servers and compares them; `load --help` tells how.
//!
//! The three servers are the examples of the same names, linked in, so that one build is enough; each still runs in a
//! process of its own.

use fibra_bench::Server;
use std::process::ExitCode;

include!(concat!(env!("OUT_DIR"), "/servers.rs"));

/// The servers, in the order in which they run: from the naive one to the one that fibra is for.
const SERVERS: [Server; 3] = [
    Server { name: "echo_threads", about: "a thread per connection", main: echo_threads::linked_main },
    Server {
        name: "echo_callbacks",
        about: "an epoll loop and callbacks",
        main: echo_callbacks::linked_main,
    },
    Server { name: "echo_server", about: "a fibra task per connection", main: echo_server::linked_main },
];

fn main() -> ExitCode {
    fibra_bench::main(&SERVERS)
}
