//! Races of closures: the first to end wins.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::mem;
use std::panic::{Location, resume_unwind};

use crate::api::builder::Builder;
use crate::api::scope::{Scope, ScopedJoinHandle, scope};
use crate::scheduler::simulated::point;
use crate::sleep::cancel_points;
use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::Until;
use crate::tasks::cancel;
use crate::tasks::shield::shield;
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
/// while its task unwinds, nor inside of [`shield`]. There the end of the
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
    let (mut left, mut right) = (Arm::new(f), Arm::new(g));
    run([&mut left, &mut right]);
    either(left, right)
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
    let (mut left, mut right) = (Arm::new(f), Arm::new(g));
    run_with([&mut left as &mut dyn Racer, &mut right], |scope, builder, racer| {
        scope.spawn_local_as(builder, || racer.run())
    });
    either(left, right)
}

fn either<F, G, A, B>(left: Arm<F, A>, right: Arm<G, B>) -> Either<A, B> {
    match left.value() {
        Some(value) => Either::Left(value),
        None => Either::Right(right.value().expect(WON)),
    }
}

/// Why one of the values is there.
const WON: &str = "the winner has left its value";

/// Runs closures to the first end, and leaves the value of the winner alone; for the macro.
#[doc(hidden)]
#[track_caller]
pub fn run<const N: usize>(arms: [&mut (dyn Racer + Send); N]) {
    run_with(arms, |scope, builder, racer| scope.spawn_as(builder, || racer.run()));
}

/// Spawns a closure of a race into its scope.
type Spawn<R> = for<'scope, 'env> fn(
    &'scope Scope<'scope, 'env>,
    Builder,
    Running<'scope, R>,
) -> ScopedJoinHandle<'scope, ()>;

/// Runs closures as [`run`] does, each where `spawn` puts it.
///
/// A panic of any closure takes precedence over the winner. No cancellation of the race cuts the
/// destructors of the other values short.
#[track_caller]
fn run_with<R: Racer + ?Sized, const N: usize>(mut arms: [&mut R; N], spawn: Spawn<R>) {
    let first_end = FirstEnd::new();
    let ended = scope(|s| {
        let starting = Starting(s);
        let mut indices = 0..;
        let running = arms.each_mut().map(|arm| {
            let report = ReportEnd { first_end: &first_end, index: indices.next().expect("it has no end") };
            // Where a race cannot be unwound it must end with a value, so the closures must run.
            let builder = Builder::new().at(first_end.place);
            let builder = if cancel_points::may_unwind() { builder } else { builder.sheltered() };
            spawn(s, builder, Running { arm: &mut **arm, _report: report })
        });
        mem::forget(starting);
        first_end.await_first();
        let first = first_end.first();
        running
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != first)
            .for_each(|(_, loser)| loser.cancel());
        running.map(ScopedJoinHandle::join)
    });
    let first = first_end.first();
    let (mut won, mut panicked) = (Ok(()), None);
    for (index, end) in ended.into_iter().enumerate() {
        match end {
            // In place of an earlier one, whose destructor no cancellation cuts short either.
            Err(error) if error.is_panic() => shield(|| panicked = Some(error.into_panic())),
            end if Some(index) == first => won = end,
            _ => (),
        }
    }
    // Losers are dropped before the return: a destructor that panics in it would leak what is returned.
    for (index, arm) in arms.into_iter().enumerate() {
        if panicked.is_some() || Some(index) != first {
            shield(|| arm.clear());
        }
    }
    if let Some(payload) = panicked {
        resume_unwind(payload);
    }
    match won {
        Ok(()) => (),
        Err(error) if error.is_not_started() => {
            panic!("the first closure of a race to end has not run: {error}")
        }
        // The winner's own task was cancelled, from inside: so it goes with this one, where it would have run otherwise.
        Err(_) => cancel_points::end_with_others(
            "no closure of a race off a task has a value: they were cancelled, as by the end of the runtime",
        ),
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
struct FirstEnd {
    queue: WaitQueue<Option<usize>, ()>,
    /// The call of the race.
    place: &'static Location<'static>,
}

impl FirstEnd {
    #[track_caller]
    fn new() -> Self {
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
    fn await_first(&self) {
        if self.first().is_some() {
            return;
        }
        let until = Until::report(None).described(const { &WaitDescription::new("race") });
        if !self.queue.wait_until(0, until, |first| first.is_some()) && cancel::CAN_UNWIND {
            cancel_points::unwind_cancelled();
        }
    }
}

/// Reports the end of its closure when it is dropped, even if the closure never ran.
struct ReportEnd<'a> {
    first_end: &'a FirstEnd,
    index: usize,
}

impl Drop for ReportEnd<'_> {
    fn drop(&mut self) {
        self.first_end.report(self.index);
    }
}

/// A closure in its task.
struct Running<'a, R: ?Sized> {
    arm: &'a mut R,
    _report: ReportEnd<'a>,
}

impl<R: Racer + ?Sized> Running<'_, R> {
    fn run(self) {
        self.arm.run();
    }
}

/// Holds a closure of a race, and then its value.
#[doc(hidden)]
pub enum Arm<F, T> {
    Closure(F),
    Value(T),
    Empty,
}

impl<F: FnOnce() -> T, T> Arm<F, T> {
    pub fn new(f: F) -> Self {
        Arm::Closure(f)
    }
}

impl<F, T> Arm<F, T> {
    /// Returns the value that the closure has left.
    pub fn value(self) -> Option<T> {
        match self {
            Arm::Value(value) => Some(value),
            _ => None,
        }
    }
}

/// An [`Arm`] of any type.
#[doc(hidden)]
pub trait Racer {
    fn run(&mut self);
    /// Drops the closure or the value.
    fn clear(&mut self);
}

impl<F: FnOnce() -> T, T> Racer for Arm<F, T> {
    fn run(&mut self) {
        if let Arm::Closure(f) = mem::replace(self, Arm::Empty) {
            *self = Arm::Value(f());
        }
    }

    fn clear(&mut self) {
        *self = Arm::Empty;
    }
}

/// Ends the values of a race, one of which is the winner's; for the macro.
#[doc(hidden)]
pub fn no_value() -> Infallible {
    unreachable!("{WON}")
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
        $crate::race!(@run [] $($pattern = $expression => $result,)+)
    };
    // Each round of this makes another name.
    (@run [$($arms:tt)*] $pattern:pat = $expression:expr => $result:expr, $($rest:tt)*) => {
        $crate::race!(@run [$($arms)* (arm $pattern, $expression, $result)] $($rest)*)
    };
    (@run [$(($arm:ident $pattern:pat, $expression:expr, $result:expr))+]) => {
        $crate::race!(@match {
            $(let mut $arm = $crate::structured::Arm::new(|| $expression);)+
            $crate::structured::run_race([$(&mut $arm),+]);
            $crate::race!(@won $($arm)+)
        }; $($pattern => $result,)+)
    };
    (@won) => { $crate::structured::no_value() };
    (@won $arm:ident $($rest:ident)*) => {
        match $arm.value() {
            ::core::option::Option::Some(value) => $crate::structured::Either::Left(value),
            ::core::option::Option::None => $crate::structured::Either::Right($crate::race!(@won $($rest)*)),
        }
    };
    (@match $won:expr;) => { match $won {} };
    (@match $won:expr; $pattern:pat => $result:expr, $($rest:tt)*) => {
        match $won {
            $crate::structured::Either::Left($pattern) => $result,
            $crate::structured::Either::Right(others) => $crate::race!(@match others; $($rest)*),
        }
    };
}
