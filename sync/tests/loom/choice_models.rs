//! Choices between channels and events, by what users call.

use std::sync::Arc;

use loom::thread;

use crate::auto_reset_event::AutoResetEvent;
use crate::channel::{Arm, Purpose, Receiver, RecvArm, Select, Sender};
use crate::channel_end_models;
use crate::gate_in_small::assert_no_wake_is_left;
use crate::primitive::check_bounded;
use crate::wait::{Claim, Enlisted, Sleeper, over};

/// A channel for `capacity` messages.
fn channel(capacity: usize) -> (Sender<u32>, Receiver<u32>) {
    channel_end_models::channel(Some(capacity))
}

/// An event that is not set.
pub(crate) fn event() -> Arc<AutoResetEvent> {
    let event = Arc::new(AutoResetEvent::new(false));
    event.set();
    assert!(event.try_wait());
    event
}

/// Waits until there is something to receive, and receives it.
fn receive_when_ready(receiver: &Receiver<u32>) -> u32 {
    loop {
        let mut select = Select::new_biased();
        select.recv(receiver);
        assert_eq!(select.ready(), 0);
        if let Ok(message) = receiver.try_recv() {
            return message;
        }
    }
}

/// Waits until something can be sent, and sends it. True if it was not too late for that.
fn send_when_ready(sender: &Sender<u32>, message: u32) -> bool {
    loop {
        let mut select = Select::new_biased();
        select.send(sender);
        assert_eq!(select.ready(), 0);
        match sender.try_send(message) {
            Ok(()) => return true,
            Err(refused) if refused.is_disconnected() => return false,
            Err(_full) => {}
        }
    }
}

/// Finds: a message that comes as a watch begins and does not wake the watcher.
#[test]
fn a_watcher_is_notified_of_a_message() {
    check_bounded(3, || {
        let (sender, receiver) = channel(1);
        let sends = thread::spawn(move || sender.send(7).unwrap());
        assert_eq!(receive_when_ready(&receiver), 7);
        sends.join().unwrap();
    });
}

/// Finds: a message that its sender still holds at a rendezvous, and that does not wake the watcher.
#[test]
fn a_watcher_is_notified_of_a_waiting_sender() {
    check_bounded(3, || {
        let (sender, receiver) = channel(0);
        let sends = thread::spawn(move || sender.send(7).unwrap());
        assert_eq!(receive_when_ready(&receiver), 7);
        sends.join().unwrap();
    });
}

/// Finds: room that comes free as a watch begins and does not wake the watcher.
#[test]
fn a_watcher_is_notified_of_room() {
    check_bounded(3, || {
        let (sender, receiver) = channel(1);
        sender.send(1).unwrap();
        let receives = thread::spawn(move || [receiver.recv(), receiver.recv()]);
        assert!(send_when_ready(&sender, 2));
        assert_eq!(receives.join().unwrap(), [Ok(1), Ok(2)]);
    });
}

/// Finds: a receiver that comes to a rendezvous as a watch begins, and does not wake the watcher.
#[test]
fn a_watcher_is_notified_of_a_waiting_receiver() {
    check_bounded(3, || {
        let (sender, receiver) = channel(0);
        let receives = thread::spawn(move || receiver.recv());
        assert!(send_when_ready(&sender, 7));
        assert_eq!(receives.join().unwrap(), Ok(7));
    });
}

/// Finds: an end that does not wake the watchers.
#[test]
fn a_watcher_is_notified_of_the_end() {
    check_bounded(3, || {
        let (sender, receiver) = channel(1);
        let ends = thread::spawn(move || drop(sender));
        let mut select = Select::new_biased();
        select.recv(&receiver);
        assert_eq!(select.ready(), 0);
        assert!(receiver.try_recv().is_err_and(|empty| empty.is_disconnected()));
        ends.join().unwrap();
    });
    check_bounded(3, || {
        let (sender, receiver) = channel(0);
        let ends = thread::spawn(move || drop(receiver));
        assert!(!send_when_ready(&sender, 7));
        ends.join().unwrap();
    });
}

/// Finds: two watchers, of which one is told.
#[test]
fn all_watchers_are_notified() {
    check_bounded(3, || {
        let (sender, receiver) = channel(1);
        let sends = thread::spawn(move || {
            sender.send(7).unwrap();
            sender
        });
        let watches = [0, 1].map(|_| (RecvArm::new(&receiver), Claim::new(), Sleeper::new()));
        let waits = watches.each_ref().map(|(arm, token, sleeper)| {
            let _ = sleeper.word.begin(false);
            let watcher = arm.place(Purpose::Watch).expect("a channel is watched");
            // SAFETY: the arm is enlisted nowhere, and arm and token stay in place until its wake has landed.
            unsafe { watcher.enlist(sleeper.handle(), token, 0) == Enlisted::Waits }
        });
        for ((_, token, sleeper), waits) in watches.iter().zip(waits) {
            if waits {
                sleeper.leave_stack();
            }
            assert_eq!(token.taken(), waits.then_some(0));
        }
        let sender = sends.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok(7));
        drop((watches, sender));
    });
}

/// Finds: a watch that is notified at its deadline, and leaves its node behind, or a wake of it that lands in a later sleep.
#[test]
fn a_watch_at_its_deadline_leaves_nothing_behind() {
    check_bounded(3, || {
        let (sender, receiver) = channel(1);
        let sends = thread::spawn(move || sender.send(7).unwrap());
        {
            let mut select = Select::new_biased();
            select.recv(&receiver);
            let ready = select.ready_deadline(over());
            assert!(ready.is_err() || !receiver.is_empty());
        }
        assert_no_wake_is_left();
        assert_eq!(receiver.recv(), Ok(7));
        sends.join().unwrap();
    });
}

/// Finds: a select of a message and a set that takes both or neither, or sleeps on; a wake of it that lands in a later sleep.
#[test]
fn of_a_message_and_a_set_one_is_selected_and_the_other_stays() {
    check_bounded(2, || {
        let ((sender, receiver), event) = (channel(1), event());
        let sends = thread::spawn(move || {
            sender.send(7).unwrap();
            sender
        });
        let sets = {
            let event = Arc::clone(&event);
            thread::spawn(move || event.set())
        };
        let mut select = Select::new_biased();
        let (receive, wait) = (select.recv(&receiver), select.wait(&*event));
        let operation = select.select();
        let received = operation.index() == receive;
        if received {
            assert_eq!(operation.recv(&receiver), Ok(7));
        } else {
            assert_eq!(operation.index(), wait);
            operation.wait(&*event);
        }
        assert_no_wake_is_left();
        let sender = sends.join().unwrap();
        sets.join().unwrap();
        assert_eq!((receiver.try_recv().is_ok(), event.try_wait()), (!received, received));
        drop(sender);
    });
}

/// Finds: a select at its deadline that is given a message, which is then lost, or given twice; a wake that lands in a later sleep.
#[test]
fn a_select_at_its_deadline_has_something_or_left_it() {
    check_bounded(2, || {
        let ((sender, receiver), event) = (channel(0), event());
        let sets = {
            let event = Arc::clone(&event);
            thread::spawn(move || event.set())
        };
        let selected = {
            let mut select = Select::new_biased();
            select.recv(&receiver);
            select.wait(&*event);
            select.select_deadline(over()).map(|operation| operation.wait(&*event)).is_ok()
        };
        assert_no_wake_is_left();
        sets.join().unwrap();
        assert!(selected != event.try_wait());
        drop(sender);
    });
}

/// Finds: two selects on both sides of one channel that both wait for ever.
#[test]
fn two_selects_that_face_each_other_meet() {
    check_bounded(2, || {
        let (sender, receiver) = channel(0);
        let sends = thread::spawn(move || {
            let mut select = Select::new_biased();
            select.send(&sender);
            select.select().send(&sender, 7)
        });
        let mut select = Select::new_biased();
        select.recv(&receiver);
        assert_eq!(select.select().recv(&receiver), Ok(7));
        assert!(sends.join().unwrap().is_ok());
    });
}
