//! The check for deadlocks finds tasks that wait for each other, once each, and no others.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::common::{guarded, hang_guard};
use crate::rerun::{errors, is_child, rerun};
use fibra_runtime::task::{self, Deadlock};
use fibra_runtime::{JoinHandle, Runtime, Task, TaskGroup, scope};
use fibra_sync::{Mutex, OnceCell, RwLock, channel, oneshot, select};

const PERIOD: Duration = Duration::from_millis(10);

/// A runtime whose reports go to a channel.
fn checked() -> (Runtime, mpsc::Receiver<Deadlock>) {
    let (told, reports) = mpsc::channel();
    let hook = move |deadlock: &Deadlock| _ = told.send(deadlock.clone());
    let builder = Runtime::builder().workers(2).deadlock_check(PERIOD).on_deadlock(hook);
    (builder.build().expect("a runtime"), reports)
}

/// Spawns a task with a name, which begins when it is unparked.
fn named<T: Send + 'static>(
    runtime: &Runtime,
    name: &str,
    f: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let body = move || {
        task::park();
        f()
    };
    task::Builder::new().name(name).spawn_on(&runtime.handle(), body)
}

/// Begins the tasks one after the other: each waits for something before the next one begins.
fn begin(tasks: &[&Task]) {
    for task in tasks {
        task.unpark();
        while task.waits_for().is_none_or(|found| found.kind == "park") {
            thread::yield_now();
        }
    }
}

/// Returns the names of the tasks of the only report, after which it cancels them.
fn only_report(reports: &mpsc::Receiver<Deadlock>) -> Vec<String> {
    let report = reports.recv().expect("a report");
    assert_eq!(reports.recv_timeout(PERIOD * 10).err(), Some(mpsc::RecvTimeoutError::Timeout), "{report}");
    report.tasks().iter().map(|found| found.task().name().expect("a name").to_owned()).collect()
}

/// Asserts that many checks report nothing.
fn no_report(runtime: &Runtime, reports: &mpsc::Receiver<Deadlock>) {
    assert_eq!(reports.recv_timeout(PERIOD * 10).err(), Some(mpsc::RecvTimeoutError::Timeout));
    assert!(runtime.handle().wait_graph().cycles().is_empty());
}

/// Two locks of one kind, of which two tasks take one each and then the other one, which no cancel ends. The last argument is
/// a limit to the wait of the second task.
fn two_mutexes(limit: Option<Duration>) -> (Runtime, mpsc::Receiver<Deadlock>) {
    let (runtime, reports) = checked();
    let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
    let meeting = Arc::new(fibra_sync::Barrier::new(2));
    let takes = |name, first: usize, limit: Option<Duration>| {
        let (first, second) = (Arc::clone(&locks[first]), Arc::clone(&locks[1 - first]));
        let meeting = Arc::clone(&meeting);
        named(&runtime, name, move || {
            let _first = first.lock();
            meeting.wait();
            match limit {
                Some(limit) => drop(second.try_lock_for(limit)),
                None => drop(second.lock()),
            }
        })
    };
    let tasks = [takes("left", 0, None), takes("right", 1, limit)].map(|handle| handle.task().clone());
    tasks.iter().for_each(Task::unpark);
    while !tasks.iter().all(|task| task.waits_for().is_some_and(|found| found.kind == "mutex")) {
        thread::yield_now();
    }
    (runtime, reports)
}

#[test]
fn a_cycle_of_two_mutexes_is_reported_once() {
    let _guard = hang_guard();
    let (runtime, reports) = two_mutexes(None);
    assert_eq!(only_report(&reports), ["left", "right"]);
    let graph = runtime.handle().wait_graph();
    let [cycle] = graph.cycles() else { panic!("one cycle: {graph:?}") };
    let [left, right] = cycle.tasks() else { panic!("two tasks: {cycle}") };
    assert!(graph.all_asleep());
    let text = cycle.to_string();
    assert!(text.starts_with("a likely deadlock: 2 tasks wait for each other\n  task 'left' (id "), "{text}");
    assert!(text.contains(&format!("waits for mutex of {}", left.task())), "{text}");
    let (left_id, right_id) = (left.task().id(), right.task().id());
    let expected = format!(
        "digraph waits {{\n  \
         t{left_id} [label=\"task 'left' (id {left_id})\\nsuspended\", color=red];\n  \
         t{right_id} [label=\"task 'right' (id {right_id})\\nsuspended\", color=red];\n  \
         t{left_id} -> t{right_id} [label=\"mutex\", color=red];\n  \
         t{right_id} -> t{left_id} [label=\"mutex\", color=red];\n\
         }}\n"
    );
    assert_eq!(graph.to_dot(), expected);
    // No cancel ends a wait for a mutex, so the runtime would not end.
    std::mem::forget(runtime);
}

#[test]
fn a_dump_names_the_cycles_at_its_end() {
    let _guard = hang_guard();
    let (runtime, reports) = two_mutexes(None);
    let dump = runtime.handle().dump();
    let [cycle] = dump.cycles() else { panic!("one cycle: {dump}") };
    let [left, right] = cycle.tasks() else { panic!("two tasks: {cycle}") };
    let (left, right) = (left.task(), right.task());
    let line = format!("\na likely deadlock: 2 tasks wait for each other: {left}, {right}\n");
    assert!(dump.to_string().ends_with(&line), "{dump}");
    assert!(dump.grouped().to_string().ends_with(&line), "{}", dump.grouped());
    let ids = format!(r#"], "cycles": [[{}, {}]]}}}}"#, left.id(), right.id());
    assert!(dump.to_json().ends_with(&ids), "{}", dump.to_json());
    _ = reports.recv();
    // No cancel ends a wait for a mutex, so the runtime would not end.
    std::mem::forget(runtime);
}

#[test]
fn a_timed_lock_is_no_deadlock() {
    let _guard = hang_guard();
    let (runtime, reports) = two_mutexes(Some(Duration::from_secs(3600)));
    no_report(&runtime, &reports);
    assert!(runtime.handle().wait_graph().to_dot().contains("[label=\"mutex\", style=dashed];"));
    assert!(!runtime.handle().wait_graph().all_asleep());
    std::mem::forget(runtime);
}

#[test]
fn a_deadlock_is_printed_with_both_tasks_where_there_is_no_hook() {
    if is_child() {
        let runtime = Runtime::builder().workers(1).deadlock_check(PERIOD).build().unwrap();
        let lock = Arc::new(RwLock::new(()));
        let theirs = Arc::clone(&lock);
        let (send, receive) = oneshot::channel::<JoinHandle<()>>();
        let owner = named(&runtime, "owner", move || {
            let _guard = theirs.write();
            receive.recv().unwrap().join().unwrap();
        });
        let reader = named(&runtime, "reader", move || drop(lock.read()));
        let reader_task = reader.task().clone();
        owner.task().unpark();
        begin(&[owner.task(), &reader_task]);
        send.send(reader).unwrap();
        thread::sleep(PERIOD * 20);
        std::process::exit(0);
    }
    guarded(|| {
        let name = "deadlock_check::a_deadlock_is_printed_with_both_tasks_where_there_is_no_hook";
        let text = errors(&rerun(name));
        assert_eq!(
            text.matches("fibra: a likely deadlock: 2 tasks wait for each other").count(),
            1,
            "{text}"
        );
        for (waiter, wait) in [("owner", "join of task 'reader'"), ("reader", "rwlock of task 'owner'")] {
            let line = text.lines().find(|line| line.starts_with(&format!("  task '{waiter}' (id ")));
            assert!(line.is_some_and(|line| line.contains(&format!("waits for {wait}"))), "{text}");
        }
    });
}

#[test]
fn a_task_that_waits_for_its_own_initializer_in_another_task_is_in_a_cycle() {
    let _guard = hang_guard();
    let (runtime, reports) = checked();
    let cell = Arc::new(OnceCell::new());
    let theirs = Arc::clone(&cell);
    let (send, receive) = oneshot::channel::<JoinHandle<u8>>();
    let first = named(&runtime, "first", move || {
        _ = theirs.get_or_init(|| receive.recv().unwrap().join().unwrap_or(0))
    });
    let second = named(&runtime, "second", move || *cell.get_or_init(|| 2));
    let waiter = second.task().clone();
    begin(&[first.task(), &waiter]);
    send.send(second).unwrap();
    assert_eq!(only_report(&reports), ["first", "second"]);
    // A wait for an initializer heeds no cancel.
    std::mem::forget(runtime);
}

#[test]
fn two_tasks_that_join_each_other_are_a_cycle() {
    let _guard = hang_guard();
    let (runtime, reports) = checked();
    let (send, receive) = oneshot::channel::<JoinHandle<()>>();
    let first = named(&runtime, "first", move || _ = receive.recv().unwrap().join());
    let first_task = first.task().clone();
    let second = named(&runtime, "second", move || _ = first.join());
    let second_task = second.task().clone();
    begin(&[&first_task, &second_task]);
    send.send(second).unwrap();
    assert_eq!(only_report(&reports), ["first", "second"]);
    runtime.shutdown();
}

#[test]
fn a_scope_child_that_waits_for_the_lock_of_its_parent_is_in_a_cycle_with_it() {
    let _guard = hang_guard();
    let (runtime, reports) = checked();
    let parent = named(&runtime, "parent", || {
        let lock = Mutex::new(());
        scope(|scope| {
            let guard = lock.lock();
            scope.spawn(|| ());
            scope.spawn_as(task::Builder::new().name("child"), || drop(lock.lock()));
            // The scope waits for its children before the guard is dropped.
            std::mem::forget(guard);
        });
    });
    parent.task().unpark();
    assert_eq!(only_report(&reports), ["parent", "child"]);
    std::mem::forget(runtime);
}

#[test]
fn a_group_of_tasks_that_wait_for_its_joiner_is_in_a_cycle_with_it() {
    let _guard = hang_guard();
    let (runtime, reports) = checked();
    let lock = Arc::new(Mutex::new(()));
    let theirs = Arc::clone(&lock);
    let joiner = named(&runtime, "joiner", move || {
        let group = TaskGroup::new();
        let guard = theirs.lock();
        for name in ["first", "second"] {
            let theirs = Arc::clone(&theirs);
            group.spawn_as(task::Builder::new().name(name), move || drop(theirs.lock()));
        }
        group.join_all();
        drop(guard);
    });
    joiner.task().unpark();
    let mut names = only_report(&reports);
    names.sort();
    assert_eq!(names, ["first", "joiner", "second"]);
    std::mem::forget(runtime);
}

/// A task that waits for the other one or, in one more arm, for a message; and the other one, which joins it.
#[test]
fn a_select_with_one_live_arm_is_no_deadlock() {
    let _guard = hang_guard();
    for has_live_arm in [true, false] {
        let (runtime, reports) = checked();
        let (send, receive) = oneshot::channel::<JoinHandle<()>>();
        let (message, messages) = channel::bounded::<()>(1);
        let selects = named(&runtime, "selects", move || {
            let mut other = receive.recv().unwrap();
            if has_live_arm {
                select! {
                    join(other) -> _ => (),
                    recv(messages) -> _ => (),
                }
            } else {
                select! { join(other) -> _ => () }
            }
        });
        let selecting = selects.task().clone();
        let joiner = named(&runtime, "joiner", move || _ = selects.join());
        let joining = joiner.task().clone();
        begin(&[&selecting, &joining]);
        send.send(joiner).unwrap();
        if has_live_arm {
            while selecting.waits_for().is_none_or(|found| found.kind != "select") {
                thread::yield_now();
            }
            no_report(&runtime, &reports);
        } else {
            assert_eq!(only_report(&reports), ["selects", "joiner"]);
        }
        drop(message);
        runtime.shutdown();
    }
}
