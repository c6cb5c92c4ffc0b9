//! Promises of `JoinHandle` as a future.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::common::{hang_guard, runtime};
use crate::message::message;
use crate::rest::until_others_sleep;
use fibra_runtime::{self as fibra, JoinError, JoinHandle, block_on, task};

/// A waker that counts, and says so to a thread that waits.
struct Count {
    wakes: AtomicUsize,
    thread: thread::Thread,
}

impl Count {
    fn new() -> Arc<Self> {
        Arc::new(Count { wakes: AtomicUsize::new(0), thread: thread::current() })
    }

    fn wakes(&self) -> usize {
        self.wakes.load(Ordering::SeqCst)
    }

    fn await_wake(&self) {
        while self.wakes() == 0 {
            thread::park();
        }
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn poll<T>(handle: &mut JoinHandle<T>, count: &Arc<Count>) -> Poll<Result<T, JoinError>> {
    let waker = Waker::from(Arc::clone(count));
    Pin::new(handle).poll(&mut Context::from_waker(&waker))
}

/// A task that ends with `value` when it is told to.
fn held<T: Send + 'static>(runtime: &fibra::Runtime, value: T) -> (JoinHandle<T>, fibra::Task) {
    let handle = runtime.spawn(move || {
        task::park();
        value
    });
    let task = handle.task().clone();
    (handle, task)
}

#[expect(dead_code, reason = "checked by the compiler only")]
fn bounds_of_the_handle() {
    fn future<F: Future + Send + Sync + Unpin + 'static>() {}
    future::<JoinHandle<u8>>();
    future::<JoinHandle<std::marker::PhantomPinned>>();
}

#[test]
fn it_is_ready_when_the_task_has_ended() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let (mut handle, task) = held(&runtime, "value");
        let count = Count::new();
        assert!(poll(&mut handle, &count).is_pending());
        assert_eq!(count.wakes(), 0);
        task.unpark();
        count.await_wake();
        assert!(handle.is_finished());
        match poll(&mut handle, &count) {
            Poll::Ready(Ok("value")) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(count.wakes(), 1);
        assert!(handle.is_finished());
    }
}

#[test]
fn a_task_that_ended_before_is_ready_at_the_first_poll() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let mut handle = runtime.spawn(|| 7);
    while !handle.is_finished() {
        thread::yield_now();
    }
    let count = Count::new();
    assert!(matches!(poll(&mut handle, &count), Poll::Ready(Ok(7))));
    assert_eq!((count.wakes(), Arc::strong_count(&count)), (0, 1));
}

#[test]
fn tasks_and_threads_block_on_it() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let answer = runtime.run(|| block_on(async { fibra::spawn(|| 20).await.unwrap() + 22 }));
    assert_eq!(answer, 42);
    assert_eq!(block_on(runtime.spawn(|| 42)).unwrap(), 42);
    let pool = runtime.spawn_blocking(|| 42);
    assert_eq!(block_on(pool).unwrap(), 42);
    let local = runtime.run(|| block_on(fibra::spawn_local(|| 42)).unwrap());
    assert_eq!(local, 42);
}

#[test]
fn errors_come_as_from_join() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let panicked = block_on(runtime.spawn(|| std::panic::resume_unwind(Box::new("why"))));
    assert_eq!(panicked.unwrap_err().into_panic().downcast_ref(), Some(&"why"));
    let (handle, task) = held(&runtime, ());
    task.cancel();
    assert!(block_on(handle).unwrap_err().is_cancelled());
}

#[test]
fn only_the_waker_of_the_last_poll_is_called_and_the_others_are_let_go() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let (mut handle, task) = held(&runtime, ());
    let counts: Vec<Arc<Count>> = (0..5).map(|_| Count::new()).collect();
    for count in &counts {
        assert!(poll(&mut handle, count).is_pending());
        assert!(poll(&mut handle, count).is_pending());
        assert_eq!(Arc::strong_count(count), 2);
    }
    assert!(counts[..4].iter().all(|count| Arc::strong_count(count) == 1));
    task.unpark();
    counts[4].await_wake();
    assert!(poll(&mut handle, &counts[0]).is_ready());
    assert_eq!(counts.iter().map(|count| count.wakes()).collect::<Vec<_>>(), [0, 0, 0, 0, 1]);
}

#[test]
fn it_may_be_polled_on_one_thread_after_the_other() {
    let _guard = hang_guard();
    let runtime = runtime(2);
    let (mut handle, task) = held(&runtime, 7);
    for _ in 0..10 {
        handle = thread::spawn(move || {
            assert!(poll(&mut handle, &Count::new()).is_pending());
            handle
        })
        .join()
        .unwrap();
        handle = runtime
            .run(move || {
                assert!(poll(&mut handle, &Count::new()).is_pending());
                Mutex::new(handle)
            })
            .into_inner()
            .unwrap();
    }
    task.unpark();
    assert_eq!(runtime.run(move || block_on(handle)).unwrap(), 7);
}

#[test]
fn dropped_half_way_it_detaches_the_task_and_lets_its_waker_go() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let (ended, end) = mpsc::channel();
    let mut handle = runtime.spawn(move || {
        task::park();
        ended.send(()).unwrap();
    });
    let (task, count) = (handle.task().clone(), Count::new());
    assert!(poll(&mut handle, &count).is_pending());
    drop(handle);
    assert_eq!((count.wakes(), Arc::strong_count(&count)), (0, 1));
    task.unpark();
    end.recv().unwrap();
    while !task.is_finished() {
        thread::yield_now();
    }
    assert_eq!(count.wakes(), 0);
}

#[test]
fn an_unclaimed_result_is_dropped_once() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _guard = hang_guard();
    let runtime = runtime(2);
    let drops = Arc::new(AtomicUsize::new(0));
    for round in 0..500 {
        let value = Counted(Arc::clone(&drops));
        let mut handle = runtime.spawn(move || value);
        let count = Count::new();
        // In some rounds the task ends first, in some the handle, in some both at once.
        let first = poll(&mut handle, &count);
        if round % 3 == 0 && first.is_pending() {
            count.await_wake();
            assert!(poll(&mut handle, &count).is_ready());
        }
        let task = handle.task().clone();
        drop((first, handle));
        while !task.is_finished() {
            thread::yield_now();
        }
        while drops.load(Ordering::SeqCst) != round + 1 {
            thread::yield_now();
        }
    }
}

#[test]
fn after_a_poll_the_handle_is_still_joined() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let (mut handle, task) = held(&runtime, 7);
    let count = Count::new();
    assert!(poll(&mut handle, &count).is_pending());
    let mut handle = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
    assert_eq!(Arc::strong_count(&count), 1, "the waker is forgotten");
    assert!(poll(&mut handle, &count).is_pending(), "and left again");
    task.unpark();
    assert_eq!(handle.join().unwrap(), 7);
    // Where the task has ended before the join, it may still be about to call the waker.
    while Arc::strong_count(&count) > 1 {
        thread::yield_now();
    }
}

#[test]
fn poll_after_completion_panics() {
    let _guard = hang_guard();
    let runtime = runtime(1);
    let mut handle = runtime.spawn(|| 7);
    assert_eq!(block_on(&mut handle).unwrap(), 7);
    let message = message(|| poll(&mut handle, &Count::new()).is_ready());
    assert!(message.contains("taken"), "{message}");
    assert!(handle.is_finished());
    assert!(catch_unwind(AssertUnwindSafe(|| handle.join())).is_err());
}

#[test]
fn a_task_that_waits_for_itself_is_told_so() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let own = Arc::new(Mutex::new(None::<JoinHandle<()>>));
        let mine = Arc::clone(&own);
        let handle = fibra::spawn(move || {
            let handle = mine.lock().unwrap().take().unwrap();
            block_on(handle).unwrap();
        });
        let task = handle.task().clone();
        *own.lock().unwrap() = Some(handle);
        while !task.is_finished() {
            fibra::yield_now();
        }
    });
}

#[test]
fn a_waker_that_panics_ends_nothing() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a bad waker"));
        }
    }
    let _guard = hang_guard();
    let runtime = runtime(1);
    let (mut handle, task) = held(&runtime, 7);
    let waker = Waker::from(Arc::new(Bad));
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    task.unpark();
    assert_eq!(handle.join().unwrap(), 7);
    let (mut handle, task) = held(&runtime, 7);
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    task.unpark();
    while !handle.is_finished() {
        thread::yield_now();
    }
    assert_eq!(block_on(handle).unwrap(), 7);
    assert_eq!(runtime.run(|| 1), 1);
}

#[test]
fn a_waker_may_wait_and_end_other_futures() {
    struct Chain(Mutex<Option<JoinHandle<u32>>>, mpsc::Sender<u32>);
    impl Wake for Chain {
        fn wake(self: Arc<Self>) {
            fibra::sleep(Duration::from_micros(50));
            let next = self.0.lock().unwrap().take();
            let value = next.map_or(0, |next| next.join().unwrap());
            _ = self.1.send(value);
        }
    }
    let _guard = hang_guard();
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let (mut first, task) = held(&runtime, 1);
    let (mut second, other) = held(&runtime, 2);
    assert!(poll(&mut second, &Count::new()).is_pending());
    let waker = Waker::from(Arc::new(Chain(Mutex::new(Some(second)), sender)));
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&waker)).is_pending());
    task.unpark();
    other.unpark();
    assert_eq!(receiver.recv().unwrap(), 2);
    assert_eq!(first.join().unwrap(), 1);
}

#[test]
fn a_clone_of_a_waker_that_panics_leaves_the_handle_whole() {
    fn clone(_: *const ()) -> RawWaker {
        std::panic::resume_unwind(Box::new("no clone"))
    }
    fn nothing(_: *const ()) {}
    static BAD: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);
    let _guard = hang_guard();
    let runtime = runtime(1);
    let (mut handle, task) = held(&runtime, 7);
    // SAFETY: the functions touch no data.
    let bad = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &BAD)) };
    for _ in 0..2 {
        let polled = catch_unwind(AssertUnwindSafe(|| {
            Pin::new(&mut handle).poll(&mut Context::from_waker(&bad)).is_pending()
        }));
        assert!(polled.is_err());
        let count = Count::new();
        assert!(poll(&mut handle, &count).is_pending());
    }
    task.unpark();
    assert_eq!(handle.join().unwrap(), 7);
}

#[test]
fn ends_and_polls_at_one_moment_lose_nothing() {
    let _guard = hang_guard();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        for round in 0..3000_u32 {
            let mut handle = runtime.spawn(move || round);
            let count = Count::new();
            let polls = round % 4;
            let mut early = None;
            for _ in 0..polls {
                if let Poll::Ready(value) = poll(&mut handle, &count) {
                    early = Some(value);
                    break;
                }
            }
            let value = match early {
                Some(value) => value,
                None if round % 2 == 0 => handle.join(),
                None => block_on(pin!(handle)),
            };
            assert_eq!(value.unwrap(), round);
        }
    }
}

#[test]
fn a_cancelled_waiter_detaches_the_task() {
    let _guard = hang_guard();
    runtime(2).run(|| {
        let handle = fibra::spawn(task::park);
        let awaited = handle.task().clone();
        let waiter = fibra::spawn(move || block_on(handle));
        until_others_sleep();
        waiter.cancel();
        assert!(waiter.join().unwrap_err().is_cancelled());
        assert!(!awaited.is_finished());
        awaited.unpark();
        while !awaited.is_finished() {
            fibra::yield_now();
        }
    });
}
