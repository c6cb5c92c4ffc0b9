//! A million sleeping tasks on one thread, woken one by one and joined.
//!
//! Run `cargo run --release --example million`; an argument sets the number of tasks. You see the resident
//! memory of a sleeping task: one page of its stack, its share of the page tables, and its record. The
//! program needs no system setting, and `/proc/self/maps` stays short.

use fibra::task::{self, Task};
use std::fs;
use std::io;
use std::time::Instant;

const STACK: usize = 64 * 1024;

fn main() -> io::Result<()> {
    let tasks = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number of tasks"));
    fibra::Runtime::builder().workers(1).stack_size(STACK).run(|| sleep_and_wake(tasks))?
}

fn sleep_and_wake(count: usize) -> io::Result<()> {
    let before = resident()?;
    let begin = Instant::now();
    let mut handles = Vec::with_capacity(count);
    for _ in 0..count {
        handles.push(fibra::spawn(task::park));
        // Lets the task run until it sleeps, so that no backlog of un-started tasks is measured.
        if handles.len() % 1000 == 0 {
            fibra::yield_now();
        }
    }
    fibra::yield_now();
    let asleep = begin.elapsed();
    let used = resident()?.saturating_sub(before);
    println!("{count} tasks fell asleep in {asleep:.2?}");
    println!("resident: {} MiB, {} bytes per task", used >> 20, used / count.max(1));
    println!("mappings: {}", mappings()?);

    let begin = Instant::now();
    handles.iter().map(|handle| handle.task()).for_each(Task::unpark);
    let woken = handles.into_iter().map(|handle| handle.join()).filter(Result::is_ok).count();
    println!("{woken} tasks were woken and joined in {:.2?}", begin.elapsed());
    assert_eq!(woken, count);
    Ok(())
}

/// Returns the resident memory of the process in bytes, page tables included.
fn resident() -> io::Result<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = |name: &str| -> Option<usize> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let total = kib("VmRSS:").zip(kib("VmPTE:")).map(|(resident, tables)| resident + tables);
    Ok(total.ok_or(io::ErrorKind::InvalidData)? * 1024)
}

fn mappings() -> io::Result<usize> {
    Ok(fs::read_to_string("/proc/self/maps")?.lines().count())
}
