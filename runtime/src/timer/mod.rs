//! Timers: one hierarchical timing wheel per worker.
//!
//! The structure is scheme 7 of G. Varghese and T. Lauck, *Hashed and Hierarchical Timing Wheels* (SOSP 1987). Time is
//! counted in ticks of 2^14 ns (about 16 µs) since the wheel was made. A tick is read as a number in base 64, and a
//! timer hangs where its own number first differs from the number of the present:
//!
//! ```text
//!                 64 slots each, one word of occupancy bits a level
//!   level 0  a slot is 16 µs    the timers of this very millisecond
//!   level 1  a slot is 1 ms     the 67 ms around now
//!   level 2  a slot is 67 ms    4.3 s
//!   level 3  a slot is 4.3 s    4.6 minutes
//!   ...
//!   level 8                     580 years: the end of a u64 of nanoseconds
//! ```
//!
//! From that rule follows what the code relies on:
//!
//! * Every timer of a lower level is due before every timer of a higher one, and within a level the slots to the right
//!   of the present are in order. The next timer is two `trailing_zeros` away, and hours of idleness are caught up
//!   with by visiting the occupied slots only.
//! * When the present enters a slot of level 1 or above, its timers are spread over the levels below (the *cascade*). A
//!   timer moves down at most once a level, and the earliest of its slot skips the levels in between.
//! * Timers of one tick are always in one slot, so they fire in the order in which they were inserted.
//!
//! A slot also keeps the earliest tick in it. So the deadline that the worker parks for is the deadline of a timer, not
//! the start of a slot. That minimum lags behind when the earliest timer of a slot was removed: it is
//! then early, never late.
//!
//! A deadline is rounded up to a tick and the clock is rounded down, hence a timer never fires early, and at most a
//! tick late by the wheel's own fault.
//!
//! The nodes live in the tasks. Inserting and removing are a few stores on the worker's own thread:
//! no allocation, no atomics. A binary heap was rejected because a timeout is nearly always removed before it fires,
//! which is what a heap does worst.

pub(crate) mod ring;
pub(crate) mod ticks;
pub(crate) mod wheel;

#[cfg(test)]
mod tests;
