//! The driver seam: each waiter that a driver finds ready is woken, of any kind and on any worker.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::common::hang_guard;
use fibra_runtime::driver::{self, Driver, Parts, Ready, Unpark};
use fibra_runtime::wait::list::{List, Node};
use fibra_runtime::wait::{
    self, Asleep, Lock, Polled, RawWake, WaitStrategy, WakeHandle, Waking, Withdrawal,
};
use fibra_runtime::{self as fibra, Handle, Runtime, task};

/// What one worker's driver finds at its next park.
#[derive(Default)]
struct Post {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_unparked: bool,
    wakes: Vec<RawWake>,
}

impl Post {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Lets the driver find these.
    fn bring(&self, wakes: Vec<RawWake>) {
        self.state().wakes.extend(wakes);
        self.changed.notify_all();
    }
}

impl Unpark for Post {
    fn unpark(&self) {
        self.state().is_unparked = true;
        self.changed.notify_all();
    }
}

struct Courier(Arc<Post>);

impl Driver for Courier {
    fn park(&mut self, timeout: Option<Duration>, ready: &mut Ready) -> io::Result<()> {
        let is_idle = |state: &mut State| !state.is_unparked && state.wakes.is_empty();
        let mut state = match timeout {
            None => self.0.changed.wait_while(self.0.state(), is_idle).unwrap(),
            Some(timeout) => self.0.changed.wait_timeout_while(self.0.state(), timeout, is_idle).unwrap().0,
        };
        state.is_unparked = false;
        state.wakes.drain(..).for_each(|wake| ready.push(wake));
        Ok(())
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::clone(&self.0) as Arc<dyn Unpark>
    }
}

fn runtime(workers: usize) -> Runtime {
    let make = || {
        let post = Arc::new(Post::default());
        Ok(Parts { driver: Box::new(Courier(Arc::clone(&post))), handle: post, id: driver::Id::fresh() })
    };
    Runtime::builder().workers(workers).driver(make).build().expect("a runtime")
}

/// The waiters for some driver.
struct Sleepers(Lock<(List, usize)>);

struct Sleeper<'a> {
    among: &'a Sleepers,
    node: Node,
}

impl Sleepers {
    const fn new() -> Self {
        Sleepers(Lock::new((List::new(), 0)))
    }

    fn one(&self) -> Sleeper<'_> {
        Sleeper { among: self, node: Node::new() }
    }

    fn sleep(&self) -> Waking {
        wait::sleep(&self.one(), None)
    }

    fn len(&self) -> usize {
        self.0.lock().1
    }

    fn take(&self) -> Vec<RawWake> {
        let mut state = self.0.lock();
        state.1 = 0;
        std::iter::from_fn(|| state.0.pop_front()).collect()
    }
}

impl WaitStrategy for Sleeper<'_> {
    fn after_asleep(&self, me: WakeHandle<'_>) -> Asleep {
        let mut state = self.among.0.lock();
        // SAFETY: the node is in no list, lives until the sleep is over, and is only touched under this lock. The wake is
        // taken by the party that unlinks the node, and `before_awake` answers `Served` from then on.
        unsafe { state.0.push_back(&self.node, me.raw()) };
        state.1 += 1;
        Asleep::Stay
    }

    fn before_awake(&self, why: Waking) -> Withdrawal {
        // SAFETY: the node is in this list or in none.
        let was_linked = unsafe { self.among.0.lock().0.remove(&self.node) };
        if was_linked || why == Waking::Notified { Withdrawal::Withdrawn } else { Withdrawal::Served }
    }
}

#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_tasks_that_a_driver_wakes_are_counted() {
    let _guard = hang_guard();
    let (runtime, sleepers) = (runtime(1), Arc::new(Sleepers::new()));
    let sleeper = {
        let sleepers = Arc::clone(&sleepers);
        runtime.handle().spawn(move || assert_eq!(sleepers.sleep(), Waking::Notified))
    };
    while sleepers.len() == 0 {
        std::thread::yield_now();
    }
    let bring = move || driver::current::<Post>().unwrap().bring(sleepers.take());
    runtime.run(bring);
    sleeper.join().unwrap();
    let metrics = runtime.metrics();
    assert_eq!(metrics.sum(|worker| worker.events), 1);
}

#[test]
fn one_driver_wakes_tasks_of_all_workers_threads_and_futures() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let sleepers = Arc::new(Sleepers::new());
        let sleep = || {
            let sleepers = Arc::clone(&sleepers);
            move || sleepers.sleep()
        };
        for round in 0..200 {
            let tasks = [0, 1, 0, 1].map(|worker| Handle::current().spawn_on_worker(worker, sleep()));
            // SAFETY: it keeps no address of a thread-local over its sleep.
            let roaming = unsafe { task::Builder::new().migratable() }.spawn(sleep());
            let thread = thread::spawn(sleep());
            let counter = Arc::new(Counter::default());
            let waker = Waker::from(Arc::clone(&counter));
            let mut future = pin!(Polled::new(sleepers.one()));
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            while sleepers.len() < 7 {
                fibra::yield_now();
            }
            let post = Handle::current().spawn_on_worker(round % 2, driver::current::<Post>);
            post.join().unwrap().expect("a worker has a driver").bring(sleepers.take());
            assert!(tasks.into_iter().chain([roaming]).all(|task| task.join().unwrap() == Waking::Notified));
            assert_eq!(fibra::unblock(|| thread.join().unwrap()), Waking::Notified);
            while counter.0.load(Ordering::SeqCst) == 0 {
                fibra::yield_now();
            }
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
            assert_eq!(counter.0.load(Ordering::SeqCst), 1);
        }
    });
}

#[test]
fn each_driver_is_told_from_all_others() {
    let _guard = hang_guard();
    assert_eq!(driver::current_id(), None);
    let ids = || {
        runtime(2).run(|| {
            let at = |worker| Handle::current().spawn_on_worker(worker, driver::current_id).join().unwrap();
            [at(0), at(1)].map(|id| id.expect("a worker has a driver").number())
        })
    };
    let mut all = [ids(), ids()].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4);
    assert!(!all.contains(&0));
}

#[test]
fn a_sleep_by_the_driver_is_of_the_usual_task_alone() {
    let _guard = hang_guard();
    let sleepers = Sleepers::new();
    let refused = |wakes| wait::sleep_by_driver(|_| wakes, &sleepers.one()).is_none();
    assert!(refused(true), "on a plain thread");
    runtime(1).run(|| {
        assert!(refused(false), "the driver does not wake it");
        fibra::timeout(Duration::from_secs(3600), || assert!(refused(true), "a scope is around it")).unwrap();
        task::shield(|| assert!(refused(true), "a shield is around it"));
        {
            let _here = task::forbid_suspend();
            assert!(refused(true), "it must not suspend");
        }
        assert_eq!(sleepers.len(), 0, "nothing was published");
        fibra::scope(|scope| {
            let sleeping = scope.spawn(|| {
                let here = driver::current_id().unwrap();
                wait::sleep_by_driver(|id| id == here, &sleepers.one())
            });
            while sleepers.len() == 0 {
                fibra::yield_now();
            }
            driver::current::<Post>().unwrap().bring(sleepers.take());
            assert_eq!(sleeping.join().unwrap(), Some(Waking::Notified));
        });
    });
}
