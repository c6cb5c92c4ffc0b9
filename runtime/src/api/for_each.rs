//! Parallel loops over iterators.

#![forbid(unsafe_code)]

use std::cmp;
use std::mem;

use crate::api::parallel_loop::{self, Source};
use crate::sleep::cancel_points;
use crate::sleep::queue::WaitQueue;
use crate::sleep::queue::wait::Until;
use crate::tasks::shield;
use crate::waiter::description::WaitDescription;

/// Calls `f` with each item of `items`, in no order, on all workers that are idle.
///
/// Tasks pull items from the iterator: several at a time where its size hint promises more and
/// calls are cheap, else one at a time. So an iterator that waits for its items, as that of a
/// channel, keeps none of them back. For an array or a vector use
/// [`parallel_for`](crate::api::range::parallel_for) over its indices, which needs no lock.
///
/// While a call waits, another task goes on with the items. To bound the number of waiting calls,
/// use a [`TaskGroup`](crate::api::group::TaskGroup). Off a task this is a plain loop.
///
/// # Cancellation
/// A cancellation point, as [`parallel_for`](crate::api::range::parallel_for) is. Items that were
/// pulled and not begun are dropped.
///
/// # Panics
/// Resumes a panic of a call or of the iterator, after all begun calls have ended. No more items
/// are pulled.
///
/// # Examples
/// ```
/// # use fibra_runtime as fibra;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// # fibra::Runtime::builder().workers(2).build()?.run(|| {
/// let letters = AtomicUsize::new(0);
/// fibra::parallel_for_each("many short words".split(' '), |word| {
///     letters.fetch_add(word.len(), Ordering::Relaxed);
/// });
/// assert_eq!(letters.into_inner(), 14);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn parallel_for_each<I>(items: I, f: impl Fn(I::Item) + Sync)
where
    I: IntoIterator<IntoIter: Send, Item: Send>,
{
    cancel_points::checkpoint();
    let state = State { place: Place::Here(items.into_iter()), stopped: false };
    parallel_loop::serve(&Items { queue: WaitQueue::new(state), f });
}

/// The iterator, and the tasks that wait while another task pulls.
struct Items<I, F> {
    queue: WaitQueue<State<I>, ()>,
    f: F,
}

struct State<I> {
    place: Place<I>,
    stopped: bool,
}

enum Place<I> {
    Here(I),
    /// Held by a task that pulls.
    Away,
    Over,
}

impl<I, F> Source for Items<I, F>
where
    I: Iterator<Item: Send> + Send,
    F: Fn(I::Item) + Sync,
{
    type Piece = Vec<I::Item>;

    fn pull(&self, most: usize) -> Option<Vec<I::Item>> {
        let mut pulling = Pulling { queue: &self.queue, iterator: Some(self.acquire()?) };
        let iterator = pulling.iterator.as_mut()?;
        // A panic of the iterator ends it; and so does its end.
        let mut items = vec![iterator.next()?];
        let sure = cmp::min(most - 1, iterator.size_hint().0);
        items.extend(iterator.by_ref().take(sure));
        if pulling.release() {
            return Some(items);
        }
        // As for the iterator there: the task that pulled may have been cancelled.
        shield::shield(|| drop(items));
        None
    }

    fn run(&self, piece: Vec<I::Item>) -> usize {
        let count = piece.len();
        piece.into_iter().for_each(&self.f);
        count
    }

    /// Leaves the iterator where it is: its destructor may wait, and must not be cut short here.
    fn stop(&self) {
        self.queue.with(|state, waiters| {
            state.stopped = true;
            waiters.serve_all(0);
        });
    }
}

impl<I, F> Items<I, F> {
    /// Waits until no other task pulls. Returns `None` if there are no more items.
    fn acquire(&self) -> Option<I> {
        let until = Until::unwind(None).described(const { &WaitDescription::new("iterator") });
        let ready = |state: &mut State<I>| match mem::replace(&mut state.place, Place::Away) {
            Place::Here(iterator) if !state.stopped => Some(Some(iterator)),
            Place::Away if !state.stopped => None,
            left => {
                state.place = left;
                Some(None)
            }
        };
        self.queue.wait_for(0, until, ready)?
    }
}

/// The iterator in the hands of a task that pulls; dropped there it is over.
struct Pulling<'a, I> {
    queue: &'a WaitQueue<State<I>, ()>,
    iterator: Option<I>,
}

impl<I> Pulling<'_, I> {
    /// Puts it in its place again, unless the loop is over. Returns true if its items are still wanted.
    fn release(mut self) -> bool {
        let mut iterator = self.iterator.take();
        let wanted = self.queue.with(|state, waiters| {
            if !matches!(state.place, Place::Over) {
                state.place = iterator.take().map_or(Place::Over, Place::Here);
                waiters.serve_front_if(0, |()| true, |()| ());
            }
            !state.stopped && matches!(state.place, Place::Here(_))
        });
        if iterator.is_some() {
            // No cancellation cuts its destructor short.
            shield::shield(|| drop(iterator));
        }
        mem::forget(self);
        wanted
    }
}

impl<I> Drop for Pulling<'_, I> {
    fn drop(&mut self) {
        let over = Over(self.queue);
        drop(self.iterator.take());
        drop(over);
    }
}

/// Ends the source when it is dropped, also by a panic of the iterator's destructor.
struct Over<'a, I>(&'a WaitQueue<State<I>, ()>);

impl<I> Drop for Over<'_, I> {
    fn drop(&mut self) {
        self.0.with(|state, waiters| {
            state.place = Place::Over;
            waiters.serve_all(0);
        });
    }
}
