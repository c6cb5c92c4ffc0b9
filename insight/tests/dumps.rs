//! Stacks of tasks that sleep. `ci/insight.sh` runs these tests in builds of other kinds as well.

mod common;
#[expect(dead_code, reason = "also for tests that read what a child says of its death")]
#[path = "../../runtime/tests/common/rerun.rs"]
mod rerun;

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, mem, process};

use common::{deep, deep_calls, functions, until_asleep};
use fibra_runtime::task::{self, Backtrace};
use fibra_runtime::{self as fibra, Runtime};
use rerun::{child, is_child};

const LONG: Duration = Duration::from_secs(3600);

/// Returns the stack of a task that sleeps in that many calls of [`deep`].
fn stack_of_a_sleeper(calls: usize) -> Backtrace {
    let mut sleep = || {
        fibra::sleep(LONG);
        // Not the last call, or it would be a jump.
        black_box(());
    };
    stack_of(move || _ = deep(calls, &mut sleep))
}

/// Returns the stack of a task that runs `f`, as soon as it sleeps.
fn stack_of(f: impl FnOnce() + Send + 'static) -> Backtrace {
    fibra_insight::install();
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let sleeper = runtime.spawn(f);
    until_asleep(sleeper.task());
    let stack = sleeper.task().backtrace().expect("the stack of a sleeper");
    if cfg!(panic = "abort") {
        // The end of the runtime would wait for the sleeper, which it cannot unwind.
        mem::forget(runtime);
    }
    stack
}

/// Checks that the frames of a sleeper are all there, and the text shows those of the program only.
fn frames_of_a_sleeper() {
    let stack = stack_of_a_sleeper(6);
    assert!(stack.is_complete(), "{stack:#}");
    assert_eq!(deep_calls(&stack), 7, "{stack:#}");
    let text = stack.to_string();
    let mut lines = text.lines();
    assert!(lines.next().is_some_and(|line| line.contains("sleep")), "the public call comes first: {text}");
    // A closure that is inlined has no name but its place.
    let own = |line: &str| line.contains("stack_of_a_sleeper") || line.contains("insight/tests/dumps.rs");
    assert!(lines.next().is_some_and(own), "{text}");
    let user = |line: &str| !line.contains("catch_unwind") && !line.contains("fibra_runtime::");
    assert!(lines.all(user), "the frames below the task's closure are left out: {text}");
    // Debug builds may have no debug information.
    assert!(
        cfg!(debug_assertions) || text.contains("insight/tests/common/mod.rs:"),
        "there are lines: {text}"
    );
}

#[test]
#[cfg(all(debug_assertions, panic = "unwind"))]
fn a_dump_shows_the_frames_of_a_sleeper() {
    frames_of_a_sleeper();
}

#[test]
#[cfg(all(not(debug_assertions), panic = "unwind"))]
fn a_dump_shows_the_frames_of_a_sleeper_in_release_without_frame_pointers() {
    frames_of_a_sleeper();
}

#[test]
#[cfg(panic = "abort")]
fn a_dump_shows_the_frames_of_a_sleeper_with_panic_abort() {
    frames_of_a_sleeper();
}

#[test]
fn a_dump_shows_the_frames_of_a_sleeper_of_a_stripped_binary_by_address() {
    const NAME: &str = "a_dump_shows_the_frames_of_a_sleeper_of_a_stripped_binary_by_address";
    if is_child() {
        print!("{:#}", stack_of_a_sleeper(3));
        return;
    }
    let own = env::current_exe().expect("the path of the test binary");
    let stripped = own.with_file_name(format!("stripped-{}", process::id()));
    let status = Command::new("strip").arg(&own).arg("-o").arg(&stripped).status().expect("strip runs");
    assert!(status.success());
    let ordinary = child(NAME);
    let mut command = Command::new(&stripped);
    command.args(ordinary.get_args());
    command.envs(ordinary.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output();
    fs::remove_file(&stripped).expect("the stripped binary is there");
    let output = String::from_utf8(output.expect("the stripped binary runs").stdout).expect("text");

    let mark = format!("at {}+0x", stripped.file_name().expect("a name").display());
    let places: Vec<_> = output.lines().filter_map(|line| line.split_once(&mark)).collect();
    let base = base_of_the_program();
    let offset = |hex: &str| base + usize::from_str_radix(hex, 16).expect("an offset");
    let addresses: Vec<_> = places.iter().map(|(_, hex)| offset(hex)).collect();
    // The unstripped binary has the names.
    let calls = common::names(&addresses).iter().filter(|name| name.contains("common::deep")).count();
    assert_eq!(calls, 4, "{output}");
}

/// Returns where the program is loaded.
fn base_of_the_program() -> usize {
    let own = env::current_exe().expect("the path of the test binary");
    let maps = fs::read_to_string("/proc/self/maps").expect("the mappings");
    let first = maps.lines().find(|line| line.ends_with(own.to_str().expect("a path"))).expect("the program");
    usize::from_str_radix(first.split('-').next().expect("an address"), 16).expect("a number")
}

#[test]
#[cfg(panic = "unwind")]
fn a_dump_names_mutex_owner_and_its_stack() {
    fibra_insight::install();
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let lock = std::sync::Arc::new(fibra_sync::Mutex::new(()));
    let spawn = |name, f: Box<dyn FnOnce() + Send>| {
        let task = task::Builder::new().name(name).spawn_on(&runtime.handle(), f);
        until_asleep(task.task());
        task
    };
    let (audited, checked_out) = (lock.clone(), lock);
    let audit = spawn(
        "audit",
        Box::new(move || {
            let _held = audited.lock();
            _ = deep(3, &mut || fibra::sleep(LONG));
        }),
    );
    let _checkout = spawn("checkout", Box::new(move || drop(checked_out.lock())));
    let dump = runtime.handle().dump().to_string();
    let about = |name: &str| {
        let tasks = dump.split("\n\n");
        tasks
            .into_iter()
            .find(|task| task.starts_with(&format!("task '{name}'")))
            .unwrap_or_else(|| panic!("{dump}"))
    };
    let owner = format!("waiting for mutex of task 'audit' (id {}) at 0x", audit.task().id());
    assert!(about("checkout").contains(&owner), "{dump}");
    assert_eq!(about("audit").matches("common::deep").count(), 4, "{dump}");
}

#[test]
fn a_dump_touches_no_page_of_a_sleeping_stack() {
    const STACK: usize = 1 << 20;
    fibra_insight::install();
    let runtime = Runtime::builder().workers(1).stack_size(STACK).build().expect("a runtime");
    let (place, told) = mpsc::channel();
    let sleeper = task::Builder::new().spawn_on(&runtime.handle(), move || {
        let local = 0_u8;
        place.send(&raw const local as usize).expect("the test goes on");
        deep(3, &mut || fibra::sleep(LONG));
    });
    let local = told.recv().expect("the task starts");
    until_asleep(sleeper.task());
    let pages = || pages_in_memory(local - STACK / 2, local);
    let before = pages();
    assert!((1..16).contains(&before.iter().filter(|is_present| **is_present).count()));
    let text = runtime.handle().dump().to_string();
    assert!(text.contains("common::deep"), "{text}");
    assert_eq!(before, pages());
}

/// Tells of each page whether it is in memory or swapped.
fn pages_in_memory(from: usize, to: usize) -> Vec<bool> {
    const PAGE: usize = 4096;
    let map = File::open("/proc/self/pagemap").expect("the map of pages");
    let entry = |page: usize| {
        let mut entry = [0; 8];
        map.read_exact_at(&mut entry, page as u64 * 8).expect("an entry a page");
        u64::from_ne_bytes(entry) >> 62 != 0
    };
    (from / PAGE..=to / PAGE).map(entry).collect()
}

#[test]
fn big_stack_is_walked_through_both_stacks() {
    let stack = stack_of(|| {
        deep(2, &mut || {
            task::on_big_stack(1 << 20, || {
                deep(1, &mut || task::on_big_stack(2 << 20, || _ = deep(4, &mut || fibra::sleep(LONG))));
            });
        });
    });
    assert!(stack.is_complete(), "{stack:#}");
    assert_eq!(deep_calls(&stack), 3 + 2 + 5, "{stack:#}");
}

#[test]
fn a_task_takes_a_dump_on_its_own_stack() {
    fibra_insight::install();
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let text = runtime.spawn(|| {
        let sleeper = fibra::spawn(|| _ = deep(3, &mut || fibra::sleep(LONG)));
        until_asleep_beside(sleeper.task());
        fibra::Handle::current().dump().to_string()
    });
    let text = text.join().expect("no overflow");
    assert!(text.contains("common::deep"), "{text}");
}

/// Lets other tasks of the worker run until this one sleeps.
fn until_asleep_beside(task: &fibra::Task) {
    while task.state() != task::TaskState::Suspended {
        fibra::yield_now();
    }
}

#[test]
fn a_running_task_has_a_stack() {
    fibra_insight::install();
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let (begun, begins) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let busy = runtime.spawn(move || {
        begun.send(()).expect("the test goes on");
        deep(5, &mut || while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {});
    });
    begins.recv().expect("the task starts");
    std::thread::sleep(Duration::from_millis(20));
    let dump = runtime.handle().dump();
    let found = dump.tasks().iter().find(|found| found.task() == busy.task()).expect("it is listed");
    let stack = found.backtrace().expect("a stack");
    drop(end);
    busy.join().expect("it ends");
    assert_eq!(deep_calls(&stack), 6, "{stack:#} {:?}", functions(&stack));
}

/// Follows the note of the program as a reader from outside does, up to the numbers of all started tasks.
#[test]
fn the_note_in_the_binary_leads_to_all_started_tasks() {
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    let parked: Vec<_> = (0..600).map(|_| runtime.spawn(task::park)).collect();
    parked.iter().for_each(|task| until_asleep(task.task()));
    let base = base_of_the_program();
    let mut header = [0; 64];
    fibra_runtime::stacks::read(base, &mut header).expect("the program's header");
    let [headers, count] = [32, 56].map(|at| usize::from(header[at]) | usize::from(header[at + 1]) << 8);
    let segments = (0..count).map(|index| base + headers + 56 * index);
    let is_note = |segment: &usize| word(*segment) as u32 == 4;
    let start = |segment: usize| base + word(segment + 16) as usize;
    let notes = segments.filter(is_note).flat_map(|segment| {
        // Aligned to 8 bytes, as those of the compiler that may stand beside it.
        let end = start(segment) + word(segment + 40) as usize;
        (start(segment)..end).step_by(8)
    });
    let mut found = notes.filter(|note| word(note + 8) == 1 | u64::from_ne_bytes(*b"fibra\0\0\0") << 32);
    let place = found.next().expect("a note") + 24;
    assert_eq!((word(place - 24), found.next()), (6 | 8 << 32, None));
    let root = place.wrapping_add(word(place) as usize);
    let (slots, id) = (word(root + 8) as u32, word(root + 20) >> 32);
    let (mut chunk, mut ids) = (word(root) as usize, Vec::new());
    while chunk > 0 {
        let entries = (1..=slots as usize).map(|slot| word(chunk + 8 * slot) as usize);
        // Other tests of this process have tasks as well, which may end meanwhile.
        ids.extend(
            entries.filter(|entry| entry & 1 == 0).filter_map(|header| read_word(header + id as usize)),
        );
        chunk = word(chunk) as usize;
    }
    assert!(parked.iter().all(|task| ids.contains(&task.task().id())));
}

fn word(address: usize) -> u64 {
    read_word(address).expect("memory")
}

fn read_word(address: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    fibra_runtime::stacks::read(address, &mut bytes).map(|()| u64::from_ne_bytes(bytes))
}
