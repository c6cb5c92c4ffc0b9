//! The channels by the names of `std::sync::mpsc`.

use std::thread;
use std::time::Duration;

use fibra_runtime::spawn;
use fibra_sync::mpsc::{
    self, Receiver, RecvError, RecvTimeoutError, SendError, Sender, SyncSender, TryRecvError, TrySendError,
};

use crate::common::{guarded, runtime};

#[test]
fn a_channel_never_makes_its_sender_wait() {
    guarded(|| {
        runtime(2).run(|| {
            let (sender, receiver): (Sender<u32>, Receiver<u32>) = mpsc::channel();
            let senders: Vec<_> = (0..4)
                .map(|n| {
                    let sender = sender.clone();
                    spawn(move || (0..100).for_each(|_| sender.send(n).unwrap()))
                })
                .collect();
            drop(sender);
            senders.into_iter().for_each(|sender| sender.join().unwrap());
            assert_eq!(receiver.iter().count(), 400);
            assert_eq!(receiver.recv(), Err(RecvError));
        });
    });
}

#[test]
fn a_sync_channel_has_as_much_room_as_it_is_told() {
    guarded(|| {
        let (sender, receiver): (SyncSender<u32>, Receiver<u32>) = mpsc::sync_channel(1);
        sender.send(1).unwrap();
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
        let waiting = thread::spawn(move || sender.send(3));
        assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Ok(3)));
        waiting.join().unwrap().unwrap();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn a_sync_channel_without_room_is_a_rendezvous() {
    guarded(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
        let waiting = thread::spawn(move || sender.send(2));
        assert_eq!(receiver.recv(), Ok(2));
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn the_errors_have_the_names_of_std() {
    let (sender, receiver) = mpsc::channel();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(receiver.recv_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
    drop(receiver);
    assert_eq!(sender.send(1), Err(SendError(1)));
}
