//! Parallel loops over iterators.

use std::cmp;
use std::mem::{self, ManuallyDrop};

use crate::api::fork::{Beside, LOOP, Probe, fork};
use crate::api::pace::Pace;
use crate::base::spin_lock::Lock;
use crate::sleep::cancel_points;
use crate::sleep::task_sleep;
use crate::sleep::wake_many;
use crate::tasks::shield;
use crate::waiter::kind::WakeHandle;
use crate::waiter::list::{List, Node};
use crate::waiter::strategy::{Asleep, WaitStrategy, Waking, Withdrawal};

/// How many helpers one task brings in. Each of them may bring in as many.
const HELPERS: usize = 8;

/// Calls `f` with each item of `items`, in no order, on all workers that have nothing else to do.
///
/// Who helps pulls items from the one iterator, a few at a time where the iterator knows of more and they cost little, one at
/// a time otherwise: an iterator that waits for its items, as that of a channel, keeps none of them back. An array or a
/// vector is better served by [`parallel_for`](crate::api::range::parallel_for) over its places, which needs no lock.
///
/// While `f` waits, others go on, each in a task of its own; to bound how many there are, use a
/// [`TaskGroup`](crate::api::group::TaskGroup). Off a task it is a plain loop.
///
/// # Cancellation
/// As for [`parallel_for`](crate::api::range::parallel_for); items that were pulled and not begun are dropped.
///
/// # Panics
/// With the panic of a call of `f` or of the iterator, after all calls have ended that had begun. No more items are pulled.
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
    let source = Source::new(items.into_iter());
    source.serve(&f, &mut Pace::new(), 0);
}

/// The iterator, and who waits for it while another one pulls.
struct Source<I> {
    state: Lock<State<I>>,
}

struct State<I> {
    place: Place<I>,
    stopped: bool,
    waiting: List,
}

enum Place<I> {
    Here(I),
    /// With one who pulls.
    Away,
    Over,
}

impl<I: Iterator<Item: Send> + Send> Source<I> {
    fn new(iterator: I) -> Self {
        Source {
            state: Lock::new(State { place: Place::Here(iterator), stopped: false, waiting: List::new() }),
        }
    }

    /// Does items until there are no more.
    fn serve(&self, f: &(impl Fn(I::Item) + Sync), pace: &mut Pace, helpers: usize) {
        let mut items = Vec::new();
        let end = End(self);
        let mut over = false;
        while !over && self.pull(pace.grain(), &mut items) {
            // One who waits for items already is help enough.
            if helpers == HELPERS || !self.state.lock().waiting.is_empty() {
                self.process(&mut items, f, pace);
                continue;
            }
            let helper = || self.serve(f, &mut Pace::new(), 0);
            let here = |other: Probe<'_>| {
                self.process(&mut items, f, pace);
                if other.is_taken() {
                    self.serve(f, pace, helpers + 1);
                }
            };
            over = matches!(fork(here, helper, LOOP, || self.stop()), ((), Beside::Ran(())));
        }
        mem::forget(end);
    }

    fn process(&self, items: &mut Vec<I::Item>, f: &impl Fn(I::Item), pace: &mut Pace) {
        // At once: who serves may have to wait for a helper before it unwinds.
        let end = End(self);
        let count = items.len();
        pace.begin();
        items.drain(..).for_each(f);
        pace.tick(count);
        mem::forget(end);
    }

    /// Pulls one item at the least, and up to `most` of those that the iterator is sure of. False if there are no more, or if
    /// the loop was ended meanwhile.
    fn pull(&self, most: usize, items: &mut Vec<I::Item>) -> bool {
        let Some(iterator) = self.acquire().map(ManuallyDrop::new) else { return false };
        let mut hold = Hold { source: self, iterator };
        // What the iterator panics with ends it; and so does its end.
        let Some(first) = hold.iterator.next() else { return false };
        items.push(first);
        let sure = cmp::min(most - 1, hold.iterator.size_hint().0);
        items.extend(hold.iterator.by_ref().take(sure));
        let wanted = hold.release();
        if !wanted {
            // As for the iterator there: who pulled may have been cancelled.
            shield::shield(|| items.clear());
        }
        wanted
    }

    /// Waits until nobody else pulls. `None` if there are no more items.
    fn acquire(&self) -> Option<I> {
        loop {
            let mut state = self.state.lock();
            if state.stopped {
                return None;
            }
            match mem::replace(&mut state.place, Place::Away) {
                Place::Here(iterator) => return Some(iterator),
                Place::Over => {
                    state.place = Place::Over;
                    return None;
                }
                Place::Away => {}
            }
            drop(state);
            if task_sleep::sleep(&UntilHere { source: self, node: Node::new() }, None) == Waking::Cancelled {
                cancel_points::unwind_cancelled();
            }
        }
    }

    /// No more items are wanted. The iterator stays where it is: its destructor may wait, and must not be cut short here.
    fn stop(&self) {
        self.state.lock().stopped = true;
        wake_many::wake_all(&self.state, |state| state.waiting.pop_front());
    }

    /// There are no more items.
    fn end(&self) {
        let before = mem::replace(&mut self.state.lock().place, Place::Over);
        wake_many::wake_all(&self.state, |state| state.waiting.pop_front());
        drop(before);
    }
}

/// The iterator in the hands of one who pulls; dropped there it is over.
struct Hold<'a, I: Iterator<Item: Send> + Send> {
    source: &'a Source<I>,
    iterator: ManuallyDrop<I>,
}

impl<I: Iterator<Item: Send> + Send> Hold<'_, I> {
    /// Puts it in its place again, unless it is over by now. True if its items are still wanted.
    fn release(self) -> bool {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once; `this` is neither used for it again nor dropped.
        let iterator = unsafe { ManuallyDrop::take(&mut this.iterator) };
        let mut state = this.source.state.lock();
        if matches!(state.place, Place::Over) {
            drop(state);
            // No cancellation cuts its destructor short.
            shield::shield(|| drop(iterator));
            return false;
        }
        state.place = Place::Here(iterator);
        let (wanted, next) = (!state.stopped, state.waiting.pop_front());
        drop(state);
        if let Some(next) = next {
            next.wake();
        }
        wanted
    }
}

impl<I: Iterator<Item: Send> + Send> Drop for Hold<'_, I> {
    fn drop(&mut self) {
        let end = End(self.source);
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.iterator) };
        drop(end);
    }
}

/// Ends the source when it is dropped: by a panic of a call or of a clone that a helper would inherit, or a cancellation.
struct End<'a, I: Iterator<Item: Send> + Send>(&'a Source<I>);

impl<I: Iterator<Item: Send> + Send> Drop for End<'_, I> {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct UntilHere<'a, I> {
    source: &'a Source<I>,
    node: Node,
}

impl<I> WaitStrategy for UntilHere<'_, I> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut state = self.source.state.lock();
        match state.place {
            Place::Away if !state.stopped => {
                // SAFETY: the node is in no list, lives until the sleep is over, and is touched under this lock alone. The
                // wake is taken by who unlinks the node, and `before_awake` answers `Served` from then on.
                unsafe { state.waiting.push_back(&self.node, me.raw()) };
                Asleep::Stay
            }
            Place::Here(_) | Place::Away | Place::Over => Asleep::Rouse,
        }
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: the node is in this list or in none.
        let linked = unsafe { self.source.state.lock().waiting.remove(&self.node) };
        if linked || why == Waking::Notified { Withdrawal::Withdrawn } else { Withdrawal::Served }
    }
}
