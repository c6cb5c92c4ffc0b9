//! Spans that tasks have from their spawners.

use std::mem;

use fibra::tracing::{Inherit, follow};
use fibra::{Runtime, TaskGroup, task};
use tracing::{info, info_span};

use crate::common::hang_guard;
use crate::recorder::{WORKERS, counts, inside, record, spans_of};

fn runtime(workers: usize, inherit: Inherit) -> Runtime {
    record();
    Runtime::builder().workers(workers).on_switch(move |task| follow(task, inherit)).build().unwrap()
}

/// The spans that each kind of structured child sees.
fn structured() -> Vec<Option<&'static str>> {
    let after_a_switch = || {
        fibra::yield_now();
        inside()
    };
    let (scoped, local) = fibra::scope(|scope| {
        let (scoped, local) = (scope.spawn(after_a_switch), scope.spawn_local(after_a_switch));
        (scoped.join().unwrap(), local.join().unwrap())
    });
    let (here, forked) = fibra::join(after_a_switch, after_a_switch);
    let raced = fibra::race!(span = after_a_switch() => span, span = after_a_switch() => span);
    let raced_local = match fibra::race_local(after_a_switch, task::park) {
        fibra::structured::Either::Left(span) => span,
        fibra::structured::Either::Right(()) => unreachable!("no task unparks it"),
    };
    let group = TaskGroup::new();
    group.spawn(after_a_switch);
    let member = group.join_next().unwrap().unwrap();
    let mapped = fibra::parallel_map(0..3, |_| after_a_switch());
    let mut seen = vec![scoped, local, here, forked, raced, raced_local, member, fibra::unblock(inside)];
    seen.extend(mapped);
    seen
}

fn free() -> [Option<&'static str>; 4] {
    let handle = fibra::Handle::current();
    [
        fibra::spawn(inside).join().unwrap(),
        fibra::spawn_local(inside).join().unwrap(),
        fibra::spawn_blocking(inside).join().unwrap(),
        handle.spawn(inside).join().unwrap(),
    ]
}

#[test]
fn tasks_whose_spawner_waits_start_inside_its_span() {
    let _guard = hang_guard();
    for workers in WORKERS {
        record();
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        runtime.run(|| {
            assert_eq!(structured(), [None; 11]);
            let _span = info_span!("spawner").entered();
            assert_eq!(structured(), [Some("spawner"); 11]);
            assert_eq!(free(), [None; 4]);
        });
    }
}

#[test]
fn all_tasks_start_inside_the_span_of_their_spawner_by_choice() {
    let _guard = hang_guard();
    for workers in WORKERS {
        runtime(workers, Inherit::All).run(|| {
            assert_eq!(free(), [None; 4]);
            let _outer = info_span!("outer spawner").entered();
            let _span = info_span!("spawner").entered();
            assert_eq!(structured(), [Some("spawner"); 11]);
            assert_eq!(free(), [Some("spawner"); 4]);
            let event = format!("in a grandchild {workers}");
            let logs = event.clone();
            fibra::spawn(|| fibra::spawn(move || info!("{logs}")).join().unwrap()).join().unwrap();
            assert_eq!(spans_of(&event), ["outer spawner", "spawner"]);
        });
    }
}

#[test]
fn no_task_starts_inside_a_span_by_choice() {
    let _guard = hang_guard();
    runtime(1, Inherit::None).run(|| {
        let _span = info_span!("spawner").entered();
        let scoped = fibra::scope(|scope| scope.spawn(inside).join().unwrap());
        assert_eq!(scoped, None);
        assert_eq!(free(), [None; 4]);
        assert_eq!(inside(), Some("spawner"));
    });
}

#[test]
fn an_inherited_span_stays_open_until_the_child_ends() {
    let _guard = hang_guard();
    runtime(1, Inherit::All).run(|| {
        let span = info_span!("inherited");
        let spawn = |body: fn()| span.in_scope(|| fibra::spawn(body));
        let runs = spawn(|| {
            task::park();
            info!("after its spawner's");
        });
        let never_runs = spawn(|| unreachable!("cancelled before"));
        never_runs.cancel();
        drop(span);
        drop(never_runs.join());
        assert_eq!(counts("inherited").closes, 0);
        fibra::yield_now();
        runs.task().unpark();
        runs.join().unwrap();
        assert_eq!(spans_of("after its spawner's"), ["inherited"]);
    });
    let seen = counts("inherited");
    assert!(seen.closes == 1 && seen.enters == seen.exits, "{seen:?}");
}

#[test]
fn a_hook_of_the_program_keeps_spans_as_well() {
    let _guard = hang_guard();
    record();
    let hook = |task: &task::NewTask<'_>| {
        let named = task.name() == Some("named");
        let mut spans = follow(task, Inherit::Structured);
        move |switch| {
            spans(switch);
            if named {
                info!("a switch, {switch:?}");
            }
        }
    };
    let runtime = Runtime::builder().workers(1).on_switch(hook).build().unwrap();
    runtime.run(|| {
        let named = task::Builder::new().name("named").spawn(|| {
            let _span = info_span!("held").entered();
            fibra::yield_now();
            mem::forget(info_span!("unheld").entered());
        });
        named.join().unwrap();
    });
    // The last one of each kind.
    assert_eq!((spans_of("a switch, In"), spans_of("a switch, Out")), (vec!["held"], vec![]));
}
