//! Tasks that are cancelled at a channel: what they were served is taken or left, and their destructors use channels.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::channels::{KINDS, LIMITED, Tally, Value, make, ms};
use crate::common::{give_way, in_tasks, pause};
use fibra_runtime as fibra;
use fibra_sync::channel::{
    Receiver, RecvError, RecvTimeoutError, Sender, TryRecvError, TrySendError, bounded,
};

/// How a test's cancelled tasks ended.
fn cancelled<T>(task: fibra::JoinHandle<T>) -> bool {
    match task.join() {
        Ok(_) => false,
        Err(error) => {
            assert!(error.is_cancelled());
            true
        }
    }
}

#[test]
fn a_receive_that_is_served_as_it_is_cancelled_takes_the_value_or_leaves_it() {
    in_tasks(|| {
        for kind in KINDS {
            for round in 0..300 {
                let tally = Tally::new();
                let (sender, receiver) = make::<Value>(kind);
                let doomed = receiver.clone();
                let receiving = fibra::spawn(move || _ = doomed.recv().unwrap().receive());
                (0..round % 4).for_each(|_| give_way());
                let value = tally.value();
                let sending = fibra::spawn(move || sender.send(value).unwrap());
                (0..round % 3).for_each(|_| give_way());
                receiving.task().cancel();
                let left = match cancelled(receiving) {
                    true => receiver.recv().unwrap().receive() + 1,
                    false => 0,
                };
                sending.join().unwrap();
                assert_eq!((tally.received(), tally.alive()), (1, 0), "{kind:?}: left {left}");
                assert_eq!(receiver.recv().map(drop), Err(RecvError));
            }
        }
    });
}

#[test]
fn a_send_that_is_served_as_it_is_cancelled_sends_or_drops_the_value() {
    in_tasks(|| {
        for capacity in LIMITED {
            for round in 0..300 {
                let tally = Tally::new();
                let (sender, receiver) = bounded::<Value>(capacity);
                (0..capacity).for_each(|_| sender.send(tally.value()).unwrap());
                let value = tally.value();
                let sending = fibra::spawn(move || sender.send(value).unwrap());
                (0..round % 4).for_each(|_| give_way());
                let receiving = fibra::spawn(move || receiver.iter().map(Value::receive).count());
                (0..round % 3).for_each(|_| give_way());
                sending.task().cancel();
                let sent = usize::from(!cancelled(sending));
                let received = receiving.join().unwrap();
                // A task that was told to go and cancelled then goes; its value is sent before it can be cancelled.
                assert!(received >= capacity + sent, "sent {sent}, received {received} of {capacity}");
                assert_eq!((tally.received(), tally.dropped()), (received, capacity + 1 - received));
                tally.assert_settled();
            }
        }
    });
}

#[test]
fn tasks_that_are_cancelled_among_others_take_no_turn_from_them() {
    const VALUES: usize = 300;
    in_tasks(|| {
        for kind in KINDS {
            let tally = Tally::new();
            let (sender, receiver) = make::<Value>(kind);
            let receive = |receiver: Receiver<Value>| move || receiver.iter().map(Value::receive).count();
            let staying: Vec<_> = (0..2).map(|_| fibra::spawn(receive(receiver.clone()))).collect();
            let sending = {
                let (sender, tally) = (sender.clone(), Arc::clone(&tally));
                fibra::spawn(move || {
                    for number in 0..VALUES {
                        sender.send(tally.value()).unwrap();
                        number.is_multiple_of(3).then(give_way);
                    }
                })
            };
            let mut extra = 0;
            while !sending.is_finished() {
                let doomed = fibra::spawn(receive(receiver.clone()));
                let another = {
                    let (sender, tally) = (sender.clone(), Arc::clone(&tally));
                    fibra::spawn(move || sender.send(tally.value()).unwrap())
                };
                give_way();
                doomed.task().cancel();
                another.task().cancel();
                assert!(cancelled(doomed));
                extra += usize::from(!cancelled(another));
            }
            drop((sender, receiver));
            sending.join().unwrap();
            let received: usize = staying.into_iter().map(|task| task.join().unwrap()).sum();
            assert!(received <= tally.received());
            assert!(tally.received() >= VALUES + extra, "{kind:?}: {tally:?}");
            tally.assert_settled();
        }
    });
}

#[test]
fn a_receiver_is_told_when_the_last_sender_goes_down_with_a_cancelled_task() {
    in_tasks(|| {
        for kind in KINDS {
            for round in 0..50 {
                let (sender, receiver) = make::<i32>(kind);
                let holding = fibra::spawn(move || {
                    let _sender = sender;
                    fibra::sleep(ms(60_000));
                });
                let waiting = fibra::spawn(move || receiver.recv());
                (0..round % 4).for_each(|_| give_way());
                holding.task().cancel();
                assert_eq!(waiting.join().unwrap(), Err(RecvError));
                assert!(cancelled(holding));
            }
        }
    });
}

/// Sends from its destructor.
struct Farewell(Sender<&'static str>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.try_send("tried");
        // A task that unwinds from its cancellation is not cancelled again: it may wait.
        let _ = self.0.send("sent");
    }
}

#[test]
fn a_destructor_sends_while_its_task_unwinds_from_a_cancel() {
    in_tasks(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let dying = fibra::spawn(move || {
                let _farewell = Farewell(sender);
                fibra::sleep(ms(60_000));
            });
            pause();
            dying.task().cancel();
            let words: Vec<_> = receiver.iter().collect();
            assert!(
                words == ["tried", "sent"] || (kind == Some(0) && words == ["sent"]),
                "{kind:?}: {words:?}"
            );
            assert!(cancelled(dying));
        }
    });
}

#[test]
fn a_destructor_receives_while_its_task_unwinds_from_a_cancel_of_a_receive() {
    struct LastWord(Receiver<i32>, Arc<AtomicUsize>);
    impl Drop for LastWord {
        fn drop(&mut self) {
            assert_eq!(self.0.recv(), Ok(7));
            assert_eq!(self.0.recv_timeout(ms(1)), Err(RecvTimeoutError::Timeout));
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    in_tasks(|| {
        for kind in KINDS {
            let ended = Arc::new(AtomicUsize::new(0));
            let (sender, receiver) = make(kind);
            let word = LastWord(receiver.clone(), Arc::clone(&ended));
            let (_kept, quiet) = make::<()>(kind);
            let dying = fibra::spawn(move || {
                let word = word;
                quiet.recv().unwrap();
                drop(word);
            });
            pause();
            dying.task().cancel();
            sender.send(7).unwrap();
            assert!(cancelled(dying));
            assert_eq!(ended.load(Ordering::SeqCst), 1);
        }
    });
}

#[test]
fn a_cancelled_task_is_ended_by_its_next_operation_even_if_it_would_not_wait() {
    in_tasks(|| {
        for kind in [Some(5), None] {
            let (sender, receiver) = make(kind);
            sender.send(1).unwrap();
            let (sends, receives) = (sender.clone(), receiver.clone());
            let doomed: [fibra::JoinHandle<()>; 2] = [
                fibra::spawn(move || {
                    fibra::task::current().cancel();
                    sends.send(2).unwrap();
                }),
                fibra::spawn(move || {
                    fibra::task::current().cancel();
                    receives.recv().unwrap();
                }),
            ];
            doomed.into_iter().for_each(|task| assert!(cancelled(task)));
            assert!(receiver.try_iter().eq([1]), "neither was done");
        }
    });
}

#[test]
fn trying_is_no_cancellation_point() {
    in_tasks(|| {
        let (sender, receiver) = bounded(1);
        let task = fibra::spawn(move || {
            fibra::task::current().cancel();
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            sender.try_send(1).unwrap();
            assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
            assert_eq!(receiver.try_recv(), Ok(1));
            7
        });
        assert_eq!(task.join().unwrap(), 7);
    });
}

#[test]
fn a_task_that_never_has_to_wait_still_lets_others_run() {
    in_tasks(|| {
        let (sender, receiver) = bounded(1000);
        let busy = fibra::spawn(move || {
            loop {
                sender.send(()).unwrap();
                receiver.recv().unwrap();
            }
        });
        let stop = Arc::new(AtomicUsize::new(0));
        let stopped = Arc::clone(&stop);
        let trying = fibra::spawn(move || {
            let (sender, receiver) = bounded(1);
            while stopped.load(Ordering::SeqCst) == 0 {
                sender.try_send(()).unwrap();
                receiver.try_recv().unwrap();
            }
        });
        (0..10).for_each(|_| fibra::yield_now());
        busy.task().cancel();
        assert!(cancelled(busy));
        stop.store(1, Ordering::SeqCst);
        trying.join().unwrap();
    });
}
