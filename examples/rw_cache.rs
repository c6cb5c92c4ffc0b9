//! A cache behind a read-write lock whose waiting writers go before later readers.
//!
//! Run `cargo run --example rw_cache`; an argument sets the number of workers. You see 20 readers look up a
//! price together, then a writer that waits, and 20 later readers behind it. The writer enters when the first
//! readers have left, and the later ones enter together after it, all with the new price.

use std::collections::HashMap;
use std::env;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fibra::JoinHandle;
use fibra::sync::{RwLock, RwLockExt};

const READERS: usize = 20;

struct Cache {
    prices: RwLock<HashMap<&'static str, u32>>,
    entered: AtomicUsize,
    /// The events, in order.
    log: Mutex<Vec<String>>,
}

impl Cache {
    fn look_up(&self, item: &str, who: &str) {
        let prices = self.prices.read();
        self.note(format!("{who} readers see {}", prices[item]));
        // The readers wait for each other inside, which would never end if the lock admitted one at a time.
        let number = self.entered.fetch_add(1, Ordering::Relaxed) + 1;
        while self.entered.load(Ordering::Relaxed) < number.next_multiple_of(READERS) {
            fibra::yield_now();
        }
    }

    fn update(&self, item: &'static str, price: u32) {
        let mut prices = self.prices.write();
        prices.insert(item, price);
        self.note(format!("the writer sets {price}"));
    }

    fn note(&self, what: String) {
        self.log.lock().unwrap().push(what);
    }

    fn start_readers(self: &Arc<Self>, who: &'static str) -> Vec<JoinHandle<()>> {
        let readers = (0..READERS).map(|_| {
            let cache = Arc::clone(self);
            fibra::spawn(move || cache.look_up("tea", who))
        });
        readers.collect()
    }
}

fn main() -> io::Result<()> {
    let workers = env::args().nth(1).map_or(2, |workers| workers.parse().expect("a number of workers"));
    fibra::Runtime::builder().workers(workers).run(|| {
        let cache = Arc::new(Cache {
            prices: RwLock::writer_first(HashMap::from([("tea", 3)])),
            entered: AtomicUsize::new(0),
            log: Mutex::default(),
        });
        let reading = cache.prices.read();
        let early = cache.start_readers("early");
        early.into_iter().for_each(|reader| reader.join().unwrap());
        println!("{READERS} readers were inside together");

        let shared = Arc::clone(&cache);
        let writer = fibra::spawn(move || shared.update("tea", 4));
        // A waiting writer keeps later readers out.
        while cache.prices.try_read().is_some() {
            fibra::yield_now();
        }
        let late = cache.start_readers("late");
        fibra::sleep(Duration::from_millis(10));
        println!("a writer waits, and {READERS} readers behind it; the price is still {}", reading["tea"]);
        drop(reading);
        writer.join().unwrap();
        late.into_iter().for_each(|reader| reader.join().unwrap());
        println!("{READERS} readers were inside together");

        let log = cache.log.lock().unwrap();
        let order: Vec<&str> = log.chunk_by(|a, b| a == b).map(|same| same[0].as_str()).collect();
        println!("{}", order.join(", then "));
        assert_eq!(order, ["early readers see 3", "the writer sets 4", "late readers see 4"]);
    })
}
