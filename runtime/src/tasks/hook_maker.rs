//! Makes the hooks of a runtime, one for each of its tasks.

#![forbid(unsafe_code)]

use crate::base::abort::Bomb;
use crate::base::payload::drop_quietly;
use crate::tasks::forbid::forbid_suspend;
use crate::tasks::switch_hook::{Hook, PANICKED, Switch};

/// Describes a task that is being spawned, for the hook that its runtime makes for it.
///
/// See [`Builder::on_switch`](crate::Builder::on_switch).
#[derive(Debug)]
pub struct NewTask<'a> {
    name: Option<&'a str>,
    is_structured: bool,
}

impl NewTask<'_> {
    /// Returns the name of the task, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name
    }

    /// Returns true if its spawner waits for its end, as a part of one operation.
    ///
    /// These are the closures of a [`race`](fn@crate::race), a [`join`](fn@crate::join), a parallel loop, an
    /// [`unblock`](crate::unblock) and a `run`, and the tasks of a [`scope`](fn@crate::scope) and of a
    /// [`TaskGroup`](crate::TaskGroup).
    pub fn is_structured(&self) -> bool {
        self.is_structured
    }
}

/// Makes the hook of a task.
pub(crate) struct HookMaker(Box<dyn Fn(&NewTask<'_>) -> Hook + Send + Sync>);

impl HookMaker {
    pub(crate) fn new<H>(make: impl Fn(&NewTask<'_>) -> H + Send + Sync + 'static) -> Self
    where
        H: FnMut(Switch) + Send + 'static,
    {
        HookMaker(Box::new(move |task| Box::new(make(task))))
    }

    /// Makes the hook of a task that the running code spawns. Code of the user, which must not suspend.
    #[cold]
    pub(crate) fn make(&self, name: Option<&str>, is_structured: bool) -> Hook {
        let _forbidden = forbid_suspend();
        (self.0)(&NewTask { name, is_structured })
    }
}

/// Runs `f`, which does not unwind, between the calls of a hook on a thread that runs no task.
pub(crate) fn between<R>(hook: Option<Hook>, f: impl FnOnce() -> R) -> R {
    let Some(mut hook) = hook else { return f() };
    let mut call = |switch| {
        let bomb = Bomb::of_user(PANICKED);
        hook(switch);
        bomb.defuse();
    };
    call(Switch::In);
    let result = f();
    call(Switch::Out);
    drop_quietly(hook);
    result
}
