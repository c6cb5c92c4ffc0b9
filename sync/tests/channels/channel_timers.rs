//! What `after`, `at`, `tick` and `never` promise.

use std::time::{Duration, Instant};

use crate::channels::{Other, join_all, ms, sleep, us};
use crate::common::{give_way, guarded, runtime};
use crate::paused::{TICK, is_about, paused};
use fibra_runtime::time::now;
use fibra_sync::channel::{
    Receiver, RecvError, RecvTimeoutError, Select, Sender, TryRecvError, after, at, bounded, never, tick,
    unbounded,
};
use fibra_sync::select;

/// Runs `promise` in a plain thread, in a task of two workers, and in virtual time.
fn in_both_times(promise: impl Fn() + Send + Sync) {
    guarded(&promise);
    guarded(|| runtime(2).run(&promise));
    paused(promise);
}

/// Does the same with others that are alike, and in a task of two workers with others in threads.
fn with_others(promise: impl Fn(Other) + Send + Sync) {
    in_both_times(|| promise(Other::Alike));
    guarded(|| runtime(2).run(|| promise(Other::Thread)));
}

/// Those that send the time once or over and over, at a time that is far away.
fn timers(duration: Duration) -> [Receiver<Instant>; 3] {
    [after(duration), at(now() + duration), tick(duration)]
}

#[test]
fn a_timer_does_not_fire_before_its_time() {
    in_both_times(|| {
        let start = now();
        for timer in timers(ms(5)) {
            let fired = timer.recv().unwrap();
            assert!(fired >= start + ms(5), "the message is the time that was meant");
            assert!(now() >= fired, "and has come");
        }
    });
}

#[test]
fn a_timer_that_has_not_fired_is_empty() {
    in_both_times(|| {
        for timer in timers(ms(60_000)) {
            assert_eq!((timer.len(), timer.is_empty(), timer.is_full()), (0, true, false));
            assert_eq!(timer.try_recv(), Err(TryRecvError::Empty));
            assert_eq!(timer.recv_timeout(ms(1)), Err(RecvTimeoutError::Timeout));
            assert_eq!(timer.recv_deadline(now()), Err(RecvTimeoutError::Timeout));
            select! {
                recv(timer) -> _ => panic!("too early"),
                default => {}
            }
            select! {
                recv(timer) -> _ => panic!("too early"),
                default(ms(1)) => {}
            }
        }
    });
}

#[test]
fn a_timer_that_has_fired_is_full_until_it_is_received() {
    in_both_times(|| {
        let start = now();
        let timers = timers(ms(3));
        let made = now();
        for timer in timers {
            assert_eq!(timer.capacity(), Some(1));
            sleep((made + ms(10)).saturating_duration_since(now()));
            assert_eq!((timer.len(), timer.is_empty(), timer.is_full()), (1, false, true));
            let fired = timer.try_recv().unwrap();
            assert!(start + ms(3) <= fired && fired <= now());
        }
    });
}

#[test]
fn after_fires_once() {
    in_both_times(|| {
        for timer in [after(us(100)), at(now()), after(Duration::ZERO)] {
            timer.recv().unwrap();
            assert_eq!((timer.len(), timer.is_empty(), timer.is_full()), (0, true, false));
            assert_eq!(timer.try_recv(), Err(TryRecvError::Empty), "it is never disconnected");
            assert_eq!(timer.recv_timeout(ms(2)), Err(RecvTimeoutError::Timeout));
            select! {
                recv(timer) -> _ => panic!("twice"),
                recv(after(ms(2))) -> _ => {}
            }
        }
    });
}

#[test]
fn after_fires_once_for_all_its_clones() {
    with_others(|other| {
        for round in 0..10 {
            let timer = after(us(100 * round));
            let waiting = other.starts_many(8, |number| {
                let timer = timer.clone();
                move || match number % 4 {
                    0 => timer.recv_timeout(ms(20)).is_ok(),
                    1 => select! { recv(timer) -> fired => fired.is_ok(), default(ms(20)) => false },
                    2 => select! { recv(timer) -> fired => fired.is_ok(), recv(after(ms(20))) -> _ => false },
                    _ => (0..200).any(|_| {
                        give_way();
                        timer.try_recv().is_ok()
                    }),
                }
            });
            let fired = join_all(waiting).into_iter().filter(|&fired| fired).count();
            // There is one message; all waits but the tries are much longer than it takes.
            assert_eq!(fired, 1);
            assert_eq!(timer.try_recv(), Err(TryRecvError::Empty));
        }
    });
}

/// Receives of the first of `timers` that fires, by a select or after a look which is ready. None once `stop` has ended.
fn receive_one(
    timers: &[Receiver<Instant>],
    stop: &Receiver<()>,
    by_select: bool,
) -> Option<(usize, Instant)> {
    let mut select = Select::new();
    timers.iter().for_each(|timer| _ = select.recv(timer));
    let stopped = select.recv(stop);
    loop {
        let (index, fired) = match by_select {
            true => {
                let operation = select.select();
                match operation.index() {
                    index if index == stopped => {
                        assert_eq!(operation.recv(stop), Err(RecvError));
                        (index, None)
                    }
                    index => (index, operation.recv(&timers[index]).ok()),
                }
            }
            false => {
                let index = select.ready();
                (index, timers.get(index).and_then(|timer| timer.try_recv().ok()))
            }
        };
        match fired {
            Some(fired) => return Some((index, fired)),
            None if index == stopped => return None,
            // Another one was quicker.
            None => {}
        }
    }
}

/// Lets eight receive from `timers`, until there are so many messages. These, with the numbers of the timers.
fn receive_from_many(other: Other, timers: &[Receiver<Instant>], count: usize) -> Vec<(usize, Instant)> {
    let (running, stop) = bounded(0);
    let (hit, hits) = unbounded();
    let tasks = other.starts_many(8, |number| {
        let (timers, stop, hit) = (timers.to_vec(), stop.clone(), hit.clone());
        move || {
            while let Some(fired) = receive_one(&timers, &stop, number / 2 % 2 == 0) {
                hit.send(fired).unwrap();
            }
        }
    });
    let mut received: Vec<_> = hits.iter().take(count).collect();
    drop::<Sender<()>>(running);
    join_all(tasks);
    received.extend(hits.try_iter());
    received.sort_unstable();
    received
}

#[test]
fn each_of_many_timers_is_received_by_one_of_many() {
    const TIMERS: usize = 50;
    with_others(|other| {
        let timers: Vec<_> = (0..TIMERS).map(|number| after(us(20 * number as u64))).collect();
        let received = receive_from_many(other, &timers, TIMERS);
        assert!(received.into_iter().map(|(timer, _)| timer).eq(0..TIMERS));
    });
}

#[test]
fn each_tick_of_several_tickers_is_received_by_one_of_many() {
    with_others(|other| {
        let periods = [us(700), us(1100)];
        let received = receive_from_many(other, &periods.map(tick), 40);
        for (ticker, period) in periods.into_iter().enumerate() {
            let ticks: Vec<_> =
                received.iter().filter(|(of, _)| *of == ticker).map(|(_, fired)| *fired).collect();
            assert!(ticks.len() > 1, "both fire");
            assert!(ticks.windows(2).all(|pair| pair[1] >= pair[0] + period), "{ticks:?}");
        }
    });
}

#[test]
fn the_sooner_of_two_timers_wins() {
    in_both_times(|| {
        select! {
            recv(after(ms(1))) -> _ => {}
            recv(after(ms(60_000))) -> _ => panic!("a minute is longer"),
        }
        select! {
            recv(tick(ms(60_000))) -> _ => panic!("a minute is longer"),
            recv(tick(ms(1))) -> _ => {}
            default(ms(60_000)) => panic!("a minute is longer"),
        }
        select! {
            recv(after(ms(60_000))) -> _ => panic!("a minute is longer"),
            recv(never::<Instant>()) -> _ => panic!("never"),
            default(ms(1)) => {}
        }
    });
}

#[test]
fn a_timer_of_no_time_is_ready_at_once() {
    in_both_times(|| {
        for timer in timers(Duration::ZERO) {
            select! {
                recv(timer) -> fired => assert!(fired.unwrap() <= now()),
                default => panic!("it is ready"),
            }
        }
    });
}

#[test]
fn a_time_beyond_the_clock_is_never() {
    in_both_times(|| {
        for timer in [after(Duration::MAX), tick(Duration::MAX)] {
            assert_eq!(timer.try_recv(), Err(TryRecvError::Empty));
            assert_eq!(timer.recv_timeout(ms(1)), Err(RecvTimeoutError::Timeout));
        }
    });
}

#[test]
fn ticks_come_a_period_apart() {
    in_both_times(|| {
        let start = now();
        let ticks: Vec<_> = tick(ms(2)).iter().take(5).collect();
        assert!(ticks[0] >= start + ms(2));
        assert!(ticks.windows(2).all(|pair| pair[1] >= pair[0] + ms(2)), "{ticks:?}");
        assert!(now() - start >= ms(10));
    });
}

#[test]
fn unreceived_ticks_do_not_bunch() {
    in_both_times(|| {
        let timer = tick(ms(4));
        for _ in 0..3 {
            // From now on: the tick before may have been received late, and the next one is a period after that.
            sleep(ms(40));
            // One is there, of a time that is over; the next one is not, unless a period passes in between.
            let before = now();
            let first = timer.try_recv().unwrap();
            assert!(first <= before);
            match timer.try_recv() {
                Ok(second) => assert!(second >= before + ms(4), "only a full period later"),
                Err(error) => assert_eq!(error, TryRecvError::Empty),
            }
            assert!(timer.recv().unwrap() >= before + ms(4), "what was missed stays missed");
        }
    });
}

#[test]
fn a_tick_that_a_select_has_waited_for_moves_no_later_one() {
    in_both_times(|| {
        let (silent, timers) = (never::<()>(), [tick(ms(2)), tick(ms(2)), tick(ms(2))]);
        let (mut select, other) = (Select::new(), never::<()>());
        let of_list = select.recv(&timers[1]);
        select.recv(&other);
        let next = |way: usize, select: &mut Select<'_>| match way {
            0 => select! { recv(timers[0]) -> fired => fired.unwrap(), recv(silent) -> _ => unreachable!() },
            1 => {
                let operation = select.select();
                assert_eq!(operation.index(), of_list);
                operation.recv(&timers[1]).unwrap()
            }
            _ => {
                select! { recv(timers[2]) -> fired => fired.unwrap(), default(ms(60_000)) => unreachable!() }
            }
        };
        for way in 0..3 {
            let mut last = next(way, &mut select);
            // A wake-up always comes late, so that a tick after it would never be on time. Where the machine holds this up for a
            // period, the tick was missed.
            let on_time = (0..200).any(|_| {
                let fired = next(way, &mut select);
                assert!(fired >= last + ms(2), "{:?}", fired - last);
                let is_on_time = fired == last + ms(2);
                last = fired;
                is_on_time
            });
            assert!(on_time, "way {way}");
        }
    });
}

#[test]
fn ticks_that_a_select_has_missed_do_not_bunch_when_it_is_used_again() {
    in_both_times(|| {
        let (timer, soon) = (tick(ms(10)), after(ms(1)));
        let mut select = Select::new();
        let (of_timer, of_soon) = (select.recv(&timer), select.recv(&soon));
        let operation = select.select();
        if operation.index() != of_soon {
            // Held up for the whole period.
            return operation.recv(&timer).map(drop).unwrap();
        }
        operation.recv(&soon).unwrap();
        sleep(ms(40));
        let before = now();
        let operation = select.select();
        assert_eq!(operation.index(), of_timer);
        assert!(operation.recv(&timer).unwrap() <= before);
        assert!(timer.recv().unwrap() >= before + ms(10), "what was missed stays missed");
    });
}

#[test]
fn a_receive_that_gives_up_moves_no_tick() {
    in_both_times(|| {
        let timer = tick(ms(10));
        let first = timer.recv().unwrap();
        let received = now();
        let second = std::iter::repeat_with(|| timer.recv_timeout(ms(1))).find_map(Result::ok).unwrap();
        assert!((first + ms(10)..=received + ms(10)).contains(&second), "{:?}", second - first);
    });
}

#[test]
fn each_tick_is_received_by_one() {
    with_others(|other| {
        let timer = tick(ms(1));
        let receiving = other.starts_many(4, |number| {
            let timer = timer.clone();
            move || match number % 2 {
                0 => timer.iter().take(4).collect::<Vec<_>>(),
                _ => (0..4).map(|_| select! { recv(timer) -> fired => fired.unwrap() }).collect(),
            }
        });
        let mut ticks: Vec<_> = join_all(receiving).concat();
        ticks.sort_unstable();
        assert!(ticks.windows(2).all(|pair| pair[1] >= pair[0] + ms(1)), "{ticks:?}");
    });
}

#[test]
fn a_ticker_may_be_made_never_in_a_loop() {
    in_both_times(|| {
        let (mut timer, mut steps) = (tick(us(500)), 0);
        loop {
            select! {
                recv(timer) -> _ => steps += 1,
                default(ms(if steps == 5 { 5 } else { 60_000 })) => break,
            }
            if steps == 5 {
                timer = never();
            }
        }
        assert_eq!(steps, 5);
    });
}

#[test]
fn never_is_neither_ready_nor_disconnected() {
    in_both_times(|| {
        let never = never::<i32>();
        assert_eq!(
            (never.capacity(), never.len(), never.is_empty(), never.is_full()),
            (Some(0), 0, true, true)
        );
        assert_eq!(never.try_recv(), Err(TryRecvError::Empty));
        let start = now();
        assert_eq!(never.recv_timeout(ms(3)), Err(RecvTimeoutError::Timeout));
        assert!((now() - start) >= ms(3));
        select! {
            recv(never) -> _ => panic!("never"),
            default => {}
        }
        assert_eq!(never.try_iter().count(), 0);
    });
}

#[test]
fn never_stands_for_a_channel_that_is_not_there() {
    in_both_times(|| {
        let (sender, receiver) = unbounded();
        sender.send(1).unwrap();
        for channel in [Some(&receiver), None] {
            let received = select! {
                recv(channel.unwrap_or(&never())) -> received => received.ok(),
                default => None,
            };
            assert_eq!(received, channel.map(|_| 1));
        }
    });
}

#[test]
fn timers_are_of_one_channel_with_their_clones_only() {
    for timer in timers(ms(50)) {
        assert!(timer.same_channel(&timer.clone()));
        assert!(timers(ms(50)).iter().all(|another| !timer.same_channel(another)));
        assert!(!timer.same_channel(&never()));
    }
    assert!(never::<i32>().same_channel(&never()), "there is only one");
}

#[test]
fn clones_of_a_timer_come_and_go_while_others_try_it() {
    with_others(|other| {
        for round in 0..20 {
            let timer = after(us(50 * round));
            let all = other.starts_many(4, |_| {
                let timer = timer.clone();
                move || {
                    (0..50)
                        .filter(|_| {
                            crate::common::give_way();
                            timer.clone().try_recv().is_ok()
                        })
                        .count()
                }
            });
            let early: usize = join_all(all).into_iter().sum();
            let late = timer.recv_timeout(ms(if early == 0 { 60_000 } else { 0 }));
            assert_eq!(early + usize::from(late.is_ok()), 1);
        }
    });
}

#[test]
fn in_virtual_time_timers_fire_when_they_are_due() {
    const HOUR: Duration = Duration::from_secs(3600);
    paused(|| {
        let start = now();
        for timer in timers(HOUR) {
            assert!(is_about(timer.recv().unwrap() - start, HOUR));
            assert!(is_about(now() - start, HOUR));
        }
        let start = now();
        let ticks = tick(HOUR);
        let last = ticks.iter().take(24).inspect(|fired| assert!(now() - *fired <= TICK)).last();
        assert!(is_about(last.unwrap() - start, HOUR * 24));
    });
}
