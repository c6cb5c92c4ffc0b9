//! The versions of a watched value: no waiter sleeps over a change or over the end.

use std::sync::Arc;

use loom::thread;

use crate::primitive::check_bounded;
use crate::wait::over;
use crate::watch::versions::Versions;

/// Versions with `receivers` receivers. Each of loom's objects is made by its first use.
fn with_receivers(receivers: usize) -> Arc<Versions> {
    let versions = Versions::new();
    (0..receivers).for_each(|_| versions.with(|counts| counts.receivers += 1));
    assert_eq!(versions.look().version, 0);
    Arc::new(versions)
}

fn spawn(versions: &Arc<Versions>, f: fn(&Versions)) -> thread::JoinHandle<()> {
    let versions = Arc::clone(versions);
    thread::spawn(move || f(&versions))
}

/// Finds: a receiver that sleeps over a change or over the end, also after a wait whose time ran out.
#[test]
fn a_change_is_seen() {
    for expires in [false, true] {
        check_bounded(2, move || {
            let versions = with_receivers(1);
            let sender = spawn(&versions, |versions| {
                versions.advance();
                versions.announce(true);
                versions.remove_sender();
            });
            let mut seen = 0;
            if expires {
                let _ = versions.wait_changed(&mut seen, Some(over()));
            }
            while versions.wait_changed(&mut seen, None).is_ok() {}
            assert_eq!(seen, 1);
            sender.join().unwrap();
        });
    }
}

/// Finds: a sender that waits for the last of two receivers to go, and sleeps on.
#[test]
fn the_last_receiver_wakes_a_sender_that_waits_for_it() {
    check_bounded(3, || {
        let versions = with_receivers(2);
        let other = spawn(&versions, Versions::remove_receiver);
        versions.remove_receiver();
        assert!(versions.wait_closed(None));
        other.join().unwrap();
    });
}

/// Finds: a wake that is on its way as the time runs out, and lands in the next sleep.
#[test]
fn the_last_receiver_goes_as_the_time_runs_out() {
    check_bounded(3, || {
        let versions = with_receivers(1);
        let other = spawn(&versions, Versions::remove_receiver);
        let closed = versions.wait_closed(Some(over()));
        assert!(!closed || versions.with(|counts| counts.receivers) == 0);
        assert!(versions.wait_closed(None));
        other.join().unwrap();
    });
}
