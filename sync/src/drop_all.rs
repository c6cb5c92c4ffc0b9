//! The drop of several values of users.

#![forbid(unsafe_code)]

use std::mem;

use fibra_runtime::task::shield;

/// Runs `drops`, which drops values one by one, and once more if one of them panics.
///
/// So the values behind that one are dropped too. A second panic ends the process, as it does in a `Vec`. No cancellation cuts
/// a destructor short.
pub(crate) fn drop_all(mut drops: impl FnMut()) {
    shield(|| {
        let again = Again(&mut drops);
        (again.0)();
        mem::forget(again);
    });
}

/// Runs its closure when it is dropped, which an unwinding does.
struct Again<'a>(&'a mut dyn FnMut());

impl Drop for Again<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}
