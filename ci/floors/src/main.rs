//! Checks that no import inside a crate of fibra points upward, and that no files import each other.
//!
//! The floors of a crate stand in its `README.md`, in one block fenced as `floors`, from the top floor to the bottom:
//! `FLOOR  module [module …]  free text`, with two or more spaces between the columns. A module is a path relative to
//! `src/` without `.rs`, and covers the files below it. The longest path that fits a file decides.
//!
//! A name counts as an import of the file that defines it, however it is reached: by `use`, an inline path, an alias, a
//! glob, a macro, or a re-export. A parent that re-exports its own children does not import them. `lib.rs` may import
//! anything, and is itself out of bounds. Test code is left out. Calls of methods name no file, so they are not seen.
//!
//! Imports between modules on one floor pass, as long as no circle of files results. Calls through function pointers,
//! `dyn` and generics are no imports; the README of the runtime lists those that go up.
//!
//! `cargo run -p fibra-floors -- --list [CRATE …]` prints every import between files.

mod check;
mod names;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

/// The text of each file of a crate by its path, relative to the crate's folder.
type Files = BTreeMap<String, String>;

const CRATES: [&str; 6] = ["runtime", "sync", "io", "insight", "tools", "sim"];

fn main() -> io::Result<ExitCode> {
    let (options, mut crates): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|word| word.starts_with("--"));
    let list = options.iter().any(|option| option == "--list");
    if crates.is_empty() {
        crates = CRATES.map(String::from).to_vec();
    }
    let mut failed = false;
    for name in crates {
        let files = read(&name)?;
        let found = check::check(&files, list).unwrap_or_else(|error| vec![error]);
        for line in &found {
            println!("{}{line}", if line.starts_with(' ') { String::new() } else { format!("{name}/") });
        }
        failed |= !found.is_empty() && !list;
        if found.is_empty() {
            println!("{name}: no import points upward, and no files import each other");
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reads the README and the sources of a crate.
fn read(name: &str) -> io::Result<Files> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let mut files = Files::from([("README.md".into(), fs::read_to_string(folder.join("README.md"))?)]);
    load(&folder.join("src"), "src", &mut files)?;
    Ok(files)
}

/// Reads the sources in a folder and those below it.
fn load(folder: &Path, path: &str, files: &mut Files) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{path}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            load(&entry.path(), &path, files)?;
        } else if path.ends_with(".rs") {
            files.insert(path, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}
