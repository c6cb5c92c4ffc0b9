//! Hooks around the switches of a task.

#![forbid(unsafe_code)]

use std::sync::{Mutex, PoisonError};

/// Says whether a task begins or ends a run on its worker's thread.
///
/// See [`task::Builder::on_switch`](crate::task::Builder::on_switch) and, for all tasks of a runtime,
/// [`Builder::on_switch`](crate::Builder::on_switch).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Switch {
    /// It has come to its thread and goes on.
    In,
    /// It leaves its thread to others, or has ended.
    Out,
}

/// What is said of a hook that panics.
pub(super) const PANICKED: &str = "the hook around the switches of a task has panicked";

pub(crate) type Hook = Box<dyn FnMut(Switch) + Send>;

/// Holds a hook. Used by the builder of the task, then only by the task.
#[derive(Default)]
pub(crate) struct SwitchHook(Mutex<Option<Hook>>);

impl SwitchHook {
    pub(crate) fn new(hook: impl FnMut(Switch) + Send + 'static) -> Self {
        SwitchHook(Mutex::new(Some(Box::new(hook))))
    }

    /// Adds a hook around this one: called before it at a switch in, and after it at a switch out.
    pub(crate) fn surround(&mut self, mut outer: Hook) {
        let hook = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        *hook = Some(match hook.take() {
            None => outer,
            Some(mut inner) => Box::new(move |switch| match switch {
                Switch::In => {
                    outer(switch);
                    inner(switch);
                }
                Switch::Out => {
                    inner(switch);
                    outer(switch);
                }
            }),
        });
    }

    pub(crate) fn is_set(&self) -> bool {
        self.with(|hook| hook.is_some())
    }

    pub(crate) fn take(&self) -> Option<Hook> {
        self.with(Option::take)
    }

    /// Runs `f` with the hook. The lock is free but for the running task.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Option<Hook>) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
