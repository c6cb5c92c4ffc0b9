//! Calls that a waker counts, as many as there is room for.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::count::{Count, polled};

/// Calls until it would have to wait; how often it has not.
pub(crate) fn until_full(
    count: &Arc<Count>,
    mut call: impl FnMut(&mut Context<'_>) -> Poll<io::Result<usize>>,
) -> usize {
    let mut calls = 0;
    while polled(count, &mut call).map(Result::unwrap).is_ready() {
        calls += 1;
    }
    calls
}
