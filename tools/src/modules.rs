//! The program and the libraries of an image, and the notes of those that use fibra.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::sync::Arc;

use fibra_insight::outside::{Modules, Object, Segment};
use fibra_runtime::stacks::VERSION;

use crate::elf::{self, Header, ProgramHeader};
use crate::image::{Image, Mapping, Result};

/// What is loaded in a process that uses fibra.
pub(crate) struct Loaded {
    pub(crate) modules: Arc<Modules>,
    /// Where the roots of fibra's tables are.
    pub(crate) roots: Vec<usize>,
    /// A line about each table of another layout.
    pub(crate) others: Vec<String>,
}

/// Returns the loaded code, and the tables of fibra.
pub(crate) fn of(image: &Image) -> Result<Loaded> {
    let (mut objects, mut roots, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for mapping in &image.mappings {
        if let Some((object, notes)) = object(image, mapping) {
            objects.push(object);
            for (version, root) in notes {
                match version {
                    VERSION => roots.push(root),
                    _ => others.push(format!(
                        "tables of tasks of version {version}; this tool reads version {VERSION}"
                    )),
                }
            }
        }
    }
    if roots.is_empty() {
        let title = &image.title;
        return Err(match others.first() {
            Some(other) => format!("{title} has {other}"),
            None => format!("{title} does not use fibra: it has no note of that name"),
        });
    }
    let memory = Arc::clone(&image.memory);
    let modules = Modules::of(objects, Box::new(move |address, into: &mut [u8]| memory(address, into)));
    Ok(Loaded { modules: Arc::new(modules), roots, others })
}

/// Returns the object that begins at that mapping, and its notes of fibra: the version, and where the root is.
fn object(image: &Image, mapping: &Mapping) -> Option<(Object, Vec<(u32, usize)>)> {
    let (path, 0) = mapping.file.as_ref()? else { return None };
    let start = mapping.range.start;
    let header = Header::of(&image.bytes(start..start.checked_add(elf::HEADER)?)?)?;
    let first = start.checked_add(header.first as usize)?;
    let headers = image.bytes(first..first.checked_add(header.count * elf::PROGRAM_HEADER)?)?;
    let headers: Vec<_> = headers.chunks(elf::PROGRAM_HEADER).filter_map(ProgramHeader::of).collect();
    let own = headers.iter().find(|header| header.kind == libc::PT_LOAD && header.offset == 0)?;
    let base = start.wrapping_sub(own.address);
    let place = |header: &ProgramHeader| {
        let start = base.wrapping_add(header.address);
        start..start.saturating_add(header.size)
    };
    // A file that the program maps only to read it is no code.
    let code =
        headers.iter().find(|header| header.kind == libc::PT_LOAD && header.flags & libc::PF_X != 0)?;
    let code_start = place(code).start;
    let mapped = image.mapping(code_start)?;
    let (code_path, offset) = mapped.file.as_ref()?;
    if code_path != path || offset.wrapping_add((code_start - mapped.range.start) as u64) != code.offset {
        return None;
    }
    let segment =
        |header: &ProgramHeader| Segment { kind: header.kind, flags: header.flags, range: place(header) };
    let segments: Vec<_> = headers.iter().map(segment).collect();
    let bytes = |range| image.bytes(range).map(Cow::Owned);
    let object = Object::new(path.clone(), base, &segments, bytes);
    let mut found = Vec::new();
    for header in headers.iter().filter(|header| header.kind == libc::PT_NOTE) {
        let Some(bytes) = image.bytes(place(header)) else { continue };
        let own = elf::notes(&bytes, header.align).filter(|note| note.name == b"fibra\0");
        found.extend(own.filter_map(|note| {
            let distance = elf::long(note.contents, 0)? as usize;
            Some((note.kind, place(header).start.wrapping_add(note.offset).wrapping_add(distance)))
        }));
    }
    Some((object, found))
}
