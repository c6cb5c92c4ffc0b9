//! Two closures beside each other.

use crate::api::fork::{Beside, PAIR, fork};
use crate::sleep::cancel_points;

/// Runs both closures and returns both values: `a` here, and `b` beside it if a worker has nothing else to do.
///
/// Both may borrow. `b` is on offer while `a` runs; if nobody has begun it when `a` is done, it runs right here, and has cost
/// neither an allocation nor a stack. So a recursion may split its work down to small pieces: what is not stolen costs
/// next to nothing, and what is stolen is the largest piece. The idea is that of Cilk and of rayon.
///
/// While `a` waits for something, its worker takes up `b` as well. `a` may therefore wait for `b`, but not the other way
/// round: `b` may run where `a` ran, after it. Off a task the two run one after the other, and so they do where
/// [`forbid_suspend`](crate::task::forbid_suspend) leaves no way to wait.
/// A `b` that was taken runs in a task of its own, on a stack of the runtime's size, whatever size this task was built with. Where
/// `a` waits and no stack comes free, `b` has one beyond [`max_stacks`](crate::runtime::builder::Builder::max_stacks) after a second.
///
/// # Cancellation
/// A cancellation point at its begin, and while it waits for `b`. When its task is cancelled `b` is cancelled too, unless it
/// has not begun; it is waited for in any case. A `b` that has its own task cancelled has this one cancelled. In a destructor that
/// runs while its task unwinds, and inside of [`shield`](crate::task::shield), it is none, and the end of the runtime lets `b` run.
///
/// # Panics
/// With the panic of `a`, or else with that of `b`, after both have ended. When `a` panics and `b` has not begun, `b` is
/// dropped un-run. And where the system itself has no stack for `b` while `a` waits: `a` is cancelled then.
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
/// The two may not borrow the same thing mutably:
/// ```compile_fail,E0499
/// # use fibra_runtime as fibra;
/// let mut numbers = vec![1];
/// fibra::join(|| numbers.push(2), || numbers.push(3));
/// ```
/// And what is tied to a thread stays there:
/// ```compile_fail,E0277
/// # use fibra_runtime as fibra;
/// let shared = std::rc::Rc::new(1);
/// fibra::join(|| (), || drop(shared));
/// ```
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    cancel_points::checkpoint();
    match fork(|_| a(), b, PAIR, || ()) {
        (first, Beside::Kept(b)) => (first, b()),
        (first, Beside::Ran(second)) => (first, second),
    }
}
