//! loom's types behind the interface of `src/primitive.rs`.
//!
//! Three things differ, and are bridged here so that the library's files stay plain:
//!
//! * **`const` constructors.** loom's objects exist inside a model only, so the object behind each of these is made at its
//!   first use. loom takes that for a write by the thread that makes it, so each model uses its atomics once before it
//!   spawns a thread that does; where one forgets, loom reports a causality violation.
//! * **Sequential consistency.** loom treats a `SeqCst` load or store as an acquiring or releasing one, and knows only
//!   `SeqCst` fences. A machine makes a `SeqCst` access of such fences, either by one after each store or by one before each
//!   load. [`check`] explores a model both ways: the first finds where a store is weaker than it must be, the second where
//!   a load is.
//! * **Plain stores** are swaps here; the reason stands at `store`.

use std::cell::OnceCell;
use std::cell::{Cell as StdCell, UnsafeCell as StdUnsafeCell};

use loom::sync::atomic as loom_atomic;

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{Ordering, fence};
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;

/// Stands for a fence that the asker has every thread run: whatever order that gives, two full fences give as well.
pub(crate) fn light_fence() {
    fence(Ordering::SeqCst);
}

/// The other one of the pair.
pub(crate) fn heavy_fence() {
    fence(Ordering::SeqCst);
}

/// Where the fences of `SeqCst` accesses are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fences {
    AfterStores,
    BeforeLoads,
}

thread_local! {
    // loom runs all threads of a model on one thread of the system.
    static FENCES: StdCell<Fences> = const { StdCell::new(Fences::AfterStores) };
}

/// Explores a model under both ways to make a `SeqCst` access.
pub(crate) fn check(model: impl Fn() + Send + Sync + Copy + 'static) {
    explore(None, model);
}

/// As [`check`], for larger models: no thread is interrupted more than `preemptions` times in one run.
pub(crate) fn check_bounded(preemptions: usize, model: impl Fn() + Send + Sync + Copy + 'static) {
    explore(Some(preemptions), model);
}

fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + Copy + 'static) {
    for fences in [Fences::AfterStores, Fences::BeforeLoads] {
        FENCES.set(fences);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions.or(builder.preemption_bound);
        builder.check(model);
    }
}

fn before_load(order: Ordering) {
    if order == Ordering::SeqCst && FENCES.get() == Fences::BeforeLoads {
        fence(Ordering::SeqCst);
    }
}

fn after_store(order: Ordering) {
    if order == Ordering::SeqCst && FENCES.get() == Fences::AfterStores {
        fence(Ordering::SeqCst);
    }
}

macro_rules! atomic {
    ($name:ident $(<$of:ident>)?, $value:ty) => {
        pub(crate) struct $name $(<$of>)? {
            first: $value,
            object: OnceCell<loom_atomic::$name $(<$of>)?>,
        }

        // SAFETY: loom runs one thread at a time, and never changes over inside `object`.
        unsafe impl $(<$of>)? Sync for $name $(<$of>)? {}

        impl $(<$of>)? $name $(<$of>)? {
            pub(crate) const fn new(first: $value) -> Self {
                $name { first, object: OnceCell::new() }
            }

            fn object(&self) -> &loom_atomic::$name $(<$of>)? {
                self.object.get_or_init(|| loom_atomic::$name::new(self.first))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                before_load(order);
                self.object().load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                // A swap, since loom takes a plain store and another thread's read-modify-write for unordered, and would
                // let a later load see the one that was overwritten.
                self.object().swap(value, order);
                after_store(order);
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.change(order, |object| object.swap(value, order))
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                before_load(success);
                let outcome = self.object().compare_exchange(current, new, success, failure);
                if outcome.is_ok() {
                    after_store(success);
                }
                outcome
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            fn change(&self, order: Ordering, f: impl FnOnce(&loom_atomic::$name $(<$of>)?) -> $value) -> $value {
                before_load(order);
                let before = f(self.object());
                after_store(order);
                before
            }
        }
    };
}

macro_rules! arithmetic {
    ($name:ident, $value:ty) => {
        impl $name {
            pub(crate) fn fetch_or(&self, bits: $value, order: Ordering) -> $value {
                self.change(order, |object| object.fetch_or(bits, order))
            }

            pub(crate) fn fetch_and(&self, bits: $value, order: Ordering) -> $value {
                self.change(order, |object| object.fetch_and(bits, order))
            }

            pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.change(order, |object| object.fetch_add(value, order))
            }

            pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.change(order, |object| object.fetch_sub(value, order))
            }
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicPtr<T>, *mut T);
atomic!(AtomicU8, u8);
atomic!(AtomicU64, u64);
arithmetic!(AtomicU8, u8);
arithmetic!(AtomicU64, u64);

/// Tells loom of the accesses to a plain value beside it.
struct Witness(OnceCell<loom::cell::UnsafeCell<()>>);

impl Witness {
    const fn new() -> Self {
        Witness(OnceCell::new())
    }

    fn object(&self) -> &loom::cell::UnsafeCell<()> {
        self.0.get_or_init(|| loom::cell::UnsafeCell::new(()))
    }

    fn read(&self) {
        self.object().with(|_| ());
    }

    fn write(&self) {
        self.object().with_mut(|_| ());
    }
}

/// As std's, but loom is told of every access.
pub(crate) struct UnsafeCell<T> {
    witness: Witness,
    value: StdUnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        UnsafeCell { witness: Witness::new(), value: StdUnsafeCell::new(value) }
    }

    /// Counts as a write: what its caller does with the pointer is not seen.
    pub(crate) fn get(&self) -> *mut T {
        self.witness.write();
        self.value.get()
    }
}

/// As std's, but loom is told of every access, and of the end.
pub(crate) struct Cell<T> {
    witness: Witness,
    value: StdCell<T>,
}

impl<T> Cell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Cell { witness: Witness::new(), value: StdCell::new(value) }
    }

    pub(crate) fn get(&self) -> T
    where
        T: Copy,
    {
        self.witness.read();
        self.value.get()
    }

    pub(crate) fn set(&self, value: T) {
        self.witness.write();
        self.value.set(value);
    }

    pub(crate) fn take(&self) -> T
    where
        T: Default,
    {
        self.witness.write();
        self.value.take()
    }
}

impl<T> Drop for Cell<T> {
    fn drop(&mut self) {
        // While a model that failed is torn down there is nothing to tell.
        if !std::thread::panicking() {
            self.witness.write();
        }
    }
}
