//! The seam to the crate that walks stacks, which this one does not depend on.

#![forbid(unsafe_code)]

use std::sync::OnceLock;

/// Where the walk of a suspended stack begins: in the function that left the stack, at its switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SavedContext {
    /// The address of the instruction that the stack goes on with.
    pub pc: usize,
    /// The stack pointer of the function at that instruction, without what the switch has pushed.
    pub sp: usize,
    /// The frame pointer of the function.
    pub fp: usize,
}

/// A function that an address lies in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Its name, or what stands for it in a binary without names.
    pub function: String,
    /// The source file.
    pub file: Option<String>,
    /// The line in the file, from 1 on.
    pub line: Option<u32>,
    /// It belongs to this library or to std, not to the program.
    pub is_library: bool,
}

/// Walks stacks, and names the functions on them.
///
/// Its methods are called by plain threads and by tasks, and never suspend the caller.
pub trait Unwinder: Send + Sync {
    /// Appends the addresses of the frames of a suspended stack, innermost first. Returns true if the
    /// walk has come to the root.
    ///
    /// The first address is an instruction's own, the others are return addresses. `read` copies the 8
    /// bytes at an address of the stack; it fails where there are none. If the task runs meanwhile, all that is given may be
    /// nonsense, and the result is dropped.
    fn walk(
        &self,
        from: SavedContext,
        read: &mut dyn FnMut(usize) -> Option<u64>,
        frames: &mut Vec<usize>,
    ) -> bool;

    /// Returns the functions at each address, innermost first: several where calls were inlined.
    ///
    /// The flag says that it is a return address, which belongs to the instruction before it.
    fn resolve(&self, addresses: &[(usize, bool)]) -> Vec<Vec<Symbol>>;

    /// Appends the addresses of the frames of a thread of this process that runs, as
    /// [`walk`](Unwinder::walk) does. Returns false if there is nothing, or the walk was cut short.
    fn sample(&self, tid: i32, frames: &mut Vec<usize>) -> bool;
}

static INSTALLED: OnceLock<&'static dyn Unwinder> = OnceLock::new();

/// Makes dumps walk stacks by `unwinder`. The first one that is installed stays.
pub fn install(unwinder: &'static dyn Unwinder) {
    _ = INSTALLED.set(unwinder);
}

/// Returns the unwinder that was installed.
pub(crate) fn installed() -> Option<&'static dyn Unwinder> {
    INSTALLED.get().copied()
}
