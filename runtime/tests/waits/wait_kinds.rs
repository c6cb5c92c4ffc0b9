//! Rule 7 of the wait core: a waiter is a task, a plain thread or a polled future, and all of them mix.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::common::{hang_guard, runtime};
use crate::rounds::rounds;
use crate::tokens::{Acquire, Tokens};
use fibra_runtime::wait::{Polled, WaitQueue, Waking};
use fibra_runtime::{self as fibra, Task, task};

/// Unparks the poller: a task or a thread.
enum Parked {
    Task(Task),
    Thread(Thread),
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        match &*self {
            Parked::Task(task) => task.unpark(),
            Parked::Thread(thread) => thread.unpark(),
        }
    }
}

fn here() -> Waker {
    let parked = task::try_current().map_or_else(|| Parked::Thread(thread::current()), Parked::Task);
    Waker::from(Arc::new(parked))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = here();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => task::park(),
        }
    }
}

/// Counts its wakes.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll_once(future: Pin<&mut Polled<Acquire<'_>>>, counter: &Arc<Counter>) -> Poll<Waking> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(counter))))
}

#[test]
fn rule_7_a_task_a_thread_and_a_future_wait_in_one_line() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let (tokens, order) = (Arc::new(Tokens::new()), Arc::new(Mutex::new(Vec::new())));
    let counter = Arc::new(Counter::default());
    let mut future = pin!(Polled::new(tokens.strategy()));
    assert!(poll_once(future.as_mut(), &counter).is_pending());
    let waiting = || {
        let (tokens, order) = (Arc::clone(&tokens), Arc::clone(&order));
        move |name: &'static str| {
            assert_eq!(tokens.acquire(None), Waking::Notified);
            order.lock().unwrap().push(name);
            tokens.release();
        }
    };
    let (first, second) = (waiting(), waiting());
    let task = runtime.spawn(move || first("task"));
    let thread = thread::spawn(move || second("thread"));
    tokens.release();
    assert_eq!(poll_once(future.as_mut(), &counter), Poll::Ready(Waking::Notified));
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    tokens.release();
    task.join().unwrap();
    thread.join().unwrap();
    assert_eq!(order.lock().unwrap().len(), 2);
    assert_eq!(tokens.free(), 1);
}

#[test]
fn tasks_threads_and_futures_hand_tokens_around() {
    const ROUNDS: usize = 500;
    let _guard = hang_guard();
    let runtime = runtime(2);
    let tokens = Tokens::new();
    (0..3).for_each(|_| tokens.release());
    let taken = AtomicUsize::new(0);
    let blocking = || {
        for _ in 0..ROUNDS {
            assert_eq!(tokens.acquire(None), Waking::Notified);
            taken.fetch_add(1, Ordering::Relaxed);
            tokens.release();
        }
    };
    let polling = || {
        for _ in 0..ROUNDS {
            assert_eq!(block_on(Polled::new(tokens.strategy())), Waking::Notified);
            taken.fetch_add(1, Ordering::Relaxed);
            tokens.release();
        }
    };
    thread::scope(|scope| {
        (0..2).for_each(|_| _ = scope.spawn(blocking));
        (0..2).for_each(|_| _ = scope.spawn(polling));
        (0..2).for_each(|_| _ = scope.spawn(|| runtime.run(blocking)));
        (0..2).for_each(|_| _ = scope.spawn(|| runtime.run(polling)));
    });
    assert_eq!(taken.load(Ordering::Relaxed), 8 * ROUNDS);
    assert_eq!(tokens.free(), 3);
}

#[test]
fn a_future_that_need_not_wait_is_ready_at_the_first_poll() {
    let tokens = Tokens::new();
    tokens.release();
    let counter = Arc::new(Counter::default());
    let mut future = pin!(Polled::new(tokens.strategy()));
    assert_eq!(poll_once(future.as_mut(), &counter), Poll::Ready(Waking::Notified));
    assert_eq!(counter.0.load(Ordering::SeqCst), 0);
    assert_eq!(tokens.free(), 0);
}

#[test]
fn a_future_never_polled_waits_for_nothing() {
    let tokens = Tokens::new();
    drop(Polled::new(tokens.strategy()));
    tokens.release();
    assert_eq!(tokens.free(), 1);
}

#[test]
fn a_future_dropped_before_its_notification_has_left_the_line() {
    let tokens = Tokens::new();
    let counter = Arc::new(Counter::default());
    {
        let mut future = pin!(Polled::new(tokens.strategy()));
        assert!(poll_once(future.as_mut(), &counter).is_pending());
        assert!(tokens.has_waiters());
    }
    assert!(!tokens.has_waiters());
    tokens.release();
    assert_eq!(tokens.free(), 1);
    assert_eq!(counter.0.load(Ordering::SeqCst), 0);
}

#[test]
fn a_future_withdrawn_after_its_notification_says_so() {
    let tokens = Tokens::new();
    let counter = Arc::new(Counter::default());
    let mut future = pin!(Polled::new(tokens.strategy()));
    assert!(poll_once(future.as_mut(), &counter).is_pending());
    tokens.release();
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    assert!(future.as_mut().withdraw(), "the token is ours to pass on");
    assert_eq!(tokens.free(), 0);
    assert!(!future.as_mut().withdraw(), "and only once");
}

#[test]
fn a_future_withdrawn_before_its_notification_says_so() {
    let tokens = Tokens::new();
    let counter = Arc::new(Counter::default());
    let mut future = pin!(Polled::new(tokens.strategy()));
    assert!(poll_once(future.as_mut(), &counter).is_pending());
    assert!(!future.as_mut().withdraw());
    tokens.release();
    assert_eq!(tokens.free(), 1);
}

#[test]
fn a_sleep_that_is_over_keeps_no_waker() {
    let tokens = Tokens::new();
    let counter = Arc::new(Counter::default());
    let is_kept = || Arc::strong_count(&counter) > 1;
    let mut future = pin!(Polled::new(tokens.strategy()));
    tokens.release();
    assert!(poll_once(future.as_mut(), &counter).is_ready());
    assert!(!is_kept(), "it never slept");
    future.as_mut().renew();
    assert!(poll_once(future.as_mut(), &counter).is_pending());
    assert!(is_kept());
    assert!(!future.as_mut().withdraw());
    assert!(!is_kept(), "it was withdrawn");
    future.as_mut().renew();
    assert!(poll_once(future.as_mut(), &counter).is_pending());
    tokens.release();
    assert!(poll_once(future.as_mut(), &counter).is_ready());
    assert!(!is_kept(), "it was woken");
}

#[test]
fn a_future_tells_the_waker_of_its_last_poll() {
    let tokens = Tokens::new();
    let (old, new) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
    let mut future = pin!(Polled::new(tokens.strategy()));
    assert!(poll_once(future.as_mut(), &old).is_pending());
    assert!(poll_once(future.as_mut(), &new).is_pending());
    tokens.release();
    assert_eq!((old.0.load(Ordering::SeqCst), new.0.load(Ordering::SeqCst)), (0, 1));
    assert!(poll_once(future.as_mut(), &new).is_ready());
}

#[test]
fn a_future_dropped_while_a_thread_notifies_it_loses_no_token() {
    let _guard = hang_guard();
    let counter = Arc::new(Counter::default());
    for round in rounds(3000) {
        let (tokens, turn) = (Tokens::new(), AtomicUsize::new(0));
        let notified = thread::scope(|scope| {
            let mut future = pin!(Polled::new(tokens.strategy()));
            assert!(poll_once(future.as_mut(), &counter).is_pending());
            let notifier = scope.spawn(|| {
                turn.store(1, Ordering::SeqCst);
                tokens.release();
            });
            while round % 3 > 0 && turn.load(Ordering::SeqCst) == 0 {
                std::hint::spin_loop();
                // The notifier may have no processor.
                thread::yield_now();
            }
            let notified = future.as_mut().withdraw();
            notifier.join().unwrap();
            notified
        });
        assert_eq!(usize::from(notified) + tokens.free(), 1, "round {round}");
    }
}

/// Futures in a queue, each of which is followed by another one as soon as it is woken.
struct Growing {
    queue: WaitQueue<(), ()>,
    waiting: Mutex<Vec<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    woken: AtomicUsize,
}

impl Growing {
    fn grow(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        let mut waiting = Box::pin(async move { shared.queue.wait_until_async(0, |()| false).await });
        let waker = Waker::from(Arc::clone(self));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        self.waiting.lock().unwrap().push(waiting);
    }

    fn wake_all(&self) {
        self.queue.with(|(), waiters| _ = waiters.serve_all(0));
    }
}

impl Wake for Growing {
    fn wake(self: Arc<Self>) {
        // Without an end of its own the test would have none where it fails.
        if self.woken.fetch_add(1, Ordering::SeqCst) < 1000 {
            self.grow();
        }
    }
}

#[test]
fn arrival_in_a_queue_that_is_being_woken_sleeps_on() {
    let (queue, woken) = (WaitQueue::new(()), AtomicUsize::new(0));
    let growing = Arc::new(Growing { queue, waiting: Mutex::default(), woken });
    growing.wake_all();
    assert_eq!(growing.woken.load(Ordering::SeqCst), 0);
    for (grows, size) in [(1, 1), (31, 32), (1, 33), (67, 100)] {
        (0..grows).for_each(|_| growing.grow());
        let before = growing.woken.load(Ordering::SeqCst);
        growing.wake_all();
        assert_eq!(growing.woken.load(Ordering::SeqCst), before + size);
    }
    // Each future owns the queue that it waits in.
    growing.waiting.lock().unwrap().clear();
}

#[test]
fn a_deadline_ends_the_wait_of_a_thread_and_of_a_task() {
    let _guard = hang_guard();
    let tokens = Tokens::new();
    let check = || {
        let begin = Instant::now();
        assert_eq!(tokens.acquire(Some(begin + Duration::from_millis(2))), Waking::TimedOut);
        assert!(begin.elapsed() >= Duration::from_millis(2));
    };
    check();
    runtime(1).run(check);
    assert!(!tokens.has_waiters());
}

#[test]
fn a_wait_with_a_deadline_in_the_past_ends() {
    let _guard = hang_guard();
    let tokens = Tokens::new();
    let check = || {
        let past = Instant::now();
        thread::sleep(Duration::from_micros(100));
        assert_eq!(tokens.acquire(Some(past)), Waking::TimedOut);
        tokens.release();
        assert_eq!(tokens.acquire(Some(past)), Waking::Notified, "a token that is there is taken");
    };
    check();
    runtime(1).run(check);
}

#[test]
fn a_thread_wakes_a_task_and_a_task_a_thread() {
    const ROUNDS: usize = 3000;
    let _guard = hang_guard();
    let (ping, pong) = (Arc::new(Tokens::new()), Arc::new(Tokens::new()));
    let (to, back) = (Arc::clone(&ping), Arc::clone(&pong));
    let runtime = runtime(1);
    let task = runtime.spawn(move || {
        for _ in 0..ROUNDS {
            assert_eq!(to.acquire(None), Waking::Notified);
            back.release();
        }
    });
    for _ in 0..ROUNDS {
        ping.release();
        assert_eq!(pong.acquire(None), Waking::Notified);
    }
    task.join().unwrap();
    runtime.run(fibra::yield_now);
}
