//! The driver of a simulated worker: its reactor, and the network that its sockets belong to.

#![forbid(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fibra_runtime::driver::{self, Driver, Factory, Parts, Ready, Unpark};

use super::{Handle, Reactor};
use crate::network::Network;

/// True once the process has begun a simulation: one load for what others ask.
static SIMULATES: AtomicBool = AtomicBool::new(false);

/// Returns the network of a simulated runtime.
pub(crate) fn network() -> Option<Arc<dyn Network>> {
    // Relaxed: the threads of a simulation have it from the one that began it.
    if !SIMULATES.load(Ordering::Relaxed) {
        return None;
    }
    driver::current::<Handle>()?.network().cloned()
}

/// Makes the driver of a simulation.
pub(crate) struct SimulatedFactory(pub(crate) Arc<dyn Network>);

impl Factory for SimulatedFactory {
    fn make(&self) -> io::Result<Parts> {
        SIMULATES.store(true, Ordering::Relaxed);
        let network = Arc::clone(&self.0);
        let reactor = Reactor::with(Some(Arc::clone(&network)))?;
        let handle = Arc::clone(&reactor.handle);
        Ok(Parts { id: handle.id, driver: Box::new(Simulated { reactor, network }), handle })
    }
}

struct Simulated {
    reactor: Reactor,
    network: Arc<dyn Network>,
}

impl Driver for Simulated {
    fn park(&mut self, timeout: Option<Duration>, ready: &mut Ready) -> io::Result<()> {
        self.network.step()?;
        self.reactor.park(timeout, ready)
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.reactor.unparker()
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.network.next_arrival()
    }
}
