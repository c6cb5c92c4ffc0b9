//! The field of a race, and its finish line.
//!
//! The field is any number of closures, each with its type, as nested pairs.

#![forbid(unsafe_code)]

use std::any::Any;
use std::convert::Infallible;
use std::marker::PhantomData;

use crate::api::builder::Builder;
use crate::api::scope::{Scope, ScopedJoinHandle};
use crate::sleep::cancel_points;
use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::{Admit, Outcome, Until};
use crate::tasks::cancel;
use crate::tasks::join_error::JoinError;

/// Holds the index of the first closure to end, and the race that waits for it.
#[doc(hidden)]
pub struct FinishLine {
    queue: WaitQueue<Option<usize>, ()>,
}

impl FinishLine {
    pub(crate) fn new() -> Self {
        FinishLine { queue: WaitQueue::new(None) }
    }

    fn cross(&self, index: usize) {
        self.queue.with(|first, waiters| {
            first.get_or_insert(index);
            waiters.serve_all(0);
        });
    }

    fn first(&self) -> Option<usize> {
        self.queue.with(|first, _| *first)
    }

    /// Waits for the first closure to end.
    ///
    /// Where nothing can be unwound, a cancel of the race ends the wait as well; the race then
    /// cancels all closures.
    pub(crate) fn await_first(&self) {
        if self.first().is_some() {
            return;
        }
        let (outcome, ()) = self.queue.wait(
            0,
            (),
            Until::report(None),
            |first, (), _| if first.is_some() { Admit::Done(()) } else { Admit::Back },
            || (),
            |_, (), _, _| (),
        );
        if outcome == Outcome::Cancelled && cancel::CAN_UNWIND {
            cancel_points::unwind_cancelled();
        }
    }
}

/// Crosses the line when it is dropped: at the end of its closure, even if that never ran.
struct Runner<'a> {
    line: &'a FinishLine,
    index: usize,
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.line.cross(self.index);
    }
}

/// Tells why a race has no value although the winner was not cancelled.
#[doc(hidden)]
pub enum Lost {
    Panicked(Box<dyn Any + Send>),
    /// The first closure to end has not run, for this reason.
    NotStarted(JoinError),
}

/// Closures that race.
#[doc(hidden)]
pub trait Field: Sized {
    type Won;
    type Running<'scope>;

    fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        line: &'scope FinishLine,
        index: usize,
    ) -> Self::Running<'scope>
    where
        Self: 'scope;

    /// Cancels all closures but the winner.
    fn cancel(running: &Self::Running<'_>, index: usize, line: &FinishLine);

    /// Waits for all closures, and returns the value of the winner, or `None` if it was cancelled.
    ///
    /// A panic of any closure takes precedence.
    fn finish(running: Self::Running<'_>, index: usize, line: &FinishLine)
    -> Result<Option<Self::Won>, Lost>;
}

/// One closure of a field.
#[doc(hidden)]
pub struct Entry<F, T> {
    f: F,
    value: PhantomData<T>,
}

impl<F: FnOnce() -> T, T> Entry<F, T> {
    pub fn new(f: F) -> Self {
        Entry { f, value: PhantomData }
    }
}

impl Field for () {
    type Won = Infallible;
    type Running<'scope> = ();

    fn start<'scope>(self, _scope: &'scope Scope<'scope, '_>, _line: &'scope FinishLine, _index: usize)
    where
        Self: 'scope,
    {
    }

    fn cancel(_running: &(), _index: usize, _line: &FinishLine) {}

    fn finish(_running: (), _index: usize, _line: &FinishLine) -> Result<Option<Infallible>, Lost> {
        Ok(None)
    }
}

impl<F, T, R> Field for (Entry<F, T>, R)
where
    F: FnOnce() -> T + Send,
    T: Send,
    R: Field,
{
    type Won = Either<T, R::Won>;
    type Running<'scope> = (ScopedJoinHandle<'scope, T>, R::Running<'scope>);

    #[track_caller]
    fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        line: &'scope FinishLine,
        index: usize,
    ) -> Self::Running<'scope>
    where
        Self: 'scope,
    {
        let (Entry { f, .. }, rest) = self;
        let runner = Runner { line, index };
        // Where a race cannot be unwound it must end with a value, so the closures must run.
        let builder = if cancel_points::may_unwind() { Builder::new() } else { Builder::new().sheltered() };
        let first = scope.spawn_as(builder, move || {
            let _runner = runner;
            f()
        });
        (first, rest.start(scope, line, index + 1))
    }

    fn cancel((first, rest): &Self::Running<'_>, index: usize, line: &FinishLine) {
        if line.first() != Some(index) {
            first.task().cancel();
        }
        R::cancel(rest, index + 1, line);
    }

    fn finish(
        (first, rest): Self::Running<'_>,
        index: usize,
        line: &FinishLine,
    ) -> Result<Option<Self::Won>, Lost> {
        let first = first.join();
        let rest = match R::finish(rest, index + 1, line) {
            Ok(rest) => rest,
            Err(lost) => {
                drop(first);
                return Err(lost);
            }
        };
        let won = line.first() == Some(index);
        match first {
            Ok(value) if won => Ok(Some(Either::Left(value))),
            Err(error) if error.is_not_started() && won => Err(Lost::NotStarted(error)),
            // Losers are dropped before the return: a destructor that panics in it would leak what is returned.
            Err(error) if error.is_panic() => {
                let panic = JoinError::into_panic(error);
                drop(rest);
                Err(Lost::Panicked(panic))
            }
            loser => {
                drop(loser);
                Ok(rest.map(Either::Right))
            }
        }
    }
}

/// Holds one of two values.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use fibra::structured::Either;
/// # fibra::Runtime::builder().workers(1).build()?.run(|| {
/// let winner = fibra::race(|| 1, || { fibra::task::park(); "never" });
/// assert!(matches!(winner, Either::Left(1)));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Either<A, B> {
    /// Holds the first value.
    Left(A),
    /// Holds the second value.
    Right(B),
}
