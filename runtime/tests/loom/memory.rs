//! Memory of models: loom is told of each touch of a mapping, and of its end.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::rc::Rc;

use loom::cell::UnsafeCell;

thread_local! {
    // loom runs all threads of a model on one thread of the system.
    static MAPPINGS: RefCell<Vec<Mapped>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone)]
struct Mapped {
    start: usize,
    end: usize,
    contents: Rc<UnsafeCell<()>>,
}

/// How many mappings there are.
pub(crate) fn mappings() -> usize {
    MAPPINGS.with_borrow(Vec::len)
}

/// A thread writes to what lies at that address, or below it to the next mapping.
pub(crate) fn touch(address: usize) {
    let is_there = |mapping: &&Mapped| (mapping.start..mapping.end).contains(&address);
    let mapping = MAPPINGS.with_borrow(|all| all.iter().find(is_there).cloned());
    mapping.expect("it is mapped").contents.with_mut(|_| ());
}

pub(super) const LINE: usize = 64;

/// No cache is modelled.
pub(super) fn prefetch(_address: usize) {}

pub(super) fn page_size() -> usize {
    4096
}

/// A mapping of the library's, by its first address.
pub(super) struct Mapping(usize);

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mapping({:#x})", self.0)
    }
}

impl Mapping {
    pub(super) fn new(len: usize) -> io::Result<Self> {
        MAPPINGS.with_borrow_mut(|all| {
            let start = all.last().map_or(len, |last| last.end);
            all.push(Mapped { start, end: start + len, contents: Rc::new(UnsafeCell::new(())) });
            Ok(Mapping(start))
        })
    }

    pub(super) fn start(&self) -> usize {
        self.0
    }

    pub(super) fn protect(&self, _pages: Range<usize>) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn mark_guard(&self, _pages: Range<usize>) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn discard(&self, pages: Range<usize>) {
        touch(pages.start);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        touch(self.0);
        MAPPINGS.with_borrow_mut(|all| all.retain(|mapped| mapped.start != self.0));
    }
}

pub(super) fn max_mappings() -> Option<usize> {
    None
}
