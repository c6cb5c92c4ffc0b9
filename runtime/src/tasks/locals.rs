//! The untyped values of a task's [`TaskLocal`](crate::api::task_local::TaskLocal)s.
//!
//! ```text
//!                begin            fill                end
//!   no entry ──────────▶ BEGUN ─────────▶ LIVE ───────────────▶ GONE ──▶ all entries are forgotten
//!      ▲                   │                                      the destructor runs after the move
//!      └── given up ───────┘
//! ```
//!
//! A record belongs to one task or thread. Values are counted, so that a call keeps its value while other entries come
//! and go. No value is made, cloned or dropped under the borrow of the entries: such user code may come back here, or
//! suspend.

#![forbid(unsafe_code)]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::base::payload::quietly;

/// Holds the values of one task or thread.
#[derive(Default)]
pub(crate) struct Locals {
    entries: RefCell<Vec<Entry>>,
    /// A value that tasks inherit was set.
    has_heirs: Cell<bool>,
}

/// Identifies a key: the address of a static.
pub(crate) type Key = usize;

/// Clones a value for a spawned task.
pub(crate) type CloneValue = fn(&dyn Any) -> Box<dyn Any + Send>;

#[derive(Clone)]
struct Entry {
    key: Key,
    /// Given for keys that tasks inherit.
    clone: Option<CloneValue>,
    state: State,
}

#[derive(Clone)]
enum State {
    Begun,
    Live(Rc<dyn Any>),
    Gone,
}

/// Tells the state of a key.
pub(crate) enum Found {
    /// No value yet.
    Nothing,
    /// Its initializer is running.
    Begun,
    Live(Rc<dyn Any>),
    /// Its value was dropped, or is being dropped.
    Gone,
}

/// Grants the right to set the value of a key. Dropped, it leaves the key as before.
pub(crate) struct Begun<'a> {
    locals: &'a Locals,
    key: Key,
}

/// Holds clones of the spawner's values that a task inherits, on their way into the task.
#[derive(Default)]
pub(crate) struct InheritedLocals(Vec<(Key, CloneValue, Box<dyn Any + Send>)>);

impl Locals {
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Found {
        let entries = self.entries.borrow();
        match entries.iter().find(|entry| entry.key == key).map(|entry| &entry.state) {
            None => Found::Nothing,
            Some(State::Begun) => Found::Begun,
            Some(State::Live(value)) => Found::Live(Rc::clone(value)),
            Some(State::Gone) => Found::Gone,
        }
    }

    /// Announces the value of a key that has none.
    pub(crate) fn begin(&self, key: Key, clone: Option<CloneValue>) -> Begun<'_> {
        self.entries.borrow_mut().push(Entry { key, clone, state: State::Begun });
        Begun { locals: self, key }
    }

    /// Returns true if there may be values that tasks inherit.
    #[inline]
    pub(crate) fn has_heirs(&self) -> bool {
        self.has_heirs.get()
    }

    /// Clones the values that tasks inherit, if any. A panicking clone leaves nothing behind.
    #[inline]
    pub(crate) fn clone_inherited(&self) -> Option<InheritedLocals> {
        self.has_heirs().then(|| self.clone_heirs())
    }

    #[cold]
    fn clone_heirs(&self) -> InheritedLocals {
        let mut inherited = InheritedLocals::default();
        let present = self.entries.borrow().clone();
        for entry in present {
            if let (State::Live(value), Some(clone)) = (entry.state, entry.clone) {
                let value = clone(&*value);
                inherited.0.push((entry.key, clone, value));
            }
        }
        inherited
    }

    /// Drops all values in reverse order, also values that destructors set meanwhile.
    ///
    /// A key whose value was dropped has none until all values are gone. A destructor's panic only
    /// prints its message.
    pub(crate) fn end(&self) {
        while let Some(value) = self.take_last() {
            quietly(|| drop(value));
        }
        *self.entries.borrow_mut() = Vec::new();
        self.has_heirs.set(false);
    }

    fn take_last(&self) -> Option<Rc<dyn Any>> {
        self.entries.borrow_mut().iter_mut().rev().find_map(|entry| match &entry.state {
            State::Live(value) => {
                let value = Rc::clone(value);
                entry.state = State::Gone;
                Some(value)
            }
            State::Begun | State::Gone => None,
        })
    }
}

impl From<InheritedLocals> for Locals {
    fn from(mut inherited: InheritedLocals) -> Self {
        let enter = |(key, clone, value): (Key, CloneValue, Box<dyn Any + Send>)| {
            let value: Box<dyn Any> = value;
            Entry { key, clone: Some(clone), state: State::Live(value.into()) }
        };
        let entries: Vec<Entry> = inherited.0.drain(..).map(enter).collect();
        let has_heirs = Cell::new(!entries.is_empty());
        Locals { entries: RefCell::new(entries), has_heirs }
    }
}

impl Drop for InheritedLocals {
    /// Drops the values in reverse order, for a task that was never made.
    fn drop(&mut self) {
        while let Some(value) = self.0.pop() {
            quietly(|| drop(value));
        }
    }
}

impl Begun<'_> {
    /// Sets the value.
    pub(crate) fn fill(self, value: Rc<dyn Any>) {
        let mut entries = self.locals.entries.borrow_mut();
        let entry = entries.iter_mut().rev().find(|entry| entry.key == self.key);
        let entry = entry.expect("announced, and ended only here");
        entry.state = State::Live(value);
        if entry.clone.is_some() {
            self.locals.has_heirs.set(true);
        }
        drop(entries);
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let given_up = |entry: &Entry| entry.key == self.key && matches!(entry.state, State::Begun);
        self.locals.entries.borrow_mut().retain(|entry| !given_up(entry));
    }
}
