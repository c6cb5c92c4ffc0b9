//! The example servers, linked in, so that one build is enough; each still runs in a process of its own.

use fibra_bench::{Protocol, Server};

include!(concat!(env!("OUT_DIR"), "/servers.rs"));

/// In the order in which they run: from the naive architecture to fibra's.
pub(crate) const SERVERS: [Server; 5] = [
    Server {
        name: "echo_threads",
        about: "a thread per connection",
        protocol: Protocol::Tcp,
        main: echo_threads::linked_main,
    },
    Server {
        name: "echo_callbacks",
        about: "an epoll loop and callbacks",
        protocol: Protocol::Tcp,
        main: echo_callbacks::linked_main,
    },
    Server {
        name: "echo_server",
        about: "a fibra task per connection",
        protocol: Protocol::Tcp,
        main: echo_server::linked_main,
    },
    Server {
        name: "udp_echo",
        about: "four fibra tasks on one socket",
        protocol: Protocol::Udp,
        main: udp_echo::linked_main,
    },
    Server {
        name: "http_server",
        about: "a fibra task per connection, over httparse",
        protocol: Protocol::Http,
        main: http_server::linked_main,
    },
];
