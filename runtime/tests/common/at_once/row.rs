//! What there is to know of a primitive.

use std::sync::Arc;
use std::time::Instant;

/// One primitive, or one way to wait for it.
pub(crate) struct Row<T, H = ()> {
    /// Makes a row without a notification.
    pub(crate) make: fn() -> T,
    /// What the notifier holds before the waits begin.
    pub(crate) hold: fn(&Arc<T>) -> H,
    /// Waits; until then, if there is a time. True if it got what it waited for, which nothing takes back.
    pub(crate) wait: fn(&T, Option<Instant>) -> bool,
    pub(crate) notify: fn(&T, H),
    /// Takes what is left when all have gone: the notifications that no waiter has got.
    pub(crate) settle: fn(&T, usize),
    /// The wait of the company of a victim, which nothing ends.
    pub(crate) company: Option<fn(&T, Option<Instant>) -> bool>,
    /// No lane is without company: the notifier waits for an arrival.
    pub(crate) always_in_company: bool,
    /// A notification serves all waiters, not one.
    pub(crate) serves_all: bool,
    /// Neither a cancel nor the deadline of a scope ends the wait.
    pub(crate) is_shielded: bool,
    /// The winner depends on the moment: the notifier, or what ends the wait.
    pub(crate) both_win: bool,
    /// There is a form with a deadline.
    pub(crate) is_timed: bool,
    /// Only tasks can be in it.
    pub(crate) is_for_tasks: bool,
    /// So many rounds are played with one thing.
    pub(crate) lasts: usize,
    /// So many rounds are played with each number of workers and in threads, some kinds of them several times.
    pub(crate) rounds: usize,
}

impl<T> Row<T> {
    /// One that serves one waiter for each notification.
    pub(crate) fn new(
        make: fn() -> T,
        wait: fn(&T, Option<Instant>) -> bool,
        notify: fn(&T, ()),
        settle: fn(&T, usize),
    ) -> Self {
        Row::held(make, |_| (), wait, notify, settle)
    }
}

impl<T, H> Row<T, H> {
    /// As `new`, for what is notified by giving something back.
    pub(crate) fn held(
        make: fn() -> T,
        hold: fn(&Arc<T>) -> H,
        wait: fn(&T, Option<Instant>) -> bool,
        notify: fn(&T, H),
        settle: fn(&T, usize),
    ) -> Self {
        Row {
            make,
            hold,
            wait,
            notify,
            settle,
            company: Some(wait),
            always_in_company: false,
            serves_all: false,
            is_shielded: false,
            both_win: true,
            is_timed: true,
            is_for_tasks: false,
            lasts: 10,
            rounds: 400,
        }
    }

    /// A notification serves all waiters.
    pub(crate) fn serving_all(self) -> Self {
        Row { serves_all: true, ..self }
    }

    /// The same, and then it is done with.
    pub(crate) fn once_for_all(self) -> Self {
        Row { lasts: 1, ..self.serving_all() }
    }

    /// It serves all waiters, one after the other, and no cancel ends that.
    pub(crate) fn of_a_lock(self) -> Self {
        Row { is_shielded: true, ..self.serving_all() }
    }

    pub(crate) fn alone(self) -> Self {
        Row { company: None, ..self }
    }
}
