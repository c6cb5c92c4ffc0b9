//! What a simulated program can ask of its simulation.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::sync::Arc;

use crate::answers;
use crate::oracle::Oracle;

thread_local! {
    /// The run that this thread simulates.
    static RUN: RefCell<Option<Arc<Oracle>>> = const { RefCell::new(None) };
}

/// Makes the calling thread simulate a run until the result is dropped.
pub(crate) fn enter(run: &Arc<Oracle>) -> Entered {
    RUN.set(Some(Arc::clone(run)));
    answers::enter(run.lock().random.get_seed());
    Entered(())
}

pub(crate) struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        answers::leave();
        RUN.set(None);
    }
}

/// Returns the run that this thread simulates.
pub(crate) fn run() -> Option<Arc<Oracle>> {
    RUN.with_borrow(Clone::clone)
}

/// Returns true in a simulated program.
pub(crate) fn is_simulated() -> bool {
    RUN.with_borrow(Option::is_some)
}

/// Returns a random number that the seed of the simulation decides.
///
/// # Panics
/// Panics outside a simulation.
///
/// # Examples
/// ```
/// use fibra_sim::{Sim, random};
/// use std::sync::Mutex;
/// static DRAWN: Mutex<Vec<u64>> = Mutex::new(Vec::new());
/// for _ in 0..2 {
///     Sim::builder().seed(1).run(|| DRAWN.lock().unwrap().push(random()));
/// }
/// let drawn = DRAWN.lock().unwrap();
/// assert_eq!(drawn[0], drawn[1]);
/// ```
#[track_caller]
pub fn random() -> u64 {
    draw(|random| random.u64(..))
}

/// Returns a random number below `bound`, as [`random`] does.
///
/// # Panics
/// Panics outside a simulation, and if `bound` is 0.
#[track_caller]
pub fn random_below(bound: u64) -> u64 {
    draw(|random| random.u64(..bound))
}

/// Returns true once in a while: a fault that a program under test injects into itself.
///
/// `one_in` is the average number of calls for one fault. Returns false outside a simulation, so that it may stand in
/// code that also runs without one.
///
/// # Examples
/// ```
/// use fibra_sim::{Sim, buggify};
/// assert!(!buggify(1), "no simulation");
/// Sim::builder().run(|| {
///     let faults = (0..1000).filter(|_| buggify(10)).count();
///     assert!((50..200).contains(&faults));
/// });
/// ```
pub fn buggify(one_in: u64) -> bool {
    is_simulated() && random_below(one_in.max(1)) == 0
}

/// Lets a simulation preempt the calling task here, before an operation that fibra does not know of.
///
/// Operations of fibra's primitives are such points by themselves. Does nothing in builds without `--cfg fibra_sim`.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// static NEXT: AtomicU32 = AtomicU32::new(0);
/// fn next() -> u32 {
///     fibra_sim::point();
///     NEXT.fetch_add(1, Ordering::Relaxed)
/// }
/// assert_eq!((next(), next()), (0, 1));
/// ```
#[inline(always)]
pub fn point() {
    fibra_runtime::wait::point();
}

#[track_caller]
fn draw<R>(draw: impl FnOnce(&mut fastrand::Rng) -> R) -> R {
    let Some(run) = run() else { panic!("random numbers of a simulation were asked for outside of one") };
    draw(&mut run.lock().random)
}
