//! Promises of the hooks that a runtime makes for all of its tasks.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::hang_guard;
use crate::rerun::{errors, is_child, rerun};
use fibra_runtime::{self as fibra, Runtime, task};
use task::{NewTask, Switch};

const WORKERS: [usize; 3] = [1, 2, 4];

thread_local! {
    /// As an entered span: it belongs to the running task. 0 outside of tasks.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// Numbers all tasks of a runtime, and keeps the number of the running one in `INSIDE`.
fn numbering(workers: usize) -> Runtime {
    let numbers = AtomicUsize::new(1);
    let make = move |_: &NewTask<'_>| {
        let mut other = numbers.fetch_add(1, Ordering::Relaxed);
        move |_| other = INSIDE.replace(other)
    };
    Runtime::builder().workers(workers).on_switch(make).build().unwrap()
}

/// Checks that `INSIDE` is kept over all kinds of switches.
fn keeps_its_number() {
    let number = INSIDE.get();
    assert_ne!(number, 0);
    for step in 0..10 {
        match (number + step) % 4 {
            0 => fibra::yield_now(),
            1 => fibra::sleep(Duration::from_micros(10)),
            2 => task::on_big_stack(1 << 18, fibra::yield_now),
            _ => fibra::unblock(|| assert!(![0, number].contains(&INSIDE.get()))),
        }
        assert_eq!(INSIDE.get(), number);
    }
}

#[test]
fn every_task_of_a_runtime_has_a_hook_of_its_own() {
    let _guard = hang_guard();
    for workers in WORKERS {
        numbering(workers).run(|| {
            let spawned: Vec<_> = (0..30).map(|_| fibra::spawn(keeps_its_number)).collect();
            let blocking: Vec<_> =
                (0..3).map(|_| fibra::spawn_blocking(|| assert_ne!(INSIDE.get(), 0))).collect();
            let outside = fibra::Handle::current();
            let outside = thread::spawn(move || outside.spawn(keeps_its_number).join().unwrap());
            fibra::scope(|scope| {
                scope.spawn(keeps_its_number);
                scope.spawn_local(keeps_its_number);
            });
            fibra::join!(keeps_its_number, keeps_its_number, keeps_its_number);
            fibra::race(keeps_its_number, keeps_its_number);
            fibra::parallel_for(0..10, |_| keeps_its_number());
            keeps_its_number();
            spawned.into_iter().chain(blocking).for_each(|task| task.join().unwrap());
            fibra::unblock(|| outside.join().unwrap());
        });
        assert_eq!(INSIDE.get(), 0);
    }
}

#[test]
fn the_thread_that_runs_a_runtime_is_outside_of_its_tasks() {
    let _guard = hang_guard();
    INSIDE.set(77);
    let make = |_: &NewTask<'_>| {
        let mut other = 1;
        move |_| other = INSIDE.replace(other)
    };
    let seen = Runtime::builder().workers(1).on_switch(make).run(|| {
        fibra::yield_now();
        (INSIDE.get(), fibra::spawn(|| INSIDE.get()).join().unwrap())
    });
    assert_eq!(seen.unwrap(), (1, 1));
    assert_eq!(INSIDE.get(), 77);
}

#[test]
fn a_hook_is_told_the_name_and_whether_its_spawner_waits() {
    let _guard = hang_guard();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let make = move |task: &NewTask<'_>| {
        log.lock().unwrap().push((task.name().map(String::from), task.is_structured()));
        |_| ()
    };
    let runtime = Runtime::builder().workers(1).on_switch(make).build().unwrap();
    let taken = || std::mem::take(&mut *seen.lock().unwrap());
    let (free, structured) = ((None, false), (None, true));
    runtime.run(|| {
        assert_eq!(taken(), [(Some("main".to_owned()), true)]);
        fibra::spawn(|| ()).join().unwrap();
        fibra::spawn_local(|| ()).join().unwrap();
        fibra::spawn_blocking(|| ()).join().unwrap();
        assert_eq!(taken(), [free.clone(), free.clone(), free.clone()]);
        task::Builder::new().name("child").spawn(|| ()).join().unwrap();
        assert_eq!(taken(), [(Some("child".to_owned()), false)]);
        fibra::scope(|scope| drop(scope.spawn(|| ())));
        fibra::unblock(|| ());
        fibra::race(|| (), || ());
        fibra::join(|| (), || ());
        fibra::TaskGroup::new().spawn_named("member", || ());
        let member = (Some("member".to_owned()), true);
        let race = [structured.clone(), structured.clone()];
        assert_eq!(
            taken(),
            [&[structured.clone(), structured.clone()], &race[..], &[structured, member]].concat()
        );
    });
    runtime.spawn(|| ()).join().unwrap();
    assert_eq!(taken(), [free]);
}

#[test]
fn the_hook_of_a_runtime_is_called_around_that_of_a_task() {
    let _guard = hang_guard();
    let calls = Arc::new(Mutex::new(String::new()));
    let log = |who: char| {
        let calls = Arc::clone(&calls);
        move |switch| {
            let mut calls = calls.lock().unwrap();
            calls.push(who);
            calls.push(if switch == Switch::In { '+' } else { '-' });
        }
    };
    let outer = log('r');
    let make = move |task: &NewTask<'_>| {
        let mut call = task.name().is_none().then(|| outer.clone());
        move |switch| call.iter_mut().for_each(|call| call(switch))
    };
    Runtime::builder()
        .workers(1)
        .on_switch(|_| |_| panic!("replaced"))
        .on_switch(make)
        .run(|| task::Builder::new().on_switch(log('t')).spawn(fibra::yield_now).join().unwrap())
        .unwrap();
    assert_eq!(*calls.lock().unwrap(), "r+t+t-r-r+t+t-r-");
}

#[test]
fn hooks_of_a_runtime_are_dropped_with_their_tasks() {
    let _guard = hang_guard();
    let kept = Arc::new(());
    let count = Arc::clone(&kept);
    let make = move |_: &NewTask<'_>| {
        let count = Arc::clone(&count);
        move |_| assert!(Arc::strong_count(&count) > 2)
    };
    let runtime = Runtime::builder().workers(2).on_switch(make).max_tasks(20).build().unwrap();
    runtime.run(|| {
        // Some run, some are cancelled before that, and one is refused by the limit.
        let tasks: Vec<_> = (0..20).map(|_| fibra::spawn(fibra::yield_now)).collect();
        tasks.iter().step_by(2).for_each(|task| task.cancel());
        tasks.into_iter().for_each(|task| drop(task.join()));
        assert_eq!(fibra::join(|| 1, || 2), (1, 2));
        fibra::unblock(|| ());
        assert!(panic::catch_unwind(|| fibra::unblock(|| panic::resume_unwind(Box::new(())))).is_err());
        while Arc::strong_count(&kept) > 3 {
            fibra::sleep(Duration::from_millis(1));
        }
    });
    runtime.shutdown();
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn a_maker_that_panics_or_suspends_is_a_panic_of_the_spawn() {
    let _guard = hang_guard();
    let runtime = Runtime::builder().workers(1).on_switch(|task| {
        match task.name() {
            Some("panics") => panic!("made no hook"),
            Some("suspends") => fibra::yield_now(),
            _ => (),
        }
        |_| ()
    });
    let runtime = runtime.build().unwrap();
    runtime.run(|| {
        for name in ["panics", "suspends"] {
            let spawn = || task::Builder::new().name(name).spawn(|| unreachable!("it was not spawned"));
            assert!(panic::catch_unwind(AssertUnwindSafe(spawn)).is_err());
            let spawn = || task::Builder::new().name(name).spawn_local(|| unreachable!("it was not spawned"));
            assert!(panic::catch_unwind(AssertUnwindSafe(spawn)).is_err());
            let child = || fibra::scope(|scope| drop(scope.spawn_as(task::Builder::new().name(name), || ())));
            assert!(panic::catch_unwind(AssertUnwindSafe(child)).is_err());
        }
        fibra::yield_now();
        fibra::spawn(|| ()).join().unwrap();
    });
    let main =
        Runtime::builder().workers(2).on_switch(|_| -> fn(Switch) { panic!("no hook for the main task") });
    assert!(panic::catch_unwind(AssertUnwindSafe(|| main.run(|| ()))).is_err());
}

/// Runs a main task whose hook is `hook`, which does harm at the first switch out.
fn dies(hook: fn(Switch), run: fn(), test: &str) {
    if is_child() {
        Runtime::builder().workers(1).on_switch(move |_| hook).run(run).unwrap();
        return println!("went on");
    }
    let _guard = hang_guard();
    let output = rerun(test);
    assert!(!output.status.success());
    assert!(
        errors(&output).contains("the hook around the switches of a task has panicked"),
        "{}",
        errors(&output)
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains("went on"));
}

#[test]
fn a_hook_of_a_runtime_that_panics_ends_the_process_and_says_so() {
    let test = "runtime_hooks::a_hook_of_a_runtime_that_panics_ends_the_process_and_says_so";
    dies(|switch| assert_eq!(switch, Switch::In, "in the hook"), fibra::yield_now, test);
}

#[test]
fn a_hook_of_a_closure_on_the_pool_that_panics_ends_the_process_and_says_so() {
    let test = "runtime_hooks::a_hook_of_a_closure_on_the_pool_that_panics_ends_the_process_and_says_so";
    let hook = |_| assert_ne!(thread::current().name(), Some("fibra-blocking"));
    dies(hook, || fibra::unblock(|| ()), test);
}
