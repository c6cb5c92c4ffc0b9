//! The promises of `watch`.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, give_way, guarded, in_tasks, pause, runtime};
use crate::future::{Woken, block_on, poll};
use fibra_sync::Mutex;
use fibra_sync::watch::error::{RecvError, RecvTimeoutError, SendError};
use fibra_sync::watch::{Receiver, Sender, channel};

const NONE: Duration = Duration::ZERO;

#[test]
fn a_receiver_is_told_of_changes() {
    everywhere(|| {
        let (sender, mut receiver) = channel("one");
        assert_eq!(receiver.changed_timeout(NONE), Err(RecvTimeoutError::Timeout));
        sender.send("two").unwrap();
        assert_eq!(receiver.has_changed(), Ok(true));
        assert_eq!(receiver.changed(), Ok(()));
        assert_eq!(*receiver.borrow(), "two");
        assert_eq!(receiver.has_changed(), Ok(false));
        let waiting = beside(move || receiver.changed().map(|()| *receiver.borrow()));
        pause();
        sender.send("three").unwrap();
        assert_eq!(waiting.join(), Ok("three"));
    });
}

#[test]
fn a_change_wakes_all_waiters() {
    everywhere(|| {
        let (sender, receiver) = channel(0);
        let sides: Vec<_> = (0..70)
            .map(|_| {
                let mut receiver = receiver.clone();
                beside(move || receiver.changed().map(|()| *receiver.borrow()))
            })
            .collect();
        pause();
        sender.send(1).unwrap();
        assert!(sides.into_iter().all(|side| side.join() == Ok(1)));
    });
}

#[test]
fn the_last_value_outlives_the_senders() {
    everywhere(|| {
        let (sender, mut receiver) = channel("one");
        let other = sender.clone();
        assert_eq!(sender.sender_count(), 2);
        sender.send("two").unwrap();
        drop(sender);
        assert_eq!(receiver.has_changed(), Ok(true));
        drop(other);
        assert_eq!(receiver.has_changed(), Err(RecvError));
        assert_eq!(receiver.changed(), Ok(()));
        assert_eq!(*receiver.borrow(), "two");
        assert_eq!(receiver.changed(), Err(RecvError));
        assert_eq!(receiver.changed_deadline(Instant::now()), Err(RecvTimeoutError::Closed));
    });
}

#[test]
fn the_end_of_the_last_sender_wakes_all_waiters() {
    everywhere(|| {
        let (sender, receiver) = channel(0);
        let sides: Vec<_> = (0..70)
            .map(|_| {
                let mut receiver = receiver.clone();
                beside(move || receiver.changed())
            })
            .collect();
        pause();
        drop(sender);
        assert!(sides.into_iter().all(|side| side.join() == Err(RecvError)));
    });
}

#[test]
fn the_end_of_one_of_two_senders_wakes_no_receiver() {
    let (sender, mut receiver) = channel(0);
    let (other, woken) = (sender.clone(), Arc::<Woken>::default());
    let mut waiting = pin!(receiver.changed_async());
    assert!(poll(waiting.as_mut(), &woken).is_pending());
    drop(sender);
    assert_eq!(woken.times(), 0);
    assert!(poll(waiting.as_mut(), &woken).is_pending());
    drop(other);
    assert_eq!((woken.times(), poll(waiting, &woken)), (1, Poll::Ready(Err(RecvError))));
}

#[test]
fn of_senders_that_go_at_once_one_is_the_last() {
    everywhere(|| {
        for round in 0..200 {
            let (sender, receiver) = channel(0);
            let senders: Vec<_> = (0..4)
                .map(|number| {
                    let sender = sender.clone();
                    beside(move || {
                        (0..(round + number) % 3).for_each(|_| give_way());
                        drop(sender);
                    })
                })
                .collect();
            assert_eq!(receiver.has_changed(), Ok(false), "one is left");
            drop(sender);
            senders.into_iter().for_each(|side| side.join());
            assert_eq!(receiver.has_changed(), Err(RecvError));
        }
    });
}

#[test]
fn a_clone_has_seen_what_its_original_has_seen() {
    let (sender, mut receiver) = channel(0);
    sender.send(1).unwrap();
    assert_eq!(receiver.clone().has_changed(), Ok(true));
    receiver.mark_unchanged();
    assert_eq!(receiver.clone().has_changed(), Ok(false));
    assert_eq!(sender.subscribe().has_changed(), Ok(false));
}

#[test]
fn marks_are_kept() {
    let (sender, mut receiver) = channel("one");
    receiver.mark_changed();
    receiver.mark_changed();
    assert_eq!(receiver.has_changed(), Ok(true));
    assert!(receiver.borrow().has_changed());
    assert_eq!(receiver.changed(), Ok(()));
    assert_eq!(receiver.changed_timeout(NONE), Err(RecvTimeoutError::Timeout));
    receiver.mark_changed();
    assert_eq!(*receiver.borrow_and_update(), "one");
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send("two").unwrap();
    receiver.mark_unchanged();
    assert_eq!(receiver.changed_timeout(NONE), Err(RecvTimeoutError::Timeout));
    receiver.mark_changed();
    drop(sender);
    assert_eq!(receiver.changed(), Ok(()));
    assert_eq!(receiver.changed(), Err(RecvError));
}

#[test]
fn a_borrow_tells_whether_it_is_new() {
    let (sender, mut receiver) = channel(0);
    sender.send(1).unwrap();
    assert!(receiver.borrow().has_changed() && receiver.borrow().has_changed());
    assert!(receiver.borrow_and_update().has_changed());
    assert!(!receiver.borrow_and_update().has_changed() && !receiver.borrow().has_changed());
    assert!(!sender.borrow().has_changed());
    assert_eq!(format!("{:?}", sender.borrow()), "1");
}

#[test]
fn a_send_without_receivers_fails_and_others_do_not() {
    let sender = Sender::new(1);
    assert!(sender.is_closed());
    assert_eq!(sender.send(2), Err(SendError(2)));
    assert_eq!(sender.send_replace(3), 1);
    sender.send_modify(|value| *value += 1);
    assert_eq!(*sender.borrow(), 4);
    let receiver = sender.subscribe();
    assert!(!sender.is_closed());
    assert_eq!((sender.receiver_count(), *receiver.borrow()), (1, 4));
    assert_eq!(sender.send(5), Ok(()));
    drop(receiver);
    assert!(sender.is_closed());
}

#[test]
fn a_change_that_is_none_wakes_no_receiver() {
    let (sender, receiver) = channel(1);
    assert!(!sender.send_if_modified(|value| *value > 1));
    assert_eq!(receiver.has_changed(), Ok(false));
    assert!(sender.send_if_modified(|value| {
        *value = 2;
        true
    }));
    assert_eq!(receiver.has_changed(), Ok(true));
}

#[test]
fn a_panic_in_a_change_wakes_no_receiver_and_breaks_nothing() {
    everywhere(|| {
        let (sender, mut receiver) = channel(1);
        let change = || {
            sender.send_modify(|value| {
                *value = 2;
                std::panic::resume_unwind(Box::new(()));
            });
        };
        let (mut other, woken) = (receiver.clone(), Arc::<Woken>::default());
        let mut waiting = pin!(other.changed_async());
        assert!(poll(waiting.as_mut(), &woken).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(change)).is_err());
        assert_eq!((receiver.has_changed(), woken.times()), (Ok(false), 0));
        assert!(poll(waiting.as_mut(), &woken).is_pending());
        assert_eq!(*receiver.borrow(), 2);
        sender.send(3).unwrap();
        assert_eq!(poll(waiting, &woken), Poll::Ready(Ok(())));
        assert_eq!(receiver.changed(), Ok(()));
        assert_eq!(*receiver.borrow(), 3);
    });
}

#[test]
fn a_wait_for_a_value_returns_it() {
    everywhere(|| {
        let (sender, mut receiver) = channel(0);
        assert_eq!(*receiver.wait_for(|value| *value == 0).unwrap(), 0);
        let waiting =
            beside(move || receiver.wait_for(|value| *value >= 5).map(|value| (*value, value.has_changed())));
        for value in 1..=5 {
            sender.send(value).unwrap();
            give_way();
        }
        assert_eq!(waiting.join(), Ok((5, true)));
    });
}

#[test]
fn a_wait_for_a_value_returns_the_one_that_it_looked_at() {
    everywhere(|| {
        for round in 0..200 {
            let (sender, mut receiver) = channel(0);
            let sending = beside(move || {
                for value in 1..=20 {
                    sender.send_replace(value);
                    (value % 5 == round % 5).then(give_way);
                }
            });
            let mut looked = 0;
            let wanted = |value: &usize| {
                looked = *value;
                looked >= round % 20
            };
            let seen = receiver.wait_for(wanted).map(|value| *value);
            assert_eq!(seen, Ok(looked));
            sending.join();
            assert_eq!(*receiver.borrow(), 20);
        }
    });
}

#[test]
fn a_wait_for_a_value_ends_with_the_senders_or_the_time() {
    everywhere(|| {
        let (sender, mut receiver) = channel("A");
        let timed = receiver.wait_for_timeout(|value| *value == "B", Duration::from_millis(5));
        assert_eq!(timed.unwrap_err(), RecvTimeoutError::Timeout);
        sender.send("B").unwrap();
        drop(sender);
        assert_eq!(*receiver.wait_for(|_| true).unwrap(), "B");
        assert_eq!(receiver.wait_for(|value| *value == "C").unwrap_err(), RecvError);
    });
}

#[test]
fn a_value_may_be_borrowed_over_a_suspension() {
    everywhere(|| {
        let (sender, receiver) = channel(1);
        let sending = {
            let value = receiver.borrow();
            let sending = beside(move || sender.send(2));
            pause();
            assert_eq!(*value, 1);
            sending
        };
        sending.join().unwrap();
        assert_eq!(*receiver.borrow(), 2);
    });
}

#[test]
fn a_sender_waits_until_it_is_deserted() {
    everywhere(|| {
        let (sender, receiver) = channel(1);
        let other = receiver.clone();
        assert!(!sender.closed_timeout(Duration::from_millis(1)));
        let waiting = beside(move || {
            sender.closed();
            sender.closed_timeout(NONE)
        });
        drop(receiver);
        pause();
        drop(other);
        assert!(waiting.join());
    });
}

#[test]
fn the_wait_for_the_end_of_all_receivers_goes_on_if_a_receiver_subscribes_at_their_end() {
    let (sender, receiver) = channel(1);
    let woken = Arc::<Woken>::default();
    let mut closed = pin!(sender.closed_async());
    assert!(poll(closed.as_mut(), &woken).is_pending());
    drop(receiver);
    assert_eq!(woken.times(), 1);
    let late = sender.subscribe();
    assert!(poll(closed.as_mut(), &woken).is_pending());
    drop(late);
    assert_eq!(woken.times(), 2);
    assert!(poll(closed, &woken).is_ready());
}

#[test]
fn it_knows_its_own() {
    let (sender, receiver) = channel(1);
    let (stranger, other) = channel(1);
    assert!(sender.same_channel(&sender.clone()) && !sender.same_channel(&stranger));
    assert!(receiver.same_channel(&receiver.clone()) && !receiver.same_channel(&other));
    assert_eq!(*Sender::<u32>::default().borrow(), 0);
}

#[test]
fn all_see_the_last_value_in_the_end() {
    everywhere(|| {
        let (sender, receiver) = channel(0);
        let sides: Vec<_> = (0..10)
            .map(|_| {
                let mut receiver = receiver.clone();
                beside(move || {
                    let mut last = 0;
                    while receiver.changed().is_ok() {
                        let value = *receiver.borrow_and_update();
                        assert!(value >= last, "in order");
                        last = value;
                    }
                    last
                })
            })
            .collect();
        let senders: Vec<_> = (0..3)
            .map(|_| {
                let sender = sender.clone();
                beside(move || {
                    for _ in 0..300 {
                        sender.send_modify(|value| *value += 1);
                        give_way();
                    }
                })
            })
            .collect();
        drop(sender);
        senders.into_iter().for_each(|side| side.join());
        assert!(sides.into_iter().all(|side| side.join() == 900));
    });
}

#[test]
fn tasks_and_threads_meet() {
    for workers in [1, 2, 4] {
        guarded(|| {
            let runtime = runtime(workers);
            let (sender, receiver) = channel(0);
            let last = |mut receiver: Receiver<u32>| {
                move || receiver.wait_for(|value| *value == 500).map(|value| *value)
            };
            let tasks: Vec<_> = (0..10).map(|_| runtime.spawn(last(receiver.clone()))).collect();
            let threads: Vec<_> = (0..2).map(|_| beside(last(receiver.clone()))).collect();
            (1..=500).for_each(|value| sender.send(value).unwrap());
            tasks.into_iter().for_each(|task| assert_eq!(task.join().unwrap(), Ok(500)));
            threads.into_iter().for_each(|thread| assert_eq!(thread.join(), Ok(500)));
        });
    }
}

#[test]
fn changed_and_timed_out_at_once_loses_nothing() {
    everywhere(|| {
        let (sender, mut receiver) = channel(0_u64);
        let sending = beside(move || {
            for round in 1..=3000 {
                sender.send(round).unwrap();
                if round % 2 == 0 {
                    give_way();
                }
            }
        });
        let mut rounds = 0;
        while *receiver.borrow() != 3000 {
            rounds += 1;
            match receiver.changed_timeout(Duration::from_micros(rounds % 20)) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                // It closed after its last value.
                Err(RecvTimeoutError::Closed) => assert_eq!(*receiver.borrow(), 3000),
            }
        }
        sending.join();
    });
}

#[test]
fn cancelled_and_changed_at_once_loses_nothing() {
    in_tasks(|| {
        let (sender, mut receiver) = channel(0);
        for round in 1..=1000 {
            let mut other = receiver.clone();
            let waiting = fibra_runtime::spawn(move || other.changed());
            (0..round % 3).for_each(|_| give_way());
            let canceller = {
                let task = waiting.task().clone();
                fibra_runtime::spawn(move || task.cancel())
            };
            sender.send(round).unwrap();
            assert_eq!(receiver.changed(), Ok(()));
            match waiting.join() {
                Ok(changed) => assert_eq!(changed, Ok(())),
                Err(error) => assert!(error.is_cancelled()),
            }
            canceller.join().unwrap();
        }
        assert_eq!(sender.receiver_count(), 1);
    });
}

#[test]
fn sent_and_dropped_at_once_leaves_nothing_alive() {
    everywhere(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        for round in 0..500 {
            let (sender, mut receiver) = channel(None);
            let receiving = beside(move || {
                for _ in 0..round % 3 {
                    _ = receiver.changed();
                }
            });
            for _ in 0..4 {
                alive.fetch_add(1, Ordering::SeqCst);
                _ = sender.send(Some(Token(Arc::clone(&alive))));
            }
            drop(sender);
            receiving.join();
            assert_eq!(alive.load(Ordering::SeqCst), 0);
        }
    });
}

struct Token(Arc<AtomicUsize>);

impl Drop for Token {
    fn drop(&mut self) {
        assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 0, "dropped twice");
    }
}

#[test]
fn a_future_is_told_of_changes() {
    guarded(|| {
        let runtime = runtime(2);
        let (sender, mut receiver) = channel(0);
        let task = runtime.handle().spawn(move || {
            for value in 1..=100 {
                fibra_runtime::yield_now();
                sender.send(value).unwrap();
            }
        });
        while block_on(receiver.changed_async()).is_ok() {}
        assert_eq!(*receiver.borrow(), 100);
        task.join().unwrap();
    });
}

#[test]
fn it_is_sent_and_shared_between_threads() {
    fn shared<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn sent<T: Send>(_: T) {}
    shared::<Sender<Mutex<String>>>();
    shared::<Receiver<Mutex<String>>>();
    sent(channel(1).1.changed_async());
    sent(channel(1).1.wait_for_async(|value| *value > 1));
    sent(channel(1).0.closed_async());
}

#[test]
fn each_wait_may_have_a_deadline() {
    everywhere(|| {
        let (sender, mut receiver) = channel(1);
        let soon = || Instant::now() + Duration::from_millis(2);
        assert!(receiver.wait_for_deadline(|value| *value == 2, soon()).is_err());
        assert_eq!(*receiver.wait_for_deadline(|value| *value == 1, soon()).unwrap(), 1);
        assert!(!sender.closed_deadline(soon()));
        drop(receiver);
        assert!(sender.closed_deadline(soon()));
    });
}

#[test]
fn a_receiver_knows_whether_the_senders_are_gone() {
    let (sender, mut receiver) = channel(1);
    let other = sender.clone();
    sender.send(2).unwrap();
    drop(sender);
    assert!(!receiver.is_closed());
    drop(other);
    assert!(receiver.is_closed() && receiver.clone().is_closed());
    assert_eq!(receiver.changed(), Ok(()));
    assert!(receiver.is_closed());
    assert_eq!(*receiver.borrow(), 2);
}

#[test]
fn a_wait_for_a_value_looks_at_each_once() {
    everywhere(|| {
        let (sender, mut receiver) = channel(0);
        let mut looked = Vec::new();
        let mut wanted = |value: &u32| {
            looked.push(*value);
            false
        };
        let timed = receiver.wait_for_timeout(&mut wanted, Duration::from_millis(1));
        assert_eq!(timed.unwrap_err(), RecvTimeoutError::Timeout);
        sender.send(1).unwrap();
        drop(sender);
        assert_eq!(receiver.wait_for(wanted).unwrap_err(), RecvError);
        assert_eq!(looked, [0, 1]);
    });
}

#[test]
fn a_future_waits_for_a_value() {
    guarded(|| {
        let runtime = runtime(2);
        let (sender, mut receiver) = channel(0);
        let task = runtime.handle().spawn(move || {
            for value in 1..=100 {
                fibra_runtime::yield_now();
                sender.send(value).unwrap();
            }
        });
        let seen = block_on(receiver.wait_for_async(|value| *value >= 50)).map(|value| *value);
        assert!(seen.unwrap() >= 50);
        assert_eq!(block_on(receiver.wait_for_async(|value| *value > 100)).unwrap_err(), RecvError);
        assert_eq!(*receiver.borrow(), 100);
        task.join().unwrap();
    });
}

#[test]
fn a_future_that_meets_a_sender_at_the_value_is_woken_when_that_is_done() {
    guarded(|| {
        let (sender, mut receiver) = channel(0);
        let (mut leaving, woken) = (receiver.clone(), Arc::<Woken>::default());
        let mut waiting = pin!(receiver.wait_for_async(|value| *value == 9));
        let mut meets = || assert!(poll(waiting.as_mut(), &woken).is_pending());
        sender.send_modify(|_| meets());
        assert_eq!(woken.times(), 1, "it was changed");
        sender.send_if_modified(|_| {
            meets();
            false
        });
        assert_eq!(woken.times(), 2, "it was not");
        let caught = catch_unwind(AssertUnwindSafe(|| {
            sender.send_modify(|_| {
                meets();
                std::panic::resume_unwind(Box::new(()))
            });
        }));
        assert!(caught.is_err());
        assert_eq!(woken.times(), 3, "the change is not announced");
        sender.send_modify(|value| {
            meets();
            assert!(poll(pin!(leaving.wait_for_async(|_| true)), &woken).is_pending(), "it goes away");
            *value = 9;
        });
        assert_eq!(woken.times(), 4);
        assert_eq!(poll(waiting.as_mut(), &woken).map(|seen| seen.map(|value| *value)), Poll::Ready(Ok(9)));
    });
}

#[test]
fn a_poll_that_may_not_wait_does_not_wait_for_a_sender_at_the_value() {
    in_tasks(|| {
        let (sender, mut receiver) = channel(0);
        let changing = fibra_runtime::spawn_local(move || {
            sender.send_modify(|value| {
                fibra_runtime::task::park();
                *value = 1;
            });
        });
        give_way();
        let woken = Arc::<Woken>::default();
        let mut waiting = pin!(receiver.wait_for_async(|value| *value == 1));
        let here = fibra_runtime::task::forbid_suspend();
        assert!(poll(waiting.as_mut(), &woken).is_pending());
        drop(here);
        changing.task().unpark();
        changing.join().unwrap();
        assert_eq!(woken.times(), 1);
        assert!(poll(waiting.as_mut(), &woken).is_ready());
    });
}

#[test]
fn futures_and_senders_meet_at_the_value_and_none_is_forgotten() {
    const LAST: usize = 2000;
    guarded(|| {
        let (sender, receiver) = channel(0);
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let mut receiver = receiver.clone();
                beside(move || block_on(receiver.wait_for_async(|value| *value == LAST)).map(|value| *value))
            })
            .collect();
        for value in 1..=LAST {
            sender.send_if_modified(|_| false);
            sender.send(value).unwrap();
        }
        assert!(waiting.into_iter().all(|side| side.join() == Ok(LAST)));
    });
}

#[test]
fn a_future_that_is_dropped_has_seen_what_it_looked_at() {
    let (sender, mut receiver) = channel(0);
    let woken = Arc::<Woken>::default();
    sender.send(1).unwrap();
    assert!(poll(pin!(receiver.wait_for_async(|value| *value > 1)), &woken).is_pending());
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send(2).unwrap();
    assert_eq!(woken.times(), 0);
    assert_eq!(receiver.has_changed(), Ok(true));
}

#[test]
fn a_future_waits_until_the_sender_is_deserted() {
    let (sender, receiver) = channel(1);
    let woken = Arc::<Woken>::default();
    {
        let mut closed = pin!(sender.closed_async());
        let mut dropped = Box::pin(sender.closed_async());
        assert!(poll(closed.as_mut(), &woken).is_pending());
        assert!(poll(dropped.as_mut(), &woken).is_pending());
        drop(dropped);
        drop(receiver);
        assert_eq!(woken.times(), 1);
        assert_eq!(poll(closed.as_mut(), &woken), Poll::Ready(()));
    }
    block_on(sender.closed_async());
    let _receiver = sender.subscribe();
    assert!(poll(pin!(sender.closed_async()), &woken).is_pending());
}
