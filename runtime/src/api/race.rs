//! Races of closures: the first to end wins.

#![forbid(unsafe_code)]

use std::any::Any;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::mem;
use std::panic::{Location, resume_unwind};

use crate::api::builder::Builder;
use crate::api::scope::{Scope, ScopedJoinHandle, scope};
use crate::scheduler::simulated::point;
use crate::sleep::cancel_points;
use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::{Admit, Outcome, Until};
use crate::tasks::cancel;
use crate::tasks::join_error::JoinError;
use crate::tasks::shield::Shielded;
use crate::waiter::description::WaitDescription;

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
    either(run((Closure::new(f), (Closure::new(g), ()))))
}

/// Runs both closures on the current worker, each in a task; the first to end wins.
///
/// As [`race`](fn@crate::race), but the closures and their values need not be `Send`. A closure that
/// computes holds up its opponent.
///
/// # Cancellation
/// As for [`race`](fn@crate::race).
///
/// # Panics
/// As [`race`](fn@crate::race); and off a worker, as on a thread of the blocking pool.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::cell::Cell;
/// use fibra::structured::Either;
/// # fibra::Runtime::builder().workers(2).build()?.run(|| {
/// let steps = Cell::new(0);
/// let won = fibra::race_local(|| steps.set(1), || fibra::task::park());
/// assert_eq!((won, steps.get()), (Either::Left(()), 1));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn race_local<A, B, F, G>(f: F, g: G) -> Either<A, B>
where
    F: FnOnce() -> A,
    G: FnOnce() -> B,
{
    either(run((Closure::local(f), (Closure::local(g), ()))))
}

fn either<A, B>(won: Either<A, Either<B, Infallible>>) -> Either<A, B> {
    match won {
        Either::Left(value) => Either::Left(value),
        Either::Right(Either::Left(value)) => Either::Right(value),
        Either::Right(Either::Right(never)) => match never {},
    }
}

/// Runs closures to the first end; for the macro.
#[doc(hidden)]
#[track_caller]
pub fn run<R: Closures>(closures: R) -> R::Won {
    let first_end = FirstEnd::new();
    let finished = scope(|s| {
        let starting = Starting(s);
        let running = closures.start(s, &first_end, 0);
        mem::forget(starting);
        first_end.await_first();
        R::cancel(&running, 0, &first_end);
        R::finish(running, 0, &first_end)
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

/// Holds the index of the first closure to end, and the race that waits for it.
#[doc(hidden)]
pub struct FirstEnd {
    queue: WaitQueue<Option<usize>, ()>,
    /// The call of the race.
    place: &'static Location<'static>,
}

impl FirstEnd {
    #[track_caller]
    pub(crate) fn new() -> Self {
        FirstEnd { queue: WaitQueue::new(None), place: Location::caller() }
    }

    fn report(&self, index: usize) {
        point();
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
            Until::report(None).described(const { &WaitDescription::new("race") }),
            |first, (), _| if first.is_some() { Admit::Done(()) } else { Admit::Back },
            || (),
            |_, (), _, _| (),
        );
        if outcome == Outcome::Cancelled && cancel::CAN_UNWIND {
            cancel_points::unwind_cancelled();
        }
    }
}

/// Reports the end of its closure when it is dropped, even if the closure never ran.
#[doc(hidden)]
pub struct ReportEnd<'a> {
    first_end: &'a FirstEnd,
    index: usize,
}

impl ReportEnd<'_> {
    /// Returns `f` with the report after it.
    fn after<T>(self, f: impl FnOnce() -> T) -> impl FnOnce() -> T {
        move || {
            let _report = self;
            f()
        }
    }
}

impl Drop for ReportEnd<'_> {
    fn drop(&mut self) {
        self.first_end.report(self.index);
    }
}

/// Tells why a race has no value although the winner was not cancelled.
#[doc(hidden)]
pub enum Lost {
    Panicked(Box<dyn Any + Send>),
    /// The first closure to end has not run, for this reason.
    NotStarted(JoinError),
}

/// Closures that race: any number of them, each with its type, as nested pairs.
#[doc(hidden)]
pub trait Closures: Sized {
    type Won;
    type Running<'scope>;

    fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        first_end: &'scope FirstEnd,
        index: usize,
    ) -> Self::Running<'scope>
    where
        Self: 'scope;

    /// Cancels all closures but the winner.
    fn cancel(running: &Self::Running<'_>, index: usize, first_end: &FirstEnd);

    /// Waits for all closures, and returns the value of the winner, or `None` if it was cancelled.
    ///
    /// A panic of any closure takes precedence. No cancellation of the race cuts the destructors of
    /// the others' values short.
    fn finish(
        running: Self::Running<'_>,
        index: usize,
        first_end: &FirstEnd,
    ) -> Result<Option<Self::Won>, Lost>;
}

/// One closure of a race, which runs at a `P`.
#[doc(hidden)]
pub struct Closure<F, T, P = AnyWorker> {
    f: F,
    value: PhantomData<(T, P)>,
}

impl<F: FnOnce() -> T, T> Closure<F, T> {
    pub fn new(f: F) -> Self {
        Closure { f, value: PhantomData }
    }
}

impl<F: FnOnce() -> T, T> Closure<F, T, ThisWorker> {
    fn local(f: F) -> Self {
        Closure { f, value: PhantomData }
    }
}

/// Where a closure of a race runs.
#[doc(hidden)]
pub trait Place<F, T> {
    fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        builder: Builder,
        f: F,
        report: ReportEnd<'scope>,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: 'scope,
        T: 'scope;
}

#[doc(hidden)]
pub struct AnyWorker;
#[doc(hidden)]
pub struct ThisWorker;

impl<F: FnOnce() -> T + Send, T: Send> Place<F, T> for AnyWorker {
    #[track_caller]
    fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        builder: Builder,
        f: F,
        report: ReportEnd<'scope>,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: 'scope,
        T: 'scope,
    {
        scope.spawn_as(builder, report.after(f))
    }
}

impl<F: FnOnce() -> T, T> Place<F, T> for ThisWorker {
    #[track_caller]
    fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        builder: Builder,
        f: F,
        report: ReportEnd<'scope>,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: 'scope,
        T: 'scope,
    {
        scope.spawn_local_as(builder, report.after(f))
    }
}

impl Closures for () {
    type Won = Infallible;
    type Running<'scope> = ();

    fn start<'scope>(self, _scope: &'scope Scope<'scope, '_>, _first_end: &'scope FirstEnd, _index: usize)
    where
        Self: 'scope,
    {
    }

    fn cancel(_running: &(), _index: usize, _first_end: &FirstEnd) {}

    fn finish(_running: (), _index: usize, _first_end: &FirstEnd) -> Result<Option<Infallible>, Lost> {
        Ok(None)
    }
}

impl<F, T, P, R> Closures for (Closure<F, T, P>, R)
where
    P: Place<F, T>,
    R: Closures,
{
    type Won = Either<T, R::Won>;
    type Running<'scope> = (ScopedJoinHandle<'scope, T>, R::Running<'scope>);

    #[track_caller]
    fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        first_end: &'scope FirstEnd,
        index: usize,
    ) -> Self::Running<'scope>
    where
        Self: 'scope,
    {
        let (Closure { f, .. }, rest) = self;
        let report = ReportEnd { first_end, index };
        // Where a race cannot be unwound it must end with a value, so the closures must run.
        let builder = Builder::new().at(first_end.place);
        let builder = if cancel_points::may_unwind() { builder } else { builder.sheltered() };
        let first = P::spawn(scope, builder, f, report);
        (first, rest.start(scope, first_end, index + 1))
    }

    fn cancel((first, rest): &Self::Running<'_>, index: usize, first_end: &FirstEnd) {
        if first_end.first() != Some(index) {
            first.task().cancel();
        }
        R::cancel(rest, index + 1, first_end);
    }

    fn finish(
        (first, rest): Self::Running<'_>,
        index: usize,
        first_end: &FirstEnd,
    ) -> Result<Option<Self::Won>, Lost> {
        let first = first.join();
        let rest = match R::finish(rest, index + 1, first_end) {
            Ok(rest) => rest,
            Err(lost) => {
                drop(Shielded::new(first));
                return Err(lost);
            }
        };
        let won = first_end.first() == Some(index);
        match first {
            Ok(value) if won => Ok(Some(Either::Left(value))),
            Err(error) if error.is_not_started() && won => Err(Lost::NotStarted(error)),
            // Losers are dropped before the return: a destructor that panics in it would leak what is returned.
            Err(error) if error.is_panic() => {
                let panic = JoinError::into_panic(error);
                drop(Shielded::new(rest));
                Err(Lost::Panicked(panic))
            }
            loser => {
                drop(Shielded::new(loser));
                Ok(rest.map(Either::Right))
            }
        }
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
///     _ = fibra::task::park() => unreachable!("no task unparks it"),
/// };
/// assert_eq!(length, Some(9));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[macro_export]
macro_rules! race {
    ($($pattern:pat = $expression:expr => $result:expr),+ $(,)?) => {
        $crate::race!(@match
            $crate::structured::run_race($crate::race!(@closures $($expression,)+));
            $($pattern => $result,)+
        )
    };
    (@closures) => { () };
    (@closures $first:expr, $($rest:expr,)*) => {
        ($crate::structured::Closure::new(|| $first), $crate::race!(@closures $($rest,)*))
    };
    (@match $won:expr;) => { match $won {} };
    (@match $won:expr; $pattern:pat => $result:expr, $($rest:tt)*) => {
        match $won {
            $crate::structured::Either::Left($pattern) => $result,
            $crate::structured::Either::Right(others) => $crate::race!(@match others; $($rest)*),
        }
    };
}
