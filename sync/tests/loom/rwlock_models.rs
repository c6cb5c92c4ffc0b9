//! The read-write lock: its word and its waiters, over the wait queue.

use std::sync::Arc;
use std::time::Instant;

use lock_api::{RawRwLock as _, RawRwLockUpgrade as _};
use loom::thread;

use crate::primitive::{AtomicBool, Ordering, UnsafeCell, check_bounded};
use crate::rwlock::RawRwLock;
use crate::rwlock::state::{Claim, Hold, Policy, SHORT_QUEUE, State, Unlock};
use crate::wait::{self, Until, own_as};

/// A lock, and the value behind it.
struct Locked {
    state: State,
    value: UnsafeCell<u32>,
}

// SAFETY: loom reports every access to `value` that the lock does not order; the rest is atomic or under the lock.
unsafe impl Sync for Locked {}
// SAFETY: as above.
unsafe impl Send for Locked {}

/// The deadline of a wait.
#[derive(Clone, Copy, PartialEq)]
enum Patience {
    Endless,
    /// It passes at once.
    None,
}

impl Patience {
    fn deadline(self) -> Option<Instant> {
        (self == Patience::None).then(wait::over)
    }
}

impl Locked {
    fn new(policy: Policy, short_queue: u8) -> Arc<Self> {
        let locked = Locked { state: State::new(policy, short_queue), value: UnsafeCell::new(0) };
        // Each of loom's objects is made by its first use.
        assert!(!locked.state.look().written);
        locked.state.settle(Unlock::Usual);
        locked.value.get();
        Arc::new(locked)
    }

    /// Uses the value, by the holder. Reads count as writes where a model has one reader at a time.
    fn add(&self) {
        // SAFETY: loom was told of the access.
        unsafe { *self.value.get() += 1 };
    }

    fn read(&self, patience: Patience) -> bool {
        self.state.try_read() || self.state.wait(Claim::Read, Until::shielded(patience.deadline()))
    }

    fn claim(&self, claim: Claim, patience: Patience) -> bool {
        self.state.try_claim(claim) || self.state.wait(claim, Until::shielded(patience.deadline()))
    }

    fn leave_read(&self) {
        if self.state.leave_read() {
            self.state.settle(Unlock::Usual);
        }
    }

    fn leave_write(&self, to: Option<Hold>) {
        if !self.state.try_leave_write(to) {
            self.state.exchange(Hold::Write, to, Unlock::Usual);
        }
    }

    fn leave_upgradable(&self, to: Option<Hold>) {
        if !self.state.try_leave_upgradable(to) {
            self.state.exchange(Hold::Upgradable, to, Unlock::Usual);
        }
    }

    fn write_once(&self, patience: Patience) -> bool {
        let locked = self.claim(Claim::Write, patience);
        if locked {
            self.add();
            self.leave_write(None);
        }
        locked
    }

    /// Once all have ended: the lock is free without waiters, and so often it was written.
    fn assert_free(&self, written: u32) {
        let seen = self.state.look();
        assert!(seen.readers == 0 && !seen.written && !seen.upgradable, "{seen:?}");
        assert!(!seen.closed && !seen.awaited, "{seen:?}");
        assert!(self.state.try_write());
        // SAFETY: this is the only user left.
        assert_eq!(unsafe { *self.value.get() }, written);
    }
}

/// Checks a model of a lock that is handed over, and of one for which each queue is long, so that it is opened.
fn check_both(preemptions: usize, model: impl Fn(u8) + Copy + Send + Sync + 'static) {
    for short_queue in [SHORT_QUEUE, 0] {
        check_bounded(preemptions, move || model(short_queue));
    }
}

fn beside(locked: &Arc<Locked>, f: impl FnOnce(&Locked) + 'static) -> thread::JoinHandle<()> {
    let locked = Arc::clone(locked);
    thread::spawn(move || f(&locked))
}

/// Finds: two writers at once, a value that the next writer does not see, a hand-over without a wake.
#[test]
fn writers_hand_the_lock_over() {
    check_both(2, |short_queue| {
        let locked = Locked::new(Policy::PhaseFair, short_queue);
        let others = [0, 1].map(|_| beside(&locked, |locked| assert!(locked.write_once(Patience::Endless))));
        assert!(locked.write_once(Patience::Endless));
        others.into_iter().for_each(|other| other.join().unwrap());
        locked.assert_free(3);
    });
}

/// Finds: the last reader leaves while a writer begins to wait, and neither sees its peer; a reader behind the writer that
/// stays there; a writer that does not see that both readers are out.
#[test]
fn the_last_reader_lets_the_writer_in() {
    for policy in [Policy::PhaseFair, Policy::WriterFirst] {
        the_last_reader_lets_the_writer_in_by(policy);
    }
}

fn the_last_reader_lets_the_writer_in_by(policy: Policy) {
    check_both(2, move |short_queue| {
        let locked = Locked::new(policy, short_queue);
        assert!(locked.state.try_read());
        let writer = beside(&locked, |locked| assert!(locked.write_once(Patience::Endless)));
        let reader = beside(&locked, |locked| {
            assert!(locked.read(Patience::Endless));
            assert!(!locked.state.look().written);
            locked.leave_read();
        });
        locked.leave_read();
        writer.join().unwrap();
        reader.join().unwrap();
        locked.assert_free(1);
    });
}

/// Finds: a reader that goes past a writer as the last one leaves, and leaves it waiting, or is inside with it.
#[test]
fn a_recursive_reader_leaves_the_lock_to_the_writer_it_went_past() {
    check_both(2, |short_queue| {
        let locked = Locked::new(Policy::PhaseFair, short_queue);
        assert!(locked.state.try_read());
        let writer = beside(&locked, |locked| assert!(locked.write_once(Patience::Endless)));
        let recursive = beside(&locked, |locked| {
            if locked.state.try_read_recursive() {
                assert!(!locked.state.look().written);
                locked.leave_read();
            }
        });
        assert!(locked.state.try_read_recursive(), "a reader is inside");
        locked.leave_read();
        locked.leave_read();
        writer.join().unwrap();
        recursive.join().unwrap();
        locked.assert_free(1);
    });
}

/// Finds: a reader that is counted and not woken, or woken and not counted, when its time runs out as it is admitted; a round
/// that ends for a reader that came after it.
#[test]
fn a_reader_is_admitted_or_gives_up() {
    check_both(2, |short_queue| {
        let locked = Locked::new(Policy::PhaseFair, short_queue);
        assert!(locked.state.try_write());
        let readers = [Patience::None, Patience::Endless].map(|patience| {
            beside(&locked, move |locked| {
                if locked.read(patience) {
                    assert!(!locked.state.look().written);
                    locked.leave_read();
                }
            })
        });
        locked.add();
        locked.leave_write(None);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        locked.assert_free(1);
    });
}

/// Finds: a lock that stays CLOSED after a writer's deadline; a granted writer that does not know it.
#[test]
fn a_writer_that_gives_up_opens_the_lock() {
    check_both(2, |short_queue| {
        let locked = Locked::new(Policy::PhaseFair, short_queue);
        assert!(locked.state.try_read());
        let written = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let writer = {
            let written = Arc::clone(&written);
            beside(&locked, move |locked| {
                let wrote = locked.write_once(Patience::None);
                written.store(u32::from(wrote), std::sync::atomic::Ordering::Relaxed);
            })
        };
        let reader = beside(&locked, |locked| {
            assert!(locked.read(Patience::Endless));
            locked.leave_read();
        });
        locked.leave_read();
        writer.join().unwrap();
        reader.join().unwrap();
        locked.assert_free(written.load(std::sync::atomic::Ordering::Relaxed));
    });
}

/// Finds: an upgrade and the last reader that miss each other.
#[test]
fn an_upgrade_goes_in_after_the_last_reader() {
    check_both(3, |short_queue| {
        let locked = Locked::new(Policy::PhaseFair, short_queue);
        assert!(locked.state.try_read() && locked.state.try_claim(Claim::Upgradable));
        let reader = beside(&locked, |locked| locked.leave_read());
        assert!(locked.claim(Claim::Upgrade, Patience::Endless));
        locked.add();
        locked.leave_write(Some(Hold::Upgradable));
        locked.leave_upgradable(None);
        reader.join().unwrap();
        locked.assert_free(1);
    });
}

/// Finds: a writer that comes as an upgrade is granted, and is let in beside it or never.
#[test]
fn a_writer_goes_in_after_an_upgrade() {
    check_both(3, |short_queue| {
        let locked = Locked::new(Policy::PhaseFair, short_queue);
        assert!(locked.state.try_claim(Claim::Upgradable));
        let writer = beside(&locked, |locked| assert!(locked.write_once(Patience::Endless)));
        assert!(locked.claim(Claim::Upgrade, Patience::Endless));
        locked.add();
        locked.leave_write(Some(Hold::Upgradable));
        locked.leave_upgradable(None);
        writer.join().unwrap();
        locked.assert_free(2);
    });
}

/// Finds: an upgrade at its deadline that is granted and lost; a reader that waited only for it and sleeps on.
#[test]
fn an_upgrade_is_granted_or_gives_up() {
    check_both(3, |short_queue| {
        let locked = Locked::new(Policy::PhaseFair, short_queue);
        assert!(locked.state.try_read() && locked.state.try_claim(Claim::Upgradable));
        let reader = beside(&locked, |locked| {
            locked.leave_read();
            assert!(locked.read(Patience::Endless));
            locked.leave_read();
        });
        let upgraded = locked.claim(Claim::Upgrade, Patience::None);
        match upgraded {
            true => {
                locked.add();
                locked.leave_write(Some(Hold::Read));
            }
            false => locked.leave_upgradable(Some(Hold::Read)),
        }
        locked.leave_read();
        reader.join().unwrap();
        locked.assert_free(u32::from(upgraded));
    });
}

/// Finds: an upgradable reader in the queue of writers that is not let in with readers, or is let in with another one.
#[test]
fn upgradable_readers_take_turns_with_a_writer() {
    check_both(2, |short_queue| {
        let locked = Locked::new(Policy::PhaseFair, short_queue);
        let upgradable = |locked: &Locked| {
            assert!(locked.claim(Claim::Upgradable, Patience::Endless));
            locked.add();
            locked.leave_upgradable(None);
        };
        let other = beside(&locked, upgradable);
        let writer = beside(&locked, |locked| assert!(locked.write_once(Patience::Endless)));
        upgradable(&locked);
        other.join().unwrap();
        writer.join().unwrap();
        locked.assert_free(3);
    });
}

/// Finds: a downgrade that leaves a reader waiting, or does not show it what was written.
#[test]
fn a_downgrade_lets_a_reader_in() {
    check_both(3, |short_queue| {
        let locked = Locked::new(Policy::WriterFirst, short_queue);
        assert!(locked.state.try_write());
        let reader = beside(&locked, |locked| {
            assert!(locked.read(Patience::Endless));
            locked.leave_read();
        });
        locked.add();
        locked.leave_write(Some(Hold::Read));
        locked.leave_read();
        reader.join().unwrap();
        locked.assert_free(1);
    });
}

/// Finds: a caller that counts as the holder by a stale number, from before it passed the lock on.
#[test]
fn a_caller_that_passed_its_lock_on_waits_for_the_next_owner() {
    check_bounded(3, || {
        let (lock, unlocked) = (Arc::new(RawRwLock::INIT), Arc::new(AtomicBool::new(false)));
        unlocked.load(Ordering::Relaxed);
        let guard = lock.lock_exclusive();
        let other = {
            let (lock, unlocked) = (Arc::clone(&lock), Arc::clone(&unlocked));
            thread::spawn(move || {
                own_as(2);
                // SAFETY: it is locked, and this is the only one to unlock it.
                unsafe { lock.unlock_exclusive(guard) };
                // Relaxed: tells that it was unlocked, and shows nothing that was done.
                unlocked.store(true, Ordering::Relaxed);
                let guard = lock.lock_exclusive();
                // SAFETY: it is this one's.
                unsafe { lock.unlock_exclusive(guard) };
            })
        };
        if unlocked.load(Ordering::Relaxed) {
            let guard = lock.lock_exclusive();
            // SAFETY: as above.
            unsafe { lock.unlock_exclusive(guard) };
        }
        other.join().unwrap();
        assert!(!lock.is_locked());
    });
}

/// Finds: two callers that lock by turns, of which one counts as locking twice.
#[test]
fn an_earlier_owner_is_not_taken_for_the_holder() {
    check_bounded(2, || {
        let lock = Arc::new(RawRwLock::INIT);
        let pass = |lock: &RawRwLock| {
            let guard = lock.lock_upgradable();
            // SAFETY: it is the caller's.
            unsafe { lock.unlock_upgradable(guard) };
            let guard = lock.lock_exclusive();
            // SAFETY: as above.
            unsafe { lock.unlock_exclusive(guard) };
        };
        pass(&lock);
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                own_as(2);
                pass(&lock);
            })
        };
        pass(&lock);
        other.join().unwrap();
        assert!(!lock.is_locked());
    });
}
