//! A loaded object: the program, a library, or the kernel's own.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

/// The kinds of pointers in a `.eh_frame_hdr` that linkers write: relative to their own place, 4 bytes with a sign.
const RELATIVE_4_BYTES: u8 = 0x1b;

/// The program, a library, or the kernel's own object.
pub struct Object {
    /// The file; that of the program leads to it even if it was deleted or replaced.
    pub path: PathBuf,
    /// The address of the object less the one that it states for itself.
    pub base: usize,
    /// From its first byte in memory to its last.
    pub range: Range<usize>,
    /// Its parts that may be run.
    pub code: Vec<Range<usize>>,
    /// How its frames are found; `None` if it does not say.
    pub tables: Option<UnwindTables>,
}

/// The tables by which frames are found.
pub struct UnwindTables {
    /// `.eh_frame_hdr`.
    pub index: Section,
    /// `.eh_frame`, and what follows it in its segment.
    pub frames: Section,
}

/// A part of an object in memory.
#[derive(Clone)]
pub struct Section {
    /// Where it begins.
    pub address: usize,
    /// What is there.
    pub bytes: Cow<'static, [u8]>,
}

/// A program header: what a part of an object is for, and where it is in memory.
pub struct Segment {
    /// `p_type`.
    pub kind: u32,
    /// `p_flags`.
    pub flags: u32,
    /// From its first byte to its last.
    pub range: Range<usize>,
}

impl Object {
    /// Makes an object of its segments. `bytes` returns the contents of a range of a segment that is loaded.
    pub fn new(
        path: PathBuf,
        base: usize,
        segments: &[Segment],
        bytes: impl Fn(Range<usize>) -> Option<Cow<'static, [u8]>>,
    ) -> Self {
        let loaded = || segments.iter().filter(|segment| segment.kind == libc::PT_LOAD);
        let place = |segment: &Segment| segment.range.clone();
        let code = loaded().filter(|segment| segment.flags & libc::PF_X != 0).map(place).collect();
        let range =
            loaded().map(place).reduce(|whole, part| whole.start.min(part.start)..whole.end.max(part.end));
        let index = segments.iter().find(|segment| segment.kind == libc::PT_GNU_EH_FRAME).map(place);
        let loaded_at = |address: usize| loaded().map(place).find(|segment| segment.contains(&address));
        let section = |range: Range<usize>| Some(Section { address: range.start, bytes: bytes(range)? });
        let is_loaded = |index: &Range<usize>| loaded_at(index.start).is_some_and(|it| index.end <= it.end);
        let tables = index.filter(is_loaded).and_then(|index| {
            let index = section(index)?;
            let [1, RELATIVE_4_BYTES, _, _, offset @ ..] = index.bytes.first_chunk::<8>()? else {
                return None;
            };
            // Relative to the pointer itself.
            let frames =
                index.address.wrapping_add(4).wrapping_add_signed(i32::from_ne_bytes(*offset) as isize);
            let end = loaded_at(frames)?.end;
            Some(UnwindTables { index, frames: section(frames..end)? })
        });
        Object { path, base, range: range.unwrap_or_default(), code, tables }
    }
}
