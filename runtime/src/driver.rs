//! The driver seam: how a worker waits for the outside world.

pub use crate::scheduler::driver::{
    Driver, Factory, Id, Parts, Ready, Unpark, current, current_id, unpinned,
};
