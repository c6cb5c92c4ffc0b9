//! Hooks around the switches of a task.

use std::cell::RefCell;

/// What a task is about to do, or has just done, on its worker's thread; see [`Builder::on_switch`](crate::api::builder::Builder::on_switch).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Switch {
    /// It has come to its thread and goes on.
    In,
    /// It leaves its thread to others, or has ended.
    Out,
}

pub(crate) type Hook = Box<dyn FnMut(Switch) + Send>;

/// The place of a hook. Reached by who builds the task, then by the task alone.
#[derive(Default)]
pub(crate) struct SwitchHook(pub(super) RefCell<Option<Hook>>);

// SAFETY: a shared reference is used by the running task alone; what else is shared of a task does not reach in here.
unsafe impl Sync for SwitchHook {}

impl SwitchHook {
    pub(crate) fn new(hook: impl FnMut(Switch) + Send + 'static) -> Self {
        SwitchHook(RefCell::new(Some(Box::new(hook))))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub(crate) fn take(&self) -> Option<Hook> {
        self.0.borrow_mut().take()
    }
}
