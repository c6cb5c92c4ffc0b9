//! Small programs of channels and selects: pipelines, pools, and knots of waiters.

use crate::channels::{KINDS, Other, anywhere, join_all, make, us};
use crate::common::{give_way, guarded, in_tasks, pause, until};
use fibra_sync::channel::{Receiver, Select, Sender, bounded, unbounded};
use fibra_sync::select;

#[test]
fn a_sieve_of_filters_finds_the_primes() {
    fn filter(from: &Receiver<u32>, to: &Sender<u32>, prime: u32) {
        for number in from.iter().filter(|number| number % prime != 0) {
            if to.send(number).is_err() {
                return;
            }
        }
    }
    anywhere(|other| {
        for kind in [Some(0), Some(1)] {
            let (sender, mut numbers) = make(kind);
            let mut all =
                vec![other.runs(move || _ = (2..).take_while(|&number| sender.send(number).is_ok()).count())];
            let mut primes = Vec::new();
            for _ in 0..15 {
                let prime = numbers.recv().unwrap();
                primes.push(prime);
                let (to, filtered) = make(kind);
                let from = std::mem::replace(&mut numbers, filtered);
                all.push(other.runs(move || filter(&from, &to, prime)));
            }
            assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]);
            drop(numbers);
            join_all(all);
        }
    });
}

#[test]
fn a_pool_of_workers_returns_every_job_once() {
    const WORKERS: usize = 23;
    const JOBS: usize = 1000;
    const SLOW: [usize; 10] = [2, 3, 7, 11, 13, 17, 19, 23, 27, 31];
    anywhere(|other| {
        for kind in [Some(0), Some(WORKERS * 3), None] {
            let ((jobs, job), (results, result)) = (make::<usize>(kind), make::<usize>(kind));
            let workers = other.starts_many(WORKERS, |name| {
                let (job, results) = (job.clone(), results.clone());
                move || {
                    for work in &job {
                        (work == SLOW[name % 10]).then(give_way);
                        results.send(work).unwrap();
                    }
                }
            });
            drop((job, results));
            let feed = other.runs(move || (0..JOBS).for_each(|number| jobs.send(SLOW[number % 10]).unwrap()));
            assert_eq!(
                result.iter().fold((0, 0), |(count, sum), work| (count + 1, sum + work)),
                (JOBS, 15_300)
            );
            feed.join();
            join_all(workers);
        }
    });
}

#[test]
fn one_waiter_may_wait_at_a_channel_several_times() {
    anywhere(|other| {
        let [(c, from_c), (d, from_d), (e, from_e)] = [bounded::<i32>(0), bounded(0), bounded(0)];
        let (cs, ds, es, back) = (from_c.clone(), from_d.clone(), from_e.clone(), e.clone());
        let choosing = other.runs(move || {
            select! {
                recv(cs) -> _ => panic!("another one received it"),
                recv(ds) -> received => assert_eq!(received, Ok(7)),
                recv(es) -> _ => panic!("nothing was sent"),
            }
            back.send(9).unwrap();
        });
        pause();
        let receiving = other.runs(move || from_c.recv());
        d.send(7).unwrap();
        assert_eq!(from_e.recv(), Ok(9));
        c.send(8).unwrap();
        assert_eq!(receiving.join(), Ok(8), "the select that left is passed over");
        choosing.join();
        drop((from_d, e));
    });
}

#[test]
fn a_select_that_leaves_its_place_in_the_middle_breaks_no_queue() {
    anywhere(|other| {
        let [(s1, r1), (s2, r2), (s3, r3)] = [bounded::<bool>(0), bounded(0), bounded(0)];
        let (first, third, quiet) = (r1.clone(), r1.clone(), r2);
        let one = other.runs(move || first.recv());
        pause();
        let two = other.runs(move || {
            select! {
                recv(r1) -> _ => panic!("too late"),
                recv(quiet) -> received => s3.send(received.unwrap()).unwrap(),
            }
        });
        pause();
        let three = other.runs(move || third.recv());
        s2.send(true).unwrap();
        assert_eq!(r3.recv(), Ok(true));
        s1.send(true).unwrap();
        s1.send(false).unwrap();
        let mut received = [one.join().unwrap(), three.join().unwrap()];
        received.sort_unstable();
        assert_eq!(received, [false, true]);
        two.join();
    });
}

/// The ways to send and to receive. The last three only look and never wait.
const WAYS: usize = 7;
const LOOKS: usize = 4;

fn send(way: usize, sender: &Sender<usize>, number: usize) {
    let (other, _kept) = bounded(0);
    match way {
        0 => sender.send(number).unwrap(),
        1 => select! { send(sender, number) -> sent => sent.unwrap() },
        2 => {
            select! { send(sender, number) -> sent => sent.unwrap(), send(other, 1) -> _ => panic!("alone") }
        }
        3 => while sender.send_timeout(number, us(10)).is_err() {},
        4 => until(|| sender.try_send(number).is_ok()),
        5 => until(|| select! { send(sender, number) -> sent => sent.is_ok(), default => false }),
        _ => until(|| {
            let mut select = Select::new();
            select.send(sender);
            select.ready_timeout(us(10)).is_ok() && sender.try_send(number).is_ok()
        }),
    }
}

fn receive(way: usize, receiver: &Receiver<usize>) -> usize {
    let (_kept, other) = bounded(0);
    let tried: &dyn Fn() -> Option<usize> = match way {
        0 => return receiver.recv().unwrap(),
        1 => return select! { recv(receiver) -> received => received.unwrap() },
        2 => {
            return select! {
                recv(receiver) -> received => received.unwrap(),
                recv(other) -> received => received.unwrap(),
            };
        }
        3 => &|| receiver.recv_timeout(us(10)).ok(),
        4 => &|| receiver.try_recv().ok(),
        5 => &|| select! { recv(receiver) -> received => received.ok(), default => None },
        _ => &|| {
            let mut select = Select::new();
            select.recv(receiver);
            select.ready_timeout(us(10)).ok().and_then(|_| receiver.try_recv().ok())
        },
    };
    loop {
        match tried() {
            Some(number) => break number,
            None => give_way(),
        }
    }
}

#[test]
fn every_way_to_send_meets_every_way_to_receive() {
    anywhere(|other| {
        for kind in KINDS {
            for (sends, receives) in
                (0..WAYS).flat_map(|sends| (0..WAYS).map(move |receives| (sends, receives)))
            {
                // Two sides that only look do not meet.
                if kind == Some(0) && sends >= LOOKS && receives >= LOOKS {
                    continue;
                }
                let (sender, receiver) = make(kind);
                let receiving = other.runs(move || receive(receives, &receiver));
                give_way();
                send(sends, &sender, 1);
                assert_eq!(receiving.join(), 1, "{kind:?} {sends} {receives}");
            }
        }
    });
}

/// Runs as many senders as receivers, each in its way; no sender only looks for a receiver.
fn many_meet(other: Other, tasks: usize) {
    const EACH: usize = 20;
    for kind in KINDS {
        let (sender, receiver) = make(kind);
        let sending = other.starts_many(tasks, |name| {
            let sender = sender.clone();
            move || (0..EACH).for_each(|number| send(name / 2 % LOOKS, &sender, name * EACH + number))
        });
        let receiving = other.starts_many(tasks, |name| {
            let receiver = receiver.clone();
            move || (0..EACH).map(|_| receive(name / 2 % WAYS, &receiver)).collect::<Vec<_>>()
        });
        join_all(sending);
        let mut received = join_all(receiving).concat();
        received.sort_unstable();
        assert!(received.into_iter().eq(0..tasks * EACH), "{kind:?}");
        assert!(receiver.is_empty());
    }
}

#[test]
fn hundreds_send_and_receive_in_every_way_and_each_value_arrives_once() {
    guarded(|| many_meet(Other::Alike, 16));
    in_tasks(|| many_meet(Other::Alike, 200));
    in_tasks(|| many_meet(Other::Thread, 40));
}

/// The length of a sequence that goes through a channel.
const LENGTH: usize = 50;

/// Sends a sequence to each of `senders` and receives one from each of `receivers`, whichever can be done.
fn pass(senders: &[Sender<usize>], receivers: &[Receiver<usize>]) {
    let (mut sent, mut received) = (vec![0; senders.len()], vec![0; receivers.len()]);
    let unfinished =
        |counts: &[usize]| -> Vec<_> { (0..counts.len()).filter(|&place| counts[place] < LENGTH).collect() };
    loop {
        let (sends, receives) = (unfinished(&sent), unfinished(&received));
        if sends.is_empty() && receives.is_empty() {
            return;
        }
        let mut select = Select::new();
        sends.iter().for_each(|&place| _ = select.send(&senders[place]));
        receives.iter().for_each(|&place| _ = select.recv(&receivers[place]));
        let operation = select.select();
        match operation.index().checked_sub(sends.len()) {
            None => {
                let place = sends[operation.index()];
                operation.send(&senders[place], sent[place]).unwrap();
                sent[place] += 1;
            }
            Some(place) => {
                let place = receives[place];
                assert_eq!(operation.recv(&receivers[place]), Ok(received[place]));
                received[place] += 1;
            }
        }
    }
}

/// Four channels.
fn four(kind: Option<usize>) -> (Vec<Sender<usize>>, Vec<Receiver<usize>>) {
    (0..4).map(|_| make(kind)).unzip()
}

#[test]
fn two_selects_over_eight_channels_keep_each_of_them_in_order() {
    anywhere(|other| {
        for kind in [Some(0), Some(1), Some(10), None] {
            let ((to, from), (back, answers)) = (four(kind), four(kind));
            let facing = other.runs(move || pass(&back, &from));
            pass(&to, &answers);
            facing.join();
        }
    });
}

#[test]
fn sequences_go_from_senders_to_a_select_to_a_select_to_receivers_in_order() {
    anywhere(|other| {
        for kind in [Some(0), Some(1), Some(10), None] {
            let [(first, to), (between, from), (last, end)] = [four(kind), four(kind), four(kind)];
            let sending = first.into_iter().map(|sender| {
                other.runs(move || (0..LENGTH).for_each(|number| sender.send(number).unwrap()))
            });
            let receiving = end
                .into_iter()
                .map(|receiver| other.runs(move || assert!(receiver.iter().take(LENGTH).eq(0..LENGTH))));
            let mut all: Vec<_> = sending.chain(receiving).collect();
            all.push(other.runs(move || pass(&between, &to)));
            pass(&last, &from);
            join_all(all);
        }
    });
}

#[test]
fn two_looks_at_one_value_find_it_once() {
    anywhere(|other| {
        for kind in [Some(1), None] {
            for _ in 0..30 {
                let ((s1, r1), (s2, r2)) = (make(kind), make(kind));
                s1.send(1).unwrap();
                let (first, second) = (r1.clone(), r2.clone());
                let looking = other.runs(move || {
                    select! {
                        recv(first) -> _ => true,
                        recv(second) -> _ => true,
                        default => false,
                    }
                });
                s2.send(1).unwrap();
                select! { recv(r1) -> _ => {}, default => {} }
                assert!(looking.join(), "one of the two was ready all the time");
                drop(r2);
            }
        }
    });
}

#[test]
fn a_look_as_a_channel_ends_finds_a_value_or_the_end() {
    anywhere(|other| {
        for kind in [Some(1), None] {
            for _ in 0..30 {
                let ((s1, r1), (s2, r2)) = (make(kind), make::<usize>(kind));
                s1.send(1).unwrap();
                let first = r1.clone();
                let looking = other.runs(move || {
                    select! {
                        recv(first) -> _ => true,
                        recv(r2) -> _ => true,
                        default => false,
                    }
                });
                drop(s2);
                let _ = r1.try_recv();
                assert!(looking.join(), "one of the two was ready all the time");
                let (sender, receiver) = make(kind);
                sender.send(1).unwrap();
                let another = receiver.clone();
                let looking = other.runs(move || select! { recv(another) -> _ => true, default => false });
                drop(sender);
                let _ = receiver.recv();
                assert!(looking.join(), "it had a value or had ended");
            }
        }
    });
}

#[test]
fn a_ring_of_a_thousand_tasks_passes_a_token_around() {
    const TASKS: usize = 1000;
    in_tasks(|| {
        for kind in KINDS {
            let (start, mut from) = make::<usize>(kind);
            let mut ring = Vec::new();
            for _ in 0..TASKS {
                let (to, next) = make::<usize>(kind);
                let from = std::mem::replace(&mut from, next);
                ring.push(
                    Other::Alike.runs(move || from.iter().for_each(|token| to.send(token + 1).unwrap())),
                );
            }
            for round in 0..3 {
                start.send(round).unwrap();
                assert_eq!(from.recv(), Ok(round + TASKS));
            }
            drop(start);
            assert!(from.recv().is_err(), "the end goes around as well");
            join_all(ring);
        }
    });
}

#[test]
fn a_stop_channel_ends_all_selects_on_it() {
    anywhere(|other| {
        let ((work, todo), (stop, stopped)) = (unbounded::<usize>(), bounded::<()>(0));
        let workers = other.starts_many(8, |_| {
            let (todo, stopped) = (todo.clone(), stopped.clone());
            move || {
                let mut done = 0;
                loop {
                    select! {
                        recv(todo) -> job => done += job.unwrap(),
                        recv(stopped) -> _ => break done,
                    }
                }
            }
        });
        (0..100).for_each(|_| work.send(1).unwrap());
        while !work.is_empty() {
            give_way();
        }
        drop(stop);
        assert_eq!(join_all(workers).into_iter().sum::<usize>(), 100);
    });
}
