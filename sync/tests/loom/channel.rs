//! The files of the channel that hold its state.

#[path = "../../src/channel/outcome.rs"]
pub(crate) mod outcome;
#[path = "../../src/channel/partner.rs"]
mod partner;
#[path = "../../src/channel/places.rs"]
pub(crate) mod places;
#[path = "../../src/channel/queue.rs"]
mod queue;
#[path = "../../src/channel/returned.rs"]
pub(crate) mod returned;
#[path = "../../src/channel/state.rs"]
pub(crate) mod state;
