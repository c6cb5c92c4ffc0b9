//! The parts of an ELF file that tell where its contents are in memory.

#![forbid(unsafe_code)]

/// The size of the header of a file, and of a program header.
pub(crate) const HEADER: usize = 64;
pub(crate) const PROGRAM_HEADER: usize = 56;

/// Stands for a number of program headers that the first section header has, at that offset.
pub(crate) const MANY: usize = 0xffff;
pub(crate) const COUNT: u64 = 44;

/// `e_machine` of this tool's processor.
const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

/// The header of a file of this processor.
pub(crate) struct Header {
    /// `e_type`.
    pub(crate) kind: u16,
    /// Where the program headers begin, in bytes from this one.
    pub(crate) first: u64,
    /// How many program headers there are, unless it is [`MANY`].
    pub(crate) count: usize,
    /// Where the section headers begin.
    pub(crate) sections: u64,
}

/// A program header.
pub(crate) struct ProgramHeader {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: usize,
    pub(crate) file_size: usize,
    pub(crate) size: usize,
    pub(crate) align: usize,
}

/// A note; its contents begin at the offset.
pub(crate) struct Note<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: u32,
    pub(crate) offset: usize,
    pub(crate) contents: &'a [u8],
}

impl Header {
    /// Returns `None` for what is no ELF file of 64 bits for this processor.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        // 64 bits, little-endian.
        let is_known = bytes.starts_with(b"\x7fELF\x02\x01") && half(bytes, 18)? == MACHINE;
        let count = half(bytes, 56)?.into();
        let (first, sections) = (long(bytes, 32)?, long(bytes, 40)?);
        is_known.then_some(Header { kind: half(bytes, 16)?, first, count, sections })
    }
}

impl ProgramHeader {
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let size = |at| Some(long(bytes, at)? as usize);
        Some(ProgramHeader {
            kind: word(bytes, 0)?,
            flags: word(bytes, 4)?,
            offset: long(bytes, 8)?,
            address: size(16)?,
            file_size: size(32)?,
            size: size(40)?,
            align: size(48)?,
        })
    }
}

/// Returns the notes in the contents of a segment with that alignment.
pub(crate) fn notes(bytes: &[u8], align: usize) -> impl Iterator<Item = Note<'_>> {
    let align = if align == 8 { 8 } else { 4 };
    let mut next = 0_usize;
    std::iter::from_fn(move || {
        let [name, contents] = [0, 4].map(|at| word(bytes, next + at).map(|size| size as usize));
        let begin = next + 12;
        let offset = (begin + name?).next_multiple_of(align);
        let note = Note {
            name: bytes.get(begin..begin + name?)?,
            kind: word(bytes, next + 8)?,
            offset,
            contents: bytes.get(offset..offset + contents?)?,
        };
        next = (offset + contents?).next_multiple_of(align);
        Some(note)
    })
}

pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
