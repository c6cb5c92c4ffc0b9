#![doc = include_str!("../README.md")]

mod conversions;
mod descriptor_watch;
#[doc(hidden)]
pub mod network;
mod pollable;
mod primitive;
mod reactor;
mod readiness;
mod sys;
mod waiting;

#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio", feature = "tokio-io"))]
pub mod compat;
pub mod fs;
pub mod io;
pub mod net;
pub mod os;
pub mod process;

#[doc(hidden)]
pub use descriptor_watch::DescriptorWatch;
pub use pollable::Pollable;

use std::sync::Arc;

use fibra_runtime::driver::Factory;
// The wait core, by a path that the models can give another meaning.
use fibra_runtime::wait;

/// Makes the driver that lets tasks wait for sockets, for the builder of a runtime.
///
/// Each worker gets an epoll instance and an event descriptor of its own, made on the worker's thread. A runtime without
/// this driver can use the sockets too, but each wait then takes a thread of the blocking pool.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use fibra_io::net::{TcpListener, TcpStream};
///
/// let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
/// runtime.run(|| -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let mut client = TcpStream::connect(listener.local_addr()?)?;
///     let (mut server, _) = listener.accept()?;
///     server.write_all(b"hello")?;
///     let mut buf = [0; 5];
///     client.read_exact(&mut buf)?;
///     assert_eq!(&buf, b"hello");
///     Ok(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn driver() -> impl Factory {
    reactor::ReactorFactory { network: None }
}

/// Returns the number of the simulated process that the running task belongs to; 0 outside a simulation.
#[doc(hidden)]
pub fn simulated_process() -> u64 {
    net::simulated::process()
}

/// Makes the driver of a simulation, whose sockets are those of that network.
#[doc(hidden)]
pub fn simulated_driver(network: Arc<dyn network::Network>) -> impl Factory {
    reactor::simulated::factory(network)
}
