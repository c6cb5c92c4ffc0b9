//! What `Select` promises: a select over operations that are known at run time only.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::channels::{KEEPING, KINDS, LIMITED, anywhere, join_all, make, ms};
use crate::common::{everywhere, pause};
use fibra_sync::channel::{
    Receiver, RecvError, Select, SelectTimeoutError, SendError, Sender, TryRecvError, TrySelectError, after,
    bounded, never, unbounded,
};

#[test]
fn the_operation_that_is_ready_is_selected() {
    everywhere(|| {
        for ready in 0..5 {
            let channels: Vec<_> = (0..5).map(|_| unbounded()).collect();
            channels[ready].0.send(ready).unwrap();
            let mut select = Select::new();
            let indices: Vec<_> = channels.iter().map(|(_, receiver)| select.recv(receiver)).collect();
            assert_eq!(indices, [0, 1, 2, 3, 4]);
            let operation = select.select();
            assert_eq!(operation.index(), ready);
            assert_eq!(operation.recv(&channels[ready].1), Ok(ready));
        }
    });
}

#[test]
fn an_operation_that_becomes_ready_ends_the_wait() {
    anywhere(|other| {
        for kind in KINDS {
            let ((sender, receiver), (_kept, quiet)) = (make(kind), make::<i32>(kind));
            let sending = other.runs(move || {
                pause();
                sender.send(2).unwrap();
            });
            let mut select = Select::new();
            select.recv(&quiet);
            select.recv(&receiver);
            let operation = select.select_timeout(ms(60_000)).unwrap();
            assert_eq!((operation.index(), operation.recv(&receiver)), (1, Ok(2)));
            sending.join();
            let ((sender, receiver), (full, _receiver)) = (bounded(0), bounded::<i32>(0));
            let receiving = other.runs(move || {
                pause();
                receiver.recv()
            });
            let mut select = Select::new();
            select.send(&sender);
            select.send(&full);
            let operation = select.select_deadline(Instant::now() + ms(60_000)).unwrap();
            assert_eq!((operation.index(), operation.send(&sender, 1)), (0, Ok(())));
            assert_eq!(receiving.join(), Ok(1));
        }
    });
}

#[test]
fn both_directions_of_a_select_are_served_in_turn() {
    anywhere(|other| {
        for kind in KINDS {
            let ((sender, receiver), (answer, answered)) = (make(kind), bounded(0));
            // With these it does not end, which would make it ready.
            let kept = (sender.clone(), answered.clone());
            let talking = other.runs(move || {
                sender.send(1).unwrap();
                answered.recv().unwrap()
            });
            for _ in 0..2 {
                let mut select = Select::new();
                let (receive, send) = (select.recv(&receiver), select.send(&answer));
                let operation = select.select();
                match operation.index() {
                    index if index == receive => assert_eq!(operation.recv(&receiver), Ok(1)),
                    index => assert_eq!((index, operation.send(&answer, 2)), (send, Ok(()))),
                }
            }
            assert_eq!(talking.join(), 2);
            drop(kept);
        }
    });
}

#[test]
fn an_ended_channel_is_ready_and_says_so() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make::<i32>(kind);
            let ending = other.runs(move || {
                pause();
                drop(sender);
            });
            let mut select = Select::new();
            select.recv(&receiver);
            assert_eq!(select.select_timeout(ms(60_000)).unwrap().recv(&receiver), Err(RecvError));
            assert_eq!(select.try_select().unwrap().recv(&receiver), Err(RecvError));
            ending.join();
            let (sender, receiver) = make(kind);
            drop(receiver);
            let mut select = Select::new();
            select.send(&sender);
            assert_eq!(select.select().send(&sender, 1), Err(SendError(1)));
            assert_eq!(select.try_select().unwrap().send(&sender, 2), Err(SendError(2)));
            assert_eq!(select.select_timeout(ms(60_000)).unwrap().send(&sender, 3), Err(SendError(3)));
        }
    });
}

#[test]
fn messages_left_in_an_ended_channel_are_selected_before_its_end() {
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            sender.send(1).unwrap();
            drop(sender);
            let mut select = Select::new();
            select.recv(&receiver);
            assert_eq!(select.select().recv(&receiver), Ok(1));
            assert_eq!(select.select().recv(&receiver), Err(RecvError));
        }
    });
}

#[test]
fn an_operation_that_was_added_twice_is_selected_under_both_numbers() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        let mut hit = [false; 4];
        let mut select = Select::new();
        for number in 0..4 {
            let added = if number < 2 { select.recv(&receiver) } else { select.send(&sender) };
            assert_eq!(added, number);
        }
        while hit.contains(&false) {
            let operation = select.select();
            hit[operation.index()] = true;
            match operation.index() {
                0 | 1 => assert_eq!(operation.recv(&receiver), Ok(0)),
                _ => operation.send(&sender, 0).unwrap(),
            }
        }
    });
}

#[test]
fn selects_are_made_while_the_operation_of_another_is_to_be_completed() {
    everywhere(|| {
        for kind in KEEPING {
            let (sender, receiver) = make(kind);
            let (mut sends, mut receives) = (Select::new(), Select::new());
            sends.send(&sender);
            receives.recv(&receiver);
            sends.select().send(&sender, 0).unwrap();
            let first = receives.select();
            let second = sends.select();
            assert_eq!(first.recv(&receiver), Ok(0));
            second.send(&sender, 1).unwrap();
            assert_eq!(receives.select().recv(&receiver), Ok(1));
        }
    });
}

#[test]
fn nothing_is_selected_before_it_is_ready() {
    everywhere(|| {
        for kind in KINDS {
            let (_sender, receiver) = make::<i32>(kind);
            let mut select = Select::new();
            select.recv(&receiver);
            let start = Instant::now();
            assert_eq!(select.try_select().map(drop), Err(TrySelectError));
            assert_eq!(select.select_timeout(ms(3)).map(drop), Err(SelectTimeoutError));
            assert_eq!(select.select_deadline(start + ms(5)).map(drop), Err(SelectTimeoutError));
            assert!(start.elapsed() >= ms(5));
            assert_eq!(select.select_deadline(start).map(drop), Err(SelectTimeoutError));
        }
        let (sender, receiver) = bounded::<i32>(0);
        let mut select = Select::new();
        select.send(&sender);
        select.recv(&receiver);
        assert_eq!(select.select_timeout(ms(2)).map(drop), Err(SelectTimeoutError), "not with itself");
        assert_eq!(select.try_select().map(drop), Err(TrySelectError), "not with itself");
    });
}

#[test]
fn a_removed_operation_is_not_selected_and_the_others_keep_their_numbers() {
    everywhere(|| {
        let [(s1, r1), (s2, r2), (s3, r3)] = [unbounded(), unbounded(), unbounded()];
        let mut select = Select::new();
        let (first, second) = (select.recv(&r1), select.recv(&r2));
        s1.send(1).unwrap();
        s2.send(2).unwrap();
        select.remove(first);
        let operation = select.select();
        assert_eq!((operation.index(), operation.recv(&r2)), (second, Ok(2)));
        assert!(select.try_select().is_err());
        let third = select.recv(&r3);
        assert_eq!(third, 2);
        s3.send(3).unwrap();
        let operation = select.select();
        assert_eq!((operation.index(), operation.recv(&r3)), (third, Ok(3)));
        assert_eq!(r1.try_recv(), Ok(1));
    });
}

#[test]
fn removing_what_is_not_there_panics() {
    let select = || Select::new().remove(0);
    assert!(catch_unwind(select).is_err());
    let twice = || {
        let receiver = never::<i32>();
        let mut select = Select::new();
        select.recv(&receiver);
        select.remove(0);
        select.remove(0);
    };
    assert!(catch_unwind(twice).is_err());
}

#[test]
fn a_select_is_used_again_and_again() {
    anywhere(|other| {
        let [(s1, r1), (s2, r2), (s3, r3)] = [bounded(0), bounded(0), bounded(10)];
        let talking = other.runs(move || {
            for number in 0..200 {
                s1.send(number).unwrap();
                assert_eq!(r2.recv(), Ok(number));
                r3.recv().unwrap();
            }
        });
        let mut select = Select::new();
        let (receive, send) = (select.recv(&r1), select.send(&s2));
        for number in 0..200 {
            for _ in 0..2 {
                let operation = select.select();
                match operation.index() {
                    index if index == receive => assert_eq!(operation.recv(&r1), Ok(number)),
                    index => assert_eq!((index, operation.send(&s2, number)), (send, Ok(()))),
                }
            }
            s3.send(0).unwrap();
        }
        talking.join();
    });
}

#[test]
fn clones_of_a_select_meet_each_other_wherever_they_are_made() {
    // Borrowed handles: by threads and by tasks that end within this call.
    let promise = |tasks: usize| {
        let (sender, receiver) = bounded::<usize>(0);
        let mut select = Select::new();
        let (receive, send) = (select.recv(&receiver), select.send(&sender));
        let meet = |number: usize, mut select: Select<'_>| {
            let operation = select.select();
            match operation.index() {
                index if index == receive => assert_ne!(operation.recv(&receiver), Ok(number)),
                index => assert_eq!((index, operation.send(&sender, number)), (send, Ok(()))),
            }
        };
        let (shared, meet) = (&select, &meet);
        // Of two each, one clones for itself.
        let meets = |number: usize| {
            let cloned = number.is_multiple_of(2).then(|| shared.clone());
            move || meet(number, cloned.unwrap_or_else(|| shared.clone()))
        };
        match fibra_runtime::wait::in_task() {
            true => {
                fibra_runtime::scope(|scope| (0..tasks).for_each(|number| _ = scope.spawn(meets(number))))
            }
            false => std::thread::scope(|scope| (0..tasks).for_each(|number| _ = scope.spawn(meets(number)))),
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    };
    everywhere(|| (0..10).for_each(|_| promise(20)));
}

type Parcel = Box<dyn std::any::Any + Send>;

/// Sends by the select of one operation, or after it is told that this is ready.
fn send_parcel(sender: &Sender<Parcel>, parcel: Parcel, by_select: bool) {
    let mut select = Select::new();
    select.send(sender);
    match by_select {
        true => select.select().send(sender, parcel).unwrap(),
        false => {
            assert_eq!(select.ready(), 0);
            sender.try_send(parcel).unwrap();
        }
    }
}

/// Receives as [`send_parcel`] sends.
fn receive_parcel(receiver: &Receiver<Parcel>, by_select: bool) -> Parcel {
    let mut select = Select::new();
    select.recv(receiver);
    match by_select {
        true => select.select().recv(receiver).unwrap(),
        false => {
            assert_eq!(select.ready(), 0);
            receiver.try_recv().unwrap()
        }
    }
}

#[test]
fn channels_travel_by_select() {
    anywhere(|other| {
        let by_select = KINDS.map(|kind| (kind, true)).into_iter();
        // Two sides that only look do not meet.
        for (kind, by_select) in by_select.chain(KEEPING.map(|kind| (kind, false))) {
            let (mut sender, mut receiver) = make(kind);
            let sending = other.runs(move || {
                for _ in 0..50 {
                    let (next, parcel) = make::<Parcel>(kind);
                    send_parcel(&sender, Box::new(parcel), by_select);
                    sender = next;
                }
            });
            for _ in 0..50 {
                let parcel = receive_parcel(&receiver, by_select);
                receiver = *parcel.downcast::<Receiver<Parcel>>().unwrap();
            }
            sending.join();
        }
    });
}

#[test]
fn a_selected_operation_that_is_dropped_panics_and_leaves_the_channel_usable() {
    everywhere(|| {
        for kind in [Some(1), Some(5), None] {
            let (sender, receiver) = make(kind);
            let abandon = |select: &mut Select<'_>| {
                let operation = select.select();
                catch_unwind(AssertUnwindSafe(|| drop(operation))).unwrap_err();
            };
            let mut select = Select::new();
            select.send(&sender);
            (0..10).for_each(|_| abandon(&mut select));
            sender.try_send(1).expect("no slot is lost");
            let mut select = Select::new();
            select.recv(&receiver);
            abandon(&mut select);
            sender.try_send(2).ok();
            assert!(receiver.try_iter().count() >= 1);
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        }
    });
}

#[test]
fn an_abandoned_send_of_a_rendezvous_leaves_its_receiver_for_the_next() {
    anywhere(|other| {
        let (sender, receiver) = bounded(0);
        let receiving = other.runs(move || receiver.recv());
        let mut select = Select::new();
        select.send(&sender);
        let operation = select.select();
        catch_unwind(AssertUnwindSafe(|| drop(operation))).unwrap_err();
        drop(select);
        sender.send(7).unwrap();
        assert_eq!(receiving.join(), Ok(7));
    });
}

#[test]
fn an_operation_that_is_forgotten_keeps_what_it_had_and_nothing_else() {
    everywhere(|| {
        for (kind, room) in [(Some(1), 0), (Some(5), 4), (None, 10)] {
            let (sender, receiver) = make(kind);
            let mut select = Select::new();
            select.send(&sender);
            std::mem::forget(select.select());
            drop(select);
            (0..room).for_each(|number| sender.try_send(number).expect("the others have their room"));
            assert_eq!(sender.try_send(room).is_err(), kind.is_some());
            drop(sender);
            assert!(receiver.iter().count() >= room);
        }
        let (sender, receiver) = unbounded();
        (0..3).for_each(|number| sender.send(number).unwrap());
        let mut select = Select::new();
        select.recv(&receiver);
        std::mem::forget(select.select());
        drop((select, sender));
        assert!(receiver.iter().eq(1..3), "what it had received is gone with it");
    });
}

#[test]
fn an_operation_that_failed_may_be_forgotten() {
    anywhere(|other| {
        for capacity in LIMITED {
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|number| sender.send(number).unwrap());
            let last = sender.clone();
            let selecting = other.runs(move || {
                let mut select = Select::new();
                select.send(&sender);
                std::mem::forget(select.select());
            });
            pause();
            drop(receiver);
            selecting.join();
            assert_eq!(last.send(7), Err(SendError(7)));
        }
    });
}

#[test]
fn completing_an_operation_with_another_channel_panics() {
    everywhere(|| {
        let ((sender, receiver), (stranger, foreigner)) = (bounded::<i32>(1), bounded::<i32>(1));
        let mut select = Select::new();
        select.send(&sender);
        let operation = select.select();
        catch_unwind(AssertUnwindSafe(|| operation.send(&stranger, 1))).unwrap_err();
        assert_eq!(foreigner.try_recv(), Err(TryRecvError::Empty));
        sender.try_send(2).expect("the slot was given back");
        let mut select = Select::new();
        select.recv(&receiver);
        let operation = select.select();
        catch_unwind(AssertUnwindSafe(|| operation.recv(&foreigner))).unwrap_err();
        sender.try_send(3).expect("what was received went with the operation");
        let operation = select.select();
        catch_unwind(AssertUnwindSafe(|| operation.send(&sender, 4))).unwrap_err();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty), "nothing was sent in its place");
        sender.try_send(5).unwrap();
        let operation = select.select();
        catch_unwind(AssertUnwindSafe(|| operation.recv(&never::<i32>()))).unwrap_err();
    });
}

#[test]
fn an_operation_may_be_completed_with_a_clone_of_its_end() {
    anywhere(|other| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            let (sends, receives) = (sender.clone(), receiver.clone());
            let sending = other.runs(move || {
                let mut select = Select::new();
                select.send(&sender);
                select.select().send(&sends, 1)
            });
            let mut select = Select::new();
            select.recv(&receiver);
            assert_eq!(select.select().recv(&receives), Ok(1));
            assert_eq!(sending.join(), Ok(()));
        }
        let timer = after(ms(1));
        let mut select = Select::new();
        select.recv(&timer);
        select.select().recv(&timer.clone()).unwrap();
    });
}

#[test]
fn many_arms_are_no_different() {
    anywhere(|other| {
        let channels: Vec<_> = (0..100).map(|number| make::<usize>(KINDS[number % 4])).collect();
        let (senders, receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
        let sending = other.starts_many(100, |number| {
            let sender = senders[number].clone();
            move || sender.send(number).unwrap()
        });
        let mut seen = vec![0; 100];
        for _ in 0..100 {
            let mut select = Select::default();
            receivers.iter().for_each(|receiver| _ = select.recv(receiver));
            let operation = select.select();
            let index = operation.index();
            assert_eq!(operation.recv(&receivers[index]), Ok(index));
            seen[index] += 1;
        }
        assert_eq!(seen, vec![1; 100]);
        join_all(sending);
    });
}
