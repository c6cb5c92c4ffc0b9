//! The wait of a select: blocks until one of several arms is ready.
//!
//! ```text
//!          ┌────────────────────────────────────────────────────────────────────────┐
//!          ▼                                                                        │ nothing chosen
//!   try each ──none──▶ enlist each, under one token ──one is ready: close it────────┤
//!      │                        │ none                                              │
//!      │ one                    ▼                                                   │
//!      ▼                 sleep ──woken: the token says for which──▶ accept ──none───┘
//!    chosen                                                            └─▶ chosen
//! ```
//!
//! A select with a plain `default` enlists its arms too, and goes on instead of sleeping: only if all are enlisted at once was no
//! arm ready at one moment. Where a suspension is forbidden it looks at each arm once instead, since a select that is served has to
//! sleep until its wake. It also looks only once after a partner of an arm gave up, since the next partner may do so as well.
//!
//! Before the sleep ends every arm is withdrawn, each under the lock of its list. Two selects that face each other never both
//! wait: the second to enlist in a list sees the first there and tries again. The first may have gone back as well, because of
//! another list. The order of trial is random in each round, so that the two do not stay in step. Two biased selects try in the
//! same order each round; only their timing parts them.

#![forbid(unsafe_code)]

use std::ops::Deref;
use std::time::{Duration, Instant};

use fibra_runtime::random::random_below;
use fibra_runtime::time;

use super::arm::{Arm, Purpose};
use super::timers::{earlier, is_late};
use crate::wait::{self, Chosen, Until};

/// How long a select may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Not at all.
    Now,
    /// Until this time.
    At(Instant),
    /// Without end.
    Never,
}

impl Limit {
    /// Makes a limit of `timeout`, or none if the clock does not reach so far.
    pub fn after(timeout: Duration) -> Self {
        time::deadline(timeout).map_or(Limit::Never, Limit::At)
    }

    fn deadline(self) -> Option<Instant> {
        match self {
            Limit::At(deadline) => Some(deadline),
            Limit::Now | Limit::Never => None,
        }
    }
}

/// Chooses among several ready arms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Gives each an equal chance.
    Chance,
    /// The first one.
    Listed,
}

/// Waits until one of `arms` is ready, acts by `purpose`, and returns its number.
///
/// Returns `None` if none was ready in time.
pub fn choose<A: Deref<Target: Arm>>(
    arms: &mut [(A, usize)],
    limit: Limit,
    order: Order,
    purpose: Purpose,
) -> Option<usize> {
    match limit {
        Limit::Now => wait::charge(),
        Limit::At(_) | Limit::Never => wait::checkpoint(),
    }
    // Looks at several arms, one after another, do not say that none was ready at one moment.
    let mut late = limit == Limit::Now && (arms.len() < 2 || !wait::may_suspend());
    loop {
        if order == Order::Chance {
            shuffle(arms);
        }
        if let Some((_, number)) = arms.iter().find(|(arm, _)| match purpose {
            Purpose::Act => arm.try_now(),
            Purpose::Watch => arm.is_ready(),
        }) {
            return Some(*number);
        }
        late |= limit == Limit::Now && arms.iter().any(|(arm, _)| arm.was_let_down());
        if late {
            return None;
        }
        let places = arms.iter().filter_map(|(arm, number)| {
            let place = arm.place(purpose)?;
            Some((place, *number))
        });
        let deadline = arms.iter().fold(limit.deadline(), |least, (arm, _)| earlier(least, arm.deadline()));
        let chosen = match limit {
            Limit::Now => wait::look_at_all(places),
            // A deadline of an arm is no limit of the select: without unwinding a cancel does not end it.
            Limit::Never if !wait::CAN_UNWIND => wait::wait_any(places, Until::shielded(deadline).spinning()),
            Limit::At(_) | Limit::Never => wait::wait_any(places, Until::unwind(deadline).spinning()),
        };
        if let Chosen::Served(number) = chosen
            && let Some((arm, _)) = arms.iter().find(|(_, other)| *other == number)
        {
            let accepted = match purpose {
                Purpose::Act => arm.accept(),
                Purpose::Watch => arm.is_ready(),
            };
            if accepted {
                return Some(number);
            }
        }
        if limit != Limit::Now {
            // Partners may give up again and again, without a sleep that is a cancellation point.
            wait::cancellation_point();
        }
        late = match limit {
            Limit::Now => chosen == Chosen::TimedOut,
            Limit::At(deadline) => is_late(deadline),
            Limit::Never => false,
        };
    }
}

/// Shuffles the arms.
fn shuffle<P>(arms: &mut [(P, usize)]) {
    for left in (1..arms.len()).rev() {
        arms.swap(left, random_below(left + 1));
    }
}
