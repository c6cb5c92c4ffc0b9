//! What becomes of the payload of a panic.

use std::any::Any;

/// There is none: the wakers of models do not panic.
pub(crate) fn drop_payload(_payload: Box<dyn Any + Send>) {
    unreachable!("a waker of a model has panicked");
}
