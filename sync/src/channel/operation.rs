//! The operations in the list of a `Select`.

use std::mem;
use std::ops::Deref;
use std::sync::Arc;

use super::arm::Arm;
use super::selectable::sealed::Taken;

/// An arm of a [`Select`](super::Select), which outlives the wait.
pub(super) trait Operation: Arm {
    /// Forgets the previous select.
    fn begin(&self) {}

    /// Gives up an outcome that was not taken.
    fn abandon(&self);

    /// Takes what was taken of the source that it waits for, if any.
    fn take(&self) -> Option<Taken> {
        None
    }

    /// Names the object of the operation.
    fn target(&self) -> Target;

    /// Makes a further arm for this operation.
    fn renew(&self) -> Erased;
}

/// The object of an operation, by an address that stays its own while the operation borrows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A channel that it sends to, by any sender.
    Sends(*const ()),
    /// A channel that it receives from, by any receiver.
    Receives(*const ()),
    /// An event, count or token that it waits for.
    Waits(*const ()),
}

/// An arm without the lifetime of its borrow: a `Select` may be dropped after the channels in it.
///
/// It is not called then. Its drop touches no borrow, since no outcome is left in it: a [`SelectedOperation`](super::SelectedOperation), which does not
/// outlive the borrow, keeps its arm until it has taken the outcome or dropped it.
#[derive(Clone)]
pub(super) struct Erased(Arc<dyn Operation>);

impl Erased {
    pub(super) fn new<'a>(arm: impl Operation + 'a) -> Self {
        let arm: Arc<dyn Operation + 'a> = Arc::new(arm);
        // SAFETY: the two types differ in a lifetime only; the owner of the result keeps the borrow, as the type says.
        Erased(unsafe { mem::transmute::<Arc<dyn Operation + 'a>, Arc<dyn Operation>>(arm) })
    }

    /// Returns true if a selected operation still has to complete it.
    pub(super) fn is_selected(&mut self) -> bool {
        Arc::get_mut(&mut self.0).is_none()
    }
}

// SAFETY: a list of operations moves between threads as a whole. While it is shared it can only be cloned, which reads the
// borrows of its arms. Messages that are not `Send` are safe too: a select moves their bytes, but completing it, or dropping a
// message, takes the receiver itself, which stays in its thread.
unsafe impl Send for Erased {}
// SAFETY: as above.
unsafe impl Sync for Erased {}

impl Deref for Erased {
    type Target = dyn Operation;

    fn deref(&self) -> &(dyn Operation + 'static) {
        &*self.0
    }
}
