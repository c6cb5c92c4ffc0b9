//! Scopes with a deadline around operations that are never waited for long.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{self, Arc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{hang_guard, in_tasks};
use fibra_runtime::{spawn, task, timeout, yield_now};
use fibra_sync::channel::bounded;
use fibra_sync::{
    AutoResetEvent, Condvar, ManualResetEvent, Mutex, Once, OnceCell, ReentrantMutex, RwLock, Semaphore,
};

/// Far beyond the deadline of the scopes, and before the guard of the tests.
const TOO_LATE: Duration = Duration::from_secs(30);

/// Repeats `step` in a scope that has a deadline, which must end it.
fn is_ended(mut step: impl FnMut()) {
    let begin = Instant::now();
    let outcome = timeout(Duration::from_millis(5), || {
        while begin.elapsed() < TOO_LATE {
            step();
        }
    });
    assert!(outcome.is_err(), "the deadline has passed long ago");
}

#[test]
fn a_deadline_ends_code_that_is_always_notified_before_its_timer() {
    for beside in 0..3 {
        in_tasks(|| {
            let (there, back) = (Arc::new(AutoResetEvent::new(false)), Arc::new(AutoResetEvent::new(false)));
            let over = Arc::new(AtomicBool::new(false));
            let idlers: Vec<_> = (0..beside)
                .map(|_| {
                    let over = Arc::clone(&over);
                    spawn(move || {
                        while !over.load(SeqCst) {
                            yield_now()
                        }
                    })
                })
                .collect();
            let (a, b, ends) = (Arc::clone(&there), Arc::clone(&back), Arc::clone(&over));
            let other = spawn(move || {
                while !ends.load(SeqCst) {
                    a.wait();
                    b.set();
                }
            });
            is_ended(|| {
                there.set();
                back.wait();
            });
            over.store(true, SeqCst);
            there.set();
            other.join().unwrap();
            idlers.into_iter().for_each(|idler| idler.join().unwrap());
        });
    }
}

#[test]
fn a_deadline_ends_code_that_is_unparked_before_its_timer() {
    in_tasks(|| {
        let me = task::current();
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let other = spawn(move || {
            while !ends.load(SeqCst) {
                me.unpark();
                yield_now();
            }
        });
        is_ended(task::park);
        over.store(true, SeqCst);
        other.join().unwrap();
    });
}

#[test]
fn a_deadline_ends_code_that_never_has_to_wait() {
    in_tasks(|| {
        let (mutex, condition) = (Mutex::new(()), Condvar::new());
        let (open, permits) = (ManualResetEvent::new(true), Semaphore::new(1));
        is_ended(|| open.wait());
        is_ended(|| drop(permits.acquire()));
        // The lock ends the turn, which is renewed then: the wait never does.
        is_ended(|| {
            open.wait();
            drop(mutex.lock());
        });
        is_ended(|| _ = condition.wait_for(&mut mutex.lock(), Duration::ZERO));
    });
}

#[test]
fn a_deadline_that_has_passed_takes_nothing_with_it() {
    in_tasks(|| {
        let permits = Arc::new(Semaphore::new(0));
        for round in 0..2000 {
            let giver = Arc::clone(&permits);
            let giver = spawn(move || giver.add_permits(1));
            let taken = timeout(Duration::from_micros(round % 3), || permits.acquire().forget()).is_ok();
            giver.join().unwrap();
            assert_eq!(permits.available_permits(), usize::from(!taken));
            assert_eq!(permits.forget_permits(1), usize::from(!taken));
        }
    });
}

#[test]
fn a_deadline_ends_the_waits_of_a_plain_thread() {
    let (mutex, condition) = (Mutex::new(()), Condvar::new());
    let (set, unset) = (ManualResetEvent::new(true), AutoResetEvent::new(false));
    let (free, taken) = (Semaphore::new(1), Semaphore::new(0));
    let (sender, receiver) = bounded::<()>(1);
    is_ended(|| set.wait());
    is_ended(|| unset.wait());
    is_ended(|| drop(free.acquire()));
    is_ended(|| drop(taken.acquire()));
    is_ended(|| _ = receiver.recv());
    is_ended(|| _ = sender.send(()));
    is_ended(|| condition.wait(&mut mutex.lock()));
    is_ended(|| fibra_sync::select! { wait(unset) => {}, recv(receiver) -> _ => {}, wait(taken) => {} });
    assert!(!mutex.is_locked());
    assert_eq!((free.available_permits(), receiver.len()), (1, 0), "the select has received the message");
}

/// Has a thread keep something beyond the deadline of a scope of this thread, which waits for it.
fn is_waited_for(name: &str, keep: &(dyn Fn(&dyn Fn()) + Sync), wait: &dyn Fn()) {
    const SHORT: Duration = Duration::from_millis(3);
    let (kept, begin) = (sync::Barrier::new(2), Instant::now());
    thread::scope(|threads| {
        threads.spawn(|| {
            keep(&|| {
                kept.wait();
                thread::sleep(2 * SHORT);
            });
        });
        kept.wait();
        assert_eq!(timeout(SHORT, wait), Ok(()), "{name}");
    });
    assert!(begin.elapsed() > SHORT, "{name}");
}

#[test]
fn a_plain_thread_waits_for_locks_and_initializers_beyond_its_deadline() {
    let _guard = hang_guard();
    let (mutex, reentrant, rwlock) = (Mutex::new(()), ReentrantMutex::new(()), RwLock::new(()));
    let (once, cell) = (Once::new(), OnceCell::new());
    let lock = |keep: &dyn Fn()| {
        let _guard = mutex.lock();
        keep();
    };
    let lock_twice = |keep: &dyn Fn()| {
        let _guards = (reentrant.lock(), reentrant.lock());
        keep();
    };
    let read = |keep: &dyn Fn()| {
        let _guard = rwlock.read();
        keep();
    };
    let write = |keep: &dyn Fn()| {
        let _guard = rwlock.write();
        keep();
    };
    is_waited_for("Mutex", &lock, &|| drop(mutex.lock()));
    is_waited_for("ReentrantMutex", &lock_twice, &|| drop(reentrant.lock()));
    is_waited_for("RwLock::read", &write, &|| drop(rwlock.read()));
    is_waited_for("RwLock::upgradable_read", &write, &|| drop(rwlock.upgradable_read()));
    is_waited_for("RwLock::write", &read, &|| drop(rwlock.write()));
    is_waited_for("Once", &|keep| once.call_once(keep), &|| once.call_once(|| unreachable!("it has run")));
    is_waited_for("OnceCell", &|keep| _ = cell.get_or_init(keep), &|| {
        _ = cell.get_or_init(|| unreachable!("it is filled"))
    });
}
