//! Small programs of channels and selects: pipelines, pools, and knots of waiters.

#[path = "common/channels.rs"]
mod channels;
mod common;

use channels::{KINDS, Other, anywhere, join_all, make, us};
use common::{give_way, in_tasks, pause};
use fibra_sync::channel::{Receiver, Sender, bounded, unbounded};
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
            let workers = other.crowd(WORKERS, |name| {
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

#[test]
fn every_way_to_send_meets_every_way_to_receive() {
    fn send(how: usize, sender: &Sender<i32>) {
        let (other, _kept) = bounded(0);
        match how {
            0 => sender.send(1).unwrap(),
            1 => select! { send(sender, 1) -> sent => sent.unwrap() },
            2 => select! { send(sender, 1) -> sent => sent.unwrap(), send(other, 1) -> _ => panic!("alone") },
            3 => while sender.send_timeout(1, us(10)).is_err() {},
            _ => {
                while sender.try_send(1).is_err() {
                    give_way()
                }
            }
        }
    }
    fn recv(how: usize, receiver: &Receiver<i32>) -> i32 {
        let (_kept, other) = bounded(0);
        match how {
            0 => receiver.recv().unwrap(),
            1 => select! { recv(receiver) -> received => received.unwrap() },
            2 => {
                select! { recv(receiver) -> received => received.unwrap(), recv(other) -> received => received.unwrap() }
            }
            3 => std::iter::repeat_with(|| receiver.recv_timeout(us(10))).find_map(Result::ok).unwrap(),
            _ => std::iter::repeat_with(|| {
                give_way();
                receiver.try_recv()
            })
            .find_map(Result::ok)
            .unwrap(),
        }
    }
    anywhere(|other| {
        for kind in KINDS {
            for (sends, receives) in (0..5).flat_map(|sends| (0..5).map(move |receives| (sends, receives))) {
                // Two who are never there for longer than a look do not meet.
                if kind == Some(0) && sends == 4 && receives == 4 {
                    continue;
                }
                let (sender, receiver) = make(kind);
                let receiving = other.runs(move || recv(receives, &receiver));
                give_way();
                send(sends, &sender);
                assert_eq!(receiving.join(), 1, "{kind:?} {sends} {receives}");
            }
        }
    });
}

#[test]
fn a_race_of_two_who_look_finds_one_value_for_one_of_them() {
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
fn a_stop_channel_ends_all_who_select_on_it() {
    anywhere(|other| {
        let ((work, todo), (stop, stopped)) = (unbounded::<usize>(), bounded::<()>(0));
        let workers = other.crowd(8, |_| {
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
