//! Futures whose wakers run code of their own while many are woken.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, RawWaker, RawWakerVTable, Wake, Waker};

use crate::common::{beside, everywhere, guarded};
use fibra_sync::{
    Barrier, CountdownEvent, ManualResetEvent, OnceCell, Semaphore, broadcast, channel, oneshot, watch,
};

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
        let cell = Arc::new(OnceCell::new());
        let wait = || {
            let cell = Arc::clone(&cell);
            Box::pin(async move { _ = cell.wait_async().await }) as Boxed
        };
        the_first_drops_the_others(wait, || cell.set(1).unwrap());
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

type Act = Arc<dyn Fn() + Send + Sync>;

/// A waker whose last owner acts, as one does that owns an end of a channel.
struct Acts(Act);

impl Wake for Acts {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Acts {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// `make` makes a wait and what wakes it, which the drop of its waker does: when another one takes its place, when it was
/// called, and when the wait is given up.
fn the_drop_of_a_waker_wakes(make: impl Fn() -> (Boxed, Act)) {
    let polled = || {
        let (mut wait, act) = make();
        poll(&mut wait, &Waker::from(Arc::new(Acts(Arc::clone(&act)))));
        (wait, act)
    };
    let done = |mut wait: Boxed| wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    let (mut wait, _) = polled();
    _ = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(done(wait));
    let (wait, act) = polled();
    act();
    assert!(done(wait));
    drop(polled());
}

#[test]
fn the_drop_of_a_waker_may_use_what_it_waits_for() {
    everywhere(|| {
        for capacity in [0, 1, 3] {
            the_drop_of_a_waker_wakes(|| {
                let (sender, receiver) = channel::bounded(capacity);
                let wait = async move { _ = receiver.recv_async().await };
                (Box::pin(wait), Arc::new(move || _ = sender.try_send(1)))
            });
            the_drop_of_a_waker_wakes(|| {
                let (sender, receiver) = channel::bounded(capacity);
                (0..capacity).for_each(|number| sender.try_send(number).unwrap());
                let wait = async move { _ = sender.send_async(7).await };
                (Box::pin(wait), Arc::new(move || _ = receiver.try_recv()))
            });
        }
        the_drop_of_a_waker_wakes(|| {
            let (sender, receiver) = oneshot::channel();
            let sender = Mutex::new(Some(sender));
            let send = move || {
                let sender = sender.lock().unwrap().take();
                sender.map(|sender| sender.send(1));
            };
            (Box::pin(async move { _ = receiver.await }), Arc::new(send))
        });
        the_drop_of_a_waker_wakes(|| {
            let (sender, mut receiver) = broadcast::channel(4);
            let wait = async move { _ = receiver.recv_async().await };
            (Box::pin(wait), Arc::new(move || _ = sender.send(1)))
        });
        the_drop_of_a_waker_wakes(|| {
            let (sender, mut receiver) = watch::channel(0);
            let wait = async move { _ = receiver.changed_async().await };
            (Box::pin(wait), Arc::new(move || _ = sender.send(1)))
        });
        the_drop_of_a_waker_wakes(|| {
            let semaphore = Arc::new(Semaphore::new(0));
            let waits = Arc::clone(&semaphore);
            let wait = async move { waits.acquire_async().await.unwrap().forget() };
            (Box::pin(wait), Arc::new(move || semaphore.add_permits(1)))
        });
        the_drop_of_a_waker_wakes(|| {
            let event = Arc::new(ManualResetEvent::new(false));
            let waits = Arc::clone(&event);
            (Box::pin(async move { waits.wait_async().await }), Arc::new(move || event.set()))
        });
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
fn a_waker_that_panics_keeps_no_waiter_asleep() {
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
        crate::common::pause();
        event.set();
        sides.into_iter().for_each(crate::common::Side::join);
        assert_eq!(passed.load(SeqCst), 40);
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    });
}

/// A waker that panics when it is dropped.
fn panics_when_dropped() -> ManuallyDrop<Waker> {
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| RawWaker::new(data, &TABLE),
        |_| {},
        |_| {},
        |_| panic!("the drop of a waker panics"),
    );
    // SAFETY: no function of the table touches the data, and each may be called by any thread.
    ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) })
}

#[test]
fn a_leader_with_a_waker_that_panics_when_dropped_lets_the_others_go_on() {
    everywhere(|| {
        let barrier = Arc::new(Barrier::new(3));
        let comes = || {
            let barrier = Arc::clone(&barrier);
            Box::pin(async move { assert!(!barrier.wait_async().await.is_leader()) }) as Boxed
        };
        let mut others = [comes(), comes()];
        others.iter_mut().for_each(|other| poll(other, Waker::noop()));
        let waker = panics_when_dropped();
        let mut leader = comes();
        let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut leader, &waker)));
        assert!(polled.is_err(), "its waker was dropped");
        drop(leader);
        for mut other in others {
            assert!(other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
    });
}

#[test]
fn a_panic_of_a_waker_is_none_of_the_task_that_ends_the_wait() {
    everywhere(|| {
        let panics = Waker::from(Arc::new(Panics));
        let mut context = Context::from_waker(&panics);
        let (sender, mut receiver) = oneshot::channel();
        assert!(Pin::new(&mut receiver).poll(&mut context).is_pending());
        assert_eq!(sender.send(1), Ok(()));
        assert_eq!(receiver.recv(), Ok(1));
        let (sender, mut receiver) = oneshot::channel::<u32>();
        assert!(Pin::new(&mut receiver).poll(&mut context).is_pending());
        drop(sender);
        assert!(receiver.recv().is_err());
        for closes in [true, false] {
            let (mut sender, mut receiver) = oneshot::channel();
            assert!(sender.poll_closed(&mut context).is_pending());
            match closes {
                true => receiver.close(),
                false => drop(receiver),
            }
            assert_eq!(sender.send(1), Err(1));
        }
    });
}

#[test]
fn a_lock_that_is_ones_own_is_not_waited_for_without_end() {
    everywhere(|| {
        guarded(|| {
            let mutex = fibra_sync::Mutex::new(());
            let _guard = mutex.lock();
            let outcome =
                catch_unwind(AssertUnwindSafe(|| mutex.try_lock_for(std::time::Duration::MAX).is_some()));
            assert!(outcome.is_err());
        });
    });
}
