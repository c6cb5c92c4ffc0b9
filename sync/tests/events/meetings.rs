//! A notification that comes as its waiter does.
//!
//! Two sides that set out at once wait for each primitive and notify it, again and again: two tasks, two threads, and one
//! of each.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Side, beside, beside_in_a_thread, everywhere, few_or_many, in_tasks};
use fibra_runtime::CancelToken;
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, LazyLock, ManualResetEvent, Mutex, Once, OnceCell,
    Semaphore, WaitGroup,
};

/// How often two meet.
const MEETINGS: usize = 60;

/// Two sides that go from one primitive to the next, and take turns at waiting.
struct Way<T> {
    things: Vec<T>,
    /// How often one of the two has come to the next thing.
    came: AtomicUsize,
    wait: fn(&T),
    notify: fn(&T),
}

impl<T> Way<T> {
    fn go(&self, party: usize) {
        for (number, thing) in self.things.iter().enumerate() {
            crate::common::meet(&self.came, number);
            // Off by a little, each time by as much as never before.
            (0..(number * 7 + party * 13) % 40).for_each(|_| spin_loop());
            match (number + party) % 2 {
                0 => (self.wait)(thing),
                _ => (self.notify)(thing),
            }
        }
    }
}

type Body = Box<dyn FnOnce() + Send>;

fn meet<T: Send + Sync + 'static>(make: fn() -> T, wait: fn(&T), notify: fn(&T)) {
    let pairs = |count: usize, starts_the_other: fn(Body) -> Side<()>| {
        let sides: Vec<_> = (0..count)
            .flat_map(|_| {
                let things = (0..MEETINGS).map(|_| make()).collect();
                let one = Arc::new(Way { things, came: AtomicUsize::new(0), wait, notify });
                let other = Arc::clone(&one);
                [beside(move || one.go(0)), starts_the_other(Box::new(move || other.go(1)))]
            })
            .collect();
        sides.into_iter().for_each(Side::join);
    };
    everywhere(|| pairs(few_or_many(2, 15), beside));
    in_tasks(|| pairs(2, beside_in_a_thread));
}

#[test]
fn a_set_is_not_missed_by_a_new_waiter_of_an_auto_reset_event() {
    meet(|| AutoResetEvent::new(false), AutoResetEvent::wait, AutoResetEvent::set);
}

#[test]
fn a_set_is_not_missed_by_a_new_waiter_of_a_manual_reset_event() {
    meet(|| ManualResetEvent::new(false), ManualResetEvent::wait, ManualResetEvent::set);
}

#[test]
fn the_last_signal_is_not_missed_by_a_new_waiter_of_a_countdown() {
    meet(|| CountdownEvent::new(1), CountdownEvent::wait, |event| assert!(event.signal()));
}

#[test]
fn the_last_end_is_not_missed_by_a_new_waiter_of_a_wait_group() {
    let busy = || {
        let group = WaitGroup::new();
        group.add(1);
        group
    };
    meet(busy, WaitGroup::wait, WaitGroup::done);
}

#[test]
fn two_arrivals_at_a_barrier_do_not_miss_each_other() {
    meet(|| Barrier::new(2), |barrier| _ = barrier.wait(), |barrier| _ = barrier.wait());
}

#[test]
fn a_permit_is_not_missed_by_a_new_waiter_of_a_semaphore() {
    meet(
        || Semaphore::new(0),
        |permits| permits.acquire().unwrap().forget(),
        |permits| permits.add_permits(1),
    );
}

#[test]
fn permits_that_come_one_by_one_are_not_missed_by_a_request_for_several() {
    let one_by_one = |permits: &Semaphore| (0..3).for_each(|_| permits.add_permits(1));
    meet(|| Semaphore::new(0), |permits| permits.acquire_many(3).unwrap().forget(), one_by_one);
}

type Flag = (Mutex<bool>, Condvar);

fn await_flag((raised, changed): &Flag) {
    changed.wait_while(&mut raised.lock(), |raised| !*raised);
}

#[test]
fn a_notification_under_the_mutex_is_not_missed_by_a_new_waiter_of_a_condition() {
    meet(Flag::default, await_flag, |(raised, changed)| {
        let mut raised = raised.lock();
        *raised = true;
        changed.notify_one();
    });
}

#[test]
fn a_notification_after_the_mutex_is_not_missed_by_a_new_waiter_of_a_condition() {
    meet(Flag::default, await_flag, |(raised, changed)| {
        *raised.lock() = true;
        changed.notify_all();
    });
}

#[test]
fn a_completion_is_not_missed_by_a_new_waiter() {
    meet(Once::new, Once::wait, |once| once.call_once(|| ()));
}

#[test]
fn two_initializers_run_once_and_both_see_the_value() {
    type Counted = (Once, AtomicUsize);
    let initialize = |(once, runs): &Counted| {
        once.call_once(|| _ = runs.fetch_add(1, Ordering::Relaxed));
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    };
    meet(|| (Once::new(), AtomicUsize::new(0)), initialize, initialize);
}

#[test]
fn a_value_is_not_missed_by_a_new_waiter_of_a_cell() {
    meet(
        OnceCell::<Box<u32>>::new,
        |cell| assert_eq!(**cell.wait(), 7),
        |cell| cell.set(Box::new(7)).unwrap(),
    );
}

#[test]
fn two_first_callers_of_a_lazy_value_get_one_value() {
    fn make() -> LazyLock<Box<u32>> {
        LazyLock::new(|| Box::new(7))
    }
    meet(make, |lazy| assert_eq!(***lazy, 7), |lazy| assert_eq!(***lazy, 7));
}

#[test]
fn a_cancel_is_not_missed_by_a_new_waiter_for_a_token() {
    meet(CancelToken::new, CancelToken::cancelled, CancelToken::cancel);
}
