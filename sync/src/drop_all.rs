//! The drop of several values of users.

#![forbid(unsafe_code)]

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use fibra_runtime::task::shield;

/// Runs `drops`, which drops values one by one, and again after each panic.
///
/// So the values behind one that panics are dropped too. The first panic goes on at the end, and the hook reports the others,
/// whose payloads are leaked: their drops are foreign code as well.
/// No cancellation cuts a destructor short.
pub(crate) fn drop_all(mut drops: impl FnMut()) {
    shield(|| {
        let mut first = None;
        while let Err(panic) = catch_unwind(AssertUnwindSafe(&mut drops)) {
            match first {
                None => first = Some(panic),
                Some(_) => mem::forget(panic),
            }
        }
        if let Some(panic) = first {
            resume_unwind(panic);
        }
    });
}
