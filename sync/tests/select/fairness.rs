//! How a select chooses among arms that are ready: none gets less than half of its share.

use std::time::{Duration, Instant};

use crate::channels::{Other, anywhere, join_all, make, us};
use crate::common::everywhere;
use fibra_sync::channel::{Receiver, Select, Sender, after, at, bounded, tick, unbounded};
use fibra_sync::select;

const ROUNDS: usize = 2000;

/// Each of these has at least half, and at most twice, of its share.
fn assert_fair(hits: &[usize]) {
    let share = hits.iter().sum::<usize>() / hits.len();
    assert!(hits.iter().all(|&hit| (share / 2..=share * 2).contains(&hit)), "{hits:?}");
}

/// Sends this many.
fn fill(sender: &Sender<()>, count: usize) {
    (0..count).for_each(|_| sender.send(()).unwrap());
}

/// Waits for a message or a waiting sender, and leaves the message there.
fn until_ready(receiver: &Receiver<()>) {
    let mut select = Select::new();
    select.recv(receiver);
    select.ready();
}

#[test]
fn channels_that_are_never_empty_are_received_from_in_turn() {
    everywhere(|| {
        for kind in [Some(ROUNDS), None] {
            let ((s1, r1), (s2, r2)) = (make(kind), make(kind));
            fill(&s1, ROUNDS);
            fill(&s2, ROUNDS);
            let mut hits = [0; 2];
            (0..ROUNDS).for_each(|_| {
                select! {
                    recv(r1) -> _ => hits[0] += 1,
                    recv(r2) -> _ => hits[1] += 1,
                }
            });
            assert_fair(&hits);
        }
    });
}

#[test]
fn channels_that_are_never_full_are_sent_to_in_turn() {
    everywhere(|| {
        for kind in [Some(ROUNDS), None] {
            let ((s1, _r1), (s2, _r2)) = (make(kind), make(kind));
            let mut hits = [0; 2];
            (0..ROUNDS).for_each(|_| {
                select! {
                    send(s1, ()) -> _ => hits[0] += 1,
                    send(s2, ()) -> _ => hits[1] += 1,
                }
            });
            assert_fair(&hits);
        }
    });
}

#[test]
fn arms_of_one_channel_are_chosen_in_turn() {
    everywhere(|| {
        for kind in [Some(ROUNDS), None] {
            let (sender, receiver) = make(kind);
            fill(&sender, ROUNDS);
            let mut hits = [0; 5];
            (0..ROUNDS).for_each(|_| {
                select! {
                    recv(receiver) -> _ => hits[0] += 1,
                    recv(receiver) -> _ => hits[1] += 1,
                    recv(receiver) -> _ => hits[2] += 1,
                    recv(receiver) -> _ => hits[3] += 1,
                    recv(receiver) -> _ => hits[4] += 1,
                }
            });
            assert_fair(&hits);
        }
    });
}

#[test]
fn arms_of_every_kind_that_are_ready_are_chosen_in_turn() {
    everywhere(|| {
        let ((s1, r1), (s2, r2)) = (bounded(ROUNDS), unbounded());
        fill(&s1, ROUNDS);
        fill(&s2, ROUNDS);
        let mut hits = [0; 4];
        (0..ROUNDS).for_each(|_| {
            select! {
                recv(r1) -> _ => hits[0] += 1,
                recv(r2) -> _ => hits[1] += 1,
                recv(after(Duration::ZERO)) -> _ => hits[2] += 1,
                recv(tick(Duration::ZERO)) -> _ => hits[3] += 1,
            }
        });
        assert_fair(&hits);
        let mut hits = [0; 4];
        fill(&s1, ROUNDS - s1.len());
        fill(&s2, ROUNDS);
        (0..ROUNDS).for_each(|_| {
            let (after, tick) = (after(Duration::ZERO), tick(Duration::ZERO));
            let mut select = Select::new();
            select.recv(&r1);
            select.recv(&r2);
            select.recv(&after);
            select.recv(&tick);
            let operation = select.select();
            hits[operation.index()] += 1;
            match operation.index() {
                0 => operation.recv(&r1).unwrap(),
                1 => operation.recv(&r2).unwrap(),
                2 => _ = operation.recv(&after).unwrap(),
                _ => _ = operation.recv(&tick).unwrap(),
            }
        });
        assert_fair(&hits);
    });
}

#[test]
fn ready_tells_of_each_operation_in_turn() {
    everywhere(|| {
        let ((s1, r1), (s2, r2)) = (bounded(ROUNDS), unbounded());
        fill(&s1, ROUNDS);
        fill(&s2, ROUNDS);
        let mut hits = [0; 4];
        (0..ROUNDS).for_each(|_| {
            let timers = [after(Duration::ZERO), tick(Duration::ZERO)];
            let mut select = Select::new();
            select.recv(&r1);
            select.recv(&r2);
            timers.iter().for_each(|timer| _ = select.recv(timer));
            let index = select.ready();
            hits[index] += 1;
            match index {
                0 => r1.try_recv().unwrap(),
                1 => r2.try_recv().unwrap(),
                _ => _ = timers[index - 2].try_recv().unwrap(),
            }
        });
        assert_fair(&hits);
    });
}

#[test]
fn arms_that_are_never_ready_take_no_share_of_the_others() {
    anywhere(|other| {
        let [(s1, r1), (s2, r2)] = [0, 1].map(|_| bounded(ROUNDS));
        (0..ROUNDS).for_each(|_| {
            s1.send(0).unwrap();
            s2.send(1).unwrap();
        });
        let [(_kept, quiet), (_also_kept, still)] = [0, 1].map(|_| bounded(0));
        let (result, results) = bounded(0);
        let (running, stop) = bounded::<()>(0);
        let passing = other.runs(move || {
            loop {
                let number: usize = select! {
                    recv(quiet) -> received => received.unwrap(),
                    recv(still) -> received => received.unwrap(),
                    recv(r1) -> received => received.unwrap(),
                    recv(r2) -> received => received.unwrap(),
                };
                select! {
                    send(result, number) -> sent => sent.unwrap(),
                    recv(stop) -> _ => break,
                }
            }
        });
        let mut hits = [0; 2];
        results.iter().take(ROUNDS / 2).for_each(|number| hits[number] += 1);
        drop(running);
        passing.join();
        assert_fair(&hits);
    });
}

#[test]
fn timers_that_fire_at_one_time_are_chosen_in_turn() {
    everywhere(|| {
        let mut hits = [0; 2];
        (0..300).for_each(|round| {
            let timer = after(us(round % 50));
            select! {
                recv(timer) -> _ => hits[0] += 1,
                recv(timer) -> _ => hits[1] += 1,
            }
        });
        assert_fair(&hits);
        let mut hits = [[0; 2]; 2];
        (0..300).for_each(|round| {
            let due = Instant::now() + us(round % 50);
            let both = [[at(due), at(due)], [tick(Duration::ZERO), tick(Duration::ZERO)]];
            for ([one, another], hits) in both.into_iter().zip(&mut hits) {
                select! {
                    recv(one) -> _ => hits[0] += 1,
                    recv(another) -> _ => hits[1] += 1,
                }
            }
        });
        hits.iter().for_each(|hits| assert_fair(hits));
    });
}

#[test]
fn senders_that_wait_at_several_rendezvous_are_met_in_turn() {
    anywhere(|other| {
        const EACH: usize = 300;
        let channels: Vec<_> = (0..3).map(|_| bounded::<()>(0)).collect();
        let (done, ended) = bounded::<()>(0);
        // Two beside each other, so that one of them waits while the other one comes back.
        let sending = other.starts_many(6, |number| {
            let (sender, ended) = (channels[number % 3].0.clone(), ended.clone());
            move || {
                while select! { send(sender, ()) -> sent => sent.is_ok(), recv(ended) -> _ => false } {}
            }
        });
        let mut hits = [0; 3];
        for _ in 0..3 * EACH {
            // A task waits at each: a wake from another thread takes as long as a hundred rounds here.
            channels.iter().for_each(|(_, receiver)| until_ready(receiver));
            select! {
                recv(channels[0].1) -> _ => hits[0] += 1,
                recv(channels[1].1) -> _ => hits[1] += 1,
                recv(channels[2].1) -> _ => hits[2] += 1,
            }
        }
        drop(done);
        join_all(sending);
        assert_fair(&hits);
    });
}

#[test]
fn two_selects_that_meet_at_two_rendezvous_use_both() {
    anywhere(|other| {
        let ((s1, r1), (s2, r2)) = (bounded::<()>(0), bounded::<()>(0));
        let receiving = other.runs(move || {
            let mut hits = [0; 2];
            (0..ROUNDS / 2).for_each(|_| {
                select! {
                    recv(r1) -> _ => hits[0] += 1,
                    recv(r2) -> _ => hits[1] += 1,
                }
            });
            assert_fair(&hits);
        });
        let mut hits = [0; 2];
        (0..ROUNDS / 2).for_each(|_| {
            select! {
                send(s1, ()) -> _ => hits[0] += 1,
                send(s2, ()) -> _ => hits[1] += 1,
            }
        });
        assert_fair(&hits);
        receiving.join();
    });
}

#[test]
fn two_selects_that_meet_in_many_arms_of_one_rendezvous_use_them_all() {
    anywhere(|other| {
        let (sender, receiver) = bounded::<()>(0);
        let receiving = other.runs(move || {
            let mut hits = [0; 4];
            (0..ROUNDS / 2).for_each(|_| {
                select! {
                    recv(receiver) -> _ => hits[0] += 1,
                    recv(receiver) -> _ => hits[1] += 1,
                    recv(receiver) -> _ => hits[2] += 1,
                    recv(receiver) -> _ => hits[3] += 1,
                }
            });
            assert_fair(&hits);
        });
        let mut hits = [0; 4];
        (0..ROUNDS / 2).for_each(|_| {
            select! {
                send(sender, ()) -> _ => hits[0] += 1,
                send(sender, ()) -> _ => hits[1] += 1,
                send(sender, ()) -> _ => hits[2] += 1,
                send(sender, ()) -> _ => hits[3] += 1,
            }
        });
        assert_fair(&hits);
        receiving.join();
    });
}

/// Receives from one of three, by a select or after a look which is ready. Its number.
fn receive_one(receivers: &[Receiver<()>; 3], by_select: bool) -> usize {
    let [first, second, third] = receivers;
    if by_select {
        return select! {
            recv(first) -> _ => 0,
            recv(second) -> _ => 1,
            recv(third) -> _ => 2,
        };
    }
    let mut select = Select::new();
    receivers.iter().for_each(|receiver| _ = select.recv(receiver));
    std::iter::repeat_with(|| select.ready()).find(|&index| receivers[index].try_recv().is_ok()).unwrap()
}

#[test]
fn no_kind_of_channel_starves_beside_the_others() {
    anywhere(|other| {
        for by_select in [true, false] {
            let [(s1, r1), (s2, r2), (s3, r3)] = [unbounded(), bounded(1), bounded(0)];
            let sending = other.runs(move || {
                let (hole, _never) = bounded(0);
                (0..ROUNDS).for_each(|_| {
                    let s1 = if s1.is_empty() { &s1 } else { &hole };
                    let s2 = if s2.is_empty() { &s2 } else { &hole };
                    select! {
                        send(s1, ()) -> sent => sent.unwrap(),
                        send(s2, ()) -> sent => sent.unwrap(),
                        send(s3, ()) -> sent => sent.unwrap(),
                    }
                });
            });
            let (mut hits, receivers) = ([0; 3], [r1, r2, r3]);
            (0..ROUNDS).for_each(|round| {
                // Every other time a task waits there. Sides that keep step always find room, and a message, elsewhere.
                round.is_multiple_of(2).then(|| until_ready(&receivers[2]));
                hits[receive_one(&receivers, by_select)] += 1;
            });
            sending.join();
            assert!(hits.iter().all(|&hit| hit >= ROUNDS / 3 / 50), "{hits:?}");
        }
    });
}

#[test]
fn a_message_of_two_arms_is_chosen_at_random_enough() {
    anywhere(|other| {
        for kind in [Some(0), Some(1), Some(20), None] {
            let (sender, receiver) = make(kind);
            let receiving = other.runs(move || receiver.iter().sum::<usize>());
            (0..400).for_each(|_| {
                select! {
                    send(sender, 1) -> _ => {}
                    send(sender, 0) -> _ => {}
                }
            });
            drop(sender);
            assert!((100..=300).contains(&receiving.join()), "{kind:?}");
        }
    });
}

#[test]
fn a_select_is_not_passed_over_by_receivers() {
    anywhere(|other| {
        for kind in [Some(0), Some(1), None] {
            let (sender, receiver) = make::<usize>(kind);
            let (_kept, quiet) = make::<usize>(Some(0));
            let receiving = other.starts_many(4, |number| {
                let (receiver, quiet) = (receiver.clone(), quiet.clone());
                move || match number < 2 {
                    true => receiver.iter().count(),
                    false => {
                        let received = || {
                            select! { recv(receiver) -> received => received.ok(), recv(quiet) -> _ => None }
                        };
                        std::iter::from_fn(received).count()
                    }
                }
            });
            let feed = Other::Alike.runs(move || {
                (0..400).for_each(|number| {
                    sender.send(number).unwrap();
                    // Lets them fall asleep again, so that there is a queue of waiters.
                    (number % 4 == 3).then(crate::common::give_way);
                });
            });
            feed.join();
            let hits = join_all(receiving);
            assert_eq!(hits.iter().sum::<usize>(), 400, "{kind:?}: {hits:?}");
        }
    });
}
