//! The loaded code: which object an address lies in, and whether it can be a return address.

#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};

use fibra_runtime::stacks;

use crate::object::Object;
use crate::sys::{self, Changes};

/// The longest instruction that calls, in bytes, rounded up to a word.
const CALL: usize = 8;

/// Copies memory of the process that the objects are loaded in. Fails where there is none.
pub type Read = dyn Fn(usize, &mut [u8]) -> Option<()> + Send + Sync;

/// The objects that were loaded at one time.
pub struct Modules {
    changes: Changes,
    /// By address.
    objects: Vec<Object>,
    read: Box<Read>,
}

impl Modules {
    /// Returns the objects that are loaded in this process now.
    pub fn loaded() -> Arc<Modules> {
        static LATEST: Mutex<Option<Arc<Modules>>> = Mutex::new(None);

        let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some(modules) if modules.changes == sys::changes() => Arc::clone(modules),
            _ => Arc::clone(latest.insert(Arc::new(Modules::read()))),
        }
    }

    fn read() -> Self {
        let (changes, objects) = sys::objects();
        Modules { changes, ..Modules::of(objects, Box::new(stacks::read)) }
    }

    /// Makes modules of the objects of any process.
    pub fn of(mut objects: Vec<Object>, read: Box<Read>) -> Self {
        objects.sort_by_key(|object| object.range.start);
        Modules { changes: Changes::default(), objects, read }
    }

    pub(crate) fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns the object that covers the address.
    pub(crate) fn at(&self, address: usize) -> Option<&Object> {
        let after = self.objects.partition_point(|object| object.range.start <= address);
        let object = self.objects.get(after.checked_sub(1)?)?;
        object.range.contains(&address).then_some(object)
    }

    /// Returns true if the address lies in code.
    pub(crate) fn is_code(&self, address: usize) -> bool {
        self.at(address).is_some_and(|object| object.code.iter().any(|code| code.contains(&address)))
    }

    /// Returns true if the address lies in code, after an instruction that calls.
    pub(crate) fn is_return_address(&self, address: usize) -> bool {
        let mut before = [0; CALL];
        // The call may be the last instruction of the code. Copied, since the object may be unloaded at any time.
        self.is_code(address.wrapping_sub(1))
            && (self.read)(address.wrapping_sub(CALL), &mut before).is_some()
            && ends_with_call(&before)
    }
}

/// Returns true if the last of these bytes are an instruction that calls: `call rel32`, or one form of `call r/m64`.
#[cfg(target_arch = "x86_64")]
fn ends_with_call(code: &[u8; CALL]) -> bool {
    code[CALL - 5] == 0xe8 || (2..=7).any(|length| indirect_call(&code[CALL - length..]) == Some(length))
}

/// Returns the length of the indirect call that these bytes begin with.
#[cfg(target_arch = "x86_64")]
fn indirect_call(code: &[u8]) -> Option<usize> {
    let [0xff, operand, rest @ ..] = code else { return None };
    let (mode, kind, register) = (operand >> 6, operand >> 3 & 7, operand & 7);
    if kind != 2 {
        return None;
    }
    let index = usize::from(mode != 3 && register == 4);
    let absolute = mode == 0 && (register == 5 || index == 1 && rest.first()? & 7 == 5);
    let displacement = match mode {
        _ if absolute => 4,
        0 | 3 => 0,
        1 => 1,
        _ => 4,
    };
    Some(2 + index + displacement)
}

/// Returns true if the last instruction calls: `bl`, `blr`, or `blr` with authentication.
#[cfg(target_arch = "aarch64")]
fn ends_with_call(code: &[u8; CALL]) -> bool {
    let instruction = u32::from_le_bytes(*code.last_chunk().expect("eight bytes"));
    instruction & 0xfc00_0000 == 0x9400_0000
        || instruction & 0xffff_fc1f == 0xd63f_0000
        || instruction & 0xfeff_f800 == 0xd63f_0800
}

#[cfg(test)]
mod tests;
