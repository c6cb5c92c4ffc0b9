//! The invariants of stacks: guards hold, memory comes and goes as promised, nothing dangles.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::stack::exchange::{self, Trim};
use crate::stack::guard::StackGuards;
use crate::stack::handle::Stack;
use crate::stack::pool::Pool;
use crate::stack::stacks::{Config, Stacks};
use crate::stack::sys;

mod overflow_report;

const SIZE: usize = 64 * 1024;
const PAGE: usize = 4096;

fn config() -> Config {
    Config { size: SIZE, trim_after: Duration::ZERO, ..Config::default() }
}

fn stacks(config: Config) -> Arc<Stacks> {
    Stacks::new(config).unwrap()
}

fn take_many(pool: &mut Pool, count: usize) -> Vec<Stack> {
    (0..count).map(|_| pool.take().unwrap()).collect()
}

fn exchanged(stacks: &Stacks) -> usize {
    let counts = stacks.counts();
    counts.warm + counts.cold
}

fn give_all(pool: &mut Pool, stacks: Vec<Stack>) {
    stacks.into_iter().for_each(|stack| pool.give(stack));
}

/// Writes to every usable page of a stack that is not in use.
fn touch(stack: &Stack) {
    for address in (stack.guard_range().end..stack.base().get()).step_by(PAGE) {
        // SAFETY: the address lies in the usable part of a stack that the caller holds.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(1) };
    }
}

/// How many pages of a stack, guard excluded, are resident.
fn resident(stack: &Stack) -> usize {
    resident_in(stack.guard_range().end..stack.limit() + stack.size()).unwrap()
}

/// How many pages of a range are resident; an error where a part of it is not mapped.
fn resident_in(range: Range<usize>) -> io::Result<usize> {
    let mut pages = vec![0_u8; range.len() / sys::page_size()];
    let start = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: mincore only reads page tables; the vector has a byte for each page.
    let result = unsafe { libc::mincore(start, range.len(), pages.as_mut_ptr().cast()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pages.iter().filter(|page| **page & 1 != 0).count())
}

/// How many lines of the process's map touch a range.
fn mappings_in(range: &Range<usize>) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let bounds = maps.lines().map(|line| line.split_once(' ').unwrap().0.split_once('-').unwrap());
    bounds.filter(|(start, end)| hex(start) < range.end && hex(end) > range.start).count()
}

fn span(held: &[Stack]) -> Range<usize> {
    let start = held.iter().map(|stack| stack.limit()).min().unwrap();
    start..held.iter().map(|stack| stack.limit() + stack.size()).max().unwrap()
}

fn has_markers() -> bool {
    stacks(Config { guards: StackGuards::Page, ..config() })
        .pool()
        .take()
        .inspect_err(|e| eprintln!("skipped: {e}"))
        .is_ok()
}

/// Runs one test of a module again in a process of its own, as the child.
fn child(module: &str, test: &str, case: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "--test-threads=1"]);
    // Under AddressSanitizer faults and alternate stacks are to be as without it.
    command
        .env("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0:handle_abort=0:use_sigaltstack=0:detect_leaks=0");
    let path = module.split_once("::").unwrap().1;
    command.arg(format!("{path}::{test}")).env("FIBRA_STACK_CASE", case).output().unwrap()
}

fn case() -> Option<String> {
    std::env::var("FIBRA_STACK_CASE").ok()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn poke(address: usize) {
    // SAFETY: only called by children that are meant to die of it, or on memory that they hold.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(1) };
}

#[test]
fn a_stack_is_aligned_and_all_of_it_usable() {
    let mut pool = stacks(config()).pool();
    let stack = pool.take().unwrap();
    assert_eq!(stack.size(), SIZE);
    assert_eq!(stack.base().get() % 64, 0);
    assert_eq!(stack.limit() % PAGE, 0);
    assert_eq!(stack.guard_range(), stack.limit()..stack.limit() + 16 * 1024);
    assert_eq!(stack.usable(), stack.base().get() - stack.guard_range().end);
    assert!(stack.is_overflow(stack.guard_range().start) && stack.is_overflow(stack.guard_range().end - 1));
    assert!(stack.is_overflow(stack.limit() - 8) && !stack.is_overflow(stack.guard_range().end));
    touch(&stack);
    pool.give(stack);
}

#[test]
fn every_page_of_a_guard_faults() {
    if let Some(case) = case() {
        let (guards, rest) = case.split_once(' ').unwrap();
        let guards = if guards == "protect" { StackGuards::Protect } else { StackGuards::Page };
        let mut pool = stacks(Config { guards, ..config() }).pool();
        let held = take_many(&mut pool, 3);
        touch(&held[1]);
        poke(held[1].guard_range().start + rest.parse::<usize>().unwrap());
        return;
    }
    let kinds = if has_markers() { &["page", "protect"][..] } else { &["protect"] };
    for kind in kinds {
        for offset in [0, PAGE, 2 * PAGE + 5, 4 * PAGE - 1] {
            let output = child(module_path!(), "every_page_of_a_guard_faults", &format!("{kind} {offset}"));
            let signal = output.status.signal();
            assert!(matches!(signal, Some(libc::SIGSEGV | libc::SIGBUS)), "{kind} {offset}: {output:?}");
        }
        let above = child(module_path!(), "every_page_of_a_guard_faults", &format!("{kind} {}", 4 * PAGE));
        assert!(above.status.success(), "{kind}: {above:?}");
    }
}

#[test]
fn a_region_with_markers_is_one_mapping() {
    if !has_markers() {
        return;
    }
    let all = stacks(Config { guards: StackGuards::Page, ..config() });
    let mut pool = all.pool();
    let held = take_many(&mut pool, 64);
    held.iter().for_each(touch);
    assert_eq!(all.counts().mapped, 64);
    assert_eq!(mappings_in(&span(&held)), 1);
    give_all(&mut pool, held);
}

#[test]
fn protection_costs_two_mappings_a_stack() {
    let mut pool = stacks(Config { guards: StackGuards::Protect, ..config() }).pool();
    let held = take_many(&mut pool, 64);
    assert_eq!(mappings_in(&span(&held)), 128);
    give_all(&mut pool, held);
}

#[test]
fn running_out_of_mappings_is_an_error_that_names_the_sysctl() {
    if case().is_some() {
        let all = stacks(Config { guards: StackGuards::Protect, size: 16 * 1024, ..Config::default() });
        let mut pool = all.pool();
        let mut held = Vec::new();
        let error = loop {
            match pool.take() {
                Ok(stack) => held.push(stack),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("vm.max_map_count"), "{error}");
        assert!(error.to_string().contains(&held.len().to_string()), "{error}");
        // Others still get memory, and a stack that is given back is had again.
        drop(vec![1_u8; 64 << 20]);
        pool.give(held.pop().unwrap());
        held.push(pool.take().unwrap());
        give_all(&mut pool, held);
        drop(pool);
        drop(all);
        let all = stacks(Config { guards: StackGuards::Protect, ..config() });
        let mut pool = all.pool();
        let held = take_many(&mut pool, 1000);
        return give_all(&mut pool, held);
    }
    if sys::max_mappings().is_none_or(|most| most > 100_000) {
        return println!("SKIPPED: vm.max_map_count is too high to be reached here, or is not known");
    }
    let output = child(module_path!(), "running_out_of_mappings_is_an_error_that_names_the_sysctl", "run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn neighbours_have_different_colours() {
    let mut pool = stacks(config()).pool();
    let held = take_many(&mut pool, 16);
    let colours: HashSet<usize> = held.iter().map(|s| s.limit() + SIZE - s.base().get()).collect();
    assert_eq!(colours.len(), 16);
    assert!(colours.iter().all(|colour| *colour < 1024 && colour % 64 == 0));
    assert!(held.iter().all(|stack| stack.size() == SIZE));
    give_all(&mut pool, held);
}

#[test]
fn the_warmest_comes_first() {
    let mut pool = stacks(config()).pool();
    let held = take_many(&mut pool, 5);
    let order: Vec<_> = held.iter().map(Stack::limit).rev().collect();
    give_all(&mut pool, held);
    let again = take_many(&mut pool, 5);
    assert_eq!(order, again.iter().map(Stack::limit).collect::<Vec<_>>());
    give_all(&mut pool, again);
}

#[test]
fn no_two_holders_share_a_stack() {
    let mut pool = stacks(Config { size: 16 * 1024, ..config() }).pool();
    let held = take_many(&mut pool, 2000);
    let mut ranges: Vec<_> = held.iter().map(|s| (s.limit(), s.base().get())).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|two| two[0].1 <= two[1].0));
    give_all(&mut pool, held);
}

#[test]
fn surplus_of_one_worker_serves_another() {
    let all = stacks(config());
    let mut rich = all.pool();
    let held = take_many(&mut rich, 200);
    let known: HashSet<_> = held.iter().map(Stack::limit).collect();
    give_all(&mut rich, held);
    assert!(exchanged(&all) >= 100, "{:?}", all.counts());
    let mut poor = all.pool();
    let found = thread::spawn(move || {
        let held = take_many(&mut poor, 100);
        let found = held.iter().map(Stack::limit).collect::<Vec<_>>();
        give_all(&mut poor, held);
        found
    });
    assert!(found.join().unwrap().iter().all(|limit| known.contains(limit)));
    drop(rich);
    assert_eq!((all.counts().outside, exchanged(&all)), (0, 200));
}

#[test]
fn stacks_flow_from_taker_to_giver_without_growth() {
    let all = stacks(config());
    let (mut taker, mut giver) = (all.pool(), all.pool());
    let (send, receive) = mpsc::sync_channel::<Stack>(16);
    let other = thread::spawn(move || receive.into_iter().for_each(|stack| giver.give(stack)));
    for _ in 0..20_000 {
        send.send(taker.take().unwrap()).unwrap();
    }
    drop(send);
    other.join().unwrap();
    drop(taker);
    assert_eq!(all.counts().outside, 0);
    assert!(all.counts().mapped <= 1024, "{:?}", all.counts());
}

#[test]
fn the_limit_is_an_error_that_names_it_and_passes() {
    let all = stacks(Config { max_stacks: Some(10), ..config() });
    let mut pool = all.pool();
    let mut held = take_many(&mut pool, 10);
    let error = pool.take().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("10") && error.to_string().contains("max_stacks"), "{error}");
    assert!(pool.take_sized(2 * SIZE).is_err());
    pool.give(held.pop().unwrap());
    held.push(pool.take().unwrap());
    give_all(&mut pool, held);
}

#[test]
fn the_unused_stacks_of_a_pool_serve_another_once_it_is_emptied() {
    let all = stacks(Config { max_stacks: Some(10), ..config() });
    let (mut full, mut hungry) = (all.pool(), all.pool());
    let held = take_many(&mut full, 10);
    give_all(&mut full, held);
    assert!(full.has_any() && hungry.take().is_err());
    full.empty();
    assert!(!full.has_any());
    let held = take_many(&mut hungry, 10);
    // Also one of another size.
    give_all(&mut hungry, held);
    assert!(full.take_sized(2 * SIZE).is_err());
    hungry.empty();
    let other = full.take_sized(2 * SIZE).unwrap();
    full.give(other);
}

#[test]
fn a_limit_of_one_works() {
    let mut pool = stacks(Config { max_stacks: Some(1), ..config() }).pool();
    for _ in 0..100 {
        let stack = pool.take().unwrap();
        assert!(pool.take().is_err());
        pool.give(stack);
    }
}

#[test]
fn a_fresh_stack_costs_no_memory_and_a_shallow_one_a_page() {
    let mut pool = stacks(config()).pool();
    let stack = pool.take().unwrap();
    assert_eq!(resident(&stack), 0);
    poke(stack.base().get() - 8);
    assert_eq!(resident(&stack), 1);
    pool.give(stack);
}

#[test]
fn trimming_leaves_a_cold_stack_its_guard_alone() {
    // With so low a limit the pool keeps no fresh ones.
    let mut pool = stacks(Config { max_stacks: Some(4), ..config() }).pool();
    if case().is_some() {
        let stack = pool.take().unwrap();
        touch(&stack);
        pool.give(stack);
        let _ = (pool.trim(), pool.trim(), pool.trim());
        return poke(pool.take().unwrap().guard_range().end - 1);
    }
    let held = take_many(&mut pool, 4);
    held.iter().for_each(touch);
    let limits: Vec<_> = held.iter().map(Stack::limit).collect();
    assert!(held.iter().all(|stack| resident(stack) == 12));
    give_all(&mut pool, held);
    assert_eq!(pool.trim(), Trim::Later);
    // What moved since the mark is warm and keeps all of its memory.
    let warm = pool.take().unwrap();
    pool.give(warm);
    assert_eq!(pool.trim(), Trim::Later);
    let warm = pool.take().unwrap();
    assert_eq!((warm.limit(), resident(&warm)), (limits[3], 12));
    assert_eq!(pool.trim(), Trim::Clean);
    let cold = pool.take().unwrap();
    assert!(limits[..3].contains(&cold.limit()) && resident(&cold) == 0);
    touch(&cold);
    drop((warm, cold));
    let output = child(module_path!(), "trimming_leaves_a_cold_stack_its_guard_alone", "poke");
    assert!(matches!(output.status.signal(), Some(libc::SIGSEGV | libc::SIGBUS)), "{output:?}");
}

#[test]
fn nothing_is_trimmed_before_its_age() {
    let mut pool = stacks(Config { trim_after: Duration::from_secs(3600), ..config() }).pool();
    let stack = pool.take().unwrap();
    touch(&stack);
    pool.give(stack);
    for _ in 0..5 {
        assert_eq!(pool.trim(), Trim::Later);
    }
    let stack = pool.take().unwrap();
    assert_eq!(resident(&stack), 12);
    pool.give(stack);
}

#[test]
fn the_memory_of_a_burst_returns() {
    let all = stacks(config());
    let mut pool = all.pool();
    let held = take_many(&mut pool, 3000);
    held.iter().for_each(touch);
    let ranges: Vec<_> = held.iter().map(|s| s.guard_range().end..s.limit() + SIZE).collect();
    let pages = || ranges.iter().map(|range| resident_in(range.clone()).unwrap()).sum::<usize>();
    assert_eq!(pages(), 12 * 3000);
    give_all(&mut pool, held);
    let mut rounds = 0;
    while pool.trim() != Trim::Clean {
        rounds += 1;
        assert!(rounds < 500, "trimming does not end");
    }
    assert!(pages() < 100, "{} pages are still resident", pages());
    let again = take_many(&mut pool, 3000);
    assert_eq!(all.counts().mapped, 4096);
    again.iter().for_each(touch);
    give_all(&mut pool, again);
}

#[test]
fn sizes_are_rounded_and_kept_apart() {
    let all = stacks(config());
    let mut pool = all.pool();
    let asked = [1, 16 * 1024, SIZE, SIZE + 1, 1 << 20, (1 << 20) + 5];
    let held: Vec<_> = asked.iter().map(|bytes| pool.take_sized(*bytes).unwrap()).collect();
    let sizes: Vec<_> = held.iter().map(Stack::size).collect();
    assert_eq!(sizes, [32 * 1024, 32 * 1024, SIZE, 2 * SIZE, 1 << 20, 2 << 20]);
    held.iter().for_each(touch);
    assert_eq!(held[0].guard_range().len(), 16 * 1024);
    let limits: Vec<_> = held.iter().map(Stack::limit).collect();
    give_all(&mut pool, held);
    for (bytes, limit) in asked.iter().zip(&limits).skip(2) {
        let stack = pool.take_sized(*bytes).unwrap();
        assert_eq!(stack.limit(), *limit);
        pool.give(stack);
    }
    assert_eq!(pool.take_sized(usize::MAX).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert!(pool.take_sized(1 << 55).is_err());
    assert!(pool.take().is_ok_and(|stack| stack.size() == all.size()));
}

#[test]
fn regions_go_when_every_stack_is_back() {
    // In a process of its own, where no other test maps anything into the gap.
    if case().is_none() {
        let output = child(module_path!(), "regions_go_when_every_stack_is_back", "run");
        return assert!(output.status.success(), "{output:?}");
    }
    let all = stacks(config());
    let mut pool = all.pool();
    let held = take_many(&mut pool, 500);
    let other = pool.take_sized(1 << 20).unwrap();
    let ranges = [held[0].guard_range(), held[499].guard_range(), other.guard_range()];
    give_all(&mut pool, held);
    pool.give(other);
    drop(all);
    assert!(ranges.iter().all(|range| resident_in(range.clone()).is_ok()));
    drop(pool);
    assert!(ranges.iter().all(|range| mappings_in(range) == 0));
}

#[test]
fn a_stack_that_is_out_keeps_its_region() {
    let all = stacks(config());
    let mut pool = all.pool();
    let (out, back) = (pool.take().unwrap(), pool.take().unwrap());
    pool.give(back);
    drop((pool, all));
    touch(&out);
    assert_eq!(resident(&out), 12);
    drop(out);
}

#[test]
fn a_forgotten_stack_keeps_its_region() {
    let all = stacks(config());
    let mut pool = all.pool();
    let stack = pool.take().unwrap();
    let usable = stack.guard_range().end..stack.limit() + SIZE;
    std::mem::forget(stack);
    drop((pool, all));
    assert_eq!(resident_in(usable.clone()).unwrap(), 0);
    poke(usable.start);
    assert_eq!(resident_in(usable).unwrap(), 1);
}

#[test]
fn a_hundred_thousand_takes_and_gives() {
    let all = stacks(Config { size: 16 * 1024, ..config() });
    let mut pool = all.pool();
    let mut held = Vec::new();
    let mut random = 1_u32;
    for _ in 0..100_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if random >> 31 == 0 || held.is_empty() {
            held.push(pool.take().unwrap());
        } else {
            let index = random as usize % held.len();
            pool.give(held.swap_remove(index));
        }
    }
    let limits: HashSet<_> = held.iter().map(Stack::limit).collect();
    assert_eq!(limits.len(), held.len());
    give_all(&mut pool, held);
    drop(pool);
    let counts = all.counts();
    assert_eq!(counts.outside, 0);
    assert!(exchanged(&all) <= counts.mapped);
}

#[test]
fn locked_memory_falls_back_to_protection() {
    if let Some(case) = case() {
        let mut pool = stacks(config()).pool();
        let first = pool.take().unwrap();
        // SAFETY: mlockall has no precondition.
        unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
        if stacks(Config { guards: StackGuards::Page, ..config() }).pool().take().is_ok() {
            // This process may not lock memory.
            std::process::abort();
        }
        let mut later = stacks(config()).pool();
        // Locked only after the region was mapped, or from the start.
        let stack = if case == "later" { pool.take().unwrap() } else { later.take().unwrap() };
        touch(&stack);
        poke(stack.guard_range().end - 1);
        return pool.give(first);
    }
    if !has_markers() {
        return;
    }
    for case in ["later", "from the start"] {
        let output = child(module_path!(), "locked_memory_falls_back_to_protection", case);
        // SIGABRT: memory cannot be locked here, so there is nothing to see.
        let signal = output.status.signal();
        assert!(matches!(signal, Some(libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT)), "{output:?}");
    }
}

#[test]
fn workers_never_get_each_others_stacks() {
    let all = stacks(Config { max_stacks: Some(150), ..config() });
    let all_ref = &all;
    let work = move |tag: u64| {
        let mut pool = all_ref.pool();
        let mut held: Vec<Stack> = Vec::new();
        let word = |s: &Stack| std::ptr::with_exposed_provenance_mut::<u64>(s.base().get() - 8);
        let mut random = tag as u32;
        for step in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if step % 64 == 0 {
                let _ = pool.trim();
            } else if held.len() < 120 && (random >> 30 < 2 || held.is_empty()) {
                let Ok(stack) = pool.take() else { continue };
                // SAFETY: the topmost word of a stack that this thread holds.
                unsafe { word(&stack).write_volatile(tag) };
                held.push(stack);
            } else if !held.is_empty() {
                let stack = held.swap_remove(random as usize % held.len());
                // SAFETY: as above.
                assert_eq!(unsafe { word(&stack).read_volatile() }, tag);
                pool.give(stack);
            }
        }
        give_all(&mut pool, held);
    };
    thread::scope(|scope| (1..=4).for_each(|tag| drop(scope.spawn(move || work(tag)))));
    assert_eq!(all.counts().outside, 0);
    // The limit is on those outside the exchange; a lot that is just being trimmed may be replaced by fresh ones.
    assert!(exchanged(&all) <= 150 + 4 * exchange::LOT, "{:?}", all.counts());
}

#[test]
fn handles_cross_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Stack>();
    is_send::<Pool>();
    is_send::<Arc<Stacks>>();
    is_sync::<Stacks>();
}
