//! Dumps of a runtime: the states of its tasks, what they wait for, and their stacks.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use fibra_runtime::stacks::{self, SavedContext, Symbol, Unwinder};
use fibra_runtime::task::{self, Owner, TaskState};
use fibra_runtime::{self as fibra, Handle, Task};

/// Stands for an unwinder: the frame that left the stack, and the word below its base.
struct Fake;

impl Unwinder for Fake {
    fn walk(
        &self,
        from: SavedContext,
        read: &mut dyn FnMut(usize) -> Option<u64>,
        frames: &mut Vec<usize>,
    ) -> bool {
        assert!(read(8).is_none(), "only the stack is read");
        frames.push(from.pc);
        frames.extend(read(from.sp).map(|_| 1000));
        true
    }

    fn resolve(&self, addresses: &[(usize, bool)]) -> Vec<Vec<Symbol>> {
        let function = |is_return| if is_return { "caller" } else { "fake" }.to_owned();
        let symbol =
            |is_return| Symbol { function: function(is_return), file: None, line: None, is_library: false };
        addresses.iter().map(|(_, is_return)| vec![symbol(*is_return)]).collect()
    }

    fn sample(&self, tid: i32, frames: &mut Vec<usize>) -> bool {
        assert!(tid > 0);
        frames.push(2000);
        false
    }
}

fn with_stacks() {
    stacks::install(&Fake);
}

/// Waits until a condition holds.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Returns a dump, and the state of a task in it.
fn state_in_dump(handle: &Handle, task: &Task) -> Option<TaskState> {
    handle.dump().tasks().iter().find(|found| found.task() == task).map(|found| found.state())
}

#[test]
fn a_dump_tells_the_state_of_each_task() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let handle = runtime.handle();
    let over = Arc::new(AtomicBool::new(false));
    let (parked, woken) = (handle.spawn(task::park), handle.spawn(task::park));
    until(|| [&parked, &woken].iter().all(|one| one.task().state() == TaskState::Suspended));
    let blocking = handle.spawn_blocking({
        let over = Arc::clone(&over);
        move || until(|| over.load(Ordering::Relaxed))
    });
    let unblocked = handle.spawn({
        let over = Arc::clone(&over);
        move || fibra::unblock(|| until(|| over.load(Ordering::Relaxed)))
    });
    until(|| [blocking.task(), unblocked.task()].iter().all(|task| task.state() == TaskState::Blocking));
    let busy = handle.spawn({
        let over = Arc::clone(&over);
        move || until(|| over.load(Ordering::Relaxed))
    });
    until(|| busy.task().state() == TaskState::Running);
    woken.task().unpark();
    let unstarted = handle.spawn(|| ());
    let dump = handle.dump();
    let states = [
        (parked.task(), TaskState::Suspended),
        (blocking.task(), TaskState::Blocking),
        (unblocked.task(), TaskState::Blocking),
        (busy.task(), TaskState::Running),
        (unstarted.task(), TaskState::Unstarted),
    ];
    for (task, state) in states {
        assert_eq!(task.state(), state, "{dump}");
        let found = dump.tasks().iter().find(|found| found.task() == task).map(|found| found.state());
        assert_eq!(found, (state != TaskState::Unstarted).then_some(state), "{dump}");
    }
    assert_eq!(dump.unstarted(), 1);
    // Woken from afar: it lies in the inbox of the worker that computes.
    assert_eq!(woken.task().state(), TaskState::Ready);
    assert!(
        dump.to_string().contains("6 tasks, 1 running, 1 ready, 1 suspended, 2 blocking, 1 unstarted"),
        "{dump}"
    );
    over.store(true, Ordering::Relaxed);
    let ended = busy.task().clone();
    busy.join().unwrap();
    assert_eq!(ended.state(), TaskState::Ended);
    parked.task().unpark();
}

#[test]
fn a_dump_answers_while_every_worker_computes() {
    let _guard = hang_guard();
    with_stacks();
    let runtime = runtime(2);
    let handle = runtime.handle();
    let over = Arc::new(AtomicBool::new(false));
    let sleepers: Vec<_> = (0..100).map(|_| handle.spawn(task::park)).collect();
    until(|| sleepers.iter().all(|one| one.task().state() == TaskState::Suspended));
    let busy = [0, 1].map(|worker| {
        let over = Arc::clone(&over);
        let compute = move || {
            while !over.load(Ordering::Relaxed) {
                spin_loop();
            }
        };
        handle.spawn_on_worker(worker, compute)
    });
    until(|| busy.iter().all(|one| one.task().state() == TaskState::Running));
    let begin = Instant::now();
    let dump = handle.dump();
    assert!(begin.elapsed() < Duration::from_secs(5));
    let count = |state| dump.tasks().iter().filter(|task| task.state() == state).count();
    assert_eq!((count(TaskState::Running), count(TaskState::Suspended)), (2, 100), "{dump}");
    let running = dump.tasks().iter().filter(|task| task.state() == TaskState::Running);
    running.for_each(|task| assert_eq!(task.addresses().collect::<Vec<_>>(), [2000], "sampled"));
    over.store(true, Ordering::Relaxed);
    sleepers.iter().for_each(|one| one.task().unpark());
}

#[test]
fn equal_stacks_are_printed_once() {
    let _guard = hang_guard();
    with_stacks();
    let runtime = runtime(1);
    let handle = runtime.handle();
    let sleepers: Vec<_> = (0..100).map(|_| handle.spawn(task::park)).collect();
    until(|| sleepers.iter().all(|one| one.task().state() == TaskState::Suspended));
    let dump = handle.dump();
    let text = dump.grouped().to_string();
    assert!(text.contains("100 tasks suspended, waiting for park: task (id"), "{text}");
    assert_eq!(text.matches("    at fake\n    at caller\n").count(), 1, "{text}");
    assert_eq!(dump.to_string().matches("    at fake\n    at caller\n").count(), 100);
    sleepers.iter().for_each(|one| one.task().unpark());
}

#[test]
fn a_task_on_big_stacks_has_the_frames_of_all_of_them() {
    let _guard = hang_guard();
    with_stacks();
    let runtime = runtime(1);
    let nested = || task::on_big_stack(1 << 20, || task::on_big_stack(2 << 20, task::park));
    let parked = runtime.handle().spawn(nested);
    until(|| parked.task().state() == TaskState::Suspended);
    let stack = parked.task().backtrace().unwrap();
    assert_eq!(stack.frames().len(), 6, "{stack:?}");
    assert!(stack.is_complete());
    parked.task().unpark();
    parked.join().unwrap();
}

#[test]
fn scopes_and_groups_are_containers() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let handle = runtime.handle();
    let named = |name: &str| task::Builder::new().name(name);
    let parent = named("parent").spawn_on(&handle, move || {
        fibra::scope(|scope| {
            scope.spawn_as(named("child"), task::park);
        });
    });
    let group = fibra::TaskGroup::new();
    runtime.run(|| drop(group.spawn(task::park)));
    let all = || handle.dump().tasks().iter().filter(|task| task.state() == TaskState::Suspended).count();
    until(|| all() == 3);
    let json = handle.dump().to_json();
    let id = parent.task().id();
    let scope = json.find(r#""container": "scope@"#).expect(&json);
    let part = &json[scope..];
    assert!(
        part.starts_with(r#""container": "scope@0x"#)
            && part.contains(&format!(r#""parent": "<root>", "owner": {id},"#)),
        "{json}"
    );
    assert!(part.contains(r#""name": "child", "state": "WAITING""#), "{json}");
    assert!(json.contains(r#""container": "group@0x"#), "{json}");
    group.cancel_all();
    parent.cancel();
    _ = parent.join();
}

#[test]
fn a_dump_names_the_joined_task_and_the_deadline() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let handle = runtime.handle();
    let parked = task::Builder::new().name("parked").spawn_on(&handle, task::park);
    let joined = parked.task().clone();
    let joiner = handle.spawn(move || _ = parked.join_timeout(Duration::from_secs(1000)));
    until(|| [&joined, joiner.task()].iter().all(|task| task.state() == TaskState::Suspended));
    let waits_for = joiner.task().waits_for().unwrap();
    assert_eq!((waits_for.kind.as_str(), waits_for.owner), ("join", Some(Owner::Task(joined.clone()))));
    let left = waits_for.deadline.unwrap().saturating_duration_since(Instant::now());
    assert!(left > Duration::from_secs(900) && left <= Duration::from_secs(1000), "{left:?}");
    let text = handle.dump().to_string();
    assert!(text.contains(&format!("waiting for join of {joined}")), "{text}");
    assert_eq!(joined.waits_for().unwrap().deadline, None);
    thread::sleep(Duration::from_millis(30));
    let waited = joined.waits_for().unwrap().waited;
    assert!(waited >= Duration::from_millis(20) && joined.age() >= waited, "{waited:?}");
    joined.unpark();
}

#[test]
fn dumps_beside_a_storm_of_switches_see_each_sleeper_whole() {
    const TASKS: usize = 20;
    let _guard = hang_guard();
    with_stacks();
    let runtime = runtime(2);
    let handle = runtime.handle();
    let (over, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let storm: Vec<_> = (0..TASKS)
        .map(|_| {
            let (over, turns) = (Arc::clone(&over), Arc::clone(&turns));
            handle.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    turns.fetch_add(1, Ordering::Relaxed);
                    match turns.load(Ordering::Relaxed) % 5 {
                        4 => _ = task::park_timeout(Duration::from_micros(50)),
                        0 => fibra::sleep(Duration::from_micros(50)),
                        1 => task::on_big_stack(1 << 20, || fibra::sleep(Duration::from_micros(50))),
                        2 => _ = fibra::spawn(fibra::yield_now).join(),
                        _ => fibra::yield_now(),
                    };
                }
            })
        })
        .collect();
    let waker = thread::spawn({
        let (over, tasks) =
            (Arc::clone(&over), storm.iter().map(|one| one.task().clone()).collect::<Vec<_>>());
        move || {
            while !over.load(Ordering::Relaxed) {
                tasks.iter().for_each(Task::unpark);
                thread::yield_now();
            }
        }
    });
    let (mut slept, mut dumps) = (0, 0);
    while dumps < 300 || slept == 0 {
        dumps += 1;
        for task in handle.dump().tasks() {
            if let Some(waits_for) = task.waits_for() {
                assert!(
                    ["park", "sleep", "join", "unknown"].contains(&waits_for.kind.as_str()),
                    "{waits_for}"
                );
                let frames = task.addresses().count();
                assert!(frames == 2 || frames == 4, "{frames}");
                slept += 1;
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    waker.join().unwrap();
    storm.into_iter().for_each(|one| one.join().unwrap());
}

#[test]
fn a_task_may_dump_its_own_runtime() {
    let _guard = hang_guard();
    with_stacks();
    let (send, receive) = mpsc::channel();
    runtime(1).run(|| send.send(state_in_dump(&Handle::current(), &task::current())).unwrap());
    assert_eq!(receive.recv(), Ok(Some(TaskState::Running)));
}
