//! What the notification promises.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{Side, beside, everywhere, in_tasks, pause};
use crate::future::{Woken, poll};
use fibra_runtime as fibra;
use fibra_sync::channel::Select;
use fibra_sync::{Notify, select};

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn notifications_without_a_waiter_are_kept_as_one() {
    everywhere(|| {
        let notify = Notify::new();
        notify.notify_one();
        notify.notify_one();
        notify.notified();
        assert!(!notify.notified_timeout(SHORT));
        notify.notify_one();
        fibra::block_on(notify.notified_async());
        assert!(!notify.notified_deadline(Instant::now()));
    });
}

#[test]
fn one_notifies_the_longest_waiter_alone() {
    everywhere(|| {
        let notify = Notify::new();
        let woken = [(); 3].map(|()| Arc::new(Woken::default()));
        let times = || woken.each_ref().map(|woken| woken.times());
        let mut futures = [(); 3].map(|()| Box::pin(notify.notified_async()));
        for (future, woken) in futures.iter_mut().zip(&woken) {
            assert!(poll(future.as_mut(), woken).is_pending());
        }
        notify.notify_one();
        assert_eq!(times(), [1, 0, 0]);
        notify.notify_one();
        assert_eq!(times(), [1, 1, 0]);
        let [first, second, third] = futures;
        drop(second);
        assert_eq!(times(), [1, 1, 1], "what a dropped future was given goes to the next waiter");
        drop(third);
        assert!(notify.notified_timeout(Duration::ZERO), "or is kept");
        drop(first);
        assert!(notify.notified_timeout(Duration::ZERO));
    });
}

#[test]
fn all_that_wait_are_notified_and_nothing_is_kept() {
    everywhere(|| {
        let notify = Arc::new(Notify::new());
        let wait = |way: fn(&Notify)| {
            let notify = Arc::clone(&notify);
            beside(move || way(&notify))
        };
        let waiters = [
            wait(Notify::notified),
            wait(|notify| fibra::block_on(notify.notified_async())),
            wait(|notify| select! { wait(notify) => {} }),
        ];
        let woken = Arc::default();
        let mut polled = Box::pin(notify.notified_async());
        assert!(poll(polled.as_mut(), &woken).is_pending());
        let unpolled = notify.notified_async();
        pause();
        // A waiter that is late on a busy machine is notified by a later call.
        let done = Arc::new(Notify::new());
        let all = {
            let done = Arc::clone(&done);
            beside(move || {
                waiters.into_iter().for_each(Side::join);
                done.notify_one();
            })
        };
        notify.notify_waiters();
        drop(polled);
        fibra::block_on(unpolled);
        while !done.notified_timeout(SHORT) {
            notify.notify_waiters();
        }
        all.join();
        assert!(
            !notify.notified_timeout(SHORT),
            "a dropped future that all were notified with keeps nothing"
        );
    });
}

#[test]
fn a_future_made_before_a_look_misses_no_notification_of_all() {
    everywhere(|| {
        let notify = Notify::new();
        let early = notify.notified_async();
        notify.notify_one();
        notify.notify_waiters();
        let mut late = pin!(notify.notified_async());
        fibra::block_on(early);
        // The early future has used none of one, so the late one finds it.
        assert!(poll(late.as_mut(), &Arc::default()).is_ready());
        assert!(!notify.notified_timeout(Duration::ZERO));
    });
}

#[test]
fn a_select_is_notified_once() {
    everywhere(|| {
        let notify = Arc::new(Notify::new());
        select! {
            wait(notify) => panic!("there is none"),
            default => {}
        }
        let notifier = {
            let notify = Arc::clone(&notify);
            beside(move || {
                pause();
                notify.notify_one();
            })
        };
        select! {
            wait(notify) => {}
            wait(notify) => {}
        }
        notifier.join();
        assert!(!notify.notified_timeout(Duration::ZERO));

        let mut select = Select::new();
        select.wait(&*notify);
        notify.notify_one();
        select.select().wait(&*notify);
        notify.notify_one();
        let operation = select.select();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(operation))).is_err(), "it was not completed");
        assert!(notify.notified_timeout(Duration::ZERO), "what it had is kept");
    });
}

#[test]
fn a_cancelled_task_uses_no_notification() {
    in_tasks(|| {
        let notify = Arc::new(Notify::new());
        let theirs = Arc::clone(&notify);
        let waiter = fibra::spawn(move || theirs.notified());
        pause();
        waiter.cancel();
        assert!(waiter.join().unwrap_err().is_cancelled());
        notify.notify_one();
        assert!(notify.notified_timeout(Duration::ZERO));
    });
}

#[test]
fn it_says_what_it_is() {
    static NOTIFY: Notify = Notify::new();
    assert_eq!(format!("{NOTIFY:?} {:?}", Notify::default()), "Notify { .. } Notify { .. }");
}

fn _shared_and_sent(notify: &Notify) {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    all::<Notify>();
    sent(notify.notified_async());
}
