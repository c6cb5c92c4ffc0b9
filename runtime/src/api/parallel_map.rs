//! Parallel maps.

#![forbid(unsafe_code)]

use std::iter;

use crate::api::for_each::parallel_for_each;

/// Calls `f` with each item of `items`, on all workers that are idle, and returns the values in the
/// order of the items.
///
/// It pulls all items first. The calls run as those of [`parallel_for_each`]: while a call waits,
/// another task goes on with the items.
///
/// # Cancellation
/// A cancellation point. The values so far are dropped then.
///
/// # Panics
/// Resumes a panic of a call, after all begun calls have ended. No more items are begun.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(2).build()?.run(|| {
/// let words = ["many", "short", "words"];
/// assert_eq!(fibra::parallel_map(words, str::len), [4, 5, 5]);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn parallel_map<I, R>(items: I, f: impl Fn(I::Item) -> R + Sync) -> Vec<R>
where
    I: IntoIterator<Item: Send>,
    R: Send,
{
    let items: Vec<_> = items.into_iter().collect();
    let mut values: Vec<Option<R>> = iter::repeat_with(|| None).take(items.len()).collect();
    parallel_for_each(values.iter_mut().zip(items), |(value, item)| *value = Some(f(item)));
    values.into_iter().flatten().collect()
}
