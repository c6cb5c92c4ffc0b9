//! When ticks are due, by a clock that the tests set.

#![forbid(unsafe_code)]

use crate::api::interval::MissedTickBehavior::Burst;
use crate::api::interval::MissedTickBehavior::Delay;
use crate::api::interval::MissedTickBehavior::Skip;
use crate::api::interval::*;

const PERIOD: Duration = Duration::from_millis(100);

/// When ticks come, in milliseconds: each is asked for once `work` has passed since the one before came.
fn ticks(behavior: MissedTickBehavior, work: &[u64]) -> Vec<u64> {
    let start = Instant::now();
    let mut ticks = interval_at(start, PERIOD);
    ticks.set_missed_tick_behavior(behavior);
    let mut now = start;
    let mut came = Vec::new();
    for millis in work.iter().map(Some).chain([None]) {
        let due = ticks.next.expect("within this century");
        now = now.max(due);
        came.push((now - start).as_millis() as u64);
        ticks.next = ticks.after(due, now);
        now += Duration::from_millis(millis.copied().unwrap_or(0));
    }
    came
}

#[test]
fn ticks_on_time_keep_the_pace_whatever_the_behavior() {
    for behavior in [Burst, Delay, Skip] {
        assert_eq!(ticks(behavior, &[0, 99, 100, 1]), [0, 100, 200, 300, 400], "{behavior:?}");
    }
}

#[test]
fn a_tick_that_is_a_little_late_shifts_no_other() {
    for behavior in [Burst, Delay, Skip] {
        assert_eq!(ticks(behavior, &[105, 0, 0]), [0, 105, 200, 300], "{behavior:?}");
    }
}

#[test]
fn missed_ticks_come_in_a_burst() {
    assert_eq!(ticks(Burst, &[250, 0, 0, 0]), [0, 250, 250, 300, 400]);
}

#[test]
fn missed_ticks_delay_the_others() {
    assert_eq!(ticks(Delay, &[250, 0, 0, 0]), [0, 250, 350, 450, 550]);
    assert_eq!(ticks(Delay, &[190, 0]), [0, 190, 290]);
}

#[test]
fn missed_ticks_are_skipped() {
    assert_eq!(ticks(Skip, &[250, 0, 0, 0]), [0, 250, 300, 400, 500]);
    assert_eq!(ticks(Skip, &[200, 0, 0]), [0, 200, 300, 400]);
    assert_eq!(ticks(Skip, &[1099, 0]), [0, 1099, 1100]);
}

/// A period shorter than what counts as late by itself.
#[test]
fn a_short_period_is_kept_by_delayed_ticks() {
    let start = Instant::now();
    let mut ticks = interval_at(start, Duration::from_millis(1));
    ticks.set_missed_tick_behavior(Delay);
    let now = start + Duration::from_millis(3);
    assert_eq!(ticks.after(start, now), Some(now + Duration::from_millis(1)));
}

#[test]
fn ticks_beyond_the_clock_are_never_due() {
    let start = Instant::now();
    for behavior in [Burst, Delay, Skip] {
        let mut ticks = interval_at(start, Duration::MAX);
        ticks.set_missed_tick_behavior(behavior);
        assert_eq!(ticks.after(start, start + Duration::from_secs(1)), None, "{behavior:?}");
        ticks.reset();
        assert_eq!(ticks.next, None);
    }
}
