//! The example servers, linked in, so that one build is enough; each still runs in a process of its own.

use fibra_bench::Server;

include!(concat!(env!("OUT_DIR"), "/servers.rs"));

/// In the order in which they run: from the naive one to the one that fibra is for.
pub(crate) const SERVERS: [Server; 3] = [
    Server { name: "echo_threads", about: "a thread per connection", main: echo_threads::linked_main },
    Server {
        name: "echo_callbacks",
        about: "an epoll loop and callbacks",
        main: echo_callbacks::linked_main,
    },
    Server { name: "echo_server", about: "a fibra task per connection", main: echo_server::linked_main },
];
