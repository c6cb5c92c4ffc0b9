//! Races of closures: the first to end wins.

#![forbid(unsafe_code)]

use std::mem;
use std::panic::resume_unwind;

use crate::api::contest::Either;
use crate::api::contest::{Entry, Field, FinishLine, Lost};
use crate::api::scope::{Scope, scope};
use crate::sleep::cancel_points;

/// Runs both closures, each in a task; the first to end wins.
///
/// The loser is cancelled and waited for.
///
/// Any wait can be raced against any other: a read against a channel, a permit against a sleep.
/// Both closures may borrow from the caller: both have ended when this returns. The loser may or
/// may not have done its work; if it had ended as well, its value is dropped. Where that would lose
/// something, such as a received message, use a select of the primitive instead.
///
/// The loser ends at its next cancellation point. A loser without one holds the race up.
///
/// # Cancellation
/// A cancellation point: both are cancelled and waited for. It is none in a destructor that runs
/// while its task unwinds, nor inside of [`shield`](crate::task::shield). There the end of the
/// runtime lets both closures run, for there must be a winner.
///
/// # Panics
/// Panics off a runtime, and where [`forbid_suspend`](crate::task::forbid_suspend) is in force.
///
/// Resumes the panic of a closure, even of the loser, after both have ended. A panic cancels the
/// remaining closure.
///
/// Panics if a closure cannot start, for want of a stack for example, unless the opponent has ended
/// before; the opponent is cancelled. A panic in the `clone` of an inherited task-local cancels
/// the closures that have started, too.
///
/// Off a task, as on a thread of the blocking pool, it also panics when both were cancelled before
/// either had a value. The end of the runtime does that.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::time::Duration;
/// use fibra::structured::Either;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let answer = [6, 7];
/// let won = fibra::race(|| answer[0] * answer[1], || fibra::sleep(Duration::from_secs(60)));
/// assert_eq!(won, Either::Left(42));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// They run concurrently, so at most one of them may borrow a value mutably:
/// ```compile_fail,E0499
/// # use fibra_runtime as fibra;
/// let mut buffer = [0; 8];
/// fibra::race(|| buffer[0] = 1, || buffer[1] = 2);
/// ```
#[track_caller]
pub fn race<A, B, F, G>(f: F, g: G) -> Either<A, B>
where
    F: FnOnce() -> A + Send,
    G: FnOnce() -> B + Send,
    A: Send,
    B: Send,
{
    match run((Entry::new(f), (Entry::new(g), ()))) {
        Either::Left(value) => Either::Left(value),
        Either::Right(Either::Left(value)) => Either::Right(value),
        Either::Right(Either::Right(nobody)) => match nobody {},
    }
}

/// Runs the field to its first end; for the macro.
#[doc(hidden)]
#[track_caller]
pub fn run<R: Field>(field: R) -> R::Won {
    let line = FinishLine::new();
    let finished = scope(|s| {
        let starting = Starting(s);
        let running = field.start(s, &line, 0);
        mem::forget(starting);
        line.await_first();
        R::cancel(&running, 0, &line);
        R::finish(running, 0, &line)
    });
    match finished {
        Ok(Some(won)) => won,
        Ok(None) => {
            // The winner's own task was cancelled, from inside: so it goes with this one, where it would have run otherwise.
            cancel_points::end_with_others(
                "no closure of a race off a task has a value: they were cancelled, as by the end of the runtime",
            )
        }
        Err(Lost::Panicked(payload)) => resume_unwind(payload),
        Err(Lost::NotStarted(error)) => panic!("the first closure of a race to end has not run: {error}"),
    }
}

/// Cancels the running closures when the start of a further one unwinds.
///
/// The `clone` of an inherited task-local may panic there. The scope waits for the running
/// closures, and nothing else would end them.
struct Starting<'a, 'scope, 'env>(&'a Scope<'scope, 'env>);

impl Drop for Starting<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.cancel_children();
    }
}

/// Evaluates several expressions, each in a task; the first to end wins.
///
/// The losers are cancelled and waited for, and then the winner's arm is evaluated here.
///
/// An arm is `pattern = expression => result`; the pattern must be irrefutable. The expressions may
/// borrow from the frame. They are bodies of closures, so `return`, `break` and `?` do not leave
/// them; the results may use all three. See [`race`](fn@crate::race) for all the rest.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::time::Duration;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let text = String::from("forty-two");
/// let length = fibra::race! {
///     length = text.len() => Some(length),
///     () = fibra::sleep(Duration::from_secs(60)) => None,
///     _ = fibra::task::park() => unreachable!("nobody unparks it"),
/// };
/// assert_eq!(length, Some(9));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! race {
    ($($pattern:pat = $expression:expr => $result:expr),+ $(,)?) => {
        $crate::race!(@match
            $crate::structured::run_race($crate::race!(@field $($expression,)+));
            $($pattern => $result,)+
        )
    };
    (@field) => { () };
    (@field $first:expr, $($rest:expr,)*) => {
        ($crate::structured::Entry::new(|| $first), $crate::race!(@field $($rest,)*))
    };
    (@match $won:expr;) => { match $won {} };
    (@match $won:expr; $pattern:pat => $result:expr, $($rest:tt)*) => {
        match $won {
            $crate::structured::Either::Left($pattern) => $result,
            $crate::structured::Either::Right(others) => $crate::race!(@match others; $($rest)*),
        }
    };
}
