//! The network of a simulation, which the reactors of its workers know.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fibra_runtime::driver;

use super::{Handle, ReactorFactory};
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
pub(crate) fn factory(network: Arc<dyn Network>) -> ReactorFactory {
    SIMULATES.store(true, Ordering::Relaxed);
    ReactorFactory { network: Some(network) }
}
