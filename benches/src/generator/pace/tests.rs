//! Tests of `pace`.

use super::*;
use crate::generator::new_histogram;

fn pace(id: usize, start: Instant) -> Pace {
    Pace::new(100.0, id, 2, start)
}

#[test]
fn connections_take_turns() {
    let start = Instant::now();
    let due = |id| pace(id, start).next_due() - start;
    assert_eq!(due(0), Duration::ZERO);
    assert_eq!(due(1), Duration::from_millis(10));
}

#[test]
fn what_is_late_stays_due_when_it_was() {
    let start = Instant::now();
    let (mut pace, mut dues) = (pace(0, start), Vec::new());
    pace.take_due(start + Duration::from_millis(50), 2, &mut dues);
    assert_eq!(dues, [start, start + Duration::from_millis(20)]);
    assert_eq!(pace.next_due(), start + Duration::from_millis(40));
}

#[test]
fn late_is_what_is_due_in_the_interval_and_was_not_taken() {
    let start = Instant::now();
    let (mut pace, mut dues) = (pace(0, start), Vec::new());
    let after = |millis| start + Duration::from_millis(millis);
    let late = |pace: &Pace, from, to| pace.late(&(after(from)..after(to)), after(100));
    assert_eq!((late(&pace, 0, 90).count(), late(&pace, 30, 90).count()), (5, 3));
    pace.take_due(after(25), 10, &mut dues);
    assert_eq!((late(&pace, 0, 90).count(), late(&pace, 0, 30).count()), (3, 0));
    let mut latencies = new_histogram();
    late(&pace, 0, 90).record(&mut latencies);
    let millis: Vec<_> = latencies.iter_recorded().map(|v| v.value_iterated_to() / 1_000_000).collect();
    assert_eq!(millis, [20, 40, 60]);
}

#[test]
fn millions_that_are_late_are_taken_down_by_buckets() {
    let start = Instant::now();
    let end = start + Duration::from_secs(8);
    let late = Pace::new(10e6, 3, 4, start).late(&(start..end), end);
    let mut latencies = new_histogram();
    late.record(&mut latencies);
    assert!(late.count().abs_diff(20_000_000) <= 1 && latencies.len() == late.count(), "{}", late.count());
    let median = latencies.value_at_quantile(0.5);
    assert!(median.abs_diff(4_000_000_000) < 10_000_000, "{median}");
}
