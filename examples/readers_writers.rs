//! Readers and writers over two gates: Vélez's model, with one gate as a lock and one to wait at.
//!
//! Run `cargo run --release --example readers_writers -- 1000 2`: each writer writes a thousand triples, on
//! two workers. A triple is one value three times, written one by one with pauses between. A reader takes
//! three values, and complains if they differ. At the end you see how many triples were read, and how often a
//! reader had to wait.
//!
//! The gate `entry` starts open: a task that passes closes it, and opens it when it leaves. The gate `stock`
//! starts closed: a reader that finds nothing is counted, leaves, and waits there. Wake-ups cascade: a writer
//! signals one reader, and a reader that leaves values behind signals the next.

use std::env;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use fibra::sync::AutoResetEvent;

const WRITERS: usize = 3;
const READERS: usize = 3;
const PLACES: usize = 64;

/// The buffer consists of atomics to avoid `unsafe`. The gates ensure that one task at a time uses it.
struct Hall {
    entry: AutoResetEvent,
    stock: AutoResetEvent,
    buffer: [AtomicUsize; PLACES],
    written: AtomicUsize,
    read: AtomicUsize,
    /// Readers that wait at `stock`, or are about to.
    waiting: AtomicUsize,
    waits: AtomicUsize,
}

fn main() -> io::Result<()> {
    let mut numbers = env::args().skip(1).map(|number| number.parse().expect("a number"));
    let (rounds, workers) = (numbers.next().unwrap_or(1000), numbers.next().unwrap_or(1));
    fibra::Runtime::builder().workers(workers).build()?.run(|| meet(rounds));
    Ok(())
}

fn meet(rounds: usize) {
    let hall = Hall {
        entry: AutoResetEvent::new(true),
        stock: AutoResetEvent::new(false),
        buffer: [const { AtomicUsize::new(0) }; PLACES],
        written: AtomicUsize::new(0),
        read: AtomicUsize::new(0),
        waiting: AtomicUsize::new(0),
        waits: AtomicUsize::new(0),
    };
    fibra::scope(|tasks| {
        let hall = &hall;
        for _ in 0..READERS {
            // Reads as many triples as are written, so that all tasks end.
            tasks.spawn(move || (0..rounds * WRITERS / READERS).for_each(|_| hall.read()));
        }
        for writer in 0..WRITERS {
            tasks.spawn(move || (0..rounds).for_each(|round| hall.write(round * WRITERS + writer)));
        }
    });
    assert_eq!(hall.read.into_inner(), hall.written.into_inner());
    println!(
        "{} triples were read, all of equal values; readers waited {} times",
        rounds * WRITERS,
        hall.waits.into_inner()
    );
}

impl Hall {
    fn write(&self, value: usize) {
        self.entry.wait();
        while self.written.load(Relaxed) + 3 - self.read.load(Relaxed) > PLACES {
            // The buffer is full: readers make room, and were signalled when it filled.
            self.entry.set();
            fibra::yield_now();
            self.entry.wait();
        }
        for _ in 0..3 {
            let at = self.written.fetch_add(1, Relaxed);
            self.buffer[at % PLACES].store(value, Relaxed);
            fibra::yield_now();
        }
        self.leave();
    }

    fn read(&self) {
        self.entry.wait();
        while self.written.load(Relaxed) == self.read.load(Relaxed) {
            self.waiting.fetch_add(1, Relaxed);
            self.waits.fetch_add(1, Relaxed);
            self.entry.set();
            // The signalling task has taken this reader off the count, and passes `entry` on to it.
            self.stock.wait();
        }
        let triple = [(); 3].map(|()| {
            let at = self.read.fetch_add(1, Relaxed);
            fibra::yield_now();
            self.buffer[at % PLACES].load(Relaxed)
        });
        assert!(triple.iter().all(|&value| value == triple[0]), "half a triple: {triple:?}");
        self.leave();
    }

    /// Passes `entry` on to a waiting reader if there are values for it, or opens the gate.
    fn leave(&self) {
        let stocked = self.written.load(Relaxed) > self.read.load(Relaxed);
        match stocked && self.waiting.load(Relaxed) > 0 {
            true => {
                self.waiting.fetch_sub(1, Relaxed);
                self.stock.set();
            }
            false => self.entry.set(),
        }
    }
}
