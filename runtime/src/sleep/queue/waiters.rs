//! What a primitive sees of its waiters while it holds the lock of their queue.

use crate::sleep::queue::lane::{Lane, Served};

/// The waiters of a queue, while its lock is held.
pub struct Waiters<'a, T, const LANES: usize> {
    lanes: &'a mut [Lane<T>; LANES],
    served: &'a mut Served<T>,
}

impl<'a, T, const LANES: usize> Waiters<'a, T, LANES> {
    #[inline]
    pub(super) fn new(lanes: &'a mut [Lane<T>; LANES], served: &'a mut Served<T>) -> Self {
        Waiters { lanes, served }
    }

    /// True if no waiter is in this lane.
    #[inline]
    pub fn is_empty(&self, lane: usize) -> bool {
        self.front(lane).is_none()
    }

    /// Counts the waiters in this lane, one by one.
    pub fn len(&self, lane: usize) -> usize {
        self.iter(lane).count()
    }

    /// Returns the data of the longest waiter.
    #[inline]
    pub fn front(&self, lane: usize) -> Option<&T> {
        self.iter(lane).next()
    }

    /// Walks the data of the waiters, longest waiter first.
    #[inline]
    pub fn iter(&self, lane: usize) -> impl Iterator<Item = &T> {
        self.lanes[lane].data()
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

    /// True if this look has served a waiter.
    pub(super) fn has_served(&self) -> bool {
        !self.served.is_empty()
    }
}
