//! The versions of a watched value: no change is slept over.

use std::sync::Arc;

use loom::thread;

use crate::primitive::check_bounded;
use crate::wait::list::Node;
use crate::wait::{RawWake, Sleeper};
use crate::watch::{Snapshot, Versions};

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
        if !unsafe { self.versions.enter(&node, RawWake(Arc::clone(sleeper))) } {
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
