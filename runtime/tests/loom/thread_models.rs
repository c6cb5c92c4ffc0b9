//! Plain threads that sleep: the place of each is used again for its next sleep, and gone when the thread has ended.

use crate::gate::Gate;
use crate::primitive::check_bounded;
use crate::wait::Waking;

/// Finds: a wake that is lost as the thread goes to sleep; a write before the wake that is not seen after it.
#[test]
fn a_thread_that_goes_to_sleep_is_woken_and_sees_what_was_done() {
    check_bounded(3, || {
        let gate = Gate::new();
        let opener = gate.spawn_open();
        assert_eq!(gate.pass(false), Waking::Notified);
        gate.assert_written();
        opener.join().unwrap();
        assert_eq!(gate.permits(), 0);
    });
}

/// Finds: a thread that goes on before its waker has let go of its place: it ends, and the place with it, or it sleeps again and
/// takes the end of the first wake for that of the second.
#[test]
fn a_waker_lets_go_of_the_place_before_it_is_used_again_or_freed() {
    check_bounded(3, || {
        let gate = Gate::new();
        let sleeper = gate.spawn(|gate| [gate.pass(false), gate.pass(false)]);
        gate.open();
        gate.open();
        assert_eq!(
            sleeper.join().unwrap(),
            [Waking::Notified; 2],
            "nothing else ends a sleep without a deadline"
        );
        assert_eq!(gate.permits(), 0);
    });
}

/// Finds: a permit that is given to a thread after its deadline, and lost; a wake on its way that is not waited for, and meets the
/// next sleep, or the end of the thread.
#[test]
fn a_wake_meets_the_deadline_of_a_thread() {
    check_bounded(3, || {
        let gate = Gate::new();
        let sleeper = gate.spawn(|gate| [gate.pass(true), gate.pass(true)]);
        gate.open();
        let passed = sleeper.join().unwrap();
        let notified = passed.iter().filter(|why| **why == Waking::Notified).count();
        assert_eq!(notified + gate.permits() as usize, 1);
    });
}

/// Finds: a late wake that meets a next sleep without a deadline, so that nothing ends it.
#[test]
fn a_thread_sleeps_again_after_a_deadline() {
    check_bounded(3, || {
        let gate = Gate::new();
        let sleeper = gate.spawn(|gate| {
            let first = gate.pass(true);
            if first == Waking::TimedOut {
                assert_eq!(gate.pass(false), Waking::Notified);
            }
        });
        gate.open();
        sleeper.join().unwrap();
        assert_eq!(gate.permits(), 0);
    });
}
