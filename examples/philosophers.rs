//! Five philosophers dine: no two neighbours eat at once, and none starves.
//!
//! Run `cargo run --release --example philosophers -- 10000 2`: each has ten thousand meals, on two workers.
//! They dine twice. First a mutex protects the box office, which decides which philosopher waits; then the box office is
//! one atomic word. You see both times, and whether a replay of the log finds two neighbours that ate at
//! once.
//!
//! Box office and bouncers are Jeff Preshing's, "Semaphores are Surprisingly Versatile" (2015),
//! <https://preshing.com/20150316/semaphores-are-surprisingly-versatile>.

use fibra::sync::{Mutex, Semaphore};
use std::env;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

const SEATS: usize = 5;

/// A ticket for each seat: 0 thinks, 1 eats, and higher ones wait until neighbours with lower tickets have
/// eaten. Neighbours never have equal tickets.
type Tickets = [u8; 8];

/// Changes all tickets atomically.
trait BoxOffice: Default + Sync {
    fn change<R>(&self, step: impl Fn(&mut Tickets) -> R) -> R;
}

impl BoxOffice for Mutex<Tickets> {
    fn change<R>(&self, step: impl Fn(&mut Tickets) -> R) -> R {
        step(&mut self.lock())
    }
}

impl BoxOffice for AtomicU64 {
    fn change<R>(&self, step: impl Fn(&mut Tickets) -> R) -> R {
        // Acquire and Release pair with each other: an eater sees what its neighbours did before.
        let mut before = self.load(Acquire);
        loop {
            let mut tickets = before.to_ne_bytes();
            let result = step(&mut tickets);
            match self.compare_exchange_weak(before, u64::from_ne_bytes(tickets), AcqRel, Acquire) {
                Ok(_) => return result,
                Err(now) => before = now,
            }
        }
    }
}

struct Table<B> {
    office: B,
    /// One semaphore for each philosopher that must not eat yet.
    bouncers: [Semaphore; SEATS],
    /// Each start (true) and end of a meal, in order.
    log: Mutex<Vec<(usize, bool)>>,
}

impl<B: BoxOffice> Table<B> {
    fn new() -> Self {
        let bouncers = std::array::from_fn(|_| Semaphore::new(0));
        Table { office: B::default(), bouncers, log: Mutex::default() }
    }

    fn dine(&self, seat: usize, meals: usize) {
        for _ in 0..meals {
            self.begin_eating(seat);
            self.log.lock().push((seat, true));
            // A meal takes a while, so that neighbours get hungry.
            (0..seat).for_each(|_| fibra::yield_now());
            self.log.lock().push((seat, false));
            self.end_eating(seat);
        }
    }

    fn begin_eating(&self, seat: usize) {
        let ticket = self.office.change(|tickets| {
            tickets[seat] = 1 + tickets[right_of(seat)].max(tickets[left_of(seat)]);
            tickets[seat]
        });
        if ticket > 1 {
            self.bouncers[seat].acquire().expect("it is never closed").forget();
        }
    }

    fn end_eating(&self, seat: usize) {
        let let_in = self.office.change(|tickets| {
            tickets[seat] = 0;
            // The neighbour with the lower ticket moves up first, and may make way for the other neighbour.
            let mut ways: [fn(usize) -> usize; 2] = [right_of, left_of];
            ways.sort_by_key(|further| tickets[further(seat)]);
            ways.map(|further| come_nearer(tickets, further(seat), 1, further))
        });
        let_in.into_iter().flatten().for_each(|seat| self.bouncers[seat].add_permits(1));
    }
}

fn right_of(seat: usize) -> usize {
    (seat + 1) % SEATS
}

fn left_of(seat: usize) -> usize {
    (seat + SEATS - 1) % SEATS
}

/// Lowers the ticket at `seat` to `ticket` if that is the next one and no neighbour has it, then those of
/// further seats. Returns the seat if it did.
fn come_nearer(tickets: &mut Tickets, seat: usize, ticket: u8, further: fn(usize) -> usize) -> Option<usize> {
    let next = further(seat);
    if tickets[seat] != ticket + 1 || tickets[next] == ticket {
        return None;
    }
    tickets[seat] = ticket;
    come_nearer(tickets, next, ticket + 1, further);
    Some(seat)
}

/// Replays the log. Returns how often two neighbours ate at once.
fn replay(log: &[(usize, bool)], meals: usize) -> usize {
    let (mut eats, mut eaten, mut together) = ([false; SEATS], [0; SEATS], 0);
    for &(seat, begins) in log {
        assert_ne!(eats[seat], begins, "a philosopher begins and stops in turn");
        assert!(!begins || !eats[left_of(seat)] && !eats[right_of(seat)], "{seat} eats beside an eater");
        eats[seat] = begins;
        eaten[seat] += usize::from(begins);
        together += usize::from(begins && eats.iter().filter(|&&eats| eats).count() == 2);
    }
    assert_eq!(eaten, [meals; SEATS], "all philosophers have eaten");
    together
}

fn evening<B: BoxOffice>(office: &str, meals: usize) {
    let table = Table::<B>::new();
    fibra::scope(|scope| {
        for seat in 0..SEATS {
            let table = &table;
            scope.spawn(move || table.dine(seat, meals));
        }
    });
    let together = replay(&table.log.into_inner(), meals);
    println!(
        "{office} box office: {SEATS} philosophers had {meals} meals each, {together} times two at once"
    );
}

fn main() -> io::Result<()> {
    let mut numbers = env::args().skip(1).map(|number| number.parse().expect("a number"));
    let (meals, workers) = (numbers.next().unwrap_or(10_000), numbers.next().unwrap_or(2));
    fibra::Runtime::builder().workers(workers).run(move || {
        evening::<Mutex<Tickets>>("locked", meals);
        evening::<AtomicU64>("lock-free", meals);
    })
}
