//! What a recorder learns of a worker, and how it lies in the worker's ring.
//!
//! Most events do not name the task that runs: it is that of the last [`Event::Runs`].

use std::panic::Location;
use std::ptr;
use std::slice;
use std::str;

use crate::base::cycles::Cycles;
use crate::scheduler::event_ring::{EventRing, Words};
use crate::waiter::description::WaitDescription;

/// What happens on a worker. Tasks are named by their ids.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A task runs from here on.
    Runs(u64),
    /// The task that runs lets others run.
    Yields,
    /// The task that runs goes to sleep. `None` if it was woken in that moment.
    Sleeps(Option<&'static WaitDescription>),
    /// The task that runs has ended.
    Ends,
    /// A task is woken: by the one that runs, or by the worker's driver while none runs.
    Wakes(u64),
    /// A timer wakes a task.
    TimerWakes(u64),
    /// The worker takes a task that another thread has woken or spawned.
    Takes(u64),
    /// The task that runs spawns one.
    Spawns(u64),
    /// Tells where the task of the event before was spawned.
    SpawnedAt(&'static Location<'static>),
    /// The worker takes tasks from the queue of that other worker.
    Steals(usize),
    /// The worker has nothing to run, and goes to sleep.
    Parks,
    /// The worker goes on.
    Unparks,
    /// The task that runs begins a span of the program.
    SpanBegins(&'static str),
    /// The task that runs ends its innermost span.
    SpanEnds,
}

/// How many bits of the first word are the code of an event. The others are the time, as the counter of the machine tells it.
const CODE_BITS: u32 = 8;

/// How many bits of the second word are the length of a name. The others are its address.
const LENGTH_BITS: u32 = 16;

/// An event without its time.
#[derive(Clone, Copy)]
pub(super) struct Encoded(Words);

impl Event {
    /// Returns the words of the event without the time.
    #[inline(always)]
    pub(super) fn encode(self) -> Encoded {
        let (code, argument) = match self {
            Event::Runs(task) => (0, task),
            Event::Yields => (1, 0),
            Event::Sleeps(wait) => (2, wait.map_or(0, |wait| ptr::from_ref(wait).expose_provenance() as u64)),
            Event::Ends => (3, 0),
            Event::Wakes(task) => (4, task),
            Event::TimerWakes(task) => (5, task),
            Event::Takes(task) => (6, task),
            Event::Spawns(task) => (7, task),
            Event::SpawnedAt(place) => (8, ptr::from_ref(place).expose_provenance() as u64),
            Event::Steals(from) => (9, from as u64),
            Event::Parks => (10, 0),
            Event::Unparks => (11, 0),
            Event::SpanBegins(name) => {
                let begin = name.as_ptr().expose_provenance() as u64;
                let length = name.floor_char_boundary((1 << LENGTH_BITS) - 1) as u64;
                // A name whose address has more bits is shown as an empty one.
                let fits = begin >> (u64::BITS - LENGTH_BITS) == 0;
                (12, if fits { begin << LENGTH_BITS | length } else { 1 << LENGTH_BITS })
            }
            Event::SpanEnds => (13, 0),
        };
        Encoded([code, argument])
    }

    /// # Safety
    /// The words are those of an [`Encoded`] event, with any time.
    unsafe fn decode([first, argument]: Words) -> Event {
        let address = argument as usize;
        match first % (1 << CODE_BITS) {
            0 => Event::Runs(argument),
            1 => Event::Yields,
            // SAFETY: by this function's contract it is null or was made of such a reference.
            2 => Event::Sleeps(unsafe { ptr::with_exposed_provenance::<WaitDescription>(address).as_ref() }),
            3 => Event::Ends,
            4 => Event::Wakes(argument),
            5 => Event::TimerWakes(argument),
            6 => Event::Takes(argument),
            7 => Event::Spawns(argument),
            // SAFETY: by this function's contract it was made of such a reference.
            8 => Event::SpawnedAt(unsafe { &*ptr::with_exposed_provenance(address) }),
            9 => Event::Steals(address),
            10 => Event::Parks,
            11 => Event::Unparks,
            12 => {
                let begin = ptr::with_exposed_provenance((argument >> LENGTH_BITS) as usize);
                let length = (argument % (1 << LENGTH_BITS)) as usize;
                // SAFETY: by this function's contract these are the begin and the length of a text or of a part of one that
                // ends between two characters.
                Event::SpanBegins(unsafe { str::from_utf8_unchecked(slice::from_raw_parts(begin, length)) })
            }
            _ => Event::SpanEnds,
        }
    }
}

/// The last events of a worker.
pub(crate) struct Track {
    ring: EventRing,
    cycles: Cycles,
}

impl Track {
    /// Makes room for so many events, a power of two.
    pub(crate) fn new(events: usize) -> Self {
        Track { ring: EventRing::new(events), cycles: Cycles::of_machine() }
    }

    /// Returns the counter of the machine.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.cycles.read()
    }

    /// Records an event. Called by the worker.
    #[inline]
    pub(super) fn record(&self, event: Encoded, now: u64) {
        let Encoded([code, argument]) = event;
        self.ring.push([now << CODE_BITS | code, argument]);
    }

    /// Returns the last events, with the low bits of the counter that [`since`] takes, and how many there were before them.
    pub(crate) fn read(&self) -> (Vec<(u64, Event)>, u64) {
        let copied = self.ring.copy();
        // SAFETY: `record` alone writes to the ring, which hands out whole events.
        let event = |words: Words| (words[0] >> CODE_BITS, unsafe { Event::decode(words) });
        (copied.events.into_iter().map(event).collect(), copied.lost)
    }
}

/// Returns what the counter has counted from `begin` to an event, of which the low bits are known and that it is near to
/// `now`; 0 for an event that another processor has timed slightly earlier than `begin`.
pub(crate) fn since(begin: u64, now: u64, event: u64) -> u64 {
    let after_now = (event.wrapping_sub(now) << CODE_BITS) as i64 >> CODE_BITS;
    now.saturating_sub(begin).saturating_add_signed(after_now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_an_old_recorder_have_their_times() {
        let low = |count| count % (1 << (u64::BITS - CODE_BITS));
        for age in [0, 1000, 1 << 55, (1 << 56) + 5, 1 << 60] {
            let (begin, now) = (7, 7 + age);
            assert_eq!(since(begin, now, low(now)), age);
            assert_eq!(since(begin, now, low(now + 3)), age + 3, "of another processor");
            assert_eq!(since(begin, now, low(now.wrapping_sub(100))), age.saturating_sub(100));
        }
    }
}
