//! The report of a stack overflow: which task it is.

use std::io;

use crate::stack::overflow::{self, Overflow};
use crate::tasks::context;

/// Installs the handler, once for the process.
pub(crate) fn install() -> io::Result<()> {
    // SAFETY: `running_task` reads a thread-local without a destructor and fields of the running task and of its stack that
    // only the interrupted code changes, each in one store; it allocates nothing, takes no lock,
    // and the name lives as long as the task.
    unsafe { overflow::install(running_task) }
}

fn running_task(fault: usize) -> Option<Overflow> {
    let header = context::task_for_report()?.header();
    // SAFETY: the task that runs on this thread is interrupted here.
    let stack = unsafe { header.stack() }.filter(|stack| stack.is_overflow(fault))?;
    let name = header.name().unwrap_or_default();
    Some(Overflow { id: header.id, name: name.as_ptr(), name_len: name.len(), stack_size: stack.size() })
}
