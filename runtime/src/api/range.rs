//! Parallel loops over ranges.

use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::api::fork::{Beside, LOOP, Probe, fork};
use crate::api::pace::Pace;
use crate::sleep::cancel_points;

/// Calls `f` with each number of `range`, in no order, on all workers that have nothing else to do.
///
/// The upper half of what is left is always on offer: an idle worker takes it, and offers the upper
/// half of that in its turn. Nothing is split that nobody takes, and a range whose numbers differ
/// in what they cost spreads as well as any other. Of a part that costs little many numbers are
/// done in one go; after some 200 µs others get their turn.
///
/// While `f` waits, its worker too takes up what is on offer, so waits of different numbers
/// overlap, each in a task of its own. To bound how many there are, use a
/// [`TaskGroup`](crate::api::group::TaskGroup). No call of `f` may wait for another one: that may
/// have its turn after it. Off a task it is a plain loop. Calls that others take run on stacks of
/// the runtime's size.
///
/// # Cancellation
/// A cancellation point, at its begin and after each few microseconds of calls. When its task is
/// cancelled, so are the tasks that help it; they are waited for, and what was not begun is left
/// out.
///
/// # Panics
/// With the panic of a call of `f`, after all calls have ended that had begun; those that had not
/// are left out. At once, if there are more numbers in the range than a `usize` can count, as there
/// may be of `u64` on a processor of 32 bits.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// # fibra::Runtime::builder().workers(2).build()?.run(|| {
/// let sum = AtomicU64::new(0);
/// fibra::parallel_for(0..1000, |n| _ = sum.fetch_add(n, Ordering::Relaxed));
/// assert_eq!(sum.into_inner(), 499_500);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Calls run at once, so none of them has what it borrows for itself:
/// ```compile_fail,E0594
/// # use fibra_runtime as fibra;
/// let mut sum = 0;
/// fibra::parallel_for(0..1000, |n| sum += n);
/// ```
pub fn parallel_for<N: Number>(range: Range<N>, f: impl Fn(N) + Sync) {
    cancel_points::checkpoint();
    let work = Work { begin: range.start, f, stopped: AtomicBool::new(false) };
    work.spread(0..range.start.distance(range.end), &mut Pace::new());
}

/// A loop whose range begins with `begin`; its parts are counted from there.
struct Work<N, F> {
    begin: N,
    f: F,
    /// A call has panicked, or one of the tasks was cancelled, so that whoever waits for it
    /// unwinds: what was not begun is left out. Were each of them cancelled by its owner alone, one
    /// after the other, those that run could make more meanwhile.
    stopped: AtomicBool,
}

impl<N: Number, F: Fn(N) + Sync> Work<N, F> {
    /// Does `range`, the upper half of what is left always on offer.
    fn spread(&self, mut range: Range<usize>, pace: &mut Pace) {
        let stop = Stop(self);
        while range.len() > pace.grain() {
            let middle = range.start + range.len() / 2;
            let (lower, upper) = (range.start..middle, middle..range.end);
            range = upper.clone();
            let helper = move || self.spread(upper, &mut Pace::new());
            match fork(|probe| self.advance(lower, probe, pace), helper, LOOP, || self.stop()) {
                ((), Beside::Kept(_)) => {}
                ((), Beside::Ran(())) => range.start = range.end,
            }
        }
        self.advance_to_end(range, pace);
        mem::forget(stop);
    }

    /// Does `range`; once the other half is taken, it offers some of what is left of this one.
    fn advance(&self, mut range: Range<usize>, other: Probe<'_>, pace: &mut Pace) {
        while !range.is_empty() {
            if other.is_taken() {
                return self.spread(range, pace);
            }
            self.step(&mut range, pace);
        }
    }

    fn advance_to_end(&self, mut range: Range<usize>, pace: &mut Pace) {
        while !range.is_empty() {
            self.step(&mut range, pace);
        }
    }

    fn stop(&self) {
        // Relaxed: a wish, nothing is published by it.
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Does a piece of `range`.
    fn step(&self, range: &mut Range<usize>, pace: &mut Pace) {
        // Relaxed: as in `stop`.
        if self.stopped.load(Ordering::Relaxed) {
            return range.start = range.end;
        }
        let piece = range.start..range.end.min(range.start.saturating_add(pace.grain()));
        range.start = piece.end;
        let count = piece.len();
        let stop = Stop(self);
        // Out of what `f` may write to, as far as the compiler knows.
        let (first, f) = (self.begin.nth(piece.start), &self.f);
        (0..count).for_each(|place| f(first.nth(place)));
        pace.tick(count);
        mem::forget(stop);
    }
}

/// Stops the loop when it is dropped: by a panic of a call or of a clone that a helper would
/// inherit, or a cancellation.
struct Stop<'a, N: Number, F: Fn(N) + Sync>(&'a Work<N, F>);

impl<N: Number, F: Fn(N) + Sync> Drop for Stop<'_, N, F> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Counts a range of [`parallel_for`]: every integer of up to 64 bits.
pub trait Number: Copy + Send + Sync + sealed::Sealed {
    #[doc(hidden)]
    fn distance(self, end: Self) -> usize;

    #[doc(hidden)]
    fn nth(self, place: usize) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl sealed::Sealed for $number {}

        impl Number for $number {
            fn distance(self, end: Self) -> usize {
                match self < end {
                    true => usize::try_from(end.abs_diff(self)).expect("a range that memory could hold"),
                    false => 0,
                }
            }

            #[inline]
            fn nth(self, place: usize) -> Self {
                // Within the range, so it is the sum also where a step in between wraps.
                self.wrapping_add(place as $number)
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }
