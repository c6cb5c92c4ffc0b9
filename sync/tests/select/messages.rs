//! The message of a send arm is made after the arm was chosen: it may panic, wait, be cancelled, and use the very channel
//! that it goes into.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use crate::channels::{KEEPING, KINDS, Tally, anywhere, make, ms};
use crate::common::{everywhere, in_tasks, pause};
use fibra_runtime as fibra;
use fibra_sync::channel::{
    Receiver, RecvTimeoutError, Select, SendError, Sender, TryRecvError, bounded, never, unbounded,
};
use fibra_sync::select;

#[test]
fn a_message_that_panics_gives_its_slot_and_its_partner_back() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let receiving = other.runs(move || receiver.iter().sum::<i32>());
            for _ in 0..20 {
                let bomb = || -> i32 { std::panic::resume_unwind(Box::new("bomb")) };
                let caught = catch_unwind(AssertUnwindSafe(|| select! { send(sender, bomb()) -> _ => {} }));
                assert_eq!(*caught.unwrap_err().downcast_ref::<&str>().unwrap(), "bomb");
                select! { send(sender, 1) -> sent => sent.unwrap() }
            }
            drop(sender);
            assert_eq!(receiving.join(), 20, "{kind:?}");
        }
    });
}

/// Sends each message but for 0, up to 1 or an error.
fn send_some(sender: &Sender<i32>, messages: &[Result<i32, &'static str>]) -> Result<(), &'static str> {
    for message in messages {
        select! {
            send(sender, match (*message)? { 0 => continue, 1 => break, number => number }) -> sent => sent.unwrap(),
        }
    }
    Ok(())
}

#[test]
fn a_message_may_leave_the_select_that_it_is_for() {
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            for _ in 0..10 {
                assert_eq!(send_some(&sender, &[Ok(0), Ok(1), Ok(2)]), Ok(()));
                assert_eq!(send_some(&sender, &[Ok(0), Err("no message")]), Err("no message"));
            }
            assert_eq!(send_some(&sender, &[Ok(0), Ok(7)]), Ok(()));
            assert!(receiver.try_iter().eq([7]), "each slot was given back");
        }
    });
}

#[test]
fn a_message_that_waits_delays_only_its_partner() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let (go, going) = bounded::<i32>(0);
            let (another, slow) = (sender.clone(), sender);
            let receiving = other.runs(move || {
                let mut received: Vec<_> = receiver.iter().take(6).collect();
                received.sort_unstable();
                received
            });
            let waiting = other.runs(move || select! { send(slow, going.recv().unwrap()) -> sent => sent });
            pause();
            match kind {
                // The only receiver, or the only slot, is the one that is held.
                Some(0 | 1) => go.send(0).unwrap(),
                _ => {
                    (1..6).for_each(|number| another.send(number).unwrap());
                    go.send(0).unwrap();
                }
            }
            if let Some(0 | 1) = kind {
                (1..6).for_each(|number| another.send(number).unwrap());
            }
            assert_eq!(waiting.join(), Ok(()));
            assert_eq!(receiving.join(), [0, 1, 2, 3, 4, 5], "{kind:?}");
        }
    });
}

#[test]
fn a_message_may_send_on_the_channel_that_it_goes_into() {
    everywhere(|| {
        for kind in [Some(2), Some(5), None] {
            let (sender, receiver) = make(kind);
            select! {
                send(sender, sender.send(1).map(|()| 2).unwrap()) -> sent => sent.unwrap(),
            }
            let mut received: Vec<_> = receiver.try_iter().collect();
            received.sort_unstable();
            assert_eq!(received, [1, 2]);
        }
    });
}

#[test]
fn a_message_may_end_the_channel_that_it_goes_into() {
    everywhere(|| {
        for kind in KEEPING {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let message = |receiver| {
                drop(receiver);
                tally.value()
            };
            select! {
                send(sender, message(receiver)) -> sent => match sent {
                    Ok(()) => {}
                    Err(SendError(value)) => assert_eq!(value.take_back(), 0),
                },
            }
            assert_eq!(tally.alive(), 0, "no receiver is left");
        }
    });
}

#[test]
fn a_cancel_while_a_message_is_made_leaves_its_partner_to_others() {
    in_tasks(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let slow = sender.clone();
            let receiving = fibra::spawn(move || receiver.recv());
            until_asleep();
            let making = fibra::spawn(move || {
                select! { send(slow, fibra::sleep(ms(60_000))) -> sent => sent }
            });
            until_asleep();
            making.task().cancel();
            assert!(making.join().unwrap_err().is_cancelled());
            sender.send(()).unwrap();
            assert_eq!(receiving.join().unwrap(), Ok(()), "{kind:?}");
        }
    });
}

fn until_asleep() {
    (0..5).for_each(|_| fibra::yield_now());
    pause();
}

#[test]
fn a_receiver_is_cancelled_while_its_partner_makes_the_message() {
    in_tasks(|| {
        for kind in KINDS {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let (go, going) = bounded::<()>(0);
            let kept = receiver.clone();
            let receiving = fibra::spawn(move || receiver.recv().map(crate::channels::Value::receive));
            until_asleep();
            let making = fibra::spawn({
                let tally = Arc::clone(&tally);
                move || {
                    let message = || {
                        going.recv().unwrap();
                        tally.value()
                    };
                    select! { send(sender, message()) -> sent => sent.is_ok() }
                }
            });
            until_asleep();
            receiving.task().cancel();
            until_asleep();
            go.send(()).unwrap();
            // One receiver has it: the cancelled one, which was promised it, or the next.
            while !making.is_finished() {
                let _ = kept.recv_timeout(ms(1)).map(crate::channels::Value::receive);
            }
            let _ = kept.try_recv().map(crate::channels::Value::receive);
            let received = receiving.join();
            assert!(making.join().unwrap());
            assert_eq!((tally.made(), tally.received()), (1, 1), "{kind:?}: {received:?}");
        }
    });
}

/// Selects to send, and gives up each time that it is chosen, until `stop` ends.
fn give_up(sender: &Sender<i32>, stop: &Receiver<()>) {
    let message: Option<i32> = None;
    loop {
        select! {
            send(sender, match message { Some(message) => message, None => continue }) -> sent => sent.unwrap(),
            recv(stop) -> _ended => return,
        }
    }
}

/// Runs `promise` with a receiver whose partner gives up each time.
fn facing_a_partner_that_gives_up(promise: impl Fn(&Receiver<i32>) + Send + Sync) {
    anywhere(|other| {
        let ((sender, receiver), (going, stop)) = (bounded(0), unbounded());
        let giving_up = other.runs(move || give_up(&sender, &stop));
        pause();
        promise(&receiver);
        drop(going);
        giving_up.join();
    });
}

#[test]
fn a_try_meets_a_partner_that_gives_up_once() {
    facing_a_partner_that_gives_up(|receiver| {
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        pause();
        assert!(receiver.try_iter().next().is_none());
        pause();
        select! {
            recv(receiver) -> _ => panic!("no message was made"),
            recv(never::<()>()) -> _ => panic!("no sender is there"),
            default => {}
        }
        pause();
        let (mut select, never) = (Select::new(), never::<()>());
        let _ = [select.recv(receiver), select.recv(&never)];
        assert!(select.try_select().is_err());
    });
}

#[test]
fn a_wait_keeps_its_deadline_after_its_partners_gave_up() {
    facing_a_partner_that_gives_up(|receiver| {
        let start = Instant::now();
        assert_eq!(receiver.recv_timeout(ms(3)), Err(RecvTimeoutError::Timeout));
        assert_eq!(receiver.recv_deadline(start + ms(6)), Err(RecvTimeoutError::Timeout));
        select! {
            recv(receiver) -> _ => panic!("no message was made"),
            recv(never::<()>()) -> _ => panic!("no sender is there"),
            default(ms(3)) => {}
        }
        assert!(start.elapsed() >= ms(9));
    });
}

#[test]
fn a_wait_can_be_cancelled_after_its_partners_gave_up() {
    in_tasks(|| {
        let ((sender, receiver), (going, stop)) = (bounded(0), unbounded());
        let giving_up = fibra::spawn(move || give_up(&sender, &stop));
        let other = receiver.clone();
        let doomed = [
            fibra::spawn(move || _ = receiver.recv()),
            fibra::spawn(move || {
                select! {
                    recv(other) -> _ => panic!("no message was made"),
                    recv(never::<()>()) -> _ => panic!("no sender is there"),
                }
            }),
        ];
        fibra::sleep(ms(2));
        doomed.iter().for_each(|task| task.task().cancel());
        doomed.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
        drop(going);
        giving_up.join().unwrap();
    });
}

#[test]
fn a_try_finds_the_message_behind_a_sender_that_gives_up() {
    anywhere(|other| {
        let ((sender, receiver), (going, stop)) = (bounded(0), unbounded());
        let sends = sender.clone();
        let giving_up = other.runs(move || give_up(&sender, &stop));
        pause();
        let sending = other.runs(move || sends.send(7));
        pause();
        assert_eq!(receiver.try_recv(), Ok(7));
        assert_eq!(sending.join(), Ok(()));
        drop(going);
        giving_up.join();
    });
}
