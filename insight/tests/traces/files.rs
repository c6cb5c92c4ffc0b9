//! Traces as Perfetto reads them.

use std::io::ErrorKind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fibra_insight::{FlightRecorder, Trace, span};
use fibra_runtime::{self as fibra, JoinHandle, Runtime, task};
use fibra_sync::AutoResetEvent;

use crate::decoder::{BEGIN, Decoded, INSTANT, Point};

/// Spawns a task with a name, which lives on after `f` until it is joined by [`end`].
fn named(name: &str, f: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    task::Builder::new().name(name).spawn(|| {
        f();
        task::park();
    })
}

fn end(tasks: impl IntoIterator<Item = JoinHandle<()>>) {
    for task in tasks {
        task.task().unpark();
        task.join().expect("it ends");
    }
}

/// Runs `f` as the first task of a recorded runtime.
fn recorded<T: Send>(workers: usize, f: impl FnOnce(&FlightRecorder) -> T + Send) -> T {
    let runtime = Runtime::builder().workers(workers).build().expect("a runtime");
    let recorder = FlightRecorder::start(&runtime.handle()).expect("a recorder");
    runtime.run(|| f(&recorder))
}

/// One task waits for an event, and another sets it.
fn a_wake(workers: usize) -> (Decoded, [String; 2]) {
    recorded(workers, |recorder| {
        let event = Arc::new(AutoResetEvent::new(false));
        let waiter = named("waiter", {
            let event = Arc::clone(&event);
            move || event.wait()
        });
        while waiter.task().waits_for().is_none_or(|wait| wait.kind != "auto-reset event") {
            fibra::yield_now();
        }
        let setter = named("setter", move || event.set());
        for task in [&setter, &waiter] {
            while task.task().waits_for().is_none_or(|wait| wait.kind != "park") {
                fibra::yield_now();
            }
        }
        let decoded = Decoded::of(&recorder.snapshot());
        let names = [&setter, &waiter]
            .map(|task| format!("{} #{}", task.task().name().expect("a name"), task.task().id()));
        end([waiter, setter]);
        (decoded, names)
    })
}

#[test]
fn the_track_of_a_task_shows_what_it_waits_for() {
    let (decoded, [_, waiter]) = a_wake(1);
    let names = decoded.names(decoded.track("tasks", &waiter));
    let expected = [
        "ready",
        "",
        "runs on worker 0",
        "",
        "waits: auto-reset event",
        "",
        "ready",
        "",
        "runs on worker 0",
        "",
        "waits: park",
        "",
    ];
    assert_eq!(names, expected);
    let runs = decoded.names(decoded.track("", "worker 0"));
    assert_eq!(runs.iter().filter(|name| **name == waiter).count(), 2, "{runs:?}");
}

#[test]
fn flows_lead_from_the_waker_to_the_woken_task() {
    for workers in [1, 2] {
        let (decoded, [setter, waiter]) = a_wake(workers);
        let [from, to] = [&setter, &waiter].map(|name| decoded.track("tasks", name));
        let is_it = |(begin, end): &&(&Point, &Point)| is_wake(begin, from, &waiter) && is_run(end, to);
        assert_eq!(decoded.flows().iter().filter(is_it).count(), 1, "{workers}: {decoded:#?}");
        let spawns = |name: &str| {
            let name = format!("spawns {name}");
            decoded.flows().iter().filter(|(begin, _)| begin.name == name).count()
        };
        assert_eq!([&setter, &waiter].map(|name| spawns(name)), [1, 1]);
    }
}

fn is_wake(point: &Point, track: u64, woken: &str) -> bool {
    (point.track, point.kind) == (track, INSTANT) && point.name == format!("wakes {woken}")
}

fn is_run(point: &Point, track: u64) -> bool {
    (point.track, point.kind) == (track, BEGIN) && point.name.starts_with("runs on worker ")
}

#[test]
fn a_wake_from_another_thread_leads_to_the_woken_task() {
    let (decoded, woken) = recorded(1, |recorder| {
        let parked = named("parked", task::park);
        fibra::yield_now();
        let target = parked.task().clone();
        thread::spawn(move || target.unpark()).join().expect("it ends");
        fibra::sleep(Duration::from_millis(1));
        let decoded = Decoded::of(&recorder.snapshot());
        let woken = format!("parked #{}", parked.task().id());
        end([parked]);
        (decoded, woken)
    });
    let takes = format!("takes {woken}");
    let worker = decoded.track("", "worker 0");
    let is_it = |(begin, _): &&(&Point, &Point)| begin.name == takes && begin.track == worker;
    assert_eq!(decoded.flows().iter().filter(is_it).count(), 1, "{decoded:#?}");
}

#[test]
fn user_spans_nest_and_last_over_sleeps() {
    let (decoded, name) = recorded(1, |recorder| {
        let task = named("buyer", || {
            let _outer = span("checkout");
            for name in ["pay", "ship"] {
                let _inner = span(name);
                fibra::sleep(Duration::from_millis(1));
            }
        });
        while task.task().waits_for().is_none_or(|wait| wait.kind != "park") {
            fibra::yield_now();
        }
        let decoded = Decoded::of(&recorder.snapshot());
        let name = format!("buyer #{}", task.task().id());
        end([task]);
        (decoded, name)
    });
    let spans = decoded.track(&name, "spans");
    assert_eq!(decoded.names(spans), ["checkout", "pay", "", "ship", "", ""]);
    let [pay, paid] =
        [1, 2].map(|index| decoded.points.iter().filter(|point| point.track == spans).nth(index));
    assert!(paid.expect("its end").at - pay.expect("its begin").at >= 1_000_000, "the sleep belongs to it");
}

#[test]
fn a_span_off_a_recorder_or_off_the_workers_is_nothing() {
    drop(span("nowhere"));
    let trace = recorded(1, |recorder| {
        thread::spawn(|| drop(span("on a thread"))).join().expect("it ends");
        recorder.snapshot()
    });
    assert!(!format!("{trace:?}").contains("on a thread"));
}

/// An end is recorded whose begin is not.
#[test]
fn a_span_that_outlives_its_recorder_ends_nothing_else() {
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    let start = || FlightRecorder::start(&runtime.handle()).expect("a recorder");
    let first = start();
    let decoded = runtime.run(|| {
        let outer = span("outer");
        drop(first);
        let second = start();
        {
            let _inner = span("inner");
            fibra::yield_now();
        }
        drop(outer);
        let _next = span("next");
        Decoded::of(&second.snapshot())
    });
    let names: Vec<_> = decoded.points.iter().map(|point| point.name.as_str()).collect();
    assert!(names.contains(&"inner") && names.contains(&"next") && !names.contains(&"outer"), "{names:?}");
}

#[test]
fn at_most_a_thousand_tasks_have_tracks() {
    let decoded = recorded(1, |recorder| {
        let tasks: Vec<_> = (0..1200).map(|_| fibra::spawn(fibra::yield_now)).collect();
        tasks.into_iter().for_each(|task| task.join().expect("it ends"));
        Decoded::of(&recorder.snapshot())
    });
    let tasks = decoded.tracks.iter().find(|(_, (name, _))| name == "tasks").map(|(track, _)| *track);
    assert_eq!(decoded.tracks.values().filter(|(_, parent)| *parent == tasks).count(), 1000);
    let worker = decoded.track("", "worker 0");
    let led = decoded.flows().iter().filter(|(_, end)| end.track == worker).count();
    assert!(led >= 200, "runs of the others are on the workers' tracks: {led}");
}

#[test]
fn tasks_that_have_ended_are_known_by_the_place_of_their_spawn() {
    let line = line!() + 2;
    let decoded = recorded(1, |recorder| {
        fibra::spawn(fibra::yield_now).join().expect("it ends");
        Decoded::of(&recorder.snapshot())
    });
    let place = format!("(files.rs:{line})");
    assert!(decoded.tracks.values().any(|(name, _)| name.ends_with(&place)), "{:?}", decoded.tracks);
}

#[test]
fn a_file_that_cannot_be_made_is_an_error() {
    let trace: Trace = recorded(1, |recorder| recorder.snapshot());
    let error = trace.save("/nonexistent/folder/trace.pftrace").expect_err("there is no such folder");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
