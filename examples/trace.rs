//! Buyers contend for one shelf, and a trace shows how: `cargo run --example trace -- shop.pftrace`.
//!
//! Open the file with <https://ui.perfetto.dev>. You see the workers, each task with what it waits for and its spans, and
//! arrows from the buyer that leaves the shelf to the buyer that it wakes.

use std::sync::Arc;
use std::time::Duration;

use fibra::insight::{FlightRecorder, span};
use fibra::sync::{Mutex, channel};
use fibra::{Runtime, task};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).expect("the path of the file to write");
    let runtime = Runtime::builder().workers(2).build()?;
    let recorder = FlightRecorder::start(&runtime.handle())?;
    let trace = runtime.run(|| {
        let shelf = Arc::new(Mutex::new(0));
        let (orders, parcels) = channel::bounded(2);
        for number in 0..6 {
            let (shelf, orders) = (Arc::clone(&shelf), orders.clone());
            let buyer = move || {
                loop {
                    let _buy = span("buy");
                    let mut shelf = shelf.lock();
                    let take = span("take");
                    fibra::sleep(Duration::from_micros(200));
                    *shelf += 1;
                    drop((take, shelf));
                    if orders.send(number).is_err() {
                        break;
                    }
                }
            };
            task::Builder::new().name(format!("buyer {number}")).spawn(buyer);
        }
        parcels.iter().take(50).for_each(drop);
        recorder.snapshot()
    });
    trace.save(path)?;
    println!("{} events", trace.events().len());
    Ok(())
}
