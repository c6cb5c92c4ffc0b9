//! Futures that are always ready: a loop over them lets the tasks beside it run.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::common::{guarded, runtime};
use fibra_runtime::{spawn_local, task};
use fibra_sync::channel::{bounded, unbounded};
use fibra_sync::{
    AutoResetEvent, Barrier, CountdownEvent, ManualResetEvent, Notify, OnceCell, Semaphore, WaitGroup,
    broadcast, oneshot, watch,
};

/// More than a task may do in one turn.
const MANY: usize = 10_000;

/// Awaits `wait` again and again, in a task, until the task beside it has run.
fn lets_others_run(mut wait: impl AsyncFnMut() + Send) {
    let mut in_a_task = || {
        let others_ran = Rc::new(Cell::new(false));
        let tells = Rc::clone(&others_ran);
        let other = spawn_local(move || tells.set(true));
        task::block_on(async {
            for times in 0.. {
                if others_ran.get() {
                    break;
                }
                assert!(times < MANY / 3, "no other task runs");
                wait().await;
            }
        });
        other.join().unwrap();
    };
    for workers in [1, 2] {
        guarded(|| runtime(workers).run(&mut in_a_task));
    }
}

#[test]
fn receives_from_a_channel_that_is_always_fed() {
    for capacity in [Some(MANY), None] {
        let (sender, receiver) = capacity.map_or_else(unbounded, bounded);
        (0..MANY).for_each(|number| sender.send(number).unwrap());
        let mut messages = 0..;
        lets_others_run(async || assert_eq!(receiver.recv_async().await.ok(), messages.next()));
    }
}

#[test]
fn sends_to_a_channel_that_always_has_room() {
    for capacity in [Some(MANY), None] {
        let (sender, _receiver) = capacity.map_or_else(unbounded, bounded);
        lets_others_run(async || sender.send_async(1).await.unwrap());
    }
}

#[test]
fn permits_of_a_semaphore_that_has_them() {
    let semaphore = Arc::new(Semaphore::new(2));
    lets_others_run(async || drop(semaphore.acquire_many_async(2).await));
    lets_others_run(async || drop(Arc::clone(&semaphore).acquire_owned_async().await));
}

#[test]
fn an_event_that_is_set() {
    let event = ManualResetEvent::new(true);
    lets_others_run(async || event.wait_async().await);
}

#[test]
fn a_notification_that_is_given_for_each() {
    let notify = Notify::new();
    lets_others_run(async || {
        notify.notify_one();
        notify.notified_async().await;
    });
}

#[test]
fn an_event_that_is_set_for_each() {
    let event = AutoResetEvent::new(false);
    lets_others_run(async || {
        event.set();
        event.wait_async().await;
    });
}

#[test]
fn counts_that_are_zero() {
    let (countdown, group) = (CountdownEvent::new(0), WaitGroup::new());
    lets_others_run(async || countdown.wait_async().await);
    lets_others_run(async || group.wait_async().await);
}

#[test]
fn a_cell_that_is_full() {
    let cell = OnceCell::from(1);
    lets_others_run(async || assert_eq!(cell.wait_async().await, &1));
}

#[test]
fn a_barrier_for_one() {
    let barrier = Barrier::new(1);
    lets_others_run(async || assert!(barrier.wait_async().await.is_leader()));
}

#[test]
fn a_value_that_is_always_new() {
    let (sender, mut receiver) = watch::channel(0);
    lets_others_run(async || {
        sender.send(1).unwrap();
        receiver.changed_async().await.unwrap();
    });
}

#[test]
fn a_broadcast_that_runs_ahead() {
    let (sender, mut receiver) = broadcast::channel(MANY);
    (0..MANY).for_each(|number| _ = sender.send(number).unwrap());
    let mut messages = 0..;
    lets_others_run(async || assert_eq!(receiver.recv_async().await.ok(), messages.next()));
}

#[test]
fn a_message_for_each_receiver() {
    lets_others_run(async || {
        let (sender, receiver) = oneshot::channel();
        sender.send(1).unwrap();
        assert_eq!(receiver.await, Ok(1));
    });
}

#[test]
fn ends_that_have_come() {
    let (watch, _) = watch::channel(());
    lets_others_run(async || watch.closed_async().await);
    let (broadcast, _) = broadcast::channel::<()>(1);
    lets_others_run(async || broadcast.closed_async().await);
    let (mut oneshot, _) = oneshot::channel::<()>();
    lets_others_run(async || oneshot.closed_async().await);
}

#[test]
fn ends_that_were_told_before() {
    for capacity in [Some(0), Some(1), None] {
        let (_, receiver) = capacity.map_or_else(unbounded::<i32>, bounded);
        lets_others_run(async || assert!(receiver.recv_async().await.is_err()));
        let (sender, _) = capacity.map_or_else(unbounded, bounded);
        lets_others_run(async || assert!(sender.send_async(1).await.is_err()));
    }
    let (_, mut broadcast) = broadcast::channel::<()>(1);
    lets_others_run(async || assert!(broadcast.recv_async().await.is_err()));
    let (_, mut watch) = watch::channel(1);
    lets_others_run(async || assert!(watch.changed_async().await.is_err()));
    let (_, mut watch) = watch::channel(1);
    lets_others_run(async || assert!(watch.wait_for_async(|&value| value > 1).await.is_err()));
}

#[test]
fn a_value_that_is_wanted() {
    let (_sender, mut receiver) = watch::channel(1);
    lets_others_run(async || assert_eq!(*receiver.wait_for_async(|&value| value == 1).await.unwrap(), 1));
}
