//! A wait allocates nothing: counted by an allocator of our own, so this test has a binary to itself.

mod common;
#[path = "common/tokens.rs"]
mod tokens;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use common::{hang_guard, runtime};
use fibra_runtime::wait::{Polled, Waking};
use fibra_runtime::{self as fibra, task};
use tokens::Tokens;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// The size of the largest allocation.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all of it is the system's allocator; the counters are `const` thread-locals without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller's contract is the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `f` a few times to warm up, then says how often this thread allocates in it.
fn allocations_in(f: impl Fn()) -> usize {
    (0..3).for_each(|_| f());
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

#[test]
fn rule_5_sleeping_and_waking_allocate_nothing() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let (ping, pong) = (Rc::new(Tokens::new()), Rc::new(Tokens::new()));
        let (to, back) = (Rc::clone(&ping), Rc::clone(&pong));
        let other = fibra::spawn_local(move || {
            while to.acquire(None) == Waking::Notified {
                back.release();
            }
        });
        let by_tokens = allocations_in(|| {
            for _ in 0..100 {
                ping.release();
                assert_eq!(pong.acquire(None), Waking::Notified);
            }
        });
        let by_deadline = allocations_in(|| {
            for _ in 0..10 {
                let soon = Instant::now() + Duration::from_micros(20);
                assert_eq!(pong.acquire(Some(soon)), Waking::TimedOut);
                fibra::sleep(Duration::from_micros(20));
            }
        });
        let by_parks = allocations_in(|| {
            for _ in 0..100 {
                task::current().unpark();
                task::park();
                fibra::yield_now();
            }
        });
        assert_eq!((by_tokens, by_deadline, by_parks), (0, 0, 0));
        assert_eq!((ping.free(), pong.free()), (0, 0));
        assert!(ping.has_waiters());
        other.task().cancel();
    });
}

#[test]
fn block_on_allocates_once_and_a_poll_and_a_sleep_of_it_nothing() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let waker = Rc::new(RefCell::new(None::<Waker>));
        let theirs = Rc::clone(&waker);
        // Wakes the future each time that it sleeps.
        let other = fibra::spawn_local(move || {
            loop {
                if let Some(waker) = theirs.borrow().as_ref() {
                    waker.wake_by_ref();
                }
                fibra::yield_now();
            }
        });
        let polls = |times: usize| {
            let left = Cell::new(times);
            fibra::block_on(poll_fn(|context| {
                waker.borrow_mut().get_or_insert_with(|| context.waker().clone()).clone_from(context.waker());
                match left.replace(left.get().saturating_sub(1)) {
                    0 => Poll::Ready(()),
                    _ => Poll::Pending,
                }
            }));
        };
        assert_eq!((allocations_in(|| polls(0)), allocations_in(|| polls(200))), (1, 1));
        other.task().cancel();
    });
}

#[test]
fn a_sleep_of_a_future_that_is_renewed_allocates_nothing() {
    let tokens = Tokens::new();
    let mut sleep = Box::pin(Polled::new(tokens.strategy()));
    let rounds = RefCell::new(|times: usize| {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..times {
            assert!(sleep.as_mut().poll(&mut context).is_pending());
            tokens.release();
            assert!(sleep.as_mut().poll(&mut context).is_ready());
            sleep.as_mut().renew();
            // One that it finds at once.
            tokens.release();
            assert!(sleep.as_mut().poll(&mut context).is_ready());
            sleep.as_mut().renew();
        }
    });
    assert_eq!(allocations_in(|| rounds.borrow_mut()(100)), 0);
    assert_eq!((tokens.free(), tokens.has_waiters()), (0, false));
}

#[test]
fn a_spawn_and_join_of_an_unnamed_task_allocates_once() {
    let _guard = hang_guard();
    runtime(1).run(|| {
        let allocations =
            allocations_in(|| (0..50).for_each(|_| fibra::spawn(|| 1).join().map(drop).unwrap()));
        assert!(allocations <= 51, "{allocations} allocations for 50 tasks");
    });
}

#[test]
fn the_end_of_a_runtime_makes_no_list_of_its_tasks() {
    const TASKS: usize = 2000;
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    struct AtEnd;
    impl Drop for AtEnd {
        fn drop(&mut self) {
            // The first task to end tells: the ends of the others fill the caches of memory.
            _ = SEEN.compare_exchange(0, LARGEST.get(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }
    let _guard = hang_guard();
    runtime(1).run(|| {
        for _ in 0..TASKS {
            drop(fibra::spawn_local(|| {
                let _at_end = AtEnd;
                task::park();
            }));
        }
        fibra::yield_now();
        LARGEST.set(0);
    });
    let seen = SEEN.load(Ordering::Relaxed);
    assert!((1..TASKS * size_of::<usize>()).contains(&seen), "an allocation of {seen} bytes");
}
