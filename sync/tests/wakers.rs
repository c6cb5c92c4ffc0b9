//! Futures whose wakers run code of their own while somebody wakes many.

mod common;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use common::{beside, everywhere, guarded};
use fibra_sync::{CountdownEvent, ManualResetEvent, broadcast, watch};

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A waker that drops futures when it is called, as an executor does that has been shut down.
struct Drops(Mutex<Vec<Boxed>>);

impl Wake for Drops {
    fn wake(self: Arc<Self>) {
        let dropped = std::mem::take(&mut *self.0.lock().unwrap());
        drop(dropped);
    }
}

fn poll(future: &mut Boxed, waker: &Waker) {
    assert!(future.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
}

/// Many sleep by `wait`; the waker of the first drops all others while `wake` wakes them.
fn the_first_drops_the_others(wait: impl Fn() -> Boxed, wake: impl FnOnce()) {
    let mut first = wait();
    let drops = Arc::new(Drops(Mutex::new(Vec::new())));
    poll(&mut first, &Waker::from(Arc::clone(&drops)));
    let mut others: Vec<Boxed> = (0..100).map(|_| wait()).collect();
    others.iter_mut().for_each(|other| poll(other, Waker::noop()));
    *drops.0.lock().unwrap() = others;
    wake();
    assert!(drops.0.lock().unwrap().is_empty(), "it was called");
}

#[test]
fn a_waker_may_drop_futures_that_are_woken_with_it() {
    everywhere(|| {
        let event = Arc::new(ManualResetEvent::new(false));
        let wait = || {
            let event = Arc::clone(&event);
            Box::pin(async move { event.wait_async().await }) as Boxed
        };
        the_first_drops_the_others(wait, || event.set());
    });
    everywhere(|| {
        let event = Arc::new(CountdownEvent::new(1));
        let wait = || {
            let event = Arc::clone(&event);
            Box::pin(async move { event.wait_async().await }) as Boxed
        };
        the_first_drops_the_others(wait, || assert!(event.signal()));
    });
    everywhere(|| {
        let (sender, receiver) = broadcast::channel::<u32>(4);
        let wait = || {
            let mut receiver = receiver.resubscribe();
            Box::pin(async move { _ = receiver.recv_async().await }) as Boxed
        };
        the_first_drops_the_others(wait, || _ = sender.send(1));
    });
    everywhere(|| {
        let (sender, receiver) = watch::channel(0);
        let wait = || {
            let mut receiver = receiver.clone();
            Box::pin(async move { _ = receiver.changed_async().await }) as Boxed
        };
        the_first_drops_the_others(wait, || sender.send(1).unwrap());
    });
}

/// A waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker panics");
    }
}

#[test]
fn a_waker_that_panics_keeps_nobody_asleep() {
    everywhere(|| {
        let event = Arc::new(ManualResetEvent::new(false));
        let mut future = {
            let event = Arc::clone(&event);
            Box::pin(async move { event.wait_async().await }) as Boxed
        };
        poll(&mut future, &Waker::from(Arc::new(Panics)));
        let passed = Arc::new(AtomicUsize::new(0));
        let sides: Vec<_> = (0..40)
            .map(|_| {
                let (event, passed) = (Arc::clone(&event), Arc::clone(&passed));
                beside(move || {
                    event.wait();
                    passed.fetch_add(1, SeqCst);
                })
            })
            .collect();
        common::pause();
        event.set();
        sides.into_iter().for_each(common::Side::join);
        assert_eq!(passed.load(SeqCst), 40);
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    });
}

#[test]
fn a_lock_that_is_ones_own_is_not_waited_for_without_end() {
    everywhere(|| {
        guarded(|| {
            let mutex = fibra_sync::Mutex::new(());
            let _guard = mutex.lock();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                mutex.try_lock_for(std::time::Duration::MAX).is_some()
            }));
            assert!(outcome.is_err());
        });
    });
}
