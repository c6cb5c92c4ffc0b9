//! The tasks in an image, by the tables that its notes lead to.
//!
//! The offsets are those of the process itself: the root of its tables has them.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashSet};

use fibra_runtime::stacks::{EndedBy, Found, Layout, SavedContext, interpret};
use fibra_runtime::task::TaskState;

use crate::elf;
use crate::image::Image;

/// The most of a stack that is copied.
const WINDOW: usize = 256 * 1024;

/// The longest name, and the longest path of a source.
const TEXT: usize = 4096;

/// The most chunks of tables, slots of a chunk, and stacks of a task: memory may be anything.
const CHUNKS: usize = 1 << 20;
const SLOTS: usize = 1 << 16;
const STACKS: usize = 100;

/// A task, as it was found.
pub(crate) struct FoundTask {
    pub(crate) address: usize,
    pub(crate) id: u64,
    pub(crate) name: Option<String>,
    pub(crate) spawned_at: Option<String>,
    pub(crate) state: TaskState,
    pub(crate) waits_for: Option<Found>,
    /// Innermost first.
    pub(crate) stacks: Vec<StackCopy>,
    /// Its stacks are all there.
    pub(crate) is_complete: bool,
}

/// A copy of a stack from its innermost frame on.
pub(crate) struct StackCopy {
    pub(crate) context: SavedContext,
    bytes: Vec<u8>,
}

impl StackCopy {
    /// Returns the word at an address of the stack.
    pub(crate) fn word(&self, address: usize) -> Option<u64> {
        elf::long(&self.bytes, address.checked_sub(self.context.sp)?)
    }
}

/// The root of the tables of one copy of fibra: `Root` in `runtime/src/scheduler/note.rs`.
struct Tables<'a> {
    image: &'a Image,
    newest: usize,
    slots: usize,
    layout: Layout,
}

/// Copies all tasks, with the stacks of those that sleep or wait for a worker, and of those that run on these threads.
pub(crate) fn copy(image: &Image, roots: &[usize], threads: &[SavedContext]) -> Vec<FoundTask> {
    let mut tasks = Vec::new();
    // The stacks, by their highest addresses: the task, and how many of its stacks lie further out.
    let mut bases = BTreeMap::new();
    for tables in roots.iter().filter_map(|root| Tables::at(image, *root)) {
        for header in tables.headers() {
            let coroutines = tables.coroutines(header);
            let Some(task) = tables.task(header, &coroutines) else { continue };
            let place =
                |(outer, coroutine): (usize, &usize)| Some((tables.base(*coroutine)?, (tasks.len(), outer)));
            bases.extend(coroutines.iter().rev().enumerate().filter_map(place));
            tasks.push(task);
        }
    }
    for context in threads {
        let Some((base, (index, outer))) = bases.range(context.sp.saturating_add(1)..).next() else {
            continue;
        };
        let is_on_it = image.mapping(context.sp).is_some_and(|mapping| mapping.range.contains(&(base - 1)));
        if is_on_it && tasks[*index].state == TaskState::Running {
            tasks[*index].stacks.extend(stack(image, *context, *base));
            tasks[*index].is_complete = *outer == 0;
        }
    }
    tasks.sort_by_key(|task| task.id);
    tasks
}

fn stack(image: &Image, context: SavedContext, base: usize) -> Option<StackCopy> {
    let end = base.min(context.sp.saturating_add(WINDOW));
    Some(StackCopy { context, bytes: image.bytes(context.sp..end)? })
}

impl<'a> Tables<'a> {
    fn at(image: &'a Image, root: usize) -> Option<Self> {
        let size = 12 + size_of::<Layout>();
        let bytes = image.bytes(root..root.checked_add(size)?)?;
        let slots = elf::word(&bytes, 8).map(|slots| slots as usize).filter(|slots| *slots <= SLOTS)?;
        let words = bytes[12..].as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word));
        let layout = Layout::of(words.collect::<Vec<_>>().try_into().ok()?);
        Some(Tables { image, newest: image.word(root)?, slots, layout })
    }

    /// Returns the addresses of the headers of all started tasks.
    fn headers(&self) -> Vec<usize> {
        let (mut headers, mut chunk, mut seen) = (Vec::new(), self.newest, HashSet::new());
        while seen.len() < CHUNKS && seen.insert(chunk) {
            let size = (self.slots + 1) * size_of::<usize>();
            let Some(bytes) = chunk.checked_add(size).and_then(|end| self.image.bytes(chunk..end)) else {
                break;
            };
            let mut words = (0..).step_by(8).map_while(|at| elf::long(&bytes, at)).map(|word| word as usize);
            chunk = words.next().unwrap_or(0);
            headers.extend(words.filter(|word| word & 1 == 0));
        }
        headers
    }

    /// Returns the coroutines of a task, the innermost first.
    fn coroutines(&self, header: usize) -> Vec<usize> {
        let (mut coroutines, mut away) = (Vec::new(), self.word(header, self.layout.away));
        while let Some(big) = away.filter(|big| *big > 0 && coroutines.len() < STACKS) {
            coroutines.push(big.wrapping_add(self.layout.big_coroutine as usize));
            away = self.word(big, self.layout.big_outer);
        }
        coroutines.push(header.wrapping_add(self.layout.coroutine as usize));
        coroutines
    }

    /// Copies a task; `None` for one that has ended.
    fn task(&self, header: usize, coroutines: &[usize]) -> Option<FoundTask> {
        let saved = self.word(*coroutines.last()?, self.layout.saved)?;
        let is_asleep = self.word(header, self.layout.word)? as u32 & self.layout.mask == self.layout.asleep;
        let mut waits_for = None;
        let state = match saved {
            0 => TaskState::Running,
            1 => return None,
            _ if is_asleep => {
                let record = self.word(header, self.layout.record)?;
                waits_for =
                    interpret(record, &mut |address, into: &mut [u8]| (self.image.memory)(address, into));
                let is_pool = waits_for.as_ref().is_some_and(|found| found.ended_by == EndedBy::Pool);
                if is_pool { TaskState::Blocking } else { TaskState::Suspended }
            }
            _ => TaskState::Ready,
        };
        let stack = |coroutine: &usize| stack(self.image, self.context(*coroutine)?, self.base(*coroutine)?);
        let stacks: Vec<_> = match state {
            TaskState::Running => Vec::new(),
            _ => coroutines.iter().filter_map(stack).collect(),
        };
        let spawned_at = self.word(header, self.layout.spawned_at).and_then(|place| self.location(place));
        Some(FoundTask {
            address: header,
            id: self.word(header, self.layout.id)? as u64,
            name: self.name(header),
            spawned_at,
            state,
            waits_for,
            is_complete: stacks.len() == coroutines.len(),
            stacks,
        })
    }

    /// Returns where a coroutine goes on that does not run.
    fn context(&self, coroutine: usize) -> Option<SavedContext> {
        let saved = coroutine.wrapping_add(self.layout.saved as usize);
        let sp = self.word(saved, 0)?;
        let (pc, fp) = match self.layout.pushed {
            0 => (self.word(saved, 8)?, self.word(saved, 16)?),
            _ => (self.word(sp, 0)?, self.word(sp, 16)?),
        };
        Some(SavedContext { pc, sp: sp.checked_add(self.layout.pushed as usize)?, fp })
    }

    /// Returns the highest address of a coroutine's stack.
    fn base(&self, coroutine: usize) -> Option<usize> {
        self.word(coroutine, self.layout.base).filter(|base| *base > 0)
    }

    fn name(&self, header: usize) -> Option<String> {
        let traits = self.word(header, self.layout.traits).filter(|traits| *traits > 0)?;
        let [counts, length] = [0, 8].map(|at| self.word(traits.wrapping_add(at), self.layout.name));
        self.text(counts.filter(|counts| *counts > 0)?.checked_add(16)?, length?)
    }

    /// Reads a location. Its layout is std's: the file, then line and column.
    fn location(&self, location: usize) -> Option<String> {
        let file = self.text(self.word(location, 0)?, self.word(location, 8)?)?;
        let place = self.word(location, 16)?;
        Some(format!("{file}:{}:{}", place as u32, place >> 32))
    }

    fn text(&self, address: usize, length: usize) -> Option<String> {
        let bytes = self.image.bytes(address..address.checked_add(length.min(TEXT))?)?;
        String::from_utf8(bytes).ok()
    }

    /// Returns the word at that offset.
    fn word(&self, address: usize, offset: u32) -> Option<usize> {
        self.image.word(address.wrapping_add(offset as usize))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_chain_of_chunks_that_is_a_circle_ends() {
        let memory = |address: usize, into: &mut [u8]| {
            // The chunk at 0x1000 leads to itself, and has one task and a vacant slot.
            let words = [0x1000_u64, 0x2000, 1].map(u64::to_ne_bytes);
            into.copy_from_slice(
                words.as_flattened().get(address.checked_sub(0x1000)?..)?.get(..into.len())?,
            );
            Some(())
        };
        let image = Image { title: String::new(), memory: Arc::new(memory), mappings: Vec::new() };
        let tables =
            Tables { image: &image, newest: 0x1000, slots: 2, layout: Layout::of([0; Layout::WORDS]) };
        assert_eq!(tables.headers(), [0x2000]);
    }
}
