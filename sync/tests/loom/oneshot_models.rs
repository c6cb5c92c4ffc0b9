//! A oneshot channel: one value, and one end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use loom::cell::UnsafeCell;
use loom::thread;

use crate::oneshot::{How, Side, Spoken, Then, Word};
use crate::primitive::check_bounded;
use crate::wait::{RawWake, Sleeper};

/// What `oneshot/half.rs` keeps in its allocation. It lives on in the model, which sees who uses it once it is freed.
struct Channel {
    word: Word,
    value: UnsafeCell<Option<u32>>,
    slots: [UnsafeCell<Option<RawWake>>; 2],
    memory: UnsafeCell<()>,
    freed: AtomicU32,
    sleepers: [Arc<Sleeper>; 2],
}

// SAFETY: what the models check.
unsafe impl Sync for Channel {}
// SAFETY: as above.
unsafe impl Send for Channel {}

fn index(side: Side) -> usize {
    match side {
        Side::Sender => 0,
        Side::Receiver => 1,
    }
}

impl Channel {
    fn new() -> Arc<Self> {
        let channel = Channel {
            word: Word::new(),
            value: UnsafeCell::new(None),
            slots: std::array::from_fn(|_| UnsafeCell::new(None)),
            memory: UnsafeCell::new(()),
            freed: AtomicU32::new(0),
            sleepers: std::array::from_fn(|_| Sleeper::new()),
        };
        assert!(!channel.word.hears(Side::Sender));
        Arc::new(channel)
    }

    fn word(&self) -> &Word {
        self.memory.with(|_| ());
        &self.word
    }

    /// What nobody has taken.
    fn free(&self) -> Option<u32> {
        self.memory.with_mut(|_| ());
        assert_eq!(self.freed.fetch_add(1, Ordering::Relaxed), 0, "freed once");
        // SAFETY: what the models check.
        self.value.with_mut(|place| unsafe { (*place).take() })
    }

    fn put(&self, value: Option<u32>) -> Option<u32> {
        self.memory.with(|_| ());
        // SAFETY: what the models check.
        self.value.with_mut(|place| unsafe { std::mem::replace(&mut *place, value) })
    }

    fn fill_slot(&self, side: Side) {
        self.memory.with(|_| ());
        let wake = self.sleepers[index(side)].raw();
        // SAFETY: what the models check.
        self.slots[index(side)].with_mut(|slot| unsafe { *slot = Some(wake) });
    }

    fn take_slot(&self, side: Side) -> RawWake {
        self.memory.with(|_| ());
        // SAFETY: what the models check.
        let wake = self.slots[index(side)].with_mut(|slot| unsafe { (*slot).take() });
        wake.expect("who listens has filled its slot")
    }

    fn left(&self, me: Side, spoken: Spoken) -> Option<u32> {
        match spoken {
            Spoken::Unheard => None,
            Spoken::Last => self.free(),
            Spoken::Rouse => {
                self.take_slot(me.other()).wake();
                None
            }
            Spoken::Call => {
                let waker = self.take_slot(me.other());
                let left_over = if self.word().leave(me) { self.free() } else { None };
                waker.wake();
                left_over
            }
        }
    }

    fn leave(&self, me: Side) -> Option<u32> {
        let spoken = self.word().speak(me, Then::Leaves);
        self.left(me, spoken)
    }

    /// True if it was sent.
    fn send(&self) -> bool {
        self.put(Some(7));
        match self.word().speak_first(Side::Sender, Then::Leaves) {
            Some(spoken) => self.left(Side::Sender, spoken).is_none(),
            None => {
                assert_eq!(self.put(None), Some(7));
                assert_eq!(self.leave(Side::Sender), None);
                false
            }
        }
    }

    /// One sleep, as in `wait/sleep.rs`. If `expires`, its deadline passes while it lasts. True if the other has spoken.
    fn sleep(&self, me: Side, expires: bool) -> bool {
        let sleeper = &self.sleepers[index(me)];
        let epoch = sleeper.word.begin(true);
        self.fill_slot(me);
        if !self.word().listen(me, How::Asleep) {
            return true;
        }
        sleeper.leave_stack_and(|| {
            if expires {
                sleeper.settle(sleeper.word.expire(epoch));
            }
        });
        if sleeper.word.why().notified {
            return true;
        }
        if self.word().unlisten(me) {
            return false;
        }
        sleeper.await_landing();
        true
    }

    /// As `Half::poll`. If it does not look, it fills the slot again without a look whether the other has spoken.
    fn poll(&self, me: Side, looks: bool) -> bool {
        if self.word().hears(me) {
            return true;
        }
        if self.word().may_listen(me) && self.word().unlisten(me) {
            drop(self.take_slot(me));
        }
        if looks && self.word().hears(me) {
            return true;
        }
        self.fill_slot(me);
        let listens = self.word().listen(me, How::Polled);
        if !listens {
            drop(self.take_slot(me));
        }
        !listens
    }

    /// What was sent, if it was heard, or has come since; the receiver leaves.
    fn take(&self) -> Option<u32> {
        let value = if self.word().hears(Side::Receiver) { self.put(None) } else { None };
        value.or(self.leave(Side::Receiver))
    }
}

/// Meets a send by `receive`. True if it was sent: it is the receiver's then, and else the sender has it back.
fn meet(receive: impl FnOnce(&Channel) -> Option<u32>) -> bool {
    let channel = Channel::new();
    let sender = {
        let channel = Arc::clone(&channel);
        thread::spawn(move || channel.send())
    };
    let received = receive(&channel);
    let sent = sender.join().unwrap();
    assert_eq!(channel.freed.load(Ordering::Relaxed), 1, "freed");
    assert_eq!(received, sent.then_some(7));
    sent
}

/// Hunts: a value that is not seen, a receiver that is not woken, memory that is freed twice, or used after.
#[test]
fn what_is_sent_is_received() {
    check_bounded(4, || {
        let sent = meet(|channel| {
            assert!(channel.sleep(Side::Receiver, false));
            channel.take()
        });
        assert!(sent);
    });
}

/// Hunts: a receiver whose time runs out while it is served, and that frees the channel under the sender's hands.
#[test]
fn sent_and_timed_out_at_once() {
    check_bounded(4, || {
        meet(|channel| {
            let heard = channel.sleep(Side::Receiver, true);
            let received = channel.take();
            assert!(!heard || received.is_some());
            received
        });
    });
}

/// Hunts: a value that a close and a send both take, or neither.
#[test]
fn sent_and_closed_at_once() {
    check_bounded(4, || {
        meet(|channel| {
            let spoken = channel.word().speak(Side::Receiver, Then::Stays);
            assert_eq!(spoken, Spoken::Unheard);
            channel.take()
        });
    });
}

fn poll_twice(looks: bool) {
    meet(|channel| {
        let _ = channel.poll(Side::Receiver, looks) || channel.poll(Side::Receiver, looks);
        if channel.word().may_listen(Side::Receiver) && channel.word().unlisten(Side::Receiver) {
            drop(channel.take_slot(Side::Receiver));
        }
        channel.take()
    });
}

/// Hunts: a slot that the receiver fills while the sender empties it; a channel that the one frees while the other takes
/// the waker, or that nobody frees; a value that was sent and that the sender, who frees the channel last, has left.
#[test]
fn sent_and_polled_again_at_once() {
    check_bounded(4, || poll_twice(true));
}

#[test]
#[should_panic]
fn a_poll_without_a_second_look_is_found() {
    check_bounded(4, || poll_twice(false));
}

/// Hunts: a sender that waits for the end of the receiver and is not woken by it.
#[test]
fn a_sender_hears_of_the_end() {
    check_bounded(4, || {
        let channel = Channel::new();
        let sender = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || {
                assert!(channel.sleep(Side::Sender, false));
                assert_eq!(channel.leave(Side::Sender), None);
            })
        };
        assert_eq!(channel.leave(Side::Receiver), None);
        sender.join().unwrap();
        assert_eq!(channel.freed.load(Ordering::Relaxed), 1);
    });
}
