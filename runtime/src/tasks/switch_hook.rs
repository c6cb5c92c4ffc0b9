//! Hooks around the switches of a task.

use std::cell::RefCell;

use crate::base::abort::Bomb;
use crate::tasks::bounds::Bound;
use crate::tasks::header::Header;

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
pub(crate) struct SwitchHook(RefCell<Option<Hook>>);

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

    /// Calls the hook of the running task, whose header this is. Nothing ends or suspends it: the task may be on its way
    /// into a sleep, which must come about as it was begun.
    pub(crate) fn call(&self, header: &Header, switch: Switch) {
        let bomb = Bomb::of_user("the hook around the switches of a task has panicked");
        let forbidden = header.times_forbidden();
        header.forbid();
        Bound::shield().run(header, || {
            if let Some(hook) = self.0.borrow_mut().as_mut() {
                hook(switch);
            }
        });
        header.permit();
        bomb.defuse();
        if header.times_forbidden() > forbidden {
            // The task may be about to take a lock again that its guard stands for, and would unwind there.
            Bomb::of_user("a hook has to drop what forbids a suspension").go_off();
        }
    }
}
