//! The runtime's seam.

#![forbid(unsafe_code)]

use std::sync::{Mutex, PoisonError};

use fibra_runtime::stacks::{self, SavedContext, Symbol, Unwinder};

use crate::modules::Modules;
use crate::sample;
use crate::symbols::Symbols;
use crate::walk::Walker;

/// Gives the dumps of this process stacks.
///
/// The crate `fibra` calls it when a runtime is built. A program does so itself if it uses the runtime without that crate,
/// or switches the crate's feature `insight` off.
///
/// # Examples
/// ```
/// fibra_insight::install();
/// ```
pub fn install() {
    stacks::install(unwinder());
}

/// Returns what [`install`] installs.
///
/// # Examples
/// ```
/// let here = fibra_insight::unwinder as *const () as usize;
/// let functions = fibra_insight::unwinder().resolve(&[(here, false)]);
/// assert_eq!(functions[0].last().unwrap().function, "fibra_insight::unwinder::unwinder");
/// ```
pub fn unwinder() -> &'static dyn Unwinder {
    static INSIGHT: Insight = Insight { walker: Mutex::new(None), symbols: Mutex::new(None) };

    &INSIGHT
}

/// Sets the signal that interrupts a running task to take its stack; `SIGRTMIN+3` unless set.
///
/// A program that handles the default itself names another one, before the first dump. A signal that has a handler
/// is left alone, and running tasks have no stack then.
///
/// # Examples
/// ```
/// const SIGUSR2: i32 = 12;
/// fibra_insight::sample_by(SIGUSR2);
/// ```
pub fn sample_by(signal: i32) {
    sample::sample_by(signal);
}

struct Insight {
    walker: Mutex<Option<Walker>>,
    symbols: Mutex<Option<Symbols>>,
}

impl Insight {
    /// Calls `f` with a walker that knows the code that is loaded now.
    fn with_walker<R>(&self, f: impl FnOnce(&mut Walker) -> R) -> R {
        let modules = Modules::loaded();
        let mut walker = self.walker.lock().unwrap_or_else(PoisonError::into_inner);
        if walker.as_ref().is_none_or(|walker| !walker.knows(&modules)) {
            *walker = Some(Walker::new(modules));
        }
        f(walker.as_mut().expect("it was made"))
    }
}

impl Unwinder for Insight {
    fn walk(
        &self,
        from: SavedContext,
        read: &mut dyn FnMut(usize) -> Option<u64>,
        frames: &mut Vec<usize>,
    ) -> bool {
        self.with_walker(|walker| walker.walk(Walker::MOST_FRAMES, from, read, frames))
    }

    fn resolve(&self, addresses: &[(usize, bool)]) -> Vec<Vec<Symbol>> {
        let modules = Modules::loaded();
        let mut symbols = self.symbols.lock().unwrap_or_else(PoisonError::into_inner);
        symbols.get_or_insert_with(|| Symbols::new(&modules)).resolve(&modules, addresses)
    }

    fn sample(&self, tid: i32, frames: &mut Vec<usize>) -> bool {
        self.with_walker(|walker| sample::sample(walker, tid, frames))
    }
}
