//! What is promised where there are fewer stacks than tasks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::at_end::AtEnd;
use crate::common::hang_guard;
use crate::message::message;
use fibra_runtime::structured::Either;
use fibra_runtime::{self as fibra, Builder, Handle, Runtime, task};

/// Longer than any machine is busy.
const LONG: Duration = Duration::from_secs(3600);

fn few_stacks(workers: usize, stacks: usize) -> Builder {
    Runtime::builder().workers(workers).max_stacks(stacks)
}

/// Tells that it has begun, waits for the end of the runtime, and then runs a race of two closures with one stack for both.
fn race_at_the_end(begun: &Sender<()>, won: &Sender<Either<(), ()>>) {
    begun.send(()).unwrap();
    while !fibra::spawn(|| ()).join().is_err_and(|error| error.is_cancelled()) {}
    let soon = || fibra::sleep(Duration::from_millis(1));
    won.send(fibra::race(soon, task::park)).unwrap();
}

/// Ends a runtime while `racer`, in a task that is cancelled if it is to be, is about to race.
/// Returns the winner.
fn winner_at_the_end(
    racer: fn(Sender<()>, Sender<Either<(), ()>>),
    cancelled: bool,
) -> Receiver<Either<(), ()>> {
    let _guard = hang_guard();
    let ((begun, has_begun), (won, winner)) = (channel(), channel());
    let main = move || {
        let task = fibra::spawn(move || racer(begun, won));
        fibra::yield_now();
        if cancelled {
            task.cancel();
        }
        while has_begun.try_recv().is_err() {
            fibra::yield_now();
        }
    };
    few_stacks(1, 2).stack_patience(LONG).run(main).unwrap();
    winner
}

#[test]
fn a_race_behind_a_shield_waits_for_its_stacks_also_at_the_end() {
    let racer = |begun, won: Sender<_>| {
        task::shield(|| race_at_the_end(&begun, &won));
        won.send(Either::Right(())).unwrap();
    };
    let ended: Vec<_> = winner_at_the_end(racer, false).iter().collect();
    assert_eq!(ended, [Either::Left(()), Either::Right(())], "the winner, and what is behind the shield");
}

#[test]
fn a_race_in_a_destructor_waits_for_its_stacks_also_at_the_end() {
    let racer = |begun, won| {
        let _races = AtEnd(|| race_at_the_end(&begun, &won));
        task::park();
    };
    assert_eq!(winner_at_the_end(racer, true).recv(), Ok(Either::Left(())));
}

fn migratable() -> task::Builder {
    // SAFETY: what these tasks run has nothing of a thread's.
    unsafe { task::Builder::new().migratable() }
}

#[test]
fn migratable_tasks_run_on_while_another_waits_for_their_stack() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        few_stacks(workers, 2).stack_patience(LONG).build().unwrap().run(|| {
            let yields = migratable().spawn(|| (0..10).for_each(|_| fibra::yield_now()));
            fibra::yield_now();
            assert_eq!(fibra::spawn(|| 1).join().unwrap(), 1);
            yields.join().unwrap();
        });
    }
}

#[test]
fn migratable_tasks_that_are_woken_run_while_another_waits_for_their_stack() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        few_stacks(workers, 2).stack_patience(LONG).build().unwrap().run(|| {
            let parks = migratable().spawn(task::park);
            fibra::yield_now();
            let waits = fibra::spawn(|| 1);
            fibra::yield_now();
            parks.task().unpark();
            assert_eq!(waits.join().unwrap(), 1);
            parks.join().unwrap();
        });
    }
}

#[test]
fn long_after_a_refusal_the_next_task_waits_its_own_time() {
    let _guard = hang_guard();
    few_stacks(1, 2).stack_patience(Duration::from_secs(2)).build().unwrap().run(|| {
        let holder = fibra::spawn(task::park);
        fibra::yield_now();
        assert!(fibra::spawn(|| ()).join().unwrap_err().is_not_started());
        fibra::sleep(Duration::from_millis(500));
        let late = fibra::spawn(|| 1);
        fibra::sleep(Duration::from_millis(10));
        holder.task().unpark();
        assert_eq!(late.join().unwrap(), 1);
        holder.join().unwrap();
    });
}

/// Longer than a machine stands still, during which no stack comes back either, and shorter than tasks wait here in all.
const PATIENCE: Duration = Duration::from_secs(2);

#[test]
fn no_task_is_refused_while_stacks_come_back() {
    let _guard = hang_guard();
    let runtime = few_stacks(2, 2).stack_patience(PATIENCE).build().unwrap();
    let pause = || fibra::sleep(Duration::from_millis(5));
    let tasks: Vec<_> = (0..1000).map(|_| runtime.spawn(pause)).collect();
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

#[test]
fn no_worker_is_refused_the_stack_that_comes_back_on_another() {
    let _guard = hang_guard();
    let runtime = few_stacks(2, 1).stack_patience(PATIENCE).build().unwrap();
    let pause = || fibra::sleep(Duration::from_millis(5));
    // Those of one worker alone take longer than the other is patient.
    let tasks: Vec<_> = (0..900).map(|number| runtime.handle().spawn_on_worker(number % 2, pause)).collect();
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

#[test]
fn workers_that_wait_for_stacks_take_turns() {
    let _guard = hang_guard();
    for workers in [2, 3] {
        let runtime = few_stacks(workers, 1).stack_patience(LONG).build().unwrap();
        let (ended, in_order) = channel();
        let tasks: Vec<_> = (0..100 * workers)
            .map(|number| {
                let ended = ended.clone();
                runtime.handle().spawn_on_worker(number % workers, move || {
                    fibra::sleep(Duration::from_millis(3));
                    ended.send(number % workers).unwrap();
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        let first: Vec<_> = in_order.try_iter().take(50 * workers).collect();
        for worker in 0..workers {
            let share = first.iter().filter(|at| **at == worker).count();
            assert!(share >= 10, "{first:?}");
        }
    }
}

/// A task of a worker whose next one is always there before it ends.
fn goes_on_until(is_over: Arc<AtomicBool>, handle: Handle) {
    if !is_over.load(Ordering::SeqCst) {
        let next = handle.clone();
        drop(handle.spawn_on_worker(0, move || goes_on_until(is_over, next)));
    }
}

#[test]
fn a_worker_that_starts_one_task_after_another_lets_another_worker_have_the_only_stack() {
    let _guard = hang_guard();
    let runtime = few_stacks(2, 1).stack_patience(LONG).build().unwrap();
    for _ in 0..20 {
        let is_over = Arc::new(AtomicBool::new(false));
        let (ends, handle) = (Arc::clone(&is_over), runtime.handle());
        drop(runtime.handle().spawn_on_worker(0, move || goes_on_until(is_over, handle)));
        let other = runtime.handle().spawn_on_worker(1, move || ends.store(true, Ordering::SeqCst));
        other.join().unwrap();
    }
}

#[test]
fn no_task_starts_before_one_of_its_worker_that_waits_for_a_stack() {
    let _guard = hang_guard();
    few_stacks(1, 2).stack_patience(LONG).build().unwrap().run(|| {
        let (ran, in_order) = channel();
        let holder = fibra::spawn_local(task::park);
        fibra::yield_now();
        let tasks: Vec<_> = (0..20)
            .map(|number| {
                let ran = ran.clone();
                let runs = move || ran.send(number).unwrap();
                match number % 2 {
                    0 => fibra::spawn_local(runs),
                    _ => {
                        let task = task::Builder::new().stack_size(1 << 20).spawn_local(runs);
                        fibra::yield_now();
                        task
                    }
                }
            })
            .collect();
        holder.task().unpark();
        holder.join().unwrap();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(in_order.try_iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    });
}

#[test]
fn job_without_a_stack_is_run_by_its_owner() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        few_stacks(workers, 1).stack_patience(LONG).build().unwrap().run(|| {
            fibra::join(|| fibra::sleep(Duration::from_millis(1)), || ());
            fibra::parallel_for(0..100, |_| fibra::sleep(Duration::from_micros(200)));
        });
    }
}

#[test]
fn job_awaited_by_its_owner_has_a_stack_once_there_is_one() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        few_stacks(workers, 2).stack_patience(LONG).build().unwrap().run(|| {
            let holder = fibra::spawn(task::park);
            fibra::sleep(Duration::from_millis(5));
            let (done, is_done) = channel();
            let wait = || {
                fibra::sleep(Duration::from_millis(5));
                holder.task().unpark();
                while is_done.try_recv().is_err() {
                    fibra::sleep(Duration::from_millis(1));
                }
            };
            fibra::join(wait, move || done.send(()).unwrap());
            holder.join().unwrap();
        });
    }
}

/// The worker that has the stack sleeps for good, and is not the one that is told of the second half.
#[test]
fn the_second_of_a_join_gets_a_stack_that_lies_unused_on_a_worker_that_sleeps() {
    let _guard = hang_guard();
    let main = || {
        // Each on a worker of its own, the third of which this one blocks.
        let all = Arc::new(Barrier::new(3));
        let [here, there] = [(), ()].map(|()| Arc::clone(&all));
        let twice = fibra::spawn(move || {
            here.wait();
            (0..2).for_each(|_| task::park());
        });
        let once = fibra::spawn(move || _ = there.wait());
        all.wait();
        once.join().unwrap();
        // Until that worker has nothing to trim any more.
        fibra::sleep(Duration::from_secs(3));
        // So that the other one falls asleep after it.
        twice.task().unpark();
        fibra::sleep(Duration::from_millis(5));
        let me = task::current();
        fibra::join(task::park, move || me.unpark());
        // Where it has not run since the first one, the two are one.
        while !twice.is_finished() {
            twice.task().unpark();
            fibra::sleep(Duration::from_millis(1));
        }
        twice.join().unwrap();
    };
    few_stacks(3, 3).stack_patience(LONG).run(main).unwrap();
}

/// As many closures as that, each of which the one before waits for.
fn chain(length: u32) {
    if length > 0 {
        let me = task::current();
        fibra::join(task::park, move || {
            let _unparks = AtEnd(|| me.unpark());
            chain(length - 1);
        });
    }
}

const SOON: Duration = Duration::from_millis(20);

#[test]
fn job_awaited_by_a_sibling_has_a_stack_beyond_the_limit() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        few_stacks(workers, 1).stack_patience(SOON).build().unwrap().run(|| chain(3));
    }
}

#[test]
fn a_closure_waits_for_the_one_beside_it_where_no_more_tasks_are_allowed() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        Runtime::builder().workers(workers).max_tasks(1).build().unwrap().run(|| chain(3));
    }
}

#[test]
fn awaited_job_has_a_stack_while_other_tasks_wait_for_one() {
    let _guard = hang_guard();
    let runtime = few_stacks(1, 1).stack_patience(SOON).build().unwrap();
    let (handle, (end, ended)) = (runtime.handle(), channel::<()>());
    let spawner = std::thread::spawn(move || {
        while ended.try_recv().is_err() {
            (0..10).for_each(|_| drop(handle.spawn(|| ())));
            _ = handle.spawn(|| ()).join();
        }
    });
    runtime.run(|| chain(2));
    end.send(()).unwrap();
    spawner.join().unwrap();
}

#[test]
fn a_join_says_so_where_the_system_itself_has_no_stack() {
    let _guard = hang_guard();
    // A few of these are all that there are addresses for.
    let builder = few_stacks(1, 1).stack_size(1 << 44).stack_patience(SOON);
    let message = builder.run(|| message(|| chain(64))).unwrap();
    assert!(message.contains("has not run"), "{message}");
}
