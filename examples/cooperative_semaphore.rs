//! Ten parallel iterations, at most three inside at once: a semaphore that suspends tasks, not threads.
//!
//! Run `cargo run --release --example cooperative_semaphore`; an argument sets the number of workers. You see
//! each iteration enter and leave, in the order of arrival, and how many are inside. It takes four times 100
//! ms, also on one worker: a waiting task leaves its thread to other tasks.

use std::env;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use fibra::sync::Semaphore;

const ITERATIONS: usize = 10;
const PERMITS: usize = 3;
const WORK: Duration = Duration::from_millis(100);

fn main() -> io::Result<()> {
    let workers = env::args().nth(1).map_or(1, |workers| workers.parse().expect("a number of workers"));
    fibra::Runtime::builder().workers(workers).build()?.run(iterate);
    Ok(())
}

fn iterate() {
    let (semaphore, inside, most) = (Semaphore::new(PERMITS), AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Instant::now();
    fibra::scope(|tasks| {
        for iteration in 0..ITERATIONS {
            let (semaphore, inside, most) = (&semaphore, &inside, &most);
            tasks.spawn(move || {
                // The permit is released at the end of its scope, also by a panic.
                let _permit = semaphore.acquire().expect("it is never closed");
                let now = inside.fetch_add(1, SeqCst) + 1;
                most.fetch_max(now, SeqCst);
                println!("iteration {iteration} enters, {now} inside");
                fibra::sleep(WORK);
                let now = inside.fetch_sub(1, SeqCst) - 1;
                println!("iteration {iteration} leaves, {now} inside");
            });
        }
    });
    let rounds = start.elapsed().as_millis() / WORK.as_millis();
    println!(
        "{ITERATIONS} iterations in {rounds} rounds of {WORK:?}, at most {} inside at once",
        most.into_inner()
    );
}
