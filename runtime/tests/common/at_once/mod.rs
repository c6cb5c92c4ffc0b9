//! A wait is notified and ended at the same moment: nothing is lost, and nothing leaks.
//!
//! Each primitive is a [`Row`]: how it is waited for, how that is notified, and what has to be there afterwards. One game
//! plays them all, in batches of lanes with a primitive in each:
//!
//! ```text
//!   on one worker        on one worker           on one worker
//!   the victims wait     the notifier notifies   the canceller cancels, or a deadline passes
//!        └──────────── they meet at each lane, and are off by a little ────────────┘
//!   all are joined; waiters behind a victim have to have what it left; then each lane is checked
//! ```
//!
//! The three are on workers that change with the batch, often the same one; each of them gives way now and then, so that a
//! victim has not started yet, is about to fall asleep, sleeps, or was woken when it is ended.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

mod batch;
mod counted;
pub(crate) mod pinned;
mod row;
mod threads;

use std::env;
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fibra_runtime::{Builder, Runtime};

use batch::{Batch, LANES};
use counted::{blocks, count_here, counting};
use pinned::PinnedTasks;
pub(crate) use row::Row;

/// What ends a wait that is not notified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// A cancel of its task.
    Cancel,
    /// A token of a scope around it.
    Token,
    /// The deadline of a scope around it.
    Scope,
    /// Its own deadline.
    Timeout,
}

const ENDS: [End; 4] = [End::Cancel, End::Token, End::Scope, End::Timeout];
const WORKERS: [usize; 3] = [1, 2, 4];

impl End {
    /// True if a notifier gives it, at a moment of its own.
    fn is_given(self) -> bool {
        matches!(self, End::Cancel | End::Token)
    }

    /// How many times the rounds of a row.
    fn share(self) -> usize {
        match self {
            End::Cancel => 2,
            End::Token | End::Scope => 1,
            End::Timeout => 4,
        }
    }
}

/// How victims ended.
#[derive(Clone, Copy, Default)]
struct Tally {
    notified: usize,
    ended: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} notified, {} ended", self.notified, self.ended)
    }
}

impl Tally {
    /// Of one victim.
    fn of(took: bool) -> Tally {
        Tally { notified: usize::from(took), ended: usize::from(!took) }
    }

    fn plus(self, other: Tally) -> Tally {
        Tally { notified: self.notified + other.notified, ended: self.ended + other.ended }
    }

    fn has_both(self) -> bool {
        self.notified > 0 && self.ended > 0
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        *self = self.plus(other);
    }
}

/// What a runtime is built with.
type Prepared = fn(Builder) -> Builder;

impl<T: Send + Sync + 'static, H: 'static> Row<T, H> {
    /// Calls `batch` with a seed, and the things that the row has for it, until so many rounds are played.
    fn in_batches(&self, end: End, rounds: usize, mut batch: impl FnMut(u64, &[Arc<T>]) -> Tally) -> Tally {
        let mut total = Tally::default();
        let mut things: Vec<Arc<T>> = Vec::new();
        for number in 0..(rounds * end.share()).div_ceil(LANES) {
            if number % self.lasts == 0 {
                things = (0..LANES).map(|_| Arc::new((self.make)())).collect();
            }
            total += batch((number * ENDS.len() + end as usize + 1) as u64, &things);
        }
        total
    }

    /// Plays all that can happen to tasks, on so many workers.
    fn play_on(self: &Arc<Self>, workers: usize, rounds: usize, prepared: Prepared) -> [Tally; ENDS.len()] {
        let builder = Runtime::builder().workers(workers).on_worker_start(count_here);
        let runtime = prepared(builder).build().expect("a runtime");
        runtime.run(|| {
            let pinned = PinnedTasks::take(workers);
            let tallies = ENDS.map(|end| match end == End::Timeout && !self.is_timed {
                true => Tally::default(),
                false => self.in_batches(end, rounds, |seed, things| {
                    Batch::new(self, end, seed ^ (workers as u64) << 24, things).play(&pinned)
                }),
            });
            pinned.leave();
            tallies
        })
    }

    /// Plays all: for each number of workers, and in threads.
    fn play_everywhere(self: &Arc<Self>, rounds: usize, prepared: Prepared) -> Tallies {
        let in_tasks = WORKERS.map(|workers| self.play_on(workers, rounds, prepared));
        (in_tasks, self.play_in_threads(rounds))
    }
}

type Tallies = ([[Tally; ENDS.len()]; WORKERS.len()], Tally);

/// Blocks of memory, and descriptors.
fn in_use() -> (isize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    (blocks(), descriptors)
}

/// Waits until no other test plays: one at a time counts what is in use.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many times slower all is under a tool that looks on: so many times fewer rounds are played.
fn slower_by() -> usize {
    env::var("FIBRA_TESTS_SLOWER_BY").map_or(1, |times| times.parse().expect("a number"))
}

/// Plays a row, and checks that what it allocated is given back. Its caller is [`alone`].
pub(crate) fn play<T: Send + Sync + 'static, H: 'static>(row: Row<T, H>, prepared: Prepared) {
    let row = Arc::new(row);
    // A thread is entered for reports when it first waits for a lock, which takes memory until its end.
    fibra_runtime::wait::waiter_address();
    let (before, after, (in_tasks, in_threads)) = counting(|| {
        let warm_up = || {
            // One batch for each end, whatever its share.
            row.play_everywhere(1, prepared);
            in_use()
        };
        let before = (0..3).map(|_| warm_up()).max().expect("three of them");
        let tallies = row.play_everywhere(row.rounds / slower_by(), prepared);
        // The queues free what ended threads had of them when others come. What has leaked stays.
        let after = (0..50).map(|_| warm_up()).find(|after| after.0 <= before.0);
        (before, after.unwrap_or_else(in_use), tallies)
    });
    for (workers, tallies) in WORKERS.iter().zip(in_tasks) {
        for (end, tally) in ENDS.iter().zip(tallies) {
            println!("{workers} workers, {end:?}: {tally}");
        }
    }
    println!("threads: {in_threads}");
    assert!(after.0 <= before.0, "{} blocks are in use, {} were before", after.0, before.0);
    assert_eq!(before.1, after.1, "descriptors that are open before and after");
    for (end, tally) in ENDS.iter().zip(in_tasks[0]).take(2) {
        // On one worker the dice alone decide the first arrival.
        assert!(!row.both_win || row.is_shielded || tally.has_both(), "{end:?}: {tally}");
    }
    // When a timer ends a wait is a matter of the machine, too: of all that is played some goes either way.
    let timed = in_tasks.iter().map(|tallies| tallies[End::Timeout as usize]).fold(in_threads, Tally::plus);
    assert!(!row.both_win || !row.is_timed || timed.has_both(), "{:?}: {timed}", End::Timeout);
}
