//! The promises of sockets.

#[path = "../common/abstract_name.rs"]
mod abstract_name;
#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/folder.rs"]
mod folder;
#[path = "../common/refused.rs"]
mod refused;
#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "../../../runtime/tests/common/rerun.rs"]
mod rerun;
#[path = "../common/silent.rs"]
mod silent;

mod clones;
mod connect;
mod empty;
mod halves;
mod lookup;
mod shared_listeners;
mod tcp;
mod tcp_handles;
mod tcp_options;
mod tcp_socket;
mod udp;
mod unix_datagram;
mod unix_full_listener;
mod unix_rights;
mod unix_stream;
mod unread;
