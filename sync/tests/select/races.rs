//! Selects that meet selects, lose, time out and are cancelled: nothing is lost, and nothing is there twice.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::channels::{KEEPING, KINDS, LIMITED, Other, Tally, Value, anywhere, join_all, make, ms, us};
use crate::common::{Side, give_way, in_tasks, pause, until};
use crate::future::poll;
use fibra_runtime as fibra;
use fibra_sync::channel::{Receiver, Select, SendError, Sender, TryRecvError, bounded, never, unbounded};
use fibra_sync::select;

#[test]
fn selects_that_send_or_receive_meet_in_pairs() {
    anywhere(|other| {
        for _ in 0..10 {
            let (sender, receiver) = bounded::<usize>(0);
            let tasks = other.starts_many(40, |number| {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                move || {
                    select! {
                        recv(receiver) -> received => assert_ne!(received, Ok(number), "met itself"),
                        send(sender, number) -> sent => sent.unwrap(),
                    }
                }
            });
            join_all(tasks);
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        }
    });
}

#[test]
fn the_odd_waiter_of_many_is_left_for_the_next() {
    anywhere(|other| {
        for _ in 0..10 {
            let (sender, receiver) = bounded::<usize>(0);
            let tasks = other.starts_many(41, |number| {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                move || {
                    select! {
                        send(sender, number) -> sent => sent.unwrap(),
                        recv(receiver) -> received => assert_ne!(received, Ok(number), "met itself"),
                    }
                }
            });
            sender.send(usize::MAX).unwrap();
            join_all(tasks);
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        }
    });
}

#[test]
fn selects_in_both_directions_at_two_rendezvous_do_not_lock_up() {
    // Each would send here and receive there, in the other order than its peer.
    anywhere(|other| {
        const EACH: usize = 200;
        let (ping, pong) = (bounded::<usize>(0), bounded::<usize>(0));
        let tasks = other.starts_many(6, |number| {
            let ((s1, r1), (s2, r2)) = match number % 2 {
                0 => (ping.clone(), pong.clone()),
                _ => (pong.clone(), ping.clone()),
            };
            move || {
                (0..EACH).fold((0, 0), |(sent, received), _| {
                    select! {
                        send(s1, number) -> result => { result.unwrap(); (sent + 1, received) }
                        recv(r2) -> result => { assert_ne!(result, Ok(number)); (sent, received + 1) }
                        send(s2, number) -> result => { result.unwrap(); (sent + 1, received) }
                        recv(r1) -> result => { assert_ne!(result, Ok(number)); (sent, received + 1) }
                    }
                })
            }
        });
        // An even number of steps in all is not enough: the last ones may be alone with themselves.
        let (s1, r1, s2, r2) = (ping.0.clone(), ping.1.clone(), pong.0.clone(), pong.1.clone());
        let (mut sent, mut received) = (0, 0);
        let all = other.runs(move || join_all(tasks));
        while !matches!(&all, crate::common::Side::Task(task) if task.is_finished())
            && !matches!(&all, crate::common::Side::Thread(thread) if thread.is_finished())
        {
            select! {
                send(s1, 99) -> _ => sent += 1,
                send(s2, 99) -> _ => sent += 1,
                recv(r1) -> _ => received += 1,
                recv(r2) -> _ => received += 1,
                default(ms(1)) => {}
            }
        }
        let totals = all.join().into_iter().fold((sent, received), |all, one| (all.0 + one.0, all.1 + one.1));
        assert_eq!(totals.0, totals.1, "as many were sent as were received");
    });
}

#[test]
fn a_select_on_both_ends_of_a_channel_never_meets_itself() {
    anywhere(|other| {
        for kind in [Some(0), Some(10)] {
            let (sender, receiver) = make::<usize>(kind);
            let pair = other.starts_many(2, |name| {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                move || {
                    let met = |received| assert!(kind != Some(0) || received != Ok(name), "met itself");
                    (0..400).for_each(|round| match name == 0 || round % 2 == 0 {
                        true => select! { send(sender, name) -> _ => {}, recv(receiver) -> r => met(r) },
                        false => select! { recv(receiver) -> r => met(r), send(sender, name) -> _ => {} },
                    });
                }
            });
            join_all(pair);
        }
    });
}

#[test]
fn a_select_sends_each_value_to_one_channel() {
    anywhere(|other| {
        for kind in KINDS {
            let channels: Vec<_> = (0..4).map(|_| make::<usize>(kind)).collect();
            let (merge, merged) = bounded(0);
            let muxes = channels.iter().map(|(_, receiver)| {
                let (receiver, merge) = (receiver.clone(), merge.clone());
                other.runs(move || receiver.iter().for_each(|number| merge.send(number).unwrap()))
            });
            let muxes: Vec<_> = muxes.collect();
            drop(merge);
            let sending = other.runs(move || {
                for number in 0..400 {
                    select! {
                        send(channels[0].0, number) -> sent => sent.unwrap(),
                        send(channels[1].0, number) -> sent => sent.unwrap(),
                        send(channels[2].0, number) -> sent => sent.unwrap(),
                        send(channels[3].0, number) -> sent => sent.unwrap(),
                    }
                }
            });
            let mut seen = HashSet::new();
            assert!(merged.iter().all(|number| seen.insert(number)), "each once");
            assert_eq!(seen.len(), 400);
            sending.join();
            join_all(muxes);
        }
    });
}

#[test]
fn senders_receivers_and_selects_share_four_channels_without_a_deadlock() {
    const EACH: usize = 150;
    anywhere(|other| {
        let channels: Vec<_> = [0, 0, 2, 3].map(bounded::<usize>).into();
        let plain = other.starts_many(8, |number| {
            let (sender, receiver) = channels[number / 2].clone();
            move || {
                (0..EACH).for_each(|round| match number % 2 {
                    0 => sender.send(round).unwrap(),
                    _ => assert!(receiver.recv().unwrap() < EACH),
                });
            }
        });
        let chosen = other.starts_many(2, |direction| {
            let channels = channels.clone();
            move || {
                let mut left = [EACH; 4];
                while left != [0; 4] {
                    let mut select = Select::new();
                    let open: Vec<_> = (0..4).filter(|&place| left[place] > 0).collect();
                    open.iter().for_each(|&place| {
                        match direction {
                            0 => select.send(&channels[place].0),
                            _ => select.recv(&channels[place].1),
                        };
                    });
                    let operation = select.select();
                    let place = open[operation.index()];
                    match direction {
                        0 => operation.send(&channels[place].0, 0).unwrap(),
                        _ => assert!(operation.recv(&channels[place].1).unwrap() < EACH),
                    }
                    left[place] -= 1;
                }
            }
        });
        join_all(plain);
        join_all(chosen);
        assert!(channels.iter().all(|(_, receiver)| receiver.try_recv().is_err()));
    });
}

/// True if one of two channels has a value, which is taken, as one of four ways to look tells.
fn takes_one(way: usize, first: &Receiver<i32>, second: &Receiver<i32>) -> bool {
    let mut select = Select::new();
    select.recv(first);
    select.recv(second);
    match way {
        0 => select! { recv(first) -> _ => true, recv(second) -> _ => true, default => false },
        1 => select! { recv(first) -> _ => true, recv(second) -> _ => true, default(ms(0)) => false },
        2 => select.try_select().is_ok_and(|operation| {
            let receiver = [first, second][operation.index()];
            operation.recv(receiver).is_ok()
        }),
        _ => select.try_ready().is_ok_and(|index| {
            // Another one may be quicker.
            _ = [first, second][index].try_recv();
            true
        }),
    }
}

#[test]
fn a_look_finds_one_of_two_channels_of_which_one_always_has_a_value() {
    anywhere(|other| {
        for (kind, way) in KEEPING.into_iter().flat_map(|kind| (0..4).map(move |way| (kind, way))) {
            let ((s1, r1), (s2, r2)) = (make(kind), make(kind));
            let ((start, started), (end, ended)) = (bounded(0), bounded(0));
            let (taken, takes) = (r1.clone(), r2.clone());
            let looking = other.runs(move || {
                for _ in 0..100 {
                    start.send(()).unwrap();
                    s1.send(1).unwrap();
                    assert!(takes_one(way, &r1, &r2), "{kind:?}, way {way}");
                    end.send(()).unwrap();
                    let _ = takes.try_recv();
                }
            });
            for () in &started {
                s2.send(1).unwrap();
                let _ = taken.try_recv();
                ended.recv().unwrap();
            }
            looking.join();
        }
    });
}

#[test]
fn a_select_to_receive_keeps_step_with_a_sender_of_two_channels() {
    anywhere(|other| {
        for (one, another) in [(None, Some(5)), (Some(0), Some(0)), (Some(1), None)] {
            let [(s1, r1), (s2, r2), (ack, acked)] = [make(one), make(another), bounded(0)];
            let sending = other.runs(move || {
                for number in 0..200 {
                    s1.send(number).unwrap();
                    acked.recv().unwrap();
                    s2.send(number).unwrap();
                    acked.recv().unwrap();
                }
            });
            for step in 0..400 {
                select! {
                    recv(r1) -> received => assert_eq!((received, step % 2), (Ok(step / 2), 0)),
                    recv(r2) -> received => assert_eq!((received, step % 2), (Ok(step / 2), 1)),
                }
                ack.send(0).unwrap();
            }
            sending.join();
        }
    });
}

#[test]
fn a_select_to_send_keeps_step_with_a_receiver_of_two_channels() {
    anywhere(|other| {
        let [(s1, r1), (s2, r2)] = [bounded(0), bounded(0)];
        let receiving = other.runs(move || {
            for number in 0..200 {
                assert_eq!(r1.recv(), Ok(2 * number));
                assert_eq!(r2.recv(), Ok(2 * number + 1));
            }
        });
        for step in 0..400 {
            let chosen = select! {
                send(s1, step) -> sent => sent.map(|()| 0).unwrap(),
                send(s2, step) -> sent => sent.map(|()| 1).unwrap(),
            };
            assert_eq!(chosen, step % 2);
        }
        receiving.join();
    });
}

#[test]
fn a_default_loop_meets_a_select_that_sleeps_in_both_directions() {
    anywhere(|other| {
        for _ in 0..20 {
            let [(s1, r1), (s2, r2)] = [bounded(0), bounded(0)];
            let (done, ended) = bounded::<()>(0);
            let (end, again) = (ended.clone(), ended);
            let sending = other.runs(move || {
                loop {
                    select! { send(s1, 1) -> _ => break true, default => {} }
                    select! { recv(end) -> _ => break false, default => give_way() }
                }
            });
            let receiving = Other::Alike.runs(move || {
                loop {
                    if let Ok(received) = r2.try_recv() {
                        assert_eq!(received, 2);
                        break true;
                    }
                    select! { recv(again) -> _ => break false, default => give_way() }
                }
            });
            select! {
                recv(r1) -> received => assert_eq!(received, Ok(1)),
                send(s2, 2) -> sent => sent.unwrap(),
            }
            drop(done);
            assert_eq!(usize::from(sending.join()) + usize::from(receiving.join()), 1, "it met one of them");
        }
    });
}

#[test]
fn selects_that_time_out_as_they_are_met_lose_nothing() {
    const EACH: usize = 300;
    anywhere(|other| {
        for kind in KINDS {
            let tally = Tally::new();
            let (sender, receiver) = make(kind);
            let (_kept, quiet) = bounded::<()>(0);
            let sending = other.runs({
                let tally = Arc::clone(&tally);
                move || {
                    let mut held = None;
                    for round in 0..EACH as u64 {
                        let value = held.take().unwrap_or_else(|| tally.value());
                        let mut value = Some(value);
                        select! {
                            send(sender, value.take().unwrap()) -> sent => sent.unwrap(),
                            recv(quiet) -> _ => panic!("quiet"),
                            default(us(round % 40)) => held = value,
                        }
                    }
                    held.map(Value::take_back)
                }
            });
            let (mut expected, mut round) = (0, 0);
            loop {
                round += 1;
                select! {
                    recv(receiver) -> received => match received {
                        Ok(value) => { assert_eq!(value.receive(), expected); expected += 1; }
                        Err(_) => break,
                    },
                    recv(never::<()>()) -> _ => panic!("never"),
                    default(us(round % 30)) => {}
                }
            }
            sending.join();
            assert_eq!((tally.alive(), tally.dropped()), (0, 0), "{kind:?}: {tally:?}");
        }
    });
}

/// Two tasks send and two receive by select, one of each kind is cancelled in the middle, and the others go on.
#[test]
fn selects_that_are_cancelled_as_they_are_met_lose_nothing() {
    in_tasks(|| {
        for kind in KINDS {
            for round in 0..60 {
                let tally = Tally::new();
                let ((s1, r1), (s2, r2)) = (make(kind), make(kind));
                let sending: Vec<_> = (0..2).map(|_| {
                    let (s1, s2, tally) = (s1.clone(), s2.clone(), Arc::clone(&tally));
                    fibra::spawn(move || loop {
                        select! {
                            send(s1, tally.value()) -> sent => if let Err(SendError(value)) = sent { break value.take_back() },
                            send(s2, tally.value()) -> sent => if let Err(SendError(value)) = sent { break value.take_back() },
                        }
                        fibra::yield_now();
                    })
                })
                .collect();
                let receiving: Vec<_> = (0..2)
                    .map(|_| {
                        let (r1, r2) = (r1.clone(), r2.clone());
                        fibra::spawn(move || {
                            loop {
                                select! {
                                    recv(r1) -> value => if let Ok(value) = value { value.receive(); },
                                    recv(r2) -> value => if let Ok(value) = value { value.receive(); },
                                }
                            }
                        })
                    })
                    .collect();
                until(|| tally.received() > round % 7);
                receiving[round % 2].task().cancel();
                (0..round % 5).for_each(|_| give_way());
                sending[round % 2].task().cancel();
                let so_far = tally.received();
                until(|| tally.received() > so_far + 10);
                sending[1 - round % 2].task().cancel();
                sending.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
                // All that was sent comes out, though no waiter is left to wake for it later.
                until(|| r1.is_empty() && r2.is_empty());
                receiving.iter().for_each(|task| task.task().cancel());
                receiving.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
                assert_eq!(r1.try_recv().map(drop), Err(TryRecvError::Empty));
                assert_eq!(tally.alive(), 0, "{kind:?}: {tally:?}");
                assert_eq!(
                    (tally.returned(), tally.dropped()),
                    (0, 0),
                    "a message is made when its arm is chosen"
                );
            }
        }
    });
}

#[test]
fn an_end_wakes_each_select_for_one_of_its_arms() {
    anywhere(|other| {
        for capacity in LIMITED {
            let ((s1, r1), (s2, r2)) = (bounded::<()>(capacity), bounded::<()>(capacity));
            (0..capacity).for_each(|_| s2.send(()).unwrap());
            let tasks = other.starts_many(6, |_| {
                let (r1, s2) = (r1.clone(), s2.clone());
                move || select! { recv(r1) -> received => received.is_err(), send(s2, ()) -> sent => sent.is_err() }
            });
            pause();
            drop((s1, r2));
            assert_eq!(join_all(tasks), [true; 6]);
        }
    });
}

#[test]
fn a_value_that_comes_with_the_end_is_received_before_the_end() {
    anywhere(|other| {
        for kind in KINDS {
            for _ in 0..30 {
                let (sender, receiver) = make(kind);
                let (_kept, quiet) = unbounded::<()>();
                let sending = other.runs(move || sender.send(1).unwrap());
                let mut received = Vec::new();
                loop {
                    select! {
                        recv(receiver) -> value => match value { Ok(value) => received.push(value), Err(_) => break },
                        recv(quiet) -> _ => panic!("quiet"),
                    }
                }
                assert_eq!(received, [1]);
                sending.join();
            }
        }
    });
}

/// Has a select reserve the one slot of a channel. It makes its message, which is 1, once it is told to go.
fn reserves(other: Other, sender: &Sender<i32>) -> (Side<()>, Sender<()>) {
    let (holding, held) = bounded::<()>(1);
    let (go, going) = bounded::<()>(1);
    let sender = sender.clone();
    let holder = other.runs(move || {
        let message = || {
            holding.send(()).unwrap();
            going.recv().unwrap();
            1
        };
        select! { send(sender, message()) -> sent => sent.unwrap() }
    });
    held.recv().unwrap();
    (holder, go)
}

/// One slot of a channel is reserved, and a select that sends and a sender wait. Then two receivers come. The sender serves the
/// receiver that comes by `receive`, while the slot is held. The message of the slot is for the second receiver, and the select
/// waits for room.
fn receivers_beside_a_reserved_slot(other: Other, receive: fn(&Receiver<i32>) -> i32) {
    let (sender, receiver) = bounded(1);
    let (holder, go) = reserves(other, &sender);
    let chooser = {
        let sender = sender.clone();
        other.runs(
            move || select! { send(sender, 2) -> sent => sent.unwrap(), recv(never::<()>()) -> _ => {} },
        )
    };
    pause();
    let plain = other.runs(move || sender.send(3).unwrap());
    pause();
    assert_eq!(receive(&receiver), 3);
    plain.join();
    let receiving = {
        let receiver = receiver.clone();
        other.runs(move || receiver.recv())
    };
    pause();
    go.send(()).unwrap();
    assert_eq!(receiving.join(), Ok(1));
    holder.join();
    chooser.join();
    assert_eq!((receiver.recv(), receiver.try_recv()), (Ok(2), Err(TryRecvError::Disconnected)));
}

#[test]
fn a_receiver_is_served_by_a_sender_behind_a_select_while_all_room_is_reserved() {
    let ways: [fn(&Receiver<i32>) -> i32; 4] = [
        |receiver| receiver.recv().unwrap(),
        |receiver| receiver.try_recv().unwrap(),
        |receiver| select! { recv(receiver) -> received => received.unwrap(), recv(never::<()>()) -> _ => 0 },
        |receiver| match poll(pin!(receiver.recv_async()), &Arc::default()) {
            Poll::Ready(received) => received.unwrap(),
            Poll::Pending => panic!("a sender waits"),
        },
    ];
    for receive in ways {
        anywhere(|other| receivers_beside_a_reserved_slot(other, receive));
    }
}

#[test]
fn a_receiver_that_waits_is_no_room_for_a_select_where_all_room_is_reserved() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        let (holder, go) = reserves(other, &sender);
        let receiving = other.runs(move || (receiver.recv(), receiver));
        pause();
        let mut select = Select::new();
        select.send(&sender);
        assert!(select.try_ready().is_err());
        select! {
            send(sender, 2) -> _ => panic!("it waits for what is sent first"),
            default => {}
        }
        go.send(()).unwrap();
        // The message is put into the receiver's hands, and the room is free.
        assert_eq!(select.ready(), 0);
        holder.join();
        let (received, _receiver) = receiving.join();
        assert_eq!((received, sender.len()), (Ok(1), 0));
    });
}

/// Has a select make its message, which is 2, of what comes of another.
fn makes_of_another(other: Other, sender: Sender<i32>) -> (Side<()>, Sender<()>) {
    let (seen, sees) = bounded::<()>(1);
    let second =
        other.runs(move || select! { send(sender, { sees.recv().unwrap(); 2 }) -> sent => sent.unwrap() });
    pause();
    (second, seen)
}

#[test]
fn a_select_takes_no_receiver_away_from_a_message_that_others_send_meanwhile() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        let (holder, go) = reserves(other, &sender);
        let (first, firsts) = bounded(1);
        let receiving = other.runs(move || {
            first.send(receiver.recv()).unwrap();
            receiver.recv()
        });
        pause();
        let (second, seen) = makes_of_another(other, sender);
        go.send(()).unwrap();
        holder.join();
        assert_eq!(firsts.recv(), Ok(Ok(1)));
        seen.send(()).unwrap();
        second.join();
        assert_eq!(receiving.join(), Ok(2));
    });
}

#[test]
fn a_select_takes_no_future_away_from_a_message_that_others_send_meanwhile() {
    anywhere(|other| {
        let (sender, receiver) = bounded(1);
        let (holder, go) = reserves(other, &sender);
        let mut receiving = pin!(receiver.recv_async());
        assert!(poll(receiving.as_mut(), &Arc::default()).is_pending());
        let (second, seen) = makes_of_another(other, sender);
        go.send(()).unwrap();
        holder.join();
        assert_eq!(poll(receiving, &Arc::default()), Poll::Ready(Ok(1)));
        seen.send(()).unwrap();
        second.join();
        assert_eq!(receiver.recv(), Ok(2));
    });
}

#[test]
fn a_select_that_leaves_hides_no_sender_from_a_receiver() {
    anywhere(|other| {
        for round in 0..30 {
            // Once in the order of the text, and then as chance will have it.
            let others_move = |times| match round {
                0 => pause(),
                _ => (0..round % times).for_each(|_| give_way()),
            };
            let (sender, receiver) = bounded(1);
            let (leave, left) = bounded::<()>(0);
            let (holder, go) = reserves(other, &sender);
            let chooser = {
                let sender = sender.clone();
                other.runs(
                    move || select! { send(sender, 2) -> sent => sent.is_ok(), recv(left) -> _ => false },
                )
            };
            others_move(7);
            let plain = other.runs(move || sender.send(3).unwrap());
            others_move(5);
            let receivers = other.starts_many(2, |_| {
                let receiver = receiver.clone();
                move || receiver.recv().unwrap()
            });
            others_move(3);
            drop(leave);
            others_move(2);
            go.send(()).unwrap();
            let mut received = join_all(receivers);
            holder.join();
            plain.join();
            let sent = chooser.join();
            received.extend(receiver.try_iter());
            received.sort_unstable();
            assert!(received.into_iter().eq((1..=3).filter(|message| sent || *message != 2)));
        }
    });
}

#[test]
fn room_that_is_given_up_as_the_last_receiver_goes_is_given_to_no_sender() {
    anywhere(|other| {
        for round in 0..100 {
            let tally = Tally::new();
            let (sender, receiver) = bounded(1);
            let (holding, held) = bounded::<()>(1);
            let (go, going) = bounded::<()>(0);
            let holder = {
                let sender = sender.clone();
                other.runs(move || {
                    let bomb = || -> Value {
                        holding.send(()).unwrap();
                        _ = going.recv();
                        std::panic::resume_unwind(Box::new("bomb"))
                    };
                    let select = || select! { send(sender, bomb()) -> _ => {} };
                    assert!(catch_unwind(AssertUnwindSafe(select)).is_err());
                })
            };
            held.recv().unwrap();
            let sending = other.starts_many(3, |_| {
                let (sender, value) = (sender.clone(), tally.value());
                move || sender.send(value).map_err(|SendError(value)| value.take_back()).is_ok()
            });
            (0..round % 5).for_each(|_| give_way());
            drop(go);
            (0..round % 3).for_each(|_| give_way());
            drop(receiver);
            holder.join();
            let sent = join_all(sending).into_iter().filter(|sent| *sent).count();
            assert_eq!((tally.returned(), tally.dropped()), (3 - sent, sent));
            tally.assert_settled();
        }
    });
}
