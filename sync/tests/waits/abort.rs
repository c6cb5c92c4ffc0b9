//! What a cancellation means for the primitives in a build with `panic = "abort"`: what has a limit of its own ends as if
//! that had passed, and what has none goes on.
#![cfg(panic = "abort")]

use std::time::{Duration, Instant};

use crate::common::{in_tasks, pause};
use fibra_runtime::{spawn, task};
use fibra_sync::channel::{RecvTimeoutError, after, bounded, never, tick, unbounded};
use fibra_sync::{
    AutoResetEvent, Barrier, Condvar, CountdownEvent, LazyLock, ManualResetEvent, Mutex, RwLock, Semaphore,
    oneshot, select, watch,
};

const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(3600);

/// Runs `body` in a task that is cancelled before its first wait, and once more in one that is cancelled while it waits.
fn cancelled(body: fn()) {
    in_tasks(|| {
        let before = spawn(move || {
            task::current().cancel();
            body();
        });
        let meanwhile = spawn(body);
        // Cancelled before it begins it would never enter its body.
        pause();
        meanwhile.cancel();
        meanwhile.join().unwrap();
        before.join().unwrap();
    });
}

#[test]
fn limits_of_events_and_permits_end() {
    cancelled(|| {
        assert!(!AutoResetEvent::new(false).wait_timeout(LONG));
        assert!(!ManualResetEvent::new(false).wait_timeout(LONG));
        assert!(!CountdownEvent::new(1).wait_timeout(LONG));
        assert!(Semaphore::new(0).acquire_timeout(LONG).is_err());
        assert!(Barrier::new(2).wait_timeout(LONG).is_none());
        let (mutex, condvar) = (Mutex::new(()), Condvar::new());
        assert!(condvar.wait_for(&mut mutex.lock(), LONG).timed_out());
    });
}

#[test]
fn limits_of_channels_end_and_nothing_is_lost() {
    cancelled(|| {
        let (sender, receiver) = bounded(1);
        assert_eq!(receiver.recv_timeout(LONG), Err(RecvTimeoutError::Timeout));
        sender.send(1).unwrap();
        assert_eq!(sender.send_timeout(2, LONG).unwrap_err().into_inner(), 2);
        assert_eq!(receiver.recv_timeout(LONG), Ok(1));
        let (_sends, mut once) = oneshot::channel::<()>();
        assert!(once.recv_timeout(LONG).is_err());
        for timer in [after(LONG), tick(LONG), never()] {
            assert_eq!(timer.recv_timeout(LONG / 2), Err(RecvTimeoutError::Timeout));
            assert_eq!(timer.recv_deadline(Instant::now() + 2 * LONG), Err(RecvTimeoutError::Timeout));
        }
        let (_publishes, mut watching) = watch::channel(0);
        assert!(watching.changed_timeout(LONG).is_err());
    });
}

#[test]
fn a_select_ends_with_its_limit_and_not_with_its_arms() {
    cancelled(|| {
        let (_sender, receiver) = unbounded::<()>();
        select! {
            recv(receiver) -> _ => unreachable!("no sender is there"),
            default(LONG) => {}
        }
        let begin = Instant::now();
        select! {
            recv(receiver) -> _ => unreachable!("no sender is there"),
            recv(after(SHORT)) -> _ => assert!(begin.elapsed() >= SHORT),
        }
    });
}

#[test]
fn an_unlimited_scope_goes_on() {
    cancelled(|| {
        let (sender, receiver) = bounded(0);
        let sending = spawn(move || {
            fibra_runtime::sleep(SHORT);
            (0..3).for_each(|number| sender.send(number).unwrap());
        });
        assert!(receiver.iter().eq(0..3));
        sending.join().unwrap();
        static LAZY: LazyLock<u8> = LazyLock::new(|| {
            fibra_runtime::sleep(SHORT);
            7
        });
        assert_eq!(*LAZY, 7);
        let lock = RwLock::new(0);
        *lock.write() += 1;
        assert_eq!(*lock.read(), 1);
        let begin = Instant::now();
        assert!(after(SHORT).recv().unwrap() >= begin + SHORT);
    });
}
