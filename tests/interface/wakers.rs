//! Rule 6 of the wait core, as the author of a waker meets it: a wake is given after the lock under which it was taken, so it may
//! call back into what wakes it. (Joins are in the runtime's `wait_races.rs`.)

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use crate::common::{HANG, on};
use fibra::sync::{AutoResetEvent, CountdownEvent, ManualResetEvent, Semaphore, broadcast, channel, watch};

/// Runs some code at each wake, and counts them.
struct Calls<F> {
    call: F,
    wakes: AtomicUsize,
}

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        (self.call)();
    }
}

/// Polls `waits` with a waker that calls back, and has it woken. The second poll finds it done.
fn woken<T>(
    waits: impl Future<Output = T>,
    call: impl Fn() + Send + Sync + 'static,
    wake: impl FnOnce(),
) -> T {
    let calls = Arc::new(Calls { call, wakes: AtomicUsize::new(0) });
    let waker = Waker::from(Arc::clone(&calls));
    let mut waits = pin!(waits);
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    wake();
    assert_eq!(calls.wakes.load(Ordering::SeqCst), 1);
    match waits.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("woken, but not served"),
    }
}

/// Runs `check` on a plain thread, and in a task of one worker and of two.
fn rule_6(check: fn()) {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        check();
        [1, 2].into_iter().for_each(|workers| on(workers, check));
        done.send(()).expect("the test waits");
    });
    ended.recv_timeout(HANG).expect("it ends, and without a panic");
}

#[test]
fn rule_6_a_waker_may_use_the_semaphore_that_wakes_it() {
    rule_6(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let again = Arc::clone(&semaphore);
        let call = move || {
            again.add_permits(2);
            drop(again.try_acquire().expect("a permit"));
        };
        drop(woken(semaphore.acquire_async(), call, || semaphore.add_permits(1)));
        assert_eq!(semaphore.available_permits(), 3);
    });
}

#[test]
fn rule_6_a_waker_may_use_the_channel_that_wakes_it() {
    rule_6(|| {
        let (sender, receiver) = channel::unbounded();
        let (send, receive) = (sender.clone(), receiver.clone());
        let call = move || {
            send.send(2).expect("there is a receiver");
            // The future is notified of a message and does not own it, so the waker may take it first.
            assert_eq!(receive.try_recv(), Ok(1));
        };
        assert_eq!(
            woken(receiver.recv_async(), call, || sender.send(1).expect("there is a receiver")),
            Ok(2)
        );

        let (sender, receiver) = channel::bounded(1);
        let (send, receive) = (sender.clone(), receiver.clone());
        sender.send(1).expect("there is room");
        let call = move || {
            assert!(send.try_send(3).is_err(), "the room is taken");
            assert_eq!(receive.len(), 1);
        };
        assert_eq!(woken(sender.send_async(2), call, || assert_eq!(receiver.recv(), Ok(1))), Ok(()));
        assert_eq!(receiver.recv(), Ok(2));
    });
}

#[test]
fn rule_6_a_waker_may_use_the_event_that_wakes_it() {
    rule_6(|| {
        let event = Arc::new(AutoResetEvent::new(false));
        let again = Arc::clone(&event);
        let call = move || {
            again.set();
            again.wait();
        };
        woken(event.wait_async(), call, || event.set());

        let event = Arc::new(ManualResetEvent::new(false));
        let again = Arc::clone(&event);
        let call = move || {
            again.wait();
            again.reset();
            again.set();
        };
        woken(event.wait_async(), call, || event.set());

        let event = Arc::new(CountdownEvent::new(1));
        let again = Arc::clone(&event);
        woken(event.wait_async(), move || again.wait(), || assert!(event.signal()));
    });
}

#[test]
fn rule_6_a_waker_may_use_the_broadcast_and_the_watch_that_wake_it() {
    rule_6(|| {
        let (sender, mut receiver) = broadcast::channel(4);
        let again = sender.clone();
        let call = move || _ = again.send(2).expect("there is a receiver");
        let first = woken(receiver.recv_async(), call, || _ = sender.send(1).expect("there is a receiver"));
        assert_eq!((first, receiver.recv()), (Ok(1), Ok(2)));

        let (sender, mut receiver) = watch::channel(0);
        let sender = Arc::new(sender);
        let again = Arc::clone(&sender);
        let call = move || again.send(2).expect("there is a receiver");
        woken(receiver.changed_async(), call, || sender.send(1).expect("there is a receiver"))
            .expect("a value");
        assert_eq!(*receiver.borrow(), 2);
    });
}
