//! Follows the frames of a stack by the unwind tables.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use fibra_runtime::stacks::SavedContext;
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder, UnwinderNative,
};

use crate::modules::Modules;
use crate::object::{Object, Section};

/// Walks stacks one after the other. What it has learned of the code serves the next ones.
pub struct Walker {
    modules: Arc<Modules>,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    /// Addresses that are known to be return addresses.
    known: HashSet<usize>,
}

impl Walker {
    /// How many frames of a stack there are at the most, unless a caller wants more.
    pub const MOST_FRAMES: usize = 1024;

    /// Makes a walker over the code of these modules.
    pub fn new(modules: Arc<Modules>) -> Self {
        let mut unwinder = UnwinderNative::new();
        modules.objects().iter().for_each(|object| unwinder.add_module(module(object)));
        Walker { modules, unwinder, cache: CacheNative::new(), known: HashSet::new() }
    }

    /// Returns true if these are the objects that it knows.
    pub(crate) fn knows(&self, modules: &Arc<Modules>) -> bool {
        Arc::ptr_eq(&self.modules, modules)
    }

    /// Appends the addresses of at most so many frames, innermost first. Returns true if the walk has come to the root.
    pub fn walk(
        &mut self,
        most: usize,
        from: SavedContext,
        read: &mut dyn FnMut(usize) -> Option<u64>,
        frames: &mut Vec<usize>,
    ) -> bool {
        let mut read = |address: u64| read(address as usize).ok_or(());
        let start = from.pc as u64;
        let mut steps = self.unwinder.iter_frames(start, registers(from), &mut self.cache, &mut read);
        for _ in 0..most {
            let (address, is_code) = match steps.next() {
                Ok(Some(FrameAddress::InstructionPointer(pc))) => {
                    (pc as usize, self.modules.is_code(pc as usize))
                }
                Ok(Some(FrameAddress::ReturnAddress(address))) => {
                    let address = address.get() as usize;
                    let is_known = self.known.contains(&address);
                    (
                        address,
                        is_known || self.modules.is_return_address(address) && self.known.insert(address),
                    )
                }
                Ok(None) => return true,
                Err(_) => return false,
            };
            if !is_code {
                return false;
            }
            frames.push(address);
        }
        false
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(from: SavedContext) -> UnwindRegsNative {
    UnwindRegsNative::new(from.pc as u64, from.sp as u64, from.fp as u64)
}

/// The link register is lost, but a function that has suspended has called, and keeps it on the stack.
#[cfg(target_arch = "aarch64")]
fn registers(from: SavedContext) -> UnwindRegsNative {
    UnwindRegsNative::new(0, from.sp as u64, from.fp as u64)
}

fn module(object: &Object) -> Module<Bytes> {
    let mut sections = ExplicitModuleSectionInfo::default();
    if let Some(tables) = &object.tables {
        let own = |section: &Section| {
            let start = section.address.wrapping_sub(object.base) as u64;
            Some(start..start + section.bytes.len() as u64)
        };
        sections.eh_frame_hdr_svma = own(&tables.index);
        sections.eh_frame_svma = own(&tables.frames);
        sections.eh_frame_hdr = Some(Bytes(tables.index.bytes.clone()));
        sections.eh_frame = Some(Bytes(tables.frames.bytes.clone()));
    }
    let range = object.range.start as u64..object.range.end as u64;
    Module::new(object.path.display().to_string(), range, object.base as u64, sections)
}

/// The bytes of a section, as framehop takes them.
#[derive(Default)]
struct Bytes(Cow<'static, [u8]>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
