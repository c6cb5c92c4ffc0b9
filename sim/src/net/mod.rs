//! The network of a simulation, and its faults.
//!
//! Each [`host`](crate::host()) of a simulated program has an address, and its sockets lead to those of the other hosts. The
//! program uses them as any others: `TcpStream::connect("server:80")` looks the name of a host up and connects.
//!
//! Packets take from half a millisecond to two milliseconds unless [`latency`] sets it, and arrive in any order. A stream
//! puts them in order, and sends lost ones again. Hosts are named by their names; `main` is that of the program that the
//! simulation runs.
//!
//! # Panics
//! All functions panic outside a simulation, in a rule, and where there is no host of that name.
//!
//! # Examples
//! ```
//! use fibra::net::{TcpListener, TcpStream};
//! use fibra_sim::{Sim, host, net};
//! use std::io::{Read, Write};
//! use std::time::Duration;
//!
//! Sim::builder().run(|| {
//!     let server = host("server", || {
//!         let (mut stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
//!         stream.write_all(b"hello").unwrap();
//!     });
//!     net::partition("main", "server");
//!     let client = fibra::spawn(|| {
//!         let mut text = String::new();
//!         TcpStream::connect("server:80").unwrap().read_to_string(&mut text).unwrap();
//!         text
//!     });
//!     fibra::sleep(Duration::from_secs(10));
//!     assert!(!client.is_finished());
//!     net::heal("main", "server");
//!     assert_eq!(client.join().unwrap(), "hello");
//!     server.join();
//! });
//! ```

#![forbid(unsafe_code)]

mod descriptors;
mod links;
mod messages;
pub(crate) mod network;
mod state;
mod stream;
mod streams;

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::context;
use crate::host_id::HostId;
use links::Link;
pub use links::{Content, Packet, Verdict};
pub(crate) use links::{NO_MESSAGE, text_of};
use state::State;

/// Sets how long packets between hosts take: each some time of the range.
///
/// # Panics
/// See the [module](self#panics). Panics also if the range is empty.
#[track_caller]
pub fn latency(range: RangeInclusive<Duration>) {
    assert!(!range.is_empty(), "the range of latencies is empty");
    with(|state| state.links.latency = range);
}

/// Sets the probability with which a packet between hosts is lost. 0 unless set.
///
/// # Panics
/// See the [module](self#panics). Panics also if it is not at least 0 and below 1.
#[track_caller]
pub fn loss(probability: f64) {
    assert!((0.0..1.0).contains(&probability), "the probability of loss is at least 0 and below 1");
    with(|state| state.links.loss = probability);
}

/// Cuts the link between two hosts.
///
/// Messages are lost. What streams have sent waits, and arrives after [`heal`].
///
/// # Panics
/// See the [module](self#panics).
#[track_caller]
pub fn partition(a: &str, b: &str) {
    on_link(a, b, |state, link| _ = state.links.partitions.insert(link));
}

/// Ends a [`partition`].
///
/// # Panics
/// See the [module](self#panics).
#[track_caller]
pub fn heal(a: &str, b: &str) {
    on_link(a, b, |state, link| {
        state.links.partitions.remove(&link);
        state.free(link);
    });
}

/// Holds all packets between two hosts, messages as well, until [`release`].
///
/// # Panics
/// See the [module](self#panics).
#[track_caller]
pub fn hold(a: &str, b: &str) {
    on_link(a, b, |state, link| _ = state.links.holds.insert(link));
}

/// Ends a [`hold`].
///
/// # Panics
/// See the [module](self#panics).
#[track_caller]
pub fn release(a: &str, b: &str) {
    on_link(a, b, |state, link| {
        state.links.holds.remove(&link);
        state.free(link);
    });
}

/// Resets all connections between two hosts: operations on them fail with `ConnectionReset` or `BrokenPipe`.
///
/// # Panics
/// See the [module](self#panics).
#[track_caller]
pub fn reset(a: &str, b: &str) {
    on_link(a, b, |state, link| state.reset_link(link));
}

/// Lets `rule` decide on each packet that is sent from now on.
///
/// It runs between the steps of tasks, or in the task that sends, and must neither call a function of this module nor wait.
/// So it locks only what no task keeps while it sleeps. Several rules are asked in their order.
///
/// # Panics
/// See the [module](self#panics). A panic of the rule fails the run, and a wait is one.
///
/// # Examples
/// ```
/// use fibra::net::UdpSocket;
/// use fibra_sim::net::{self, Content, Verdict};
/// fibra_sim::Sim::builder().run(|| {
///     net::rule(|packet| match packet.content() {
///         Content::Message(bytes) if bytes == b"bad" => Verdict::Drop,
///         _ => Verdict::Pass,
///     });
///     let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
///     for message in [b"bad", b"fit"] {
///         sockets[0].send_to(message, sockets[1].local_addr().unwrap()).unwrap();
///     }
///     let mut message = [0; 3];
///     sockets[1].recv(&mut message).unwrap();
///     assert_eq!(&message, b"fit");
/// });
/// ```
#[track_caller]
pub fn rule(rule: impl FnMut(&Packet) -> Verdict + Send + 'static) {
    with(|state| state.links.rules.push(Box::new(rule)));
}

#[track_caller]
fn on_link(a: &str, b: &str, act: impl FnOnce(&mut State, Link)) {
    with(|state| {
        let [a, b] = [a, b].map(|name| host_named(state, name));
        act(state, Link::between(a, b));
    });
}

#[track_caller]
fn host_named(state: &State, name: &str) -> HostId {
    match state.host_named(name) {
        Some(host) => host,
        None => panic!("the simulation has no host {name:?}"),
    }
}

#[track_caller]
fn with<R>(act: impl FnOnce(&mut State) -> R) -> R {
    match context::run() {
        Some(run) => run.network().with(act),
        None => panic!("the network of a simulation was used outside of one"),
    }
}
