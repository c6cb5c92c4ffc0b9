//! The report of a stack overflow: which task it is.

use std::io;

use crate::stack::overflow;
use crate::stack::overflow_line::{Knob, Overflow};
use crate::tasks::context;

/// Installs the handler, once for the process.
pub(crate) fn install() -> io::Result<()> {
    // SAFETY: `running_task` reads a thread-local without a destructor and fields of the running task and of its stack that
    // only the interrupted code changes, each in one store; it allocates nothing and takes no lock.
    unsafe { overflow::install(running_task) }
}

fn running_task(fault: usize, report: &dyn Fn(&Overflow<'_>)) {
    let Some(header) = context::task_for_report().map(|task| task.header()) else { return };
    // SAFETY: the task that runs on this thread is interrupted here.
    if let Some(stack) = unsafe { header.stack() }.filter(|stack| stack.is_overflow(fault)) {
        report(&Overflow {
            id: header.id.get(),
            name: header.name(),
            place: header.spawned_at().map(|place| (place.file(), place.line())),
            stack_size: stack.size(),
            knob: match header.is_away() {
                true => Knob::BigStack,
                false if header.is_main() => Knob::Main,
                false => Knob::Builder,
            },
        });
    }
}
