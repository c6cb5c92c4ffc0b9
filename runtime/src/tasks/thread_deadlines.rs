//! The deadlines and shields around the running code of a plain thread, as `bounds.rs` has those of
//! a task.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use crate::base::clock;
use crate::tasks::bounds;
use crate::tasks::cancel::Cancelled;

thread_local! {
    /// Whether `SCOPES` has any: one load for operations that need not wait.
    static ANY: Cell<bool> = const { Cell::new(false) };
    /// Innermost last. Without a destructor, so that destructors of other thread-locals may wait: it owns no memory
    /// while it is empty.
    static SCOPES: RefCell<ManuallyDrop<Vec<Scope>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

#[derive(Clone, Copy)]
struct Scope {
    /// None for a shield, which hides the scopes around it.
    deadline: Option<Instant>,
    /// The unique number that the payload of its unwinding has.
    number: u64,
}

/// Returns true if there is a deadline or a shield around the running code.
#[inline]
pub(crate) fn is_any() -> bool {
    ANY.get()
}

/// Runs `f` inside a deadline. Returns `None` if that ended it.
pub(crate) fn run<T>(deadline: Instant, f: impl FnOnce() -> T) -> Option<T> {
    let entered = Entered::new(Some(deadline));
    let number = entered.number;
    let result = catch_unwind(AssertUnwindSafe(f));
    drop(entered);
    match result {
        Ok(value) => Some(value),
        Err(payload) if Cancelled::ends_in_thread(&*payload, number) => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `f` so that no deadline from outside ends it.
pub(crate) fn shield<T>(f: impl FnOnce() -> T) -> T {
    let _entered = is_any().then(|| Entered::new(None));
    f()
}

/// Returns the earliest deadline of the scopes up to a shield.
pub(crate) fn earliest() -> Option<Instant> {
    open(|scopes| scopes.map(|(deadline, _)| deadline).min())
}

/// Returns the number of the outermost scope whose deadline has passed, up to a shield.
pub(crate) fn passed() -> Option<u64> {
    open(|scopes| {
        let now = clock::now();
        scopes.filter(|(deadline, _)| *deadline <= now).last().map(|(_, number)| number)
    })
}

/// Calls `f` with the scopes that no shield hides, innermost first.
fn open<R>(f: impl FnOnce(&mut dyn Iterator<Item = (Instant, u64)>) -> Option<R>) -> Option<R> {
    if !is_any() {
        return None;
    }
    let open = |scope: &Scope| scope.deadline.map(|deadline| (deadline, scope.number));
    SCOPES.with_borrow(|scopes| f(&mut scopes.iter().rev().map_while(open)))
}

/// Leaves its scope when it is dropped.
struct Entered {
    number: u64,
}

impl Entered {
    fn new(deadline: Option<Instant>) -> Self {
        let number = bounds::next_number();
        SCOPES.with_borrow_mut(|scopes| scopes.push(Scope { deadline, number }));
        ANY.set(true);
        Entered { number }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        SCOPES.with_borrow_mut(|scopes| {
            scopes.pop();
            if scopes.is_empty() {
                drop(std::mem::take(&mut **scopes));
                ANY.set(false);
            }
        });
    }
}
