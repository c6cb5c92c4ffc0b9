//! Parallel loops over ranges.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::api::parallel_loop::{self, Source};
use crate::sleep::cancel_points;

/// Calls `f` with each number of `range`, in no order, on all workers that are idle.
///
/// Tasks take pieces of the range from a shared counter. A piece holds many cheap calls; after some
/// 200 µs other tasks run.
///
/// While a call waits, another task goes on with the range, so waits of different calls overlap. To
/// bound their number, use a [`TaskGroup`](crate::api::group::TaskGroup). A call must not wait for
/// another call, which may come later. Off a task this is a plain loop. Calls on other tasks run on
/// stacks of the runtime's size.
///
/// # Cancellation
/// A cancellation point, at its begin and after each few microseconds of calls. A cancel of the task cancels its
/// helpers, and waits for them; the remaining numbers are left out.
///
/// # Panics
/// Resumes a panic of a call, after all begun calls have ended; the remaining numbers are left out.
/// Panics at once if the range has more numbers than a `usize` can count.
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
/// Calls run concurrently, so none may borrow a value mutably:
/// ```compile_fail,E0594
/// # use fibra_runtime as fibra;
/// let mut sum = 0;
/// fibra::parallel_for(0..1000, |n| sum += n);
/// ```
pub fn parallel_for<N: Number>(range: Range<N>, f: impl Fn(N) + Sync) {
    cancel_points::checkpoint();
    let end = range.start.distance(range.end);
    parallel_loop::serve(&Work {
        begin: range.start,
        next: AtomicUsize::new(0),
        end,
        f,
        stopped: AtomicBool::new(false),
    });
}

/// Loop over a range from `begin`, from which its indices are counted.
struct Work<N, F> {
    begin: N,
    /// Index of the first number that no task has taken.
    next: AtomicUsize,
    end: usize,
    f: F,
    stopped: AtomicBool,
}

impl<N: Number, F: Fn(N) + Sync> Source for Work<N, F> {
    type Piece = Range<usize>;

    fn pull(&self, most: usize) -> Option<Range<usize>> {
        // Relaxed: a request that publishes nothing.
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let piece_end = |start: usize| self.end.min(start.saturating_add(most));
        // Relaxed: it matters only that each index is taken once.
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |start| {
            (start < self.end).then(|| piece_end(start))
        });
        taken.ok().map(|start| start..piece_end(start))
    }

    fn run(&self, piece: Range<usize>) -> usize {
        let count = piece.len();
        // A copy, which the compiler knows that `f` does not write to.
        let (first, f) = (self.begin.nth(piece.start), &self.f);
        (0..count).for_each(|place| f(first.nth(place)));
        count
    }

    fn stop(&self) {
        // Relaxed: as in `pull`.
        self.stopped.store(true, Ordering::Relaxed);
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
