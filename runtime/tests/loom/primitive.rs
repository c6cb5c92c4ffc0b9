//! loom's types behind the interface of `src/primitive.rs`.
//!
//! Four things differ, and are bridged here so that the library's files stay plain:
//!
//! * **`const` constructors.** loom's objects exist inside a model only, so the object behind each of these is made at its
//!   first use. loom takes that for a write by the thread that makes it. So objects for the atomics that begin with a zero are
//!   made in advance, by the first thread; others a model uses once before it spawns a thread that does. Where one forgets, loom
//!   reports a causality violation.
//! * **Sequential consistency.** loom treats a `SeqCst` load or store as an acquiring or releasing one, and knows only
//!   `SeqCst` fences. A machine makes a `SeqCst` access of such fences, either by one after each store or by one before each
//!   load. [`check`] explores a model both ways: the first finds where a store is weaker than it must be, the second where
//!   a load is.
//! * **Plain stores** are swaps here; the reason stands at `store`.
//! * **The end of an atomic** counts as a write, as that of a cell does: the party that frees it has to know that all others
//!   are done.

use std::cell::{Cell as StdCell, OnceCell, RefCell, UnsafeCell as StdUnsafeCell};
use std::{fmt, ptr};

use loom::sync::atomic as loom_atomic;

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{Ordering, fence};
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;
pub(crate) use loom::thread_local;

pub(crate) use counted::Arc;

#[path = "counted.rs"]
mod counted;
#[path = "parking.rs"]
pub(crate) mod thread;

/// Where the fences of `SeqCst` accesses are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fences {
    AfterStores,
    BeforeLoads,
}

std::thread_local! {
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
        builder.check(move || {
            Spares::fill();
            model();
        });
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

/// How many objects of a kind are made in advance.
const SPARES: usize = 32;

/// Objects that are not in use yet.
struct Spares {
    bools: Vec<loom_atomic::AtomicBool>,
    bytes: Vec<loom_atomic::AtomicU8>,
    halves: Vec<loom_atomic::AtomicU16>,
    words: Vec<loom_atomic::AtomicU64>,
    witnesses: Vec<loom::cell::UnsafeCell<()>>,
}

std::thread_local! {
    static SPARE: RefCell<Spares> = const {
        RefCell::new(Spares { bools: Vec::new(), bytes: Vec::new(), halves: Vec::new(), words: Vec::new(), witnesses: Vec::new() })
    };
}

impl Spares {
    /// At the beginning of each run of a model.
    fn fill() {
        fn some<T>(make: impl Fn() -> T) -> Vec<T> {
            (0..SPARES).map(|_| make()).collect()
        }
        SPARE.set(Spares {
            bools: some(|| loom_atomic::AtomicBool::new(false)),
            bytes: some(|| loom_atomic::AtomicU8::new(0)),
            halves: some(|| loom_atomic::AtomicU16::new(0)),
            words: some(|| loom_atomic::AtomicU64::new(0)),
            witnesses: some(|| loom::cell::UnsafeCell::new(())),
        });
    }

    fn take<T>(kind: fn(&mut Spares) -> &mut Vec<T>) -> Option<T> {
        SPARE.with_borrow_mut(|spares| kind(spares).pop())
    }
}

macro_rules! atomic {
    ($name:ident $(<$of:ident>)?, $value:ty, $zero:expr $(=> $spares:ident)?) => {
        pub(crate) struct $name $(<$of>)? {
            first: $value,
            object: OnceCell<loom_atomic::$name $(<$of>)?>,
            /// Of every access as a read, and of the end.
            witness: Witness,
        }

        // SAFETY: loom runs one thread at a time, and never changes over inside `object`.
        unsafe impl $(<$of>)? Sync for $name $(<$of>)? {}

        impl $(<$of>)? Drop for $name $(<$of>)? {
            fn drop(&mut self) {
                self.witness.end();
            }
        }

        impl $(<$of>)? Default for $name $(<$of>)? {
            fn default() -> Self {
                Self::new($zero)
            }
        }

        impl $(<$of>)? fmt::Debug for $name $(<$of>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.load(Ordering::Relaxed).fmt(f)
            }
        }

        impl $(<$of>)? $name $(<$of>)? {
            pub(crate) const fn new(first: $value) -> Self {
                $name { first, object: OnceCell::new(), witness: Witness::new() }
            }

            fn object(&self) -> &loom_atomic::$name $(<$of>)? {
                self.witness.read_in_advance();
                self.object.get_or_init(|| {
                    $(
                        if self.first == $zero
                            && let Some(object) = Spares::take(|spares| &mut spares.$spares)
                        {
                            return object;
                        }
                    )?
                    loom_atomic::$name::new(self.first)
                })
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

            pub(crate) fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                mut f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut seen = self.load(failure);
                while let Some(new) = f(seen) {
                    match self.compare_exchange(seen, new, success, failure) {
                        Ok(before) => return Ok(before),
                        Err(now) => seen = now,
                    }
                }
                Err(seen)
            }
        }
    };
}

atomic!(AtomicBool, bool, false => bools);
atomic!(AtomicPtr<T>, *mut T, ptr::null_mut());
atomic!(AtomicU8, u8, 0 => bytes);
atomic!(AtomicU16, u16, 0 => halves);
atomic!(AtomicU32, u32, 0);
atomic!(AtomicU64, u64, 0 => words);
atomic!(AtomicUsize, usize, 0);
arithmetic!(AtomicU8, u8);
arithmetic!(AtomicU32, u32);
arithmetic!(AtomicU64, u64);
arithmetic!(AtomicUsize, usize);

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

    /// Reads the object by an atomic.
    fn read_in_advance(&self) {
        let make = || loom::cell::UnsafeCell::new(());
        self.0.get_or_init(|| Spares::take(|spares| &mut spares.witnesses).unwrap_or_else(make)).with(|_| ());
    }

    fn write(&self) {
        self.object().with_mut(|_| ());
    }

    /// What it stands beside is freed. While a model that failed is torn down there is nothing to tell.
    fn end(&self) {
        if let Some(object) = self.0.get()
            && !std::thread::panicking()
        {
            object.with_mut(|_| ());
        }
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

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.witness.write();
        self.value.get_mut()
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
        self.witness.end();
    }
}
