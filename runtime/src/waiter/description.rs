//! What a sleeper waits for, as data that other threads, debuggers and readers of core files use.
//!
//! ```text
//!   Header::next ──▶ WaitRecord ──▶ WaitDescription    of a task whose wait word says ASLEEP
//!                      └───────▶ object                a mutex, a socket, a task …
//! ```
//!
//! The record lies in the frame of the sleep, or is a constant. A sleep costs two plain stores.
//! `next` is free for it: a task that runs is in no queue. A task that was queued since has lost
//! its record, so a reader looks at the wait word before and after, and checks the description.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::ptr;

/// Marks a description in memory.
const MAGIC: u64 = u64::from_ne_bytes(*b"fibrawt1");

/// Says that there is no such field.
const NONE: u64 = u64::MAX;

/// Which party may end a wait, beside its deadline and a cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum EndedBy {
    /// A task or a thread, through the object.
    Task,
    /// Time alone.
    Clock,
    /// The system, or a call on the second pool.
    Outside,
    /// The end of a closure on the blocking pool.
    Pool,
}

/// For which end of a transfer a task waits at a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Direction {
    /// Until there is something to read, or to accept.
    Read = 1,
    /// Until there is room to write, or a connection is made.
    Write,
}

impl Direction {
    /// Returns what the descriptor is to be: `readable` or `writable`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "readable",
            Direction::Write => "writable",
        }
    }
}

/// Describes all waits of one kind: their name, and where the object keeps what a report tells.
///
/// | word | holds |
/// | --- | --- |
/// | 0 | the magic number |
/// | 1, 2 | the name, padded with zeros |
/// | 3 | which party may end the wait: [`EndedBy`] |
/// | 4, 5 | the offset of the owner, 8 bytes; by how many bits its number is shifted, 64 for an address |
/// | 6 | the offset of the descriptor, 4 bytes |
/// | 7 | the offset of the pointer to the first arm, from the record |
/// | 8 | what the descriptor is to be: [`Direction`], or 0 |
///
/// Offsets are in bytes from the object. An offset of all ones says that there is none. The address
/// of an owner is that of the waiter in its header; its low three bits are flags.
#[derive(Debug)]
#[repr(C)]
pub struct WaitDescription([u64; 9]);

/// The shift of an owner that is an address.
const IS_ADDRESS: u32 = 64;

impl WaitDescription {
    /// Describes waits that tasks and threads end, for an object that tells nothing of itself.
    pub const fn new(name: &str) -> Self {
        let (name, mut bytes, mut index) = (name.as_bytes(), [[0; 8]; 2], 0);
        while index < name.len() {
            bytes[index / 8][index % 8] = name[index];
            index += 1;
        }
        let [first, second] = [u64::from_ne_bytes(bytes[0]), u64::from_ne_bytes(bytes[1])];
        WaitDescription([MAGIC, first, second, EndedBy::Task as u64, NONE, 0, NONE, NONE, 0])
    }

    /// Says which party may end the waits.
    pub const fn ended_by(mut self, ended_by: EndedBy) -> Self {
        self.0[3] = ended_by as u64;
        self
    }

    /// Returns the name of the waits.
    pub fn name(&self) -> String {
        text_of([self.0[1], self.0[2]])
    }

    /// Returns true if the system or a pool may end the waits.
    pub(crate) fn is_ended_by_outside(&self) -> bool {
        self.0[3] >= EndedBy::Outside as u64
    }

    /// Adds the offset of the owner's address.
    pub const fn owner_address(self, offset: isize) -> Self {
        self.owner_number(offset, IS_ADDRESS)
    }

    /// Adds the offset of the owner's number, and by how many bits it is shifted there.
    pub const fn owner_number(mut self, offset: isize, shift: u32) -> Self {
        (self.0[4], self.0[5]) = (offset as u64, shift as u64);
        self
    }

    /// Adds the offset of the descriptor, and what it is to be.
    pub const fn descriptor(mut self, offset: isize, direction: Direction) -> Self {
        (self.0[6], self.0[8]) = (offset as u64, direction as u64);
        self
    }

    /// Adds the offset of the pointer to the first arm, from the record.
    pub(crate) const fn arms(mut self, offset: isize) -> Self {
        self.0[7] = offset as u64;
        self
    }
}

/// What one sleep waits for. `P` is a pointer to the object.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct WaitRecord<P = *const ()> {
    description: &'static WaitDescription,
    object: P,
}

impl WaitRecord {
    /// Stands for a wait that nothing is known of.
    pub const UNKNOWN: &'static WaitRecord =
        &WaitRecord::new(&WaitDescription::new("unknown").ended_by(EndedBy::Outside), ptr::null());
}

/// The record of a task that sleeps for a closure on the blocking pool. Its address identifies it.
pub(crate) static ON_POOL: WaitRecord<usize> =
    WaitRecord::new(&WaitDescription::new("unblock").ended_by(EndedBy::Pool), 0);

impl<P> WaitRecord<P> {
    /// Makes a record.
    #[inline(always)]
    pub const fn new(description: &'static WaitDescription, object: P) -> Self {
        WaitRecord { description, object }
    }

    /// Returns the object.
    #[inline(always)]
    pub fn object(&self) -> &P {
        &self.object
    }

    pub(crate) fn description(&self) -> &'static WaitDescription {
        self.description
    }

    /// Returns the address that a task keeps while it sleeps.
    #[inline(always)]
    pub fn address(&self) -> *const WaitRecord {
        const { assert!(size_of::<P>() == size_of::<usize>()) };
        ptr::from_ref(self).cast()
    }
}

/// What a task waits for, as a reader found it in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The name of the wait.
    pub name: String,
    /// Which party may end it.
    pub ended_by: EndedBy,
    /// The address of the object.
    pub object: usize,
    /// The owner, if the object has one.
    pub owner: Option<OwnerMark>,
    /// The file descriptor.
    pub descriptor: Option<i32>,
    /// What it is to be.
    pub direction: Option<Direction>,
    /// The arms of a select.
    pub arms: Vec<Found>,
}

/// Tells the owner of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OwnerMark {
    /// Its number; see [`owner`](crate::wait::owner).
    Number(u64),
    /// The address of its waiter.
    Address(usize),
}

/// The most arms that are read: the memory may change, and may be anything.
const ARMS: usize = 1000;

/// Reads a record and what it leads to. `read` copies memory, and fails where there is none.
///
/// Returns `None` unless the record leads to a description.
pub fn interpret(record: usize, read: &mut impl FnMut(usize, &mut [u8]) -> Option<()>) -> Option<Found> {
    let (mut found, arms) = interpret_one(record, read)?;
    let mut arm = arms.and_then(|at| pointers(at, read));
    for _ in 0..ARMS {
        let Some([at]) = arm.filter(|[at]| *at != 0) else { break };
        // It begins with the address of the next one and its record. It is no select itself.
        found.arms.extend(interpret_one(at.checked_add(size_of::<usize>())?, read).map(|(arm, _)| arm));
        arm = pointers(at, read);
    }
    Some(found)
}

/// Reads a record, but not its arms. Returns where the pointer to the first one is.
fn interpret_one(
    record: usize,
    read: &mut impl FnMut(usize, &mut [u8]) -> Option<()>,
) -> Option<(Found, Option<usize>)> {
    let [description, object] = pointers(record, read)?;
    let [MAGIC, first, second, ended_by, owner, shift, descriptor, arms, direction] =
        words(description, read)?
    else {
        return None;
    };
    let place = |offset: u64, base: usize| (offset != NONE).then(|| base.wrapping_add(offset as usize));
    let owner = place(owner, object).and_then(|at| words(at, read)).and_then(|[word]| match shift as u32 {
        IS_ADDRESS => {
            Some(OwnerMark::Address(word as usize & !7)).filter(|owner| *owner != OwnerMark::Address(0))
        }
        shift => word.checked_shr(shift).filter(|number| *number != 0).map(OwnerMark::Number),
    });
    let mut bytes = [0; 4];
    let descriptor = place(descriptor, object)
        .and_then(|at| read(at, &mut bytes))
        .map(|()| i32::from_ne_bytes(bytes))
        .filter(|descriptor| *descriptor >= 0);
    let found = Found {
        name: text_of([first, second]),
        ended_by: match ended_by {
            0 => EndedBy::Task,
            1 => EndedBy::Clock,
            3 => EndedBy::Pool,
            _ => EndedBy::Outside,
        },
        object,
        owner,
        descriptor,
        direction: match direction {
            1 => Some(Direction::Read),
            2 => Some(Direction::Write),
            _ => None,
        },
        arms: Vec::new(),
    };
    Some((found, place(arms, record)))
}

/// Returns true if these bytes are a description. Descriptions are constants.
pub(crate) fn is_description(bytes: &[u8]) -> bool {
    bytes.len() == size_of::<WaitDescription>() && bytes.starts_with(&MAGIC.to_ne_bytes())
}

/// Returns true if these bytes are a record with one of the known descriptions.
pub(crate) fn is_record(bytes: &[u8], known: &HashMap<usize, Vec<u8>>) -> bool {
    let description = bytes.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes));
    let known = description.and_then(|description| known.get(&description));
    bytes.len() == size_of::<WaitRecord>() && known.is_some_and(|known| is_description(known))
}

/// Returns the text in two words, which is padded with zeros.
fn text_of(words: [u64; 2]) -> String {
    let bytes = words.map(u64::to_ne_bytes);
    String::from_utf8_lossy(bytes.as_flattened()).trim_end_matches('\0').to_owned()
}

/// Reads words of 8 bytes.
fn words<const N: usize>(
    address: usize,
    read: &mut impl FnMut(usize, &mut [u8]) -> Option<()>,
) -> Option<[u64; N]> {
    let mut words = [[0; 8]; N];
    read(address, words.as_flattened_mut())?;
    Some(words.map(u64::from_ne_bytes))
}

/// Reads pointers.
fn pointers<const N: usize>(
    address: usize,
    read: &mut impl FnMut(usize, &mut [u8]) -> Option<()>,
) -> Option<[usize; N]> {
    let mut pointers = [[0; size_of::<usize>()]; N];
    read(address, pointers.as_flattened_mut())?;
    Some(pointers.map(usize::from_ne_bytes))
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::{ARMS, Found, WaitDescription, interpret};

    /// Interprets the record at 16 in a memory of these words and a description, which begins at 8.
    fn interpreted(words: &[u64], description: &WaitDescription) -> Found {
        let words = [words, &description.0].concat();
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut read = |address: usize, into: &mut [u8]| {
            into.copy_from_slice(bytes.get(address.checked_sub(8)?..)?.get(..into.len())?);
            Some(())
        };
        interpret(16, &mut read).expect("it leads to a description")
    }

    #[test]
    fn a_select_that_is_its_own_arm_ends() {
        // The link at 8 leads to itself, and its record is that of the select.
        let found = interpreted(&[8, 32, 0], &WaitDescription::new("select").arms(-8));
        assert_eq!(found.arms.len(), ARMS);
        assert!(found.arms.iter().all(|arm| arm.arms.is_empty()));
    }

    #[test]
    fn a_circle_of_arms_without_records_ends() {
        // The word at 8 leads to the link at 32, that one to itself, and its record nowhere.
        let found = interpreted(&[32, 56, 0, 32, 0, 0], &WaitDescription::new("select").arms(-8));
        assert_eq!(found.arms, []);
    }

    #[test]
    fn a_number_that_is_shifted_too_far_is_no_owner() {
        let mutex = |shift| WaitDescription::new("mutex").owner_number(0, shift);
        assert!(interpreted(&[6, 32, 8], &mutex(1)).owner.is_some());
        assert_eq!(interpreted(&[6, 32, 8], &mutex(65)).owner, None);
    }
}
