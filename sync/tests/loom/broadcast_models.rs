//! The ring of a broadcast channel: what is sent is received, and nobody sleeps for ever.

use std::sync::Arc;

use loom::thread;

use crate::broadcast::{Received, Ring};
use crate::primitive::check_bounded;
use crate::wait::Sleeper;
use crate::wait::list::Node;

struct Channel {
    ring: Ring<u32>,
    sleeper: Arc<Sleeper>,
}

impl Channel {
    fn new(capacity: usize) -> (Arc<Self>, u64) {
        let channel = Channel { ring: Ring::new(capacity), sleeper: Sleeper::new() };
        let next = channel.ring.state().lock().subscribe();
        (Arc::new(channel), next)
    }

    fn wake_before(&self, tail: u64) {
        loop {
            let wake = self.ring.state().lock().next_before(tail);
            let Some(wake) = wake else { return };
            wake.wake();
        }
    }

    fn send(&self, value: u32) {
        let sent = self.ring.state().lock().send(value);
        if let Ok(sent) = sent
            && let Some(tail) = sent.tail
        {
            self.wake_before(tail);
        }
    }

    /// True if that was the last sender.
    fn close(&self) -> bool {
        let last = self.ring.state().lock().remove_sender();
        if last {
            self.wake_before(u64::MAX);
        }
        last
    }

    /// One sleep, as in `wait/sleep.rs`. If `expires`, its deadline passes while it lasts.
    fn sleep(&self, next: u64, expires: bool) {
        let node = Node::with(next);
        let sleeper = &self.sleeper;
        let epoch = sleeper.word.begin(true);
        // SAFETY: the node lives until it is withdrawn or its wake has landed.
        if !unsafe { self.ring.enter(&node, sleeper.raw()) } {
            return;
        }
        sleeper.leave_stack_and(|| {
            if expires {
                sleeper.settle(sleeper.word.expire(epoch));
            }
        });
        // SAFETY: it was entered there.
        if !sleeper.word.why().notified && !unsafe { self.ring.leave(&node) } {
            sleeper.await_landing();
        }
    }

    fn receive_now(&self, next: &mut u64) -> Received<u32> {
        self.ring.state().lock().receive(next)
    }

    /// If `expires`, its first sleep does.
    fn receive(&self, next: &mut u64, mut expires: bool) -> Received<u32> {
        loop {
            match self.receive_now(next) {
                Received::Empty => self.sleep(*next, std::mem::take(&mut expires)),
                other => return other,
            }
        }
    }
}

/// Hunts: a receiver that sleeps over a message or over the end; a message that is lost or doubled.
#[test]
fn what_is_sent_is_received() {
    for expires in [false, true] {
        let model = move || {
            let (channel, mut next) = Channel::new(2);
            let sender = {
                let channel = Arc::clone(&channel);
                thread::spawn(move || {
                    channel.send(1);
                    channel.send(2);
                    channel.close();
                })
            };
            assert_eq!(channel.receive(&mut next, expires), Received::Message(1));
            assert_eq!(channel.receive(&mut next, false), Received::Message(2));
            assert_eq!(channel.receive(&mut next, false), Received::Closed);
            sender.join().unwrap();
            channel.sleeper.assert_even();
        };
        check_bounded(2, model);
    }
}

/// Hunts: a message that was overwritten and not counted as lost.
#[test]
fn what_is_lost_is_told() {
    check_bounded(2, || {
        let (channel, mut next) = Channel::new(1);
        let sender = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || {
                channel.send(1);
                channel.send(2);
                channel.close();
            })
        };
        let mut count = 0;
        loop {
            match channel.receive(&mut next, false) {
                Received::Message(_) => count += 1,
                Received::Lagged(missed) => count += missed,
                Received::Closed => break,
                Received::Empty => unreachable!(),
            }
        }
        assert_eq!(count, 2);
        sender.join().unwrap();
    });
}

/// Hunts: a sender of a channel that has closed; a receiver that sleeps over the end, or is told of it while there is a sender.
#[test]
fn of_an_upgrade_and_the_last_drop_one_is_first() {
    check_bounded(3, || {
        let (channel, mut next) = Channel::new(1);
        let dropper = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.close())
        };
        let upgraded = channel.ring.state().lock().upgrade();
        if upgraded {
            assert_eq!(channel.receive_now(&mut next), Received::Empty, "there is a sender");
            channel.send(1);
        }
        let closed = upgraded && channel.close();
        if upgraded {
            assert_eq!(channel.receive(&mut next, false), Received::Message(1));
        }
        assert_eq!(channel.receive(&mut next, false), Received::Closed);
        assert!(!channel.ring.state().lock().upgrade(), "the end is final");
        assert!(dropper.join().unwrap() != closed, "one of them is the last");
        channel.sleeper.assert_even();
    });
}
