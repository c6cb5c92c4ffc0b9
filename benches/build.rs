//! Makes modules of the example servers, so that `load` carries them and needs no second build.
//!
//! The `main` of an example is private to its file, as it should be. Each copy gets a door at its end, `linked_main`,
//! which is the only change; `src/bin/load.rs` includes the list of modules that is written here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The examples of the root package that are servers.
const SERVERS: [&str; 5] = ["echo_threads", "echo_callbacks", "echo_server", "udp_echo", "http_server"];

/// What is added to each copy.
const DOOR: &str = "
/// Runs `main` and turns what it returns into an exit code.
pub(crate) fn linked_main() -> std::process::ExitCode {
    std::process::Termination::report(main())
}
";

fn main() {
    let examples = folder("CARGO_MANIFEST_DIR").join("../examples");
    let out = folder("OUT_DIR");
    println!("cargo::rerun-if-changed=build.rs");
    let modules = SERVERS.iter().fold(String::new(), |mut modules, name| {
        let copy = copy_with_door(&examples, &out, name);
        let _ = writeln!(modules, "#[path = {copy:?}]\nmod {name};");
        modules
    });
    write(&out.join("servers.rs"), &modules);
}

fn folder(variable: &str) -> PathBuf {
    PathBuf::from(env::var_os(variable).unwrap_or_else(|| panic!("cargo sets {variable}")))
}

fn copy_with_door(examples: &Path, out: &Path, name: &str) -> PathBuf {
    let source = examples.join(name).with_extension("rs");
    println!("cargo::rerun-if-changed={}", source.display());
    let text = fs::read_to_string(&source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    let copy = out.join(name).with_extension("rs");
    write(&copy, &(text + DOOR));
    copy
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
