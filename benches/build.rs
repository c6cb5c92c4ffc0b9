//! Makes modules of the example servers, so that `load` carries them and needs no second build.
//!
//! The `main` of an example is private to its file, as it should be. Each copy gets an adapter at its end, `linked_main`,
//! which is the only change; `src/bin/load.rs` includes the list of modules that is written here.
//!
//! And notes the compiler and the versions of the rivals, which `compare` tells.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The examples of the root package that are servers.
const SERVERS: [&str; 5] = ["echo_threads", "echo_callbacks", "echo_server", "udp_echo", "http_server"];

/// The crates whose versions the comparisons tell.
const RIVALS: [&str; 13] = [
    "may",
    "tokio",
    "smol",
    "async-executor",
    "parking_lot",
    "crossbeam-channel",
    "flume",
    "rayon",
    "event-listener",
    "hyper",
    "may_minihttp",
    "corosensei",
    "generator",
];

/// What is added to each copy.
const ADAPTER: &str = "
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
        let copy = copy_with_adapter(&examples, &out, name);
        let _ = writeln!(modules, "#[path = {copy:?}]\nmod {name};");
        modules
    });
    write(&out.join("servers.rs"), &modules);
    println!("cargo::rustc-env=FIBRA_RUSTC={}", compiler());
    println!("cargo::rustc-env=FIBRA_RIVALS={}", rivals().join(","));
}

/// The compiler's name and version, as it calls itself.
fn compiler() -> String {
    let compiler = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let output = Command::new(compiler).arg("--version").output().expect("the compiler runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The rivals with their versions, from the lock file.
fn rivals() -> Vec<String> {
    let lock = folder("CARGO_MANIFEST_DIR").join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock).unwrap_or_default();
    let packages: Vec<_> = text.split("[[package]]").collect();
    let ours = packages.iter().find(|package| package.contains("name = \"fibra-bench\"")).unwrap_or(&"");
    let version = |name: &str| {
        let head = format!("\nname = \"{name}\"\nversion = \"");
        let (_, rest) = packages.iter().find_map(|package| package.split_once(&head))?;
        rest.split('"').next()
    };
    // A dependency of which there are several versions has its own beside its name.
    let dependency = |name: &&str| {
        let of_several = format!("\"{name} ");
        let own = ours.split_once(&of_several).and_then(|(_, rest)| rest.split(['"', ' ']).next());
        Some(format!("{name} {}", own.or_else(|| version(name))?))
    };
    RIVALS.iter().filter_map(dependency).collect()
}

fn folder(variable: &str) -> PathBuf {
    PathBuf::from(env::var_os(variable).unwrap_or_else(|| panic!("cargo sets {variable}")))
}

fn copy_with_adapter(examples: &Path, out: &Path, name: &str) -> PathBuf {
    let source = examples.join(name).with_extension("rs");
    println!("cargo::rerun-if-changed={}", source.display());
    let text = fs::read_to_string(&source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    let copy = out.join(name).with_extension("rs");
    write(&copy, &(text + ADAPTER));
    copy
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
