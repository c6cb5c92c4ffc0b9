//! What the tests share that count what a wait allocates: an allocator of our own, so each of them has a binary to itself.
//!
//! Each primitive has its rows in a table: two sides that wait for each other. A row is run in two tasks of one worker, in
//! two of two workers, in two threads, and in a task and a thread; the sides count what their thread allocates after some
//! rounds to warm up.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses what it needs; an expectation would fail in the one that uses all"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use fibra_runtime as fibra;
use fibra_sync::{AutoResetEvent, ManualResetEvent};

use crate::channels::us;
use crate::common::{guarded, runtime};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all of it is the system's allocator; the counter is a `const` thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get().wrapping_add(layout.size()));
        // SAFETY: the caller's contract is the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get().wrapping_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // To give memory back is none: a worker that rests does so now and then.
        ALLOCATIONS.set(ALLOCATIONS.get() + usize::from(size > layout.size()));
        BYTES.set(BYTES.get().wrapping_sub(layout.size()).wrapping_add(size));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How much this thread has allocated and not freed, where what it frees is its own.
pub(crate) fn bytes_in_use() -> usize {
    BYTES.get()
}

/// Rounds before the count begins, and rounds that are counted.
pub(crate) const WARM_UP: usize = 100;
pub(crate) const COUNTED: usize = 100;

/// What one side does in one round.
pub(crate) type Side = Box<dyn Fn() + Send>;

/// Two sides that wait for each other, once or more in each round.
pub(crate) type Row = (String, Side, Side);

pub(crate) fn row(
    name: impl Into<String>,
    one: impl Fn() + Send + 'static,
    other: impl Fn() + Send + 'static,
) -> Row {
    (name.into(), Box::new(one), Box::new(other))
}

/// As [`row`], with two sides of one thing.
pub(crate) fn shared<T: Send + Sync + 'static>(
    name: &'static str,
    thing: T,
    one: fn(&T),
    other: fn(&T),
) -> Row {
    let here = Arc::new(thing);
    let there = Arc::clone(&here);
    row(name, move || one(&here), move || other(&there))
}

/// As [`shared`], with two equal sides.
pub(crate) fn both<T: Send + Sync + 'static>(name: &'static str, thing: T, side: fn(&T)) -> Row {
    shared(name, thing, side, side)
}

/// Drives futures without allocating: its waker is made in advance.
#[derive(Default)]
pub(crate) struct Executor(Arc<Woken>);

struct Woken(AutoResetEvent);

impl Default for Woken {
    fn default() -> Self {
        Woken(AutoResetEvent::new(false))
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.set();
    }
}

impl Executor {
    /// Polls `future` until it is ready, and waits in between.
    pub(crate) fn drive<F: Future>(&self, future: F) -> F::Output {
        let (waker, mut future) = (Waker::from(Arc::clone(&self.0)), pin!(future));
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => self.0.0.wait(),
            }
        }
    }
}

/// As [`shared`], with sides that drive futures.
pub(crate) fn polled<T: Send + Sync + 'static>(
    name: impl Into<String>,
    thing: T,
    one: impl Fn(&T, &Executor) + Send + 'static,
    other: impl Fn(&T, &Executor) + Send + 'static,
) -> Row {
    let (here, [own, others]) = (Arc::new(thing), [(); 2].map(|()| Executor::default()));
    let there = Arc::clone(&here);
    row(name, move || one(&here, &own), move || other(&there, &others))
}

/// Halves for [`turns`]: the waiting half drives a future.
pub(crate) fn with_executor<A, B>((acting, waiting): (A, B)) -> (A, (B, Executor)) {
    (acting, (waiting, Executor::default()))
}

/// How often this thread allocates in the rounds that are counted. The side comes back: what it holds is not to end before the
/// other side has.
pub(crate) fn count(side: Side) -> (usize, Side) {
    // A thread gets what it waits with in its first wait. By then the other side may be through with its rounds.
    ManualResetEvent::new(false).wait_timeout(us(1));
    (0..WARM_UP).for_each(|_| side());
    let before = ALLOCATIONS.get();
    (0..COUNTED).for_each(|_| side());
    (ALLOCATIONS.get() - before, side)
}

/// Runs each row by `run`, which gives the counts of both sides.
pub(crate) fn assert_none(
    place: &str,
    rows: fn() -> Vec<Row>,
    run: impl Fn(Side, Side) -> [(usize, Side); 2],
) {
    for (name, one, other) in rows() {
        let counts = run(one, other).map(|(count, _)| count);
        assert_eq!(counts, [0, 0], "{name}, in {place}");
    }
}

pub(crate) fn in_every_place(rows: fn() -> Vec<Row>) {
    guarded(|| {
        runtime(1).run(|| {
            assert_none("tasks of one worker", rows, |one, other| {
                // One count is of both sides; the other side begins later, and what its task's end allocates does not count.
                let other = fibra::spawn_local(move || {
                    (0..WARM_UP + COUNTED).for_each(|_| other());
                    other
                });
                let counted = count(one);
                [counted, (0, other.join().unwrap())]
            });
        });
    });
    guarded(|| {
        runtime(2).run(|| {
            assert_none("tasks of two workers", rows, |one, other| {
                let other = fibra::spawn(move || count(other));
                [count(one), other.join().unwrap()]
            });
        });
    });
    guarded(|| {
        assert_none("threads", rows, |one, other| {
            let other = thread::spawn(move || count(other));
            [count(one), other.join().unwrap()]
        });
    });
    guarded(|| {
        runtime(1).run(|| {
            assert_none("a task and a thread", rows, |one, other| {
                let other = fibra::spawn_blocking(move || count(other));
                [count(one), other.join().unwrap()]
            });
        });
    });
}

/// One for each round.
pub(crate) fn many<T>(make: impl Fn() -> T) -> Vec<T> {
    (0..WARM_UP + COUNTED).map(|_| make()).collect()
}

/// What a side takes one of in each round.
pub(crate) fn taken<T>(things: Vec<T>) -> impl Fn() -> T {
    let things = Cell::new(things);
    move || {
        let mut left = things.take();
        let thing = left.pop().expect("one for each round");
        things.set(left);
        thing
    }
}

/// Lends a side what it needs for itself.
pub(crate) fn lent<T>(thing: T, side: impl Fn(&mut T)) -> impl Fn() {
    let thing = Cell::new(Some(thing));
    move || {
        let mut own = thing.take().expect("it comes back");
        side(&mut own);
        thing.set(Some(own));
    }
}

/// Two pairs for each round: each side waits with one half for what the other side does with the other half.
pub(crate) fn turns<A: Send + 'static, B: Send + 'static>(
    name: &'static str,
    make: impl Fn() -> (A, B),
    act: fn(A),
    wait: fn(B),
) -> Row {
    let halves = || {
        let (acting, waiting): (Vec<_>, Vec<_>) = many(&make).into_iter().unzip();
        (taken(acting), taken(waiting))
    };
    let ((asking, asked), (answering, answered)) = (halves(), halves());
    row(
        name,
        move || {
            act(asking());
            wait(answered());
        },
        move || {
            wait(asked());
            act(answering());
        },
    )
}
