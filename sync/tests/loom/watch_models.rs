//! The versions of a watched value: no change is slept over.

use std::sync::Arc;

use loom::thread;

use crate::primitive::check_bounded;
use crate::wait::list::Node;
use crate::wait::{Sleeper, over, wake_all};
use crate::watch::await_desertion;
use crate::watch::versions::{Snapshot, Versions};

struct Channel {
    versions: Versions,
    sleeper: Arc<Sleeper>,
}

impl Channel {
    fn new() -> Arc<Self> {
        let channel = Channel { versions: Versions::new(), sleeper: Sleeper::new() };
        channel.versions.add_receiver();
        assert_eq!(channel.versions.look(), Snapshot { version: 0, closed: false });
        Arc::new(channel)
    }

    fn wake_before(&self, version: u64) {
        loop {
            let wake = self.versions.watchers().lock().next_before(version);
            let Some(wake) = wake else { return };
            wake.wake();
        }
    }

    fn change(&self) {
        let version = self.versions.advance();
        self.wake_before(version);
    }

    fn close(&self) {
        if self.versions.remove_sender() {
            self.wake_before(u64::MAX);
        }
    }

    /// One sleep, as in `wait/sleep.rs`. If `expires`, its deadline passes while it lasts.
    fn sleep(&self, seen: u64, expires: bool) {
        let node = Node::with(seen);
        let sleeper = &self.sleeper;
        let epoch = sleeper.word.begin(true);
        // SAFETY: the node lives until it is withdrawn or its wake has landed.
        if !unsafe { self.versions.enter(&node, sleeper.raw()) } {
            return;
        }
        sleeper.leave_stack_and(|| {
            if expires {
                sleeper.settle(sleeper.word.expire(epoch));
            }
        });
        // SAFETY: it was entered there.
        if !sleeper.word.why().notified && !unsafe { self.versions.leave(&node) } {
            sleeper.await_landing();
        }
    }

    /// Until there is another version than `seen`, or the end. If `expires`, the first sleep does.
    fn changed(&self, seen: u64, mut expires: bool) -> Snapshot {
        loop {
            let now = self.versions.look();
            if now.version != seen || now.closed {
                return now;
            }
            self.sleep(seen, std::mem::take(&mut expires));
        }
    }
}

/// Hunts: a receiver that sleeps over a change, or over the end.
#[test]
fn a_change_is_seen() {
    for expires in [false, true] {
        let model = move || {
            let channel = Channel::new();
            let sender = {
                let channel = Arc::clone(&channel);
                thread::spawn(move || {
                    channel.change();
                    channel.change();
                    channel.close();
                })
            };
            let mut seen = channel.changed(0, expires);
            while !seen.closed {
                seen = channel.changed(seen.version, false);
            }
            assert_eq!(seen.version, 2);
            sender.join().unwrap();
            channel.sleeper.assert_even();
        };
        check_bounded(2, model);
    }
}

/// As the drop of a receiver.
fn go(versions: &Versions) {
    if versions.remove_receiver() {
        wake_all(versions.watchers(), |watchers| watchers.next_mourner());
    }
}

/// Versions with `receivers` receivers. Each of loom's objects is made by its first use.
fn with_receivers(receivers: usize) -> Arc<Versions> {
    let versions = Versions::new();
    for _ in 0..receivers {
        versions.add_receiver();
    }
    assert!(!await_desertion(&versions, Some(over())));
    Arc::new(versions)
}

fn spawn(versions: &Arc<Versions>, f: fn(&Versions)) -> thread::JoinHandle<()> {
    let versions = Arc::clone(versions);
    thread::spawn(move || f(&versions))
}

/// Hunts: a sender that waits for the last of two receivers to go, and sleeps on, or is woken by the first.
#[test]
fn the_last_receiver_wakes_who_waits_for_that() {
    check_bounded(3, || {
        let versions = with_receivers(2);
        until_deserted(&versions, go);
    });
}

/// Hunts: a sender that sleeps on though there is no receiver, since one came in between and went again.
#[test]
fn a_receiver_that_comes_and_goes_leaves_nobody_asleep() {
    check_bounded(3, || {
        let versions = with_receivers(1);
        until_deserted(&versions, |versions| {
            versions.add_receiver();
            go(versions);
        });
    });
}

/// A sender that has gone to sleep, while one receiver goes, and the others do as `others` says.
fn until_deserted(versions: &Arc<Versions>, others: fn(&Versions)) {
    let (node, sleeper) = (Node::new(), Sleeper::new());
    let _ = sleeper.word.begin(true);
    // SAFETY: the node is in no list, and stays until its wake has landed.
    assert!(unsafe { versions.mourn(&node, sleeper.raw()) });
    let other = spawn(versions, go);
    others(versions);
    sleeper.leave_stack();
    assert_eq!(versions.watchers().lock().receivers(), 0);
    other.join().unwrap();
    sleeper.assert_even();
}

/// Hunts: a wake that is on its way as the time runs out, and lands in the next sleep.
#[test]
fn the_last_receiver_goes_as_the_time_runs_out() {
    check_bounded(3, || {
        let versions = with_receivers(1);
        let other = spawn(&versions, go);
        let told = await_desertion(&versions, Some(over()));
        assert!(!told || versions.watchers().lock().receivers() == 0);
        assert!(await_desertion(&versions, None));
        other.join().unwrap();
    });
}
