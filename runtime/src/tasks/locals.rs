//! Where the values of a task's [`TaskLocal`](crate::api::task_local::TaskLocal)s live, untyped.
//!
//! ```text
//!                begin            fill                end
//!   no entry ──────────▶ BEGUN ─────────▶ LIVE ───────────────▶ GONE ──▶ all entries are forgotten
//!      ▲                   │                                      the destructor runs after the move
//!      └── given up ───────┘
//! ```
//!
//! A record is touched by one thread of control: its task, or its thread; and one that a task inherits, before the task
//! has run, by its spawner. Every value has a place of its own on the heap, where it stays from `fill` to `end`, so that
//! a reference to it outlives whatever else is entered meanwhile. No value is made, cloned or dropped under the borrow of
//! the entries: that is users' code, which may come back here, or suspend.

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};

use crate::base::payload::quietly;

/// The values of one task or thread.
#[derive(Default)]
pub(crate) struct Locals {
    entries: RefCell<Vec<Entry>>,
    /// There was a value that tasks inherit.
    heirs: Cell<bool>,
}

/// What is known of the values of one key.
pub(crate) struct Kind {
    /// Drops a value and its place.
    pub(crate) drop: unsafe fn(NonNull<()>),
    /// Clones a value into a place of its own, where tasks inherit the key. It is `Send` then.
    pub(crate) clone: Option<unsafe fn(NonNull<()>) -> NonNull<()>>,
}

/// What tells keys apart: the address of a static, or of something else that stays for ever.
pub(crate) type Key = *const ();

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    kind: &'static Kind,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Begun,
    Live(NonNull<()>),
    Gone,
}

/// What a look for a key finds.
pub(crate) enum Found {
    /// No value yet.
    Nothing,
    /// Its initializer is running.
    Begun,
    Live(NonNull<()>),
    /// Its value was dropped, or is being dropped.
    Gone,
}

/// The right to enter the value of a key; dropped, the key is as before.
pub(crate) struct Begun<'a> {
    locals: &'a Locals,
    key: Key,
}

impl Locals {
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Found {
        let entries = self.entries.borrow();
        match entries.iter().find(|entry| ptr::eq(entry.key, key)).map(|entry| entry.state) {
            None => Found::Nothing,
            Some(State::Begun) => Found::Begun,
            Some(State::Live(value)) => Found::Live(value),
            Some(State::Gone) => Found::Gone,
        }
    }

    /// Announces the value of a key that has none.
    pub(crate) fn begin(&self, key: Key, kind: &'static Kind) -> Begun<'_> {
        self.entries.borrow_mut().push(Entry { key, kind, state: State::Begun });
        Begun { locals: self, key }
    }

    /// True if there may be values that tasks inherit.
    #[inline]
    pub(crate) fn has_heirs(&self) -> bool {
        self.heirs.get()
    }

    /// Clones what tasks inherit, if there may be any of it. A panic of a clone leaves nothing behind.
    #[inline]
    pub(crate) fn bequeath(&self) -> Option<Box<Locals>> {
        self.has_heirs().then(|| self.clone_heirs())
    }

    #[cold]
    fn clone_heirs(&self) -> Box<Locals> {
        let heritage = Box::<Locals>::default();
        let present: Vec<Entry> = self.entries.borrow().clone();
        for Entry { key, kind, state } in present {
            let (State::Live(value), Some(clone)) = (state, kind.clone) else { continue };
            let begun = heritage.begin(key, kind);
            // SAFETY: a value of this kind, and live: only `end` drops values, on this thread of control. If that is what
            // has called a destructor which spawns, it goes on after this call, and what it has dropped was not present.
            begun.fill(unsafe { clone(value) });
        }
        heritage
    }

    /// Drops all values, the last one first; those as well that destructors enter meanwhile. A key whose value has been
    /// dropped has none until all are. A destructor's panic goes no further than its message.
    pub(crate) fn end(&self) {
        while let Some((value, kind)) = self.take_last() {
            // SAFETY: a live value of this kind, that nothing finds any more; and nobody keeps a reference to one beyond
            // a call in the task, of which all have returned.
            quietly(|| unsafe { (kind.drop)(value) });
        }
        *self.entries.borrow_mut() = Vec::new();
        self.heirs.set(false);
    }

    fn take_last(&self) -> Option<(NonNull<()>, &'static Kind)> {
        self.entries.borrow_mut().iter_mut().rev().find_map(|entry| match entry.state {
            State::Live(value) => {
                entry.state = State::Gone;
                Some((value, entry.kind))
            }
            State::Begun | State::Gone => None,
        })
    }
}

impl Drop for Locals {
    /// For a heritage whose task was never made; any other has been ended.
    fn drop(&mut self) {
        self.end();
    }
}

impl Begun<'_> {
    /// Enters the value, of the kind that was announced.
    pub(crate) fn fill(self, value: NonNull<()>) {
        let mut entries = self.locals.entries.borrow_mut();
        let entry = entries.iter_mut().rev().find(|entry| ptr::eq(entry.key, self.key));
        let entry = entry.expect("announced, and ended by nobody else");
        entry.state = State::Live(value);
        if entry.kind.clone.is_some() {
            self.locals.heirs.set(true);
        }
        drop(entries);
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let given_up = |entry: &Entry| ptr::eq(entry.key, self.key) && matches!(entry.state, State::Begun);
        self.locals.entries.borrow_mut().retain(|entry| !given_up(entry));
    }
}
