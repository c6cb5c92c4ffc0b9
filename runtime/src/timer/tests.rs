//! What the wheel promises, over simulated time: nothing here sleeps.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use crate::timer::ring::{Node, NodeRef};
use crate::timer::ticks::{TICK_BITS, Ticks};
use crate::timer::wheel::Wheel;

const TICK: Duration = Duration::from_nanos(1 << TICK_BITS);
const DAY: Duration = Duration::from_secs(86_400);

/// How much work a test does under Miri is a hundredth.
const fn scaled(n: usize) -> usize {
    if cfg!(miri) { n / 100 } else { n }
}

/// What a node is a part of.
#[repr(C)]
struct Timer {
    node: Node,
    number: Cell<u64>,
}

impl Deref for Timer {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

fn nodes(n: usize) -> Vec<Timer> {
    (0..n).map(|_| Timer { node: Node::new(), number: Cell::new(0) }).collect()
}

fn arm(wheel: &Wheel, timer: &Timer, deadline: Instant, number: u64) {
    timer.number.set(number);
    // SAFETY: the tests keep their nodes in a vector declared before the wheel, never grow it, and arm idle nodes only.
    wheel.insert(unsafe { NodeRef::new(NonNull::from(timer).cast()) }, deadline);
}

fn disarm(wheel: &Wheel, node: &Node) {
    wheel.remove(node);
}

/// Lets all fire that is due at `now`, by its number.
fn expire(wheel: &Wheel, now: Instant, mut fire: impl FnMut(u64)) {
    // SAFETY: `arm` gave the wheel a pointer to the whole, of which the node is the first field.
    wheel.expire(now, |node| fire(unsafe { node.as_ptr().cast::<Timer>().as_ref() }.number.get()));
}

/// The numbers of what fires at `now`.
fn fired(wheel: &Wheel, now: Instant) -> Vec<u64> {
    let mut numbers = Vec::new();
    expire(wheel, now, |number| numbers.push(number));
    numbers
}

/// The moment at which a timer with that deadline may fire: the next full tick.
fn rounded(origin: Instant, deadline: Instant) -> Instant {
    let ticks = Ticks::since(origin);
    ticks.start_of(ticks.ceil(deadline)).unwrap()
}

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A span whose order of magnitude is uniform, up to 2^`bits` nanoseconds.
    fn span(&mut self, bits: u64) -> Duration {
        let mask = (1u64 << self.below(bits + 1)) - 1;
        Duration::from_nanos(self.next() & mask)
    }
}

#[test]
fn a_new_wheel_is_empty() {
    let now = Instant::now();
    let wheel = Wheel::new(now);
    assert!(wheel.is_empty());
    assert_eq!(wheel.next_deadline(), None);
    assert!(fired(&wheel, now + DAY).is_empty());
}

#[test]
fn fires_at_the_deadline_and_never_a_nanosecond_before() {
    let nanos =
        [1, 16_383, 16_384, 16_385, 50_000, 1_048_575, 1_048_577, 5_000_000, 67_108_865, 30_000_000_001];
    for nanos in nanos {
        let nodes = nodes(1);
        let origin = Instant::now();
        let wheel = Wheel::new(origin);
        let deadline = origin + Duration::from_nanos(nanos);
        arm(&wheel, &nodes[0], deadline, 7);
        let next = wheel.next_deadline().unwrap();
        assert!(next >= deadline && next < deadline + TICK);
        assert!(fired(&wheel, deadline - Duration::from_nanos(1)).is_empty());
        assert!(fired(&wheel, next - Duration::from_nanos(1)).is_empty());
        assert_eq!(wheel.next_deadline(), Some(next), "unmoved by the cascade");
        assert!(nodes[0].is_armed());
        assert_eq!(fired(&wheel, next), [7]);
        assert!(!nodes[0].is_armed() && wheel.is_empty());
    }
}

#[test]
fn a_removed_timer_does_not_fire() {
    let nodes = nodes(3);
    let now = Instant::now();
    let wheel = Wheel::new(now);
    for (i, node) in nodes.iter().enumerate() {
        arm(&wheel, node, now + TICK * 3, i as u64);
    }
    disarm(&wheel, &nodes[1]);
    disarm(&wheel, &nodes[1]);
    assert_eq!(wheel.len(), 2);
    assert_eq!(fired(&wheel, now + DAY), [0, 2]);
}

#[test]
fn a_past_deadline_fires_at_the_next_call() {
    let nodes = nodes(2);
    let origin = Instant::now() + DAY;
    let wheel = Wheel::new(origin);
    arm(&wheel, &nodes[0], origin - DAY, 1);
    assert!(wheel.next_deadline().unwrap() <= origin);
    assert_eq!(fired(&wheel, origin), [1]);

    let now = origin + DAY;
    assert!(fired(&wheel, now).is_empty());
    arm(&wheel, &nodes[0], origin + DAY / 2, 2);
    arm(&wheel, &nodes[1], now, 3);
    assert_eq!(fired(&wheel, now + TICK), [2, 3]);
}

#[test]
fn equal_deadlines_fire_in_the_order_of_insertion() {
    let nodes = nodes(300);
    let origin = Instant::now();
    let wheel = Wheel::new(origin);
    let deadline = origin + Duration::from_millis(200);
    let mut now = origin;
    for (i, node) in nodes.iter().enumerate() {
        arm(&wheel, node, deadline, i as u64);
        now += Duration::from_micros(660);
        assert!(fired(&wheel, now).is_empty());
    }
    assert!(fired(&wheel, now).is_empty());
    assert!(fired(&wheel, deadline + TICK).into_iter().eq(0..300));
}

#[test]
fn deadlines_fire_in_order_however_late() {
    let n = scaled(10_000).max(200);
    let nodes = nodes(n);
    let origin = Instant::now();
    let wheel = Wheel::new(origin);
    let mut random = Random(0x5eed);
    let deadlines: Vec<_> = (0..n).map(|_| origin + random.span(46)).collect();
    for (i, node) in nodes.iter().enumerate() {
        arm(&wheel, node, deadlines[i], i as u64);
    }
    let order = fired(&wheel, origin + DAY);
    assert_eq!(order.len(), n);
    let key = |i: &u64| (rounded(origin, deadlines[*i as usize]), *i);
    assert!(order.is_sorted_by_key(key));
}

#[test]
fn the_far_future_is_armed_and_never_comes() {
    let nodes = nodes(4);
    let origin = Instant::now();
    let wheel = Wheel::new(origin);
    let mut end = origin;
    for shift in (0..63).rev() {
        end = end.checked_add(Duration::from_secs(1 << shift)).unwrap_or(end);
    }
    let century = origin + DAY * 36_525;
    arm(&wheel, &nodes[0], end, 0);
    assert_eq!(wheel.next_deadline(), None, "beyond the clock");
    arm(&wheel, &nodes[1], century, 1);
    arm(&wheel, &nodes[2], origin + DAY * 365, 2);
    arm(&wheel, &nodes[3], origin + TICK, 3);
    assert_eq!(fired(&wheel, origin + DAY), [3]);
    assert_eq!(wheel.next_deadline(), Some(rounded(origin, origin + DAY * 365)));
    assert_eq!(fired(&wheel, origin + DAY * 366), [2]);
    assert!(fired(&wheel, century - TICK).is_empty());
    assert_eq!(fired(&wheel, century + TICK), [1]);
    assert!(fired(&wheel, end).is_empty());
    assert_eq!(wheel.len(), 1);
    disarm(&wheel, &nodes[0]);
    assert!(wheel.is_empty());
}

#[test]
fn catches_up_without_stepping() {
    let nodes = nodes(100);
    let mut now = Instant::now();
    let wheel = Wheel::new(now);
    for _ in 0..scaled(2_000).max(20) {
        for (i, node) in nodes.iter().enumerate() {
            arm(&wheel, node, now + DAY * i as u32 / 100, i as u64);
        }
        now += DAY;
        assert!(fired(&wheel, now).into_iter().eq(0..100));
    }
}

#[test]
fn removals_from_a_slot_cost_at_most_one_early_call() {
    for half in [1, 500] {
        let nodes = nodes(2 * half);
        let origin = Instant::now();
        let wheel = Wheel::new(origin);
        // All of them in one slot of level 3, which spans 4.3 s.
        let deadline = |i: usize| origin + Duration::from_secs(20) + Duration::from_micros(100 * i as u64);
        for (i, node) in nodes.iter().enumerate() {
            arm(&wheel, node, deadline(i), i as u64);
        }
        for node in &nodes[..half] {
            disarm(&wheel, node);
            assert!(wheel.next_deadline().unwrap() < deadline(half) + TICK);
        }
        let early = wheel.next_deadline().unwrap();
        assert!(fired(&wheel, early).is_empty());
        let exact = wheel.next_deadline().unwrap();
        assert_eq!(exact, rounded(origin, deadline(half)));
        assert_eq!(fired(&wheel, exact), [half as u64]);
        nodes.iter().for_each(|node| disarm(&wheel, node));
        assert_eq!(wheel.next_deadline(), None);
    }
}

#[test]
fn fire_may_rearm_and_the_past_waits_for_the_next_call() {
    let nodes = nodes(1);
    let now = Instant::now();
    let wheel = Wheel::new(now);
    arm(&wheel, &nodes[0], now, 0);
    for round in 0..5 {
        let mut calls = 0;
        expire(&wheel, now + TICK * round, |number| {
            calls += 1;
            assert!(!nodes[0].is_armed());
            arm(&wheel, &nodes[0], now, number + 1);
        });
        assert_eq!(calls, 1);
        assert!(wheel.next_deadline().unwrap() <= now + TICK * round);
    }
    assert_eq!(fired(&wheel, now + DAY), [5]);
}

#[test]
fn fire_may_remove_what_is_due_in_the_same_call() {
    let nodes = nodes(6);
    let now = Instant::now();
    let wheel = Wheel::new(now);
    for (i, node) in nodes.iter().enumerate() {
        arm(&wheel, node, now + TICK * i as u32, i as u64);
    }
    let mut order = Vec::new();
    expire(&wheel, now + DAY, |number| {
        order.push(number);
        if let Some(victim) = nodes.get(number as usize + 1) {
            disarm(&wheel, victim);
        }
    });
    assert_eq!(order, [0, 2, 4]);
    assert!(wheel.is_empty());
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn fire_may_move_what_is_due_in_the_same_call() {
    let nodes = nodes(4);
    let now = Instant::now();
    let wheel = Wheel::new(now);
    for (i, node) in nodes.iter().enumerate() {
        arm(&wheel, node, now, i as u64);
    }
    let order = RefCell::new(Vec::new());
    expire(&wheel, now + TICK, |number| {
        order.borrow_mut().push(number);
        if number == 0 {
            for (i, node) in nodes.iter().enumerate().skip(2) {
                disarm(&wheel, node);
                arm(&wheel, node, now + TICK * (i as u32 - 2), 10 + i as u64);
            }
        }
    });
    assert_eq!(order.take(), [0, 1]);
    assert_eq!(fired(&wheel, now + TICK), [12, 13]);
}

#[test]
fn a_panic_of_fire_loses_no_other_timer() {
    let nodes = nodes(3);
    let now = Instant::now();
    let wheel = Wheel::new(now);
    for (i, node) in nodes.iter().enumerate() {
        arm(&wheel, node, now, i as u64);
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wheel.expire(now, |_| std::panic::resume_unwind(Box::new(())));
    }));
    assert!(outcome.is_err());
    assert_eq!(wheel.len(), 2);
    let mut rest = Vec::new();
    while wheel.next_deadline().is_some_and(|next| next <= now) {
        rest.extend(fired(&wheel, now));
    }
    assert_eq!(rest, [1, 2]);
}

#[test]
fn a_wheel_with_armed_timers_may_be_moved() {
    let nodes = nodes(2);
    let now = Instant::now();
    let wheel = Wheel::new(now);
    arm(&wheel, &nodes[0], now + TICK, 1);
    let boxed = Box::new(wheel);
    arm(&boxed, &nodes[1], now + TICK, 2);
    let wheel = *boxed;
    assert_eq!(fired(&wheel, now + DAY), [1, 2]);
}

/// Compares the wheel with an ordered map of equal timers: both fire alike.
struct Model {
    origin: Instant,
    now: Instant,
    nodes: Vec<Timer>,
    keys: Vec<Option<(u64, u64)>>,
    deadlines: Vec<Instant>,
    /// By the tick at which it fires, then by the order of insertion: which node.
    timers: BTreeMap<(u64, u64), usize>,
    inserted: u64,
    /// The tick of the last call of `expire`: nothing fires before it.
    elapsed: u64,
}

impl Model {
    fn new(origin: Instant, size: usize) -> Model {
        Model {
            origin,
            now: origin,
            nodes: nodes(size),
            keys: vec![None; size],
            deadlines: vec![origin; size],
            timers: BTreeMap::new(),
            inserted: 0,
            elapsed: 0,
        }
    }

    fn rearm(&mut self, wheel: &Wheel, i: usize, deadline: Instant) {
        self.cancel(wheel, i);
        let key = (Ticks::since(self.origin).ceil(deadline).max(self.elapsed), self.inserted);
        self.inserted += 1;
        self.timers.insert(key, i);
        self.keys[i] = Some(key);
        self.deadlines[i] = deadline;
        arm(wheel, &self.nodes[i], deadline, i as u64);
    }

    fn cancel(&mut self, wheel: &Wheel, i: usize) {
        assert_eq!(self.nodes[i].is_armed(), self.keys[i].is_some());
        disarm(wheel, &self.nodes[i]);
        if let Some(key) = self.keys[i].take() {
            self.timers.remove(&key);
        }
    }

    /// Lets time pass; `meddle` is what each timer does when it fires.
    fn expire(&mut self, wheel: &Wheel, mut meddle: impl FnMut(&mut Model, usize)) {
        let last = self.inserted;
        self.elapsed = Ticks::since(self.origin).floor(self.now);
        let (now, elapsed) = (self.now, self.elapsed);
        expire(wheel, now, |number| {
            let i = number as usize;
            let (key, expected) = self.timers.pop_first().unwrap();
            assert_eq!(i, expected);
            assert!(key.0 <= elapsed && key.1 < last);
            assert!(self.deadlines[i] <= now, "early");
            self.keys[i] = None;
            meddle(self, i);
        });
        let overdue = |(&key, _): (&(u64, u64), &usize)| key.0 <= elapsed && key.1 < last;
        assert!(!self.timers.iter().next().is_some_and(overdue), "late");
    }

    fn check(&self, wheel: &Wheel) {
        assert_eq!(wheel.len(), self.timers.len());
        let Some((&(tick, _), _)) = self.timers.first_key_value() else {
            return assert_eq!(wheel.next_deadline(), None);
        };
        let exact = Ticks::since(self.origin).start_of(tick).unwrap();
        assert!(wheel.next_deadline().unwrap() <= exact, "late");
    }
}

/// Random operations over `size` timers of up to 2^`bits` nanoseconds.
fn compare_with_the_model(seed: u64, size: usize, bits: u64, operations: usize) {
    let origin = Instant::now() + DAY;
    let mut model = Model::new(origin, size);
    let wheel = Wheel::new(origin);
    let random = &mut Random(seed);
    for _ in 0..operations {
        let i = random.below(size as u64) as usize;
        match random.below(16) {
            0..8 => {
                let deadline = model.now + random.span(bits);
                model.rearm(&wheel, i, deadline);
            }
            8 => {
                let deadline = model.now - random.span(bits.min(40));
                model.rearm(&wheel, i, deadline);
            }
            9..13 => model.cancel(&wheel, i),
            13 => {
                if let Some(&i) = model.timers.values().next() {
                    model.cancel(&wheel, i);
                }
            }
            14 => {
                model.now += random.span(bits);
                model.expire(&wheel, |model, _| meddle(model, &wheel, random, bits));
            }
            _ => {
                let next = wheel.next_deadline().unwrap_or(model.now);
                model.now = model.now.max(next);
                model.expire(&wheel, |_, _| ());
            }
        }
        model.check(&wheel);
    }
    while let Some(next) = wheel.next_deadline() {
        model.now = model.now.max(next);
        model.expire(&wheel, |_, _| ());
    }
    assert!(wheel.is_empty() && model.timers.is_empty());
}

/// What a fired timer may do: arm others, in the past or the future, and cancel others.
fn meddle(model: &mut Model, wheel: &Wheel, random: &mut Random, bits: u64) {
    let i = random.below(model.nodes.len() as u64) as usize;
    match random.below(8) {
        0 => model.rearm(wheel, i, model.now + random.span(bits)),
        1 => model.rearm(wheel, i, model.now - random.span(bits.min(40))),
        2 => model.cancel(wheel, i),
        _ => {}
    }
}

#[test]
fn agrees_with_the_model_on_few_timers() {
    compare_with_the_model(0x9e37_79b9_7f4a_7c15, 12, 36, scaled(300_000));
}

#[test]
fn agrees_with_the_model_on_many_timers() {
    compare_with_the_model(0xdead_beef_cafe_f00d, 2_000, 30, scaled(300_000));
}

#[test]
fn agrees_with_the_model_on_near_timers() {
    compare_with_the_model(0x0123_4567_89ab_cdef, 300, 21, scaled(300_000));
}

#[test]
fn agrees_with_the_model_on_far_timers() {
    compare_with_the_model(0xfeed_face_0bad_5eed, 100, 52, scaled(20_000));
}

#[test]
fn a_wheel_belongs_to_its_thread() {
    // Resolves only while neither type is `Sync`: otherwise both impls apply and the call is ambiguous.
    trait Witness<A> {
        fn witness() {}
    }
    impl<T> Witness<()> for T {}
    impl<T: Sync> Witness<u8> for T {}
    <Wheel as Witness<_>>::witness();
    <Node as Witness<_>>::witness();
}
