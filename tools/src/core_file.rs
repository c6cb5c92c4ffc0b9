//! A process that has died, by its core file and the files that it had mapped.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fibra_runtime::stacks::SavedContext;

use crate::elf::{self, Header, ProgramHeader};
use crate::image::{self, Image, Mapping, PAGE, Result};

/// `e_type` of a core file.
const CORE: u16 = 4;

/// The kinds of notes: the registers of a thread, what the kernel told the program, and the files that were mapped.
const THREAD: u32 = 1;
const AUXILIARY: u32 = 6;
const FILES: u32 = 0x4649_4c45;

/// Where the registers begin in the note of a thread, in words.
const REGISTERS: usize = 14;

/// The entry of what the kernel told the program that has the address of its program headers.
const PROGRAM: u64 = 3;

/// Some memory, and where in which file it is.
struct Piece {
    range: Range<usize>,
    file: Arc<File>,
    offset: u64,
}

/// Opens a core file. Its program is read from `exe`, if that is given, and else from where it was.
///
/// Returns the memory, and where the threads were.
///
/// # Errors
/// The file cannot be read, is no core file of this kind of processor, or is truncated; or the program is not the one that
/// has left the core.
pub(crate) fn open(path: &Path, exe: Option<&Path>) -> Result<(Image, Vec<SavedContext>)> {
    let title = path.display().to_string();
    let failed = |error| format!("{title}: {error}");
    let file = Arc::new(File::open(path).map_err(failed)?);
    let length = file.metadata().map_err(failed)?.len();
    let bytes = |offset: u64, len: usize| {
        // Refused here, since a length that was read from a file may be anything.
        let is_there = offset.checked_add(len as u64).is_some_and(|end| end <= length);
        let mut bytes = vec![0; if is_there { len } else { 0 }];
        file.read_exact_at(&mut bytes, offset).map_err(failed)?;
        if is_there { Ok(bytes) } else { Err(format!("{title} is truncated")) }
    };
    let head = bytes(0, elf::HEADER.min(length as usize))?;
    let Some(header) = Header::of(&head) else {
        return Err(format!("{title} is no ELF file of this kind of processor"));
    };
    if header.kind != CORE {
        return Err(format!("{title} is no core file"));
    }
    let count = match header.count {
        elf::MANY => bytes(header.sections.saturating_add(elf::COUNT), 4)
            .map(|count| elf::word(&count, 0).map_or(0, |count| count as usize))?,
        count => count,
    };
    let headers = bytes(header.first, count * elf::PROGRAM_HEADER)?;
    let headers: Vec<_> = headers.chunks(elf::PROGRAM_HEADER).filter_map(ProgramHeader::of).collect();
    let missing =
        |header: &ProgramHeader| header.offset.saturating_add(header.file_size as u64).saturating_sub(length);
    if let Some(missing @ 1..) = headers.iter().map(missing).max() {
        return Err(format!("{title} is truncated: {missing} bytes are missing"));
    }
    let mut notes = Notes::default();
    for header in headers.iter().filter(|header| header.kind == libc::PT_NOTE) {
        notes.add(&bytes(header.offset, header.file_size)?, header.align);
    }
    let Notes { threads, mut files, program } = notes;
    let program = files.iter().find(|(range, ..)| range.contains(&program)).map(|(_, path, _)| path.clone());
    if let (Some(program), Some(exe)) = (&program, exe) {
        files.iter_mut().filter(|(_, path, _)| path == program).for_each(|(_, path, _)| *path = exe.into());
    }
    let place = |start: usize, size| start..start.saturating_add(size);
    let loaded = || headers.iter().filter(|header| header.kind == libc::PT_LOAD);
    let mut pieces: Vec<_> = loaded()
        .map(|header| (place(header.address, header.file_size), header.offset))
        .map(|(range, offset)| Piece { range, file: Arc::clone(&file), offset })
        .collect();
    pieces.sort_by_key(|piece| piece.range.start);
    // Where the core file has nothing of a mapped file, there may be no header either.
    let mapping = |(range, path, offset): &MappedFile| Mapping {
        range: range.clone(),
        file: Some((path.clone(), *offset)),
    };
    let mut mappings: Vec<_> = files.iter().map(mapping).collect();
    for header in loaded().filter(|header| files.iter().all(|(range, ..)| range.start != header.address)) {
        mappings.push(Mapping { range: place(header.address, header.size), file: None });
    }
    mappings.sort_by_key(|mapping| mapping.range.start);
    // What the program may have written to is not as in its file.
    files.retain(|(range, ..)| {
        !loaded().any(|header| header.address == range.start && header.flags & libc::PF_W != 0)
    });
    let of_files = open_files(&pieces, &files, &title, exe)?;
    let memory = move |address, into: &mut [u8]| copy(&[&pieces, &of_files], address, into);
    Ok((Image { title, memory: image::by_pages(Arc::new(memory)), mappings }, threads))
}

/// What the notes of a core file say.
#[derive(Default)]
struct Notes {
    threads: Vec<SavedContext>,
    files: Vec<MappedFile>,
    /// The address of the program headers of the program.
    program: usize,
}

/// Where it is in memory, its path, and where that part begins in it.
type MappedFile = (Range<usize>, PathBuf, u64);

impl Notes {
    fn add(&mut self, notes: &[u8], align: usize) {
        for note in elf::notes(notes, align).filter(|note| note.name == b"CORE\0") {
            let words = (0..).step_by(8).map_while(|at| elf::long(note.contents, at));
            match note.kind {
                THREAD => self.threads.extend(image::context(&words.skip(REGISTERS).collect::<Vec<_>>())),
                FILES => self.files = mapped_files(note.contents).unwrap_or_default(),
                AUXILIARY => {
                    let words: Vec<_> = words.collect();
                    let mut entries = words.as_chunks().0.iter();
                    self.program =
                        entries.find(|[kind, _]| *kind == PROGRAM).map_or(0, |[_, at]| *at as usize);
                }
                _ => {}
            }
        }
    }
}

/// Opens the files that were mapped, as far as they are there. The core file may have all that is needed of the others.
///
/// Returns their pieces by address.
fn open_files(dumped: &[Piece], files: &[MappedFile], title: &str, exe: Option<&Path>) -> Result<Vec<Piece>> {
    let (mut opened, mut pieces) = (HashMap::new(), Vec::new());
    for (range, path, offset) in files {
        match opened.entry(path).or_insert_with(|| regular(path).map(Arc::new)) {
            Ok(file) if *offset == 0 && differs(dumped, range.start, file) => {
                return Err(format!("{title} is the core of another program than {}", path.display()));
            }
            Ok(file) => pieces.push(Piece { range: range.clone(), file: Arc::clone(file), offset: *offset }),
            Err(error) if exe == Some(path) => return Err(format!("{}: {error}", path.display())),
            Err(_) => {}
        }
    }
    pieces.sort_by_key(|piece| piece.range.start);
    Ok(pieces)
}

/// Opens a file unless it is a device or a pipe, since that may block.
fn regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() { File::open(path) } else { Err(io::Error::other("is no file")) }
}

/// Copies memory, by the first of these sets of pieces that has it. A core file may have some pages of a mapped file only.
fn copy(sets: &[&[Piece]], mut address: usize, mut into: &mut [u8]) -> Option<()> {
    while !into.is_empty() {
        let piece = sets.iter().find_map(|pieces| {
            let after = pieces.partition_point(|piece| piece.range.start <= address);
            pieces.get(after.checked_sub(1)?).filter(|piece| piece.range.contains(&address))
        })?;
        let len = into.len().min(PAGE - address % PAGE).min(piece.range.end - address);
        let (now, rest) = into.split_at_mut(len);
        let offset = piece.offset.checked_add((address - piece.range.start) as u64)?;
        piece.file.read_exact_at(now, offset).ok()?;
        (address, into) = (address + len, rest);
    }
    Some(())
}

/// Returns true if the core file has the first page of a program or a library, and the file begins otherwise. Data may have
/// been changed in memory.
fn differs(pieces: &[Piece], start: usize, file: &File) -> bool {
    let (mut dumped, mut there) = ([0; PAGE], [0; PAGE]);
    copy(&[pieces], start, &mut dumped).is_some()
        && dumped.starts_with(b"\x7fELF")
        && (file.read_exact_at(&mut there, 0).is_err() || dumped != there)
}

/// Reads the note of the mapped files: their number, the unit of the offsets, a start, an end and an offset for each, and then
/// the paths.
fn mapped_files(contents: &[u8]) -> Option<Vec<MappedFile>> {
    let long = |index: usize| elf::long(contents, index * 8);
    let count = long(0)? as usize;
    let mut paths = contents.get(count.checked_mul(24)?.checked_add(16)?..)?.split(|byte| *byte == 0);
    (0..count)
        .map(|index| {
            let [start, end, offset] = [2, 3, 4].map(|at| long(index * 3 + at));
            let path = String::from_utf8_lossy(paths.next()?).into_owned();
            Some((start? as usize..end? as usize, path.into(), offset?.checked_mul(long(1)?)?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
