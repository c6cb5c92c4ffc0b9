//! Tests of `board`.

use super::*;

#[test]
fn only_the_interval_is_measured() {
    let board = Board::new();
    board.record(&[Instant::now()], Instant::now());
    board.begin();
    let due = Instant::now();
    board.record(&[due, due], Instant::now());
    board.end();
    board.record(&[Instant::now()], Instant::now());
    let outcome = board.outcome();
    assert_eq!(outcome.totals.replies, 2);
    assert_eq!(outcome.latencies.iter().map(|(_, count)| count).sum::<u64>(), 2);
}

#[test]
fn a_late_reply_counts_from_its_due_time_and_not_towards_the_rate() {
    let board = Board::new();
    board.begin();
    let due = Instant::now();
    std::thread::sleep(Duration::from_millis(2));
    board.end();
    board.record(&[due], due + Duration::from_millis(500));
    let outcome = board.outcome();
    assert_eq!(outcome.totals.replies, 0);
    assert!(outcome.latencies[0].0 >= 499_000_000, "{:?}", outcome.latencies);
}

#[test]
fn what_a_lost_lane_leaves_is_late_to_the_end_of_the_interval() {
    let start = Instant::now();
    let after = |micros| start + Duration::from_micros(micros);
    let unsent = |lost| {
        let (board, pace) = (Board::new(), Pace::new(1000.0, 0, 1, start));
        let left = Left { dues: vec![after(5_000)], pace, since: after(10_500), lost };
        give_up_on(left, &(start..after(20_500)), &mut board.tally());
        let tally = board.tally();
        assert!(tally.latencies.max().abs_diff(20_500_000) < 50_000, "{}", tally.latencies.max());
        (tally.totals.unsent, tally.latencies.len())
    };
    assert_eq!(unsent(true), (22, 22));
    // One that ended in order owes nothing from then on.
    assert_eq!(unsent(false), (12, 12));
}

#[test]
fn what_is_left_is_counted_once() {
    let board = Board::new();
    board.begin();
    board.leave(
        &Err(io::ErrorKind::UnexpectedEof.into()),
        vec![Instant::now()],
        Pace::new(1e-3, 1, 1, Instant::now()),
    );
    board.end();
    assert_eq!([board.outcome().totals.unsent, board.outcome().totals.unsent], [1, 1]);
}

#[test]
fn what_was_lost_is_late_to_the_end_of_the_interval() {
    let board = Board::new();
    board.lose(&mut vec![Instant::now()]);
    board.begin();
    let mut dues = vec![Instant::now(); 2];
    board.lose(&mut dues);
    assert!(dues.is_empty());
    std::thread::sleep(Duration::from_millis(2));
    board.end();
    let outcome = board.outcome();
    assert_eq!(
        (outcome.totals.unsent, outcome.latencies.iter().map(|(_, count)| count).sum::<u64>()),
        (2, 2)
    );
    assert!(outcome.latencies[0].0 >= 1_990_000, "{:?}", outcome.latencies);
}

#[test]
fn nothing_is_held_against_the_server_after_a_stop() {
    let board = Board::new();
    board.connection_starts();
    board.connection_starts();
    board.connection_ends(Err(io::ErrorKind::UnexpectedEof.into()));
    board.stop();
    board.connection_ends(Err(io::ErrorKind::UnexpectedEof.into()));
    assert_eq!((board.outcome().totals.faults.lost, board.live()), (1, 0));
}
