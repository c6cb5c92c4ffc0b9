//! What a primitive sees of its waiters while it holds the lock of their queue.

#![forbid(unsafe_code)]

use std::ptr;

use crate::sleep::queue::lane::{Lane, Lent, Served};
use crate::waiter::select_token::Claim;

/// The waiters of a queue, while its lock is held.
///
/// An arm of a select that was served elsewhere is no waiter any more: all of this passes over it.
pub struct Waiters<'a, T, const LANES: usize> {
    lanes: &'a mut [Lane<T>; LANES],
    served: &'a mut Served<T>,
    /// The select that looks, whose own arms it does not see; or null.
    own: *const Claim,
}

impl<'a, T, const LANES: usize> Waiters<'a, T, LANES> {
    #[inline]
    pub(super) fn new(lanes: &'a mut [Lane<T>; LANES], served: &'a mut Served<T>) -> Self {
        Waiters { lanes, served, own: ptr::null() }
    }

    /// Hides the arms of the select behind `own`.
    pub(super) fn seen_by(self, own: &Claim) -> Self {
        Waiters { own, ..self }
    }

    /// Returns true if no waiter is in this lane.
    #[inline(always)]
    pub fn is_empty(&self, lane: usize) -> bool {
        self.lanes[lane].is_bare() || self.front(lane).is_none()
    }

    /// Counts the waiters in this lane, one by one.
    pub fn len(&self, lane: usize) -> usize {
        self.iter(lane).count()
    }

    /// Returns the data of the longest waiter.
    #[inline]
    pub fn front(&self, lane: usize) -> Option<&T> {
        self.lanes[lane].front(self.own)
    }

    /// Walks the data of the waiters, longest waiter first.
    #[inline]
    pub fn iter(&self, lane: usize) -> impl Iterator<Item = &T> {
        self.lanes[lane].data(self.own)
    }

    /// Serves the longest waiter, if it is `wanted`. `give` may write to its data.
    #[inline]
    pub fn serve_front_if<R>(
        &mut self,
        lane: usize,
        wanted: impl Fn(&T) -> bool,
        give: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        self.lanes[lane].serve_front_if(self.served, wanted, give)
    }

    /// Serves the longest waiter. `give` may write to its data.
    #[inline]
    pub fn serve_front<R>(&mut self, lane: usize, give: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.serve_front_if(lane, |_| true, give)
    }

    /// Variant of [`serve_front`](Waiters::serve_front) that returns the data, to be written or taken.
    #[inline(always)]
    pub fn serve_front_data(&mut self, lane: usize) -> Option<&mut T> {
        self.lanes[lane].serve_front(self.served)
    }

    /// Serves the longest waiter of those that are `wanted`. `give` may write to its data.
    pub fn serve_first<R>(
        &mut self,
        lane: usize,
        wanted: impl Fn(&T) -> bool,
        give: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        self.serve_first_data(lane, wanted).map(give)
    }

    /// Variant of [`serve_first`](Waiters::serve_first) that returns the data, to be written or taken.
    pub fn serve_first_data(&mut self, lane: usize, wanted: impl Fn(&T) -> bool) -> Option<&mut T> {
        self.lanes[lane].serve_first(self.served, wanted)
    }

    /// Serves waiters from the front on, as long as they are `wanted`. Returns how many.
    pub fn serve_while(&mut self, lane: usize, wanted: impl Fn(&T) -> bool) -> usize {
        let mut count = 0;
        while self.serve_front_if(lane, &wanted, |_| ()).is_some() {
            count += 1;
        }
        count
    }

    /// Serves every waiter in this lane. Returns how many.
    pub fn serve_all(&mut self, lane: usize) -> usize {
        self.serve_while(lane, |_| true)
    }

    /// Takes out the longest waiter and leaves it to the caller to give something to it and to wake it.
    ///
    /// Not for a lane in which futures wait: a future that is dropped meanwhile blocks its thread.
    pub fn lend_front(&mut self, lane: usize) -> Option<Lent<T>> {
        self.lanes[lane].lend_front()
    }

    /// Moves the longest waiter to the back of a lane of another queue.
    ///
    /// Returns false if there is none. The waiter has left this queue as if served: no deadline and
    /// no cancel ends its wait any more. The second queue serves it and writes to its data. Not for
    /// futures, whose drop would block until then.
    ///
    /// # Examples
    /// ```
    /// use fibra_runtime::wait::{Admit, Outcome, Until, WaitQueue};
    ///
    /// let queues = [const { WaitQueue::<(), u32>::new(()) }; 2];
    /// let until = Until::unwind(None);
    /// let wait = || queues[0].wait(0, 1, until, |_, _, _| Admit::<()>::Back, || (), |_, _, _, _| ());
    /// let requeue = || queues[0].with(|_, from| queues[1].with(|_, to| from.requeue_front(0, to, 0)));
    /// std::thread::scope(|threads| {
    ///     let waiter = threads.spawn(wait);
    ///     while !requeue() {}
    ///     queues[1].with(|_, waiters| waiters.serve_front(0, |data| *data = 2));
    ///     assert_eq!(waiter.join().unwrap(), (Outcome::Served, 2));
    /// });
    /// ```
    pub fn requeue_front<const N: usize>(
        &mut self,
        lane: usize,
        to: &mut Waiters<'_, T, N>,
        to_lane: usize,
    ) -> bool {
        self.lanes[lane].requeue_front(&mut to.lanes[to_lane])
    }
}
