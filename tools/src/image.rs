//! A process, alive or dead: its memory, and what is mapped there.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fibra_insight::outside::Read;
use fibra_runtime::stacks::SavedContext;

/// The size of the smallest pages.
pub(crate) const PAGE: usize = 4096;

/// The most pages that are kept.
const MOST_PAGES: usize = 4096;

/// A result whose error is a line for the user.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// A process, alive or dead.
pub(crate) struct Image {
    /// How the user names it.
    pub(crate) title: String,
    /// Copies its memory.
    pub(crate) memory: Arc<Read>,
    /// By address.
    pub(crate) mappings: Vec<Mapping>,
}

/// A part of the memory.
pub(crate) struct Mapping {
    pub(crate) range: Range<usize>,
    /// The file, and where the part begins in it.
    pub(crate) file: Option<(PathBuf, u64)>,
}

impl Image {
    pub(crate) fn word(&self, address: usize) -> Option<usize> {
        let mut bytes = [0; size_of::<usize>()];
        (self.memory)(address, &mut bytes)?;
        Some(usize::from_ne_bytes(bytes))
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> Option<Vec<u8>> {
        // A length that was read from memory may be anything.
        let mut bytes = vec![0; range.len().min(1 << 30)];
        (self.memory)(range.start, &mut bytes)?;
        Some(bytes)
    }

    /// Returns the part of the memory that the address lies in.
    pub(crate) fn mapping(&self, address: usize) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.range.start <= address);
        self.mappings.get(after.checked_sub(1)?).filter(|mapping| mapping.range.contains(&address))
    }
}

/// Makes memory that does not change be read a page at a time: what is read of a task lies on few of them.
pub(crate) fn by_pages(memory: Arc<Read>) -> Arc<Read> {
    let kept: Mutex<HashMap<usize, Option<Box<[u8; PAGE]>>>> = Mutex::default();
    Arc::new(move |mut address: usize, mut into: &mut [u8]| {
        let mut kept = kept.lock().ok()?;
        while !into.is_empty() {
            if kept.len() > MOST_PAGES {
                kept.clear();
            }
            let offset = address % PAGE;
            let page = kept.entry(address - offset).or_insert_with(|| {
                let mut page = Box::new([0; PAGE]);
                memory(address - offset, &mut page[..]).map(|()| page)
            });
            let (now, rest) = into.split_at_mut(into.len().min(PAGE - offset));
            match page {
                Some(page) => now.copy_from_slice(&page[offset..offset + now.len()]),
                // A file may end on it.
                None => memory(address, now)?,
            }
            (address, into) = (address.checked_add(now.len())?, rest);
        }
        Some(())
    })
}

/// Makes a context of the general registers of a thread, as the kernel orders them.
pub(crate) fn context(registers: &[u64]) -> Option<SavedContext> {
    let [pc, sp, fp] = if cfg!(target_arch = "x86_64") { [16, 19, 4] } else { [32, 31, 29] };
    let of = |index: usize| registers.get(index).map(|register| *register as usize);
    Some(SavedContext { pc: of(pc)?, sp: of(sp)?, fp: of(fp)? })
}
