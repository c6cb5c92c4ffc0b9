//! Memory of models: of each mapping loom is told who touches it, and when it ends.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use loom::cell::UnsafeCell;

thread_local! {
    // loom runs all threads of a model on one thread of the system.
    static MAPPINGS: RefCell<Vec<Mapping>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone)]
struct Mapping {
    start: usize,
    end: usize,
    contents: Rc<UnsafeCell<()>>,
}

/// How many mappings there are.
pub(crate) fn mappings() -> usize {
    MAPPINGS.with_borrow(Vec::len)
}

/// Somebody writes to what lies at that address, or below it to the next mapping.
pub(crate) fn touch(address: usize) {
    let is_there = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
    let mapping = MAPPINGS.with_borrow(|all| all.iter().find(is_there).cloned());
    mapping.expect("it is mapped").contents.with_mut(|_| ());
}

pub(super) fn page_size() -> usize {
    4096
}

pub(super) fn map(len: usize) -> io::Result<usize> {
    MAPPINGS.with_borrow_mut(|all| {
        let start = all.last().map_or(len, |last| last.end);
        all.push(Mapping { start, end: start + len, contents: Rc::new(UnsafeCell::new(())) });
        Ok(start)
    })
}

pub(super) unsafe fn unmap(start: usize, _len: usize) {
    touch(start);
    MAPPINGS.with_borrow_mut(|all| all.retain(|mapping| mapping.start != start));
}

pub(super) struct Unused {
    start: usize,
}

impl Unused {
    pub(super) unsafe fn new(start: usize, _len: usize) -> Self {
        Unused { start }
    }

    pub(super) fn protect(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn mark_guard(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn discard(&self) {
        touch(self.start);
    }
}

pub(super) fn forbid_huge_pages(_start: usize, _len: usize) {}

pub(super) fn max_mappings() -> Option<usize> {
    None
}
