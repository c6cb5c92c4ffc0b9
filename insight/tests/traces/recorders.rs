//! Recorders beside runtimes at work.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fibra_insight::{Event, FlightRecorder, Trace, span};
use fibra_runtime::{self as fibra, Handle, JoinHandle, Runtime, task};
use fibra_sync::channel;

use crate::decoder::Decoded;

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().expect("a runtime")
}

fn record(runtime: &Runtime) -> FlightRecorder {
    FlightRecorder::start(&runtime.handle()).expect("a recorder")
}

/// Starts a recorder in a task.
fn record_here() -> FlightRecorder {
    FlightRecorder::start(&Handle::current()).expect("a recorder")
}

/// Checks what holds for the events of each worker in their order: a task that runs ends its run before another runs, and only
/// tasks of these ids are named.
fn check(trace: &Trace, workers: usize, ids: Option<&HashSet<u64>>) {
    for worker in 0..workers {
        let (mut running, mut at, mut has_parked) = (None, Duration::ZERO, false);
        for event in trace.events().iter().filter(|event| event.worker == worker) {
            assert!(event.at >= at && event.at < Duration::from_secs(3600), "{event:?} after {at:?}");
            at = event.at;
            let named = match event.event {
                Event::Runs(task) => {
                    assert_eq!(running.replace(task), None, "{event:?} in another run");
                    Some(task)
                }
                Event::Yields | Event::Sleeps(_) | Event::Ends => {
                    assert_eq!(event.task, running.take(), "{event:?}");
                    event.task
                }
                Event::Wakes(task) | Event::TimerWakes(task) | Event::Takes(task) | Event::Spawns(task) => {
                    Some(task)
                }
                Event::SpanBegins(name) => {
                    assert_eq!(name, "round");
                    event.task
                }
                Event::SpawnedAt(place) => {
                    assert!(place.file().ends_with("recorders.rs"), "{place}");
                    event.task
                }
                Event::Parks => {
                    assert!(!has_parked && running.is_none(), "{event:?}");
                    has_parked = true;
                    None
                }
                Event::Unparks => {
                    has_parked = false;
                    None
                }
                Event::Steals(from) => {
                    assert!(from < workers && from != worker);
                    None
                }
                _ => event.task,
            };
            if let (Some(ids), Some(named)) = (ids, named) {
                assert!(ids.contains(&named), "{event:?} names no task");
            }
            if let Event::Sleeps(Some(wait)) = event.event {
                // A wait that is late while its notification is under way is unknown.
                let kinds = ["sleep", "channel send", "channel receive", "join", "park", "unknown"];
                assert!(kinds.contains(&wait.name().as_str()), "{wait:?}");
            }
        }
    }
}

/// Tasks that switch all the time, until the flag is set.
fn storm(handle: &Handle, over: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let (sender, receiver) = channel::bounded(2);
    let tasks = (0..16).map(|number| {
        let (over, sender, receiver) = (Arc::clone(over), sender.clone(), receiver.clone());
        handle.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let _span = span("round");
                match number % 4 {
                    0 => fibra::yield_now(),
                    1 => _ = sender.send_timeout(number, Duration::from_micros(100)),
                    2 => _ = receiver.recv_timeout(Duration::from_micros(100)),
                    _ => fibra::sleep(Duration::from_micros(20)),
                }
            }
        })
    });
    tasks.collect()
}

fn end(over: &AtomicBool, tasks: Vec<JoinHandle<()>>) {
    over.store(true, Ordering::Relaxed);
    tasks.into_iter().for_each(|task| task.join().expect("it ends"));
}

#[test]
fn a_snapshot_under_a_storm_of_switches_shows_no_torn_event() {
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let over = Arc::new(AtomicBool::new(false));
        // Small, so that the workers write over what is copied.
        let recorder = FlightRecorder::with_events(&runtime.handle(), 256).expect("a recorder");
        let tasks = storm(&runtime.handle(), &over);
        let ids = tasks.iter().map(|task| task.task().id()).collect();
        let (begin, mut lost, mut events) = (Instant::now(), 0, 0);
        while begin.elapsed() < Duration::from_millis(300) || events == 0 {
            let trace = recorder.snapshot();
            check(&trace, workers, Some(&ids));
            assert!(trace.lost() >= lost, "what is lost stays lost");
            lost = trace.lost();
            events += trace.events().len();
            Decoded::of(&trace);
        }
        end(&over, tasks);
        assert!(lost > 0);
    }
}

#[test]
fn recorders_come_and_go_under_load() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let over = Arc::new(AtomicBool::new(false));
        let tasks = storm(&runtime.handle(), &over);
        for round in 0..200 {
            let recorder =
                FlightRecorder::with_events(&runtime.handle(), 64 << (round % 3)).expect("a recorder");
            if round % 5 == 0 {
                thread::sleep(Duration::from_micros(300));
            }
            check(&recorder.snapshot(), workers, None);
        }
        let recorder = record(&runtime);
        while !recorder.snapshot().events().iter().any(|event| matches!(event.event, Event::Runs(_))) {
            thread::yield_now();
        }
        end(&over, tasks);
    }
}

#[test]
fn lost_events_are_counted() {
    let runtime = runtime(1);
    let recorder = FlightRecorder::with_events(&runtime.handle(), 64).expect("a recorder");
    let all = record_all(&runtime, &recorder, 10);
    assert_eq!(all.lost(), 0, "there was room for all");
    let some = record_all(&runtime, &recorder, 1000);
    assert_eq!(some.events().len(), 63, "the oldest is left out: the worker may be about to write over it");
    assert!(some.lost() > 1900, "{} were lost of two thousand", some.lost());
}

fn record_all(runtime: &Runtime, recorder: &FlightRecorder, yields: usize) -> Trace {
    runtime.run(|| {
        (0..yields).for_each(|_| fibra::yield_now());
        recorder.snapshot()
    })
}

#[test]
fn a_run_that_is_under_way_is_recorded_from_its_next_event_on() {
    let runtime = runtime(1);
    let trace = runtime.run(|| {
        let recorder = record_here();
        drop(span("round"));
        recorder.snapshot()
    });
    let first = trace.events()[0];
    assert!(matches!(first.event, Event::Runs(_)), "{first:?}");
    assert!(matches!(trace.events()[1].event, Event::SpanBegins("round")));
    assert_eq!(trace.events()[1].task, first.task);
}

#[test]
fn the_end_of_a_run_that_takes_up_a_recorder_is_recorded() {
    fn sleep() {
        fibra::sleep(Duration::from_millis(1));
    }
    let stops: [(&str, fn()); 4] = [
        ("Yields", fibra::yield_now),
        ("Sleeps", sleep),
        ("Sleeps", || task::on_big_stack(1 << 20, sleep)),
        ("Ends", || {}),
    ];
    for (stop, end_run) in stops {
        let runtime = runtime(1);
        let task = runtime.spawn(move || {
            let recorder = record_here();
            end_run();
            recorder
        });
        let id = task.task().id();
        let recorder = task.join().expect("it ends");
        // The worker has come to the end of that task before it runs another.
        runtime.run(|| {});
        let trace = recorder.snapshot();
        check(&trace, 1, None);
        let [run, end, ..] = trace.events() else { panic!("{:?}", trace.events()) };
        assert!(matches!(run.event, Event::Runs(task) if task == id), "{run:?}");
        assert!(end.task == Some(id) && format!("{:?}", end.event).starts_with(stop), "{end:?}");
    }
}

#[test]
fn each_runtime_has_one_recorder_at_a_time() {
    let [one, two] = [1, 2].map(runtime);
    let (first, second) = (record(&one), record(&two));
    let refused = FlightRecorder::start(&one.handle()).expect_err("there is one");
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    let ids = [&one, &two].map(|runtime| runtime.run(|| task::current().id()));
    for (recorder, (own, other)) in [(&first, (ids[0], ids[1])), (&second, (ids[1], ids[0]))] {
        let trace = recorder.snapshot();
        let runs =
            |id| trace.events().iter().any(|event| matches!(event.event, Event::Runs(task) if task == id));
        assert!(runs(own) && !runs(other));
    }
    drop(first);
    drop(record(&one));
}

#[test]
fn a_recorder_that_is_dropped_records_nothing_more() {
    let runtime = runtime(1);
    drop(record(&runtime));
    runtime.run(fibra::yield_now);
    assert!(record(&runtime).snapshot().events().is_empty());
}

#[test]
fn a_number_of_events_that_makes_no_sense_is_refused() {
    let runtime = runtime(1);
    for events in [0, 63, usize::MAX] {
        let refused = FlightRecorder::with_events(&runtime.handle(), events).expect_err("it makes no sense");
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(&events.to_string()), "{refused}");
    }
}

#[test]
fn a_snapshot_answers_while_every_worker_computes() {
    let runtime = runtime(2);
    let recorder = record(&runtime);
    let over = Arc::new(AtomicBool::new(false));
    let (sender, begun) = mpsc::channel();
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let (over, sender) = (Arc::clone(&over), sender.clone());
            runtime.spawn(move || {
                sender.send(task::current().id()).expect("it is received");
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let ids = [begun.recv(), begun.recv()].map(|id| id.expect("it begins"));
    let trace = recorder.snapshot();
    for id in ids {
        assert!(trace.events().iter().any(|event| matches!(event.event, Event::Runs(task) if task == id)));
    }
    Decoded::of(&trace);
    end(&over, tasks);
}

#[test]
fn a_worker_that_a_task_holds_all_the_while_shows_its_run() {
    let runtime = runtime(1);
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let (sender, begun) = mpsc::channel();
    let holder = task::Builder::new().name("holder").spawn_on(&runtime.handle(), move || {
        sender.send(task::current().id()).expect("it is received");
        while !flag.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let id = begun.recv().expect("it begins");
    let trace = record(&runtime).snapshot();
    let decoded = Decoded::of(&trace);
    end(&over, vec![holder]);
    let [run] = trace.events() else { panic!("{:?}", trace.events()) };
    assert!(matches!(run.event, Event::Runs(task) if task == id));
    let name = format!("holder #{id}");
    assert_eq!(decoded.names(decoded.track("", "worker 0")), [name.as_str(), ""]);
    assert_eq!(decoded.names(decoded.track("tasks", &name)), ["runs on worker 0", ""]);
}

#[test]
fn a_stall_takes_a_snapshot() {
    let limit = Duration::from_millis(20);
    let (told, stalls) = mpsc::channel();
    let builder = Runtime::builder().workers(1).stall_limit(limit);
    let runtime = builder
        .on_stall(move |stall| told.send(stall.task().id()).expect("it is received"))
        .build()
        .expect("a runtime");
    let recorder = record(&runtime);
    let (sender, traces) = mpsc::channel();
    recorder.on_stall(|_| panic!("it is replaced"));
    recorder.on_stall(move |trace| drop(sender.send(trace)));
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let stalled = runtime.spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let trace = traces.recv().expect("the stall is noticed");
    end(&over, vec![stalled]);
    let id = stalls.recv().expect("the runtime's own hook is called as well");
    let [stall] = trace.stalls() else { panic!("{:?}", trace.stalls()) };
    assert_eq!((stall.worker, stall.task), (0, id));
    assert!(stall.held >= limit && stall.at >= stall.held);
    let decoded = Decoded::of(&trace);
    let names = decoded.names(decoded.track("", "worker 0"));
    assert!(names.iter().any(|name| name.starts_with("stall: ")), "{names:?}");
    assert_eq!(recorder.snapshot().stalls().len(), 1);
}
