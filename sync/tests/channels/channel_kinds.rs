//! What every kind of channel promises: a rendezvous, one with a bound and one without.

use std::any::Any;
use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::channels::{KEEPING, KINDS, Other, Tally, anywhere, join_all, make, ms};
use crate::common::{everywhere, guarded, in_tasks, pause, runtime};
use fibra_sync::channel::{Receiver, RecvError, Sender, TryRecvError, bounded, unbounded};
use fibra_sync::select;

#[test]
fn messages_of_one_sender_are_received_in_order() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let sending = other.runs(move || (0..500).for_each(|number| sender.send(number).unwrap()));
            (0..500).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
            assert_eq!(receiver.recv(), Err(RecvError));
            sending.join();
        }
    });
}

#[test]
fn many_receivers_receive_each_of_many_messages_once() {
    const EACH: usize = 100;
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<usize>(kind);
            let seen: Arc<Vec<AtomicUsize>> = Arc::new((0..EACH).map(|_| AtomicUsize::new(0)).collect());
            let receiving = other.starts_many(4, |_| {
                let (receiver, seen) = (receiver.clone(), Arc::clone(&seen));
                move || {
                    (0..EACH).for_each(|_| {
                        seen[receiver.recv().unwrap()].fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
            let sending = other.starts_many(4, |_| {
                let sender = sender.clone();
                move || (0..EACH).for_each(|number| sender.send(number).unwrap())
            });
            join_all(sending);
            join_all(receiving);
            assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 4), "{kind:?}: {seen:?}");
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        }
    });
}

#[test]
fn one_sender_s_values_stay_in_order_among_those_of_others() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<(usize, usize)>(kind);
            let sending = other.starts_many(4, |name| {
                let sender = sender.clone();
                move || (0..100).for_each(|number| sender.send((name, number)).unwrap())
            });
            drop(sender);
            let mut next = [0; 4];
            for (name, number) in &receiver {
                assert_eq!(next[name], number, "{kind:?}, sender {name}");
                next[name] += 1;
            }
            assert_eq!(next, [100; 4]);
            join_all(sending);
        }
    });
}

#[test]
fn a_channel_for_one_value_is_made_used_and_dropped_many_times() {
    anywhere(|other| {
        for kind in KINDS {
            for _ in 0..100 {
                let (sender, receiver) = make(kind);
                let sending = other.runs(move || sender.send(0).unwrap());
                let receiving = other.runs(move || assert_eq!(receiver.recv(), Ok(0)));
                sending.join();
                receiving.join();
            }
        }
    });
}

/// Sends so many values, each from one that is started by the one before and has the sender from it.
fn send_in_turn(other: Other, sender: Sender<usize>, left: usize) {
    if left == 0 {
        return;
    }
    let next = other.runs(move || {
        sender.send(left).unwrap();
        send_in_turn(other, sender, left - 1);
    });
    next.join();
}

/// Receives as [`send_in_turn`] sends.
fn receive_in_turn(other: Other, receiver: Receiver<usize>, left: usize) {
    if left == 0 {
        return assert_eq!(receiver.recv(), Err(RecvError));
    }
    let next = other.runs(move || {
        assert_eq!(receiver.recv(), Ok(left));
        receive_in_turn(other, receiver, left - 1);
    });
    next.join();
}

#[test]
fn an_end_may_be_handed_on_after_each_value() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let sending = other.runs(move || send_in_turn(other, sender, 10));
            receive_in_turn(other, receiver, 10);
            sending.join();
        }
    });
}

#[test]
fn requests_are_answered_without_a_wait_for_the_answers() {
    const COUNT: usize = 200;
    anywhere(|other| {
        for kind in KINDS {
            let (ask, asked) = make::<()>(kind);
            let (answer, answers) = make::<usize>(kind);
            let asking = other.runs(move || {
                let mut count = 0;
                loop {
                    count += answers.try_iter().sum::<usize>();
                    if count >= COUNT {
                        return;
                    }
                    let _ = ask.try_send(());
                    crate::common::give_way();
                }
            });
            for () in &asked {
                if answer.send(1).is_err() {
                    break;
                }
            }
            drop(asked);
            asking.join();
        }
    });
}

#[test]
fn sends_and_receives_that_time_out_are_tried_again_until_they_meet() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let sending = other.runs(move || {
                for number in 0..20 {
                    (number % 5 == 0).then(pause);
                    while sender.send_timeout(number, ms(1)).is_err() {}
                }
            });
            for number in 0..20 {
                (number % 7 == 0).then(pause);
                let received = std::iter::repeat_with(|| receiver.recv_timeout(ms(1))).find_map(Result::ok);
                assert_eq!(received, Some(number));
            }
            sending.join();
        }
    });
}

#[test]
fn every_value_is_dropped_once_wherever_it_was() {
    anywhere(|other| {
        for kind in KINDS {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let (making, room) = (Arc::clone(&tally), kind.unwrap_or(40).min(40));
            let sending = other.runs(move || {
                (0..100).for_each(|_| sender.send(making.value()).unwrap());
                (0..room).for_each(|_| sender.send(making.value()).unwrap());
            });
            (0..100).for_each(|number| assert_eq!(receiver.recv().unwrap().receive(), number));
            sending.join();
            assert_eq!((tally.alive(), tally.dropped()), (room, 0));
            drop(receiver);
            assert_eq!((tally.received(), tally.dropped()), (100, room));
            tally.assert_settled();
        }
    });
}

#[test]
fn a_receive_after_a_send_finds_a_value_at_once() {
    anywhere(|other| {
        for (tasks, kind) in [(4, Some(4)), (4, None), (40, Some(40)), (40, None)] {
            let (sender, receiver) = make(kind);
            let all = other.starts_many(tasks, |_| {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                move || {
                    for number in 0..200 {
                        sender.send(number).unwrap();
                        receiver.try_recv().unwrap();
                        if number % 20 == 0 {
                            crate::common::give_way();
                        }
                    }
                }
            });
            join_all(all);
            assert_eq!((sender.len(), receiver.len()), (0, 0));
        }
    });
}

#[test]
fn a_message_may_come_out_of_the_channel_that_it_goes_into() {
    everywhere(|| {
        for kind in [Some(2), None] {
            let (sender, receiver) = make(kind);
            sender.send(1).unwrap();
            select! { send(sender, receiver.recv().unwrap() + 1) -> sent => sent.unwrap() }
            assert_eq!(receiver.try_recv(), Ok(2));
        }
    });
}

#[test]
fn channels_travel_through_channels() {
    type Parcel = Box<dyn Any + Send>;
    anywhere(|other| {
        for kind in KINDS {
            let (mut sender, mut receiver) = make::<Parcel>(kind);
            let sending = other.runs(move || {
                for _ in 0..100 {
                    let (next, parcel) = make::<Parcel>(kind);
                    sender.send(Box::new(parcel)).unwrap();
                    sender = next;
                }
            });
            for _ in 0..100 {
                let parcel = receiver.recv().unwrap();
                receiver = *parcel.downcast::<Receiver<Parcel>>().unwrap();
            }
            sending.join();
        }
    });
}

#[test]
fn a_channel_may_hold_its_own_ends() {
    struct Loop(Option<(Sender<Loop>, Receiver<Loop>)>);
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make::<Loop>(kind);
            sender.send(Loop(Some((sender.clone(), receiver.clone())))).unwrap();
            drop(sender);
            let inner = receiver.recv().unwrap().0.unwrap();
            drop(receiver);
            inner.0.send(Loop(None)).unwrap();
            assert!(inner.1.recv().unwrap().0.is_none());
        }
    });
}

#[test]
fn values_of_every_size_and_alignment_travel() {
    #[repr(align(128))]
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Aligned(u8);
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            sender.send(()).unwrap();
            assert_eq!(receiver.recv(), Ok(()));
            let (sender, receiver) = make(kind);
            sender.send([0_u8; 0]).unwrap();
            assert_eq!(receiver.recv(), Ok([]));
            let (sender, receiver) = make(kind);
            sender.send(Aligned(7)).unwrap();
            let received = receiver.recv().unwrap();
            assert_eq!((received, (&raw const received) as usize % 128), (Aligned(7), 0));
            let (sender, receiver) = make(kind);
            sender.send([7_u8; 2000]).unwrap();
            assert!(receiver.recv().unwrap().iter().all(|&byte| byte == 7));
        }
    });
}

#[test]
fn the_slots_of_big_values_are_not_made_on_the_stack() {
    struct Big([u8; 32_768]);
    guarded(|| {
        let (sender, receiver) = unbounded();
        sender.send(Big([1; 32_768])).unwrap();
        assert_eq!(receiver.try_iter().map(|big| big.0[32_767]).collect::<Vec<_>>(), [1]);
        drop(bounded::<Big>(1000));
    });
}

#[test]
fn values_may_be_neither_comparable_nor_static() {
    let (word, cell) = (String::from("word"), Cell::new(1));
    for kind in KEEPING {
        let (sender, receiver) = make::<(&str, &Cell<i32>, Box<dyn Fn() -> i32>)>(kind);
        sender.send((&word, &cell, Box::new(|| 3))).unwrap();
        let (word, cell, f) = receiver.recv().unwrap();
        cell.set(cell.get() + f());
        assert_eq!(word, "word");
    }
    assert_eq!(cell.get(), 10);
}

#[test]
fn clones_are_of_the_same_channel_and_others_are_not() {
    for kind in KINDS {
        for another in KINDS {
            let (sender, receiver) = make::<i32>(kind);
            let (stranger, foreigner) = make::<i32>(another);
            assert!(sender.same_channel(&sender.clone()) && receiver.same_channel(&receiver.clone()));
            assert!(!sender.same_channel(&stranger) && !receiver.same_channel(&foreigner));
        }
    }
}

#[test]
fn a_thread_local_s_destructor_may_wait() {
    static WAITED: AtomicUsize = AtomicUsize::new(0);
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            let (_sender, receiver) = unbounded::<()>();
            select! {
                recv(receiver) -> _ => panic!("no sender is there"),
                default(ms(5)) => _ = WAITED.fetch_add(1, Ordering::SeqCst),
            }
        }
    }
    thread_local! {
        static WAITS: Waits = const { Waits };
    }
    guarded(|| {
        let (sender, receiver) = unbounded::<()>();
        let waits = || {
            let receiver = receiver.clone();
            move || {
                WAITS.with(|_| ());
                receiver.recv().unwrap();
            }
        };
        let thread = thread::spawn(waits());
        sender.send(()).unwrap();
        thread.join().unwrap();
        // That of a worker is dropped after its last task.
        let runtime = runtime(1);
        let task = runtime.spawn(waits());
        sender.send(()).unwrap();
        task.join().unwrap();
        assert_eq!(WAITED.load(Ordering::SeqCst), 1);
        drop(runtime);
        assert_eq!(WAITED.load(Ordering::SeqCst), 2);
    });
}

const TASKS: usize = 10_000;

#[test]
fn ten_thousand_tasks_wait_to_receive_from_one_channel() {
    in_tasks(|| {
        for kind in [Some(0), Some(5), None] {
            let (sender, receiver) = make::<usize>(kind);
            let receiving = Other::Alike.starts_many(TASKS, |_| {
                let receiver = receiver.clone();
                move || receiver.recv().unwrap()
            });
            (0..TASKS).for_each(|number| sender.send(number).unwrap());
            let mut received = join_all(receiving);
            received.sort_unstable();
            assert!(received.into_iter().eq(0..TASKS));
        }
    });
}

#[test]
fn ten_thousand_tasks_wait_to_send_to_one_channel() {
    in_tasks(|| {
        for capacity in [0, 5] {
            let (sender, receiver) = bounded(capacity);
            let sending = Other::Alike.starts_many(TASKS, |number| {
                let sender = sender.clone();
                move || sender.send(number).unwrap()
            });
            drop(sender);
            let mut received: Vec<_> = receiver.iter().collect();
            received.sort_unstable();
            assert!(received.into_iter().eq(0..TASKS));
            join_all(sending);
        }
    });
}

/// Never called: compiles only if handles and errors are what they are to be.
#[expect(dead_code, reason = "its compilation is the test")]
fn handles_go_where_their_values_may_go() {
    fn all<T: Send + Sync + Clone + std::fmt::Debug + UnwindSafe + RefUnwindSafe>() {}
    all::<Sender<Cell<i32>>>();
    all::<Receiver<Cell<i32>>>();
}
