//! Keeps the listeners of the whole process, and the thread that sets their events.
//!
//! ```text
//!   a signal ──▶ the handler of signal-hook ── a byte ──▶ the thread ── set ──▶ the event of each listener
//! ```
//!
//! A thread and no task: a listener may be on any runtime or on none, and a task would need a runtime.
//! Rejected: a pipe for each listener, registered with its reactor. It needs no thread, but two descriptors for each
//! listener, and no `select!` could wait for it.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use fibra_io::simulated_process;
use fibra_runtime::driver::unpinned;
use fibra_runtime::limit::Refusal;
use fibra_runtime::time::{Hold, try_hold};
use fibra_sync::AutoResetEvent;
use signal_hook::consts::{FORBIDDEN, SIGBUS};
use signal_hook::iterator::{Handle, Signals};

/// One more than the largest number that signal-hook takes. The system refuses those that it does not know.
const NUMBERS: i32 = 128;

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    handle: None,
    listeners: BTreeMap::new(),
    next: 0,
    exits: BTreeMap::new(),
    simulated: BTreeSet::new(),
    callbacks: Vec::new(),
});

/// The number of the process itself; those of a simulation have others.
const REAL: u64 = 0;

struct Registry {
    /// `None` until the thread runs.
    handle: Option<Handle>,
    /// By process and signal, then in the order of registration.
    listeners: BTreeMap<(u64, i32, u64), Arc<AutoResetEvent>>,
    next: u64,
    /// The processes and signals of which the second delivery ends the process; true once the first has come.
    exits: BTreeMap<(u64, i32), bool>,
    /// The signals that simulated processes have listened to.
    simulated: BTreeSet<(u64, i32)>,
    /// What the thread calls at a delivery, until it returns false.
    callbacks: Vec<(i32, Callback)>,
}

type Callback = Box<dyn Fn() -> bool + Send>;

/// An entry of the registry, removed on drop.
pub(super) struct Listener {
    key: (u64, i32, u64),
    event: Arc<AutoResetEvent>,
    /// The runtime does not know when a signal comes.
    _hold: Option<Hold>,
}

impl Listener {
    pub(super) fn new(number: i32) -> io::Result<Listener> {
        check_number(number)?;
        let (event, process) = (Arc::new(AutoResetEvent::new(false)), simulated_process());
        let mut registry = registry();
        let handle = registry.handle_for(process, number)?;
        let key = (process, number, registry.next);
        registry.next += 1;
        // Before the handler is installed, so that no delivery is missed.
        registry.listeners.insert(key, Arc::clone(&event));
        drop(registry);
        let hold = handle.as_ref().and_then(|_| try_hold());
        let listener = Listener { key, event, _hold: hold };
        handle.map_or(Ok(()), |handle| handle.add_signal(number))?;
        Ok(listener)
    }

    pub(super) fn number(&self) -> i32 {
        self.key.1
    }

    pub(super) fn event(&self) -> &AutoResetEvent {
        &self.event
    }
}

/// Refuses the signals that no program can listen to.
fn check_number(number: i32) -> io::Result<()> {
    // Faults concern one thread only, and those of memory report stack overflows.
    if !(1..NUMBERS).contains(&number) || FORBIDDEN.contains(&number) || number == SIGBUS {
        let message = format!("signal {number} cannot be listened to");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// Has the second delivery from now on end the process.
pub(super) fn exit_on_repeat(number: i32) -> io::Result<()> {
    check_number(number)?;
    let process = simulated_process();
    let handle = registry().handle_for(process, number)?;
    handle.map_or(Ok(()), |handle| handle.add_signal(number))?;
    registry().exits.entry((process, number)).or_insert(false);
    Ok(())
}

/// Has the thread call `f` at each delivery, until that returns false.
pub(crate) fn call_on(number: i32, f: Callback) -> io::Result<()> {
    check_number(number)?;
    let mut registry = registry();
    let handle = registry.handle()?;
    registry.callbacks.push((number, f));
    drop(registry);
    handle.add_signal(number)
}

impl Drop for Listener {
    fn drop(&mut self) {
        registry().listeners.remove(&self.key);
    }
}

impl Registry {
    /// Returns the handle, or `None` for a simulated process: no signal of the system reaches it.
    fn handle_for(&mut self, process: u64, number: i32) -> io::Result<Option<Handle>> {
        if process == REAL {
            return self.handle().map(Some);
        }
        self.simulated.insert((process, number));
        Ok(None)
    }

    /// Notes a delivery. Returns true if it ends the process.
    fn ends(&mut self, process: u64, number: i32) -> bool {
        self.exits.get_mut(&(process, number)).is_some_and(|has_come| std::mem::replace(has_come, true))
    }

    fn events(&self, process: u64, number: i32) -> Vec<Arc<AutoResetEvent>> {
        let listeners = self.listeners.range((process, number, 0)..=(process, number, u64::MAX));
        listeners.map(|(_, event)| Arc::clone(event)).collect()
    }

    /// Returns the handle that takes further signals. Starts the thread if it does not run yet.
    fn handle(&mut self) -> io::Result<Handle> {
        if let Some(handle) = &self.handle {
            return Ok(handle.clone());
        }
        let signals = Signals::new::<_, i32>([]);
        let mut signals =
            signals.map_err(|error| Refusal::of_descriptor("the reception of signals", error))?;
        let handle = signals.handle();
        let deliver_all = move || signals.forever().for_each(deliver);
        let started = unpinned(|| thread::Builder::new().name("fibra-signals".to_owned()).spawn(deliver_all));
        started.map_err(|error| Refusal::of_thread("the reception of signals", error))?;
        Ok(self.handle.insert(handle).clone())
    }
}

fn registry() -> MutexGuard<'static, Registry> {
    // No code under the lock panics half-way.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the events of the signal's listeners, after the lock is released: a future's waker may add a listener.
fn deliver(number: i32) {
    let events = {
        let mut registry = registry();
        if registry.ends(REAL, number) {
            // At once: exit handlers might wait for what a computing task holds.
            signal_hook::low_level::exit(128 + number);
        }
        registry.events(REAL, number)
    };
    events.iter().for_each(|event| event.set());
    // Out of the registry meanwhile: a callback takes as long as it likes, and the thread alone calls them.
    let mut due: Vec<_> = registry().callbacks.extract_if(.., |(signal, _)| *signal == number).collect();
    due.retain(|(_, callback)| callback());
    registry().callbacks.extend(due);
}

/// Delivers a signal to a simulated process. Returns true if that ends it.
pub(super) fn deliver_simulated(process: u64, number: i32) -> bool {
    let events = {
        let mut registry = registry();
        if !registry.simulated.contains(&(process, number)) || registry.ends(process, number) {
            return true;
        }
        registry.events(process, number)
    };
    events.iter().for_each(|event| event.set());
    false
}

/// Forgets a simulated process: no number is used twice.
pub(super) fn end_simulated(process: u64) {
    let mut registry = registry();
    registry.simulated.retain(|(of, _)| *of != process);
    registry.exits.retain(|(of, _), _| *of != process);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_process_that_has_ended_leaves_nothing() {
        const PROCESS: u64 = u64::MAX;
        let none = registry().handle_for(PROCESS, 2).unwrap();
        assert!(none.is_none());
        registry().exits.insert((PROCESS, 2), false);
        assert!(!deliver_simulated(PROCESS, 2) && deliver_simulated(PROCESS, 2), "the second one ends it");
        end_simulated(PROCESS);
        let registry = registry();
        assert!(registry.simulated.iter().all(|entry| entry.0 != PROCESS));
        assert!(registry.exits.keys().all(|entry| entry.0 != PROCESS));
    }
}
