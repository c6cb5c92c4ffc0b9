//! A batch of lanes, in each of which a victim, a notifier and a canceller meet.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fibra_runtime::{CancelToken, JoinError, JoinHandle, Task, spawn_local, timeout_at, yield_now};

use super::pinned::{PinnedTasks, until};
use super::{End, Row, Tally};

/// Lanes of a batch.
pub(super) const LANES: usize = 50;

/// From the begin of a batch to its first deadline, and from one to the next.
const BEGIN: Duration = Duration::from_micros(150);
const STEP: Duration = Duration::from_micros(4);

struct Lane<T> {
    thing: Arc<T>,
    token: CancelToken,
    entered: AtomicBool,
    took: AtomicBool,
    /// How many of notifier and canceller have come to it.
    met: AtomicUsize,
}

impl<T> Lane<T> {
    fn new(thing: Arc<T>) -> Self {
        let never = || AtomicBool::new(false);
        Lane { thing, token: CancelToken::new(), entered: never(), took: never(), met: AtomicUsize::new(0) }
    }

    /// Waits for the other one, for a moment: it may be on no processor.
    fn meet(&self) {
        self.met.fetch_add(1, Ordering::SeqCst);
        let mut patience = 200;
        while self.met.load(Ordering::SeqCst) < 2 && patience > 0 {
            std::hint::spin_loop();
            patience -= 1;
        }
    }
}

/// One round in each of its lanes.
pub(super) struct Batch<T, H> {
    row: Arc<Row<T, H>>,
    end: End,
    seed: u64,
    lanes: Vec<Lane<T>>,
    is_held: AtomicBool,
    /// Once they have been started.
    victims: OnceLock<Vec<Task>>,
    begin: OnceLock<Instant>,
}

/// The victim of a lane, and its company.
type Waiters = (JoinHandle<()>, Option<JoinHandle<bool>>);

/// The owner of the dice.
#[derive(Clone, Copy)]
enum Role {
    Victims,
    Notifier,
    Canceller,
    Company,
}

impl<T: Send + Sync + 'static, H: 'static> Batch<T, H> {
    /// One of a row, whose rounds end so; the seed is for its dice.
    pub(super) fn new(row: &Arc<Row<T, H>>, end: End, seed: u64, things: &[Arc<T>]) -> Arc<Self> {
        Arc::new(Batch {
            row: Arc::clone(row),
            end,
            seed,
            lanes: things.iter().cloned().map(Lane::new).collect(),
            is_held: AtomicBool::new(false),
            victims: OnceLock::new(),
            begin: OnceLock::new(),
        })
    }

    /// A number that looks random and is equal in each run.
    fn dice(&self, role: Role, lane: usize) -> u64 {
        let mut number = self.seed ^ (lane as u64) << 32 ^ (role as u64) << 56;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    fn place(&self, role: Role, pinned: &PinnedTasks) -> usize {
        (self.dice(role, LANES) % pinned.count() as u64) as usize
    }

    /// Plays it to its end.
    pub(super) fn play(self: &Arc<Self>, pinned: &PinnedTasks) -> Tally {
        let me = || Arc::clone(self);
        let batch = me();
        let notifier = pinned.spawn_at(self.place(Role::Notifier, pinned), move || batch.notify_all());
        let batch = me();
        let canceller = self
            .end
            .is_given()
            .then(|| pinned.spawn_at(self.place(Role::Canceller, pinned), move || batch.cancel_all()));
        until(|| self.is_held.load(Ordering::SeqCst));
        let batch = me();
        let waiters = pinned.spawn_at(self.place(Role::Victims, pinned), move || batch.start_all());
        let waiters = waiters.join().unwrap();
        notifier.join().unwrap();
        if let Some(canceller) = canceller {
            canceller.join().unwrap();
        }
        let mut tally = Tally::default();
        for ((victim, company), lane) in waiters.into_iter().zip(&self.lanes) {
            tally += Tally::of(self.settle(lane, victim.join(), company));
        }
        tally
    }

    fn start_all(self: &Arc<Self>) -> Vec<Waiters> {
        self.begin.set(Instant::now() + BEGIN).expect("once");
        let waiters: Vec<_> = (0..self.lanes.len()).map(|number| self.start(number)).collect();
        for _ in 0..self.dice(Role::Victims, 0) % 3 {
            yield_now();
        }
        let victims = waiters.iter().map(|(victim, _)| victim.task().clone()).collect();
        self.victims.set(victims).expect("once");
        // A worker that rests comes late to a timer.
        while !self.end.is_given() && Instant::now() < self.deadline(self.lanes.len()) {
            yield_now();
        }
        waiters
    }

    fn start(self: &Arc<Self>, number: usize) -> Waiters {
        let victim = || {
            let batch = Arc::clone(self);
            spawn_local(move || batch.be_victim(number))
        };
        let Some(wait) = self.row.company else { return (victim(), None) };
        let company = || {
            let thing = Arc::clone(&self.lanes[number].thing);
            Some(spawn_local(move || wait(&thing, None)))
        };
        match self.dice(Role::Company, number) % 4 {
            0 => {
                let first = company();
                (victim(), first)
            }
            1 => (victim(), company()),
            _ if self.row.always_in_company => (victim(), company()),
            _ => (victim(), None),
        }
    }

    fn be_victim(&self, number: usize) {
        let lane = &self.lanes[number];
        let wait = |until| {
            lane.entered.store(true, Ordering::SeqCst);
            if (self.row.wait)(&lane.thing, until) {
                lane.took.store(true, Ordering::SeqCst);
            }
        };
        match self.end {
            End::Cancel => wait(None),
            End::Token => _ = lane.token.scope(|| wait(None)),
            End::Scope => _ = timeout_at(self.deadline(number), || wait(None)),
            End::Timeout => wait(Some(self.deadline(number))),
        }
    }

    fn deadline(&self, number: usize) -> Instant {
        *self.begin.get().expect("set before the victims start") + STEP * number as u32
    }

    fn notify_all(&self) {
        let held: Vec<H> = self.lanes.iter().map(|lane| (self.row.hold)(&lane.thing)).collect();
        self.is_held.store(true, Ordering::SeqCst);
        self.await_start(Role::Notifier);
        for (number, (lane, held)) in self.lanes.iter().zip(held).enumerate() {
            match self.end.is_given() {
                true => self.come_to(lane, Role::Notifier, number),
                false => self.await_deadline(number),
            }
            (self.row.notify)(&lane.thing, held);
        }
    }

    fn cancel_all(&self) {
        self.await_start(Role::Canceller);
        let victims = self.victims.get().expect("they were started");
        for (number, (lane, victim)) in self.lanes.iter().zip(victims).enumerate() {
            self.come_to(lane, Role::Canceller, number);
            match self.end == End::Token {
                true => lane.token.cancel(),
                false => victim.cancel(),
            }
        }
    }

    fn await_start(&self, role: Role) {
        until(|| self.victims.get().is_some());
        for _ in 0..self.dice(role, LANES) >> 8 & 3 {
            yield_now();
        }
    }

    /// Meets the other one, and is off by a little.
    fn come_to(&self, lane: &Lane<T>, role: Role, number: usize) {
        let dice = self.dice(role, number);
        if dice.is_multiple_of(4) {
            yield_now();
        }
        lane.meet();
        (0..dice >> 8 & 63).for_each(|_| std::hint::spin_loop());
    }

    /// Waits until about when the timer of a lane is due, which may be a tick later than its deadline.
    fn await_deadline(&self, number: usize) {
        let off = self.dice(Role::Notifier, LANES) % 40 + self.dice(Role::Notifier, number) % 4;
        let moment = self.deadline(number) + Duration::from_micros(off);
        while Instant::now() + Duration::from_micros(12) < moment {
            yield_now();
        }
    }

    /// Sees to it that the company ends and nothing is lost. True if the victim was notified.
    fn settle(
        &self,
        lane: &Lane<T>,
        result: Result<(), JoinError>,
        company: Option<JoinHandle<bool>>,
    ) -> bool {
        let (took, entered) = (lane.took.load(Ordering::SeqCst), lane.entered.load(Ordering::SeqCst));
        match result {
            Ok(()) => assert!(took || self.end != End::Cancel, "it returned, and got nothing"),
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(error) => assert!(!took && error.is_cancelled() && self.end == End::Cancel, "{error}"),
        }
        if self.row.is_shielded && self.end != End::Timeout {
            assert_eq!(took, entered, "nothing ends the wait");
        }
        let mut left = usize::from(!took);
        if let Some(company) = company {
            if took && !self.row.serves_all {
                (self.row.notify)(&lane.thing, (self.row.hold)(&lane.thing));
            }
            left = 0;
            assert!(company.join().unwrap(), "it waits until it gets something");
        }
        (self.row.settle)(&lane.thing, if self.row.serves_all { 0 } else { left });
        took
    }
}
