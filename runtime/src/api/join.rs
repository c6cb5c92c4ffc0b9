//! `join`: runs two closures, possibly in parallel.

#![forbid(unsafe_code)]

use crate::api::fork::fork;
use crate::sleep::cancel_points;

/// Runs two closures, possibly in parallel, and returns both values.
///
/// `a` runs here. `b` becomes a task that any worker may start. If none has started it when `a` is done, `b` runs right
/// here, without a stack of its own. So a recursion may split its work down to small pieces: idle workers steal the largest
/// pieces, and the rest costs an allocation each.
///
/// While `a` waits, its worker may start `b`. `a` may therefore wait for `b`. `b` must not wait for
/// `a`: it may run after it. Off a task, and inside of
/// [`forbid_suspend`](crate::task::forbid_suspend), `a` runs first and then `b`.
///
/// A `b` that a worker has started runs on a stack of the runtime's size. If there is none, it gets one beyond
/// [`max_stacks`](crate::runtime::builder::Builder::max_stacks) after a second.
///
/// # Cancellation
/// A cancellation point. A cancel of the task cancels a `b` that has started, and waits for it. A `b` that cancels its own
/// task cancels the caller. In a destructor of an unwinding task, and inside of [`shield`](crate::task::shield), this is no
/// cancellation point, and the end of the runtime lets `b` run.
///
/// # Panics
/// Resumes the panic of `a`, or else that of `b`, after both have ended. When `a` panics and `b`
/// has not started, `b` is dropped. Also panics if the system has no stack for `b` while `a` waits.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() <= 64 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (left, right) = fibra::join(|| sum(left), || sum(right));
///     left + right
/// }
/// # fibra::Runtime::builder().workers(2).build()?.run(|| {
/// assert_eq!(sum(&(0..1000).collect::<Vec<_>>()), 499_500);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// At most one of the closures may borrow a value mutably:
/// ```compile_fail,E0499
/// # use fibra_runtime as fibra;
/// let mut numbers = vec![1];
/// fibra::join(|| numbers.push(2), || numbers.push(3));
/// ```
/// A value that is tied to a thread stays there:
/// ```compile_fail,E0277
/// # use fibra_runtime as fibra;
/// let shared = std::rc::Rc::new(1);
/// fibra::join(|| (), || drop(shared));
/// ```
///
/// [`join!`](crate::join!) takes any number of closures.
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    cancel_points::checkpoint();
    match fork(|_| a(), b) {
        (first, Ok(second)) => (first, second),
        (first, Err(b)) => (first, b()),
    }
}

/// Runs closures, possibly in parallel, and returns their values as a tuple.
///
/// It is [`join`](fn@crate::join) of the first closure with the `join!` of the others: the first one
/// runs here, the others are tasks that idle workers may start. While a closure waits, its worker may
/// start the next one. So a closure may wait for a later one, but not for an earlier one. See `join`
/// for cancellation and panics.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let words = ["one", "two"];
/// let (length, text, ()) = fibra::join!(
///     || words.len(),
///     || words.concat(),
///     || fibra::sleep(std::time::Duration::from_millis(1)),
/// );
/// assert_eq!((length, text.as_str()), (2, "onetwo"));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! join {
    ($($closure:expr),+ $(,)?) => { $crate::join!(@name [] $($closure,)+) };
    // Each step has a name `closure` of its own, by hygiene.
    (@name [$($named:tt)*] $first:expr, $($rest:expr,)*) => {
        $crate::join!(@name [$($named)* (closure $first)] $($rest,)*)
    };
    (@name [$(($name:ident $closure:expr))+]) => {{
        let ($($name,)+) = ($($closure,)+);
        let $crate::join!(@nest $($name)+) = $crate::join!(@run $($name)+);
        ($($name,)+)
    }};
    (@nest $last:ident) => { $last };
    (@nest $first:ident $($rest:ident)+) => { ($first, $crate::join!(@nest $($rest)+)) };
    (@run $last:ident) => { $last() };
    (@run $first:ident $second:ident) => { $crate::join($first, $second) };
    (@run $first:ident $($rest:ident)+) => { $crate::join($first, move || $crate::join!(@run $($rest)+)) };
}
