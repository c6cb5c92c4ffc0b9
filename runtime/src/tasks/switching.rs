//! The way of a task off its stack, and the calls of its hook around it.

use crate::base::abort::Bomb;
use crate::coroutine::stop::{Resumed, Stop};
use crate::tasks::bounds::Bound;
use crate::tasks::header::Header;
use crate::tasks::slow_path_flags::SlowPath;
use crate::tasks::switch_hook::{PANICKED, Switch, SwitchHook};

impl Header {
    /// Leaves the stack until the worker resumes the task.
    ///
    /// # Safety
    /// The caller runs in this very task.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, stop: Stop) {
        if self.slow_path.any(SlowPath::HOOKED.or(SlowPath::AWAY).or(SlowPath::TRACED)) {
            // SAFETY: by this function's contract.
            return unsafe { self.suspend_unusual(stop) };
        }
        // SAFETY: by this function's contract, and the task is on no big stack.
        unsafe { self.coroutine.suspend(stop.into()) };
    }

    /// # Safety
    /// As for `suspend`.
    #[cold]
    #[inline(never)]
    unsafe fn suspend_unusual(&self, stop: Stop) {
        self.switches(Switch::Out);
        // After the hook, which may take up a recorder.
        let mut result = Resumed::from(stop);
        if self.slow_path.any(SlowPath::TRACED) {
            self.slow_path.set(SlowPath::TRACED, false);
            result = result.traced();
        }
        // SAFETY: as in `suspend`, on the stack that the task runs on.
        unsafe { self.suspend_from(self.away(), result) };
        self.switches(Switch::In);
    }

    /// Makes the worker record how the present run ends. By the task itself.
    pub(crate) fn trace_run(&self) {
        self.slow_path.set(SlowPath::TRACED, true);
    }

    /// Tells the hook, if there is one. By the task itself.
    #[inline(always)]
    pub(crate) fn switches(&self, switch: Switch) {
        if self.is_hooked() {
            self.call_hook(switch);
        }
    }

    #[cold]
    fn call_hook(&self, switch: Switch) {
        if let Some(traits) = &self.traits {
            traits.on_switch.call(self, switch);
        }
    }
}

impl SwitchHook {
    /// Calls the hook of the running task, whose header this is. Nothing ends or suspends it: the task may be on its way
    /// into a sleep, which must come about as it was begun.
    pub(crate) fn call(&self, header: &Header, switch: Switch) {
        let bomb = Bomb::of_user(PANICKED);
        let forbidden = header.times_forbidden();
        header.forbid();
        Bound::shield().run(header, || {
            self.with(|hook| {
                if let Some(hook) = hook {
                    hook(switch);
                }
            });
        });
        header.permit();
        bomb.defuse();
        if header.times_forbidden() > forbidden {
            // The task may be about to take a lock again that its guard stands for, and would unwind there.
            Bomb::of_user("a hook has to drop what forbids a suspension").go_off();
        }
    }
}
