#![forbid(unsafe_code)]

use std::path::Path;
use std::{env, fs, process};

use super::{Result, mapped_files, open};
use crate::elf;
use crate::image::Image;

/// Where the core has memory, and what it has there.
const ADDRESS: usize = 0x10000;
const CONTENTS: &[u8] = b"contents";

/// Makes a core file whose number of program headers is in its first section header.
fn core(count: u32) -> Vec<u8> {
    let own = fs::read(env::current_exe().expect("the path of the test binary")).expect("it");
    let mut core = own[..elf::HEADER].to_vec();
    let set = |core: &mut Vec<u8>, at: usize, bytes: &[u8]| {
        core.resize(core.len().max(at + bytes.len()), 0);
        core[at..at + bytes.len()].copy_from_slice(bytes);
    };
    set(&mut core, 16, &super::CORE.to_ne_bytes());
    set(&mut core, 32, &64_u64.to_ne_bytes());
    set(&mut core, 40, &120_u64.to_ne_bytes());
    set(&mut core, 56, &0xffff_u16.to_ne_bytes());
    set(&mut core, 64, &libc::PT_LOAD.to_ne_bytes());
    for (at, word) in [(72, 184), (80, ADDRESS as u64), (96, 8), (104, 8)] {
        set(&mut core, at, &word.to_ne_bytes());
    }
    set(&mut core, 120 + 44, &count.to_ne_bytes());
    set(&mut core, 184, CONTENTS);
    core
}

fn opened(name: &str, core: &[u8]) -> Result<Image> {
    let path = env::temp_dir().join(format!("fibra-core-{name}-{}", process::id()));
    fs::write(&path, core).expect("it is written");
    let opened = open(Path::new(&path), None);
    fs::remove_file(&path).expect("it is there");
    opened.map(|(image, _)| image)
}

#[test]
fn the_number_of_very_many_program_headers_is_in_a_section_header() {
    let image = opened("many", &core(1)).expect("a core");
    assert_eq!(image.bytes(ADDRESS..ADDRESS + 8).as_deref(), Some(CONTENTS));
    assert!(image.bytes(ADDRESS..ADDRESS + 9).is_none());
    let error = opened("too-many", &core(u32::MAX)).err().expect("a refusal");
    assert!(error.ends_with(" is truncated"), "{error}");
}

#[test]
fn a_number_of_mapped_files_may_be_anything() {
    for count in [1, u64::MAX / 24, u64::MAX] {
        assert!(
            mapped_files(&[count, 1].map(u64::to_ne_bytes).concat()).is_none_or(|files| files.is_empty())
        );
    }
}
