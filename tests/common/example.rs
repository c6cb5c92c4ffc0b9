//! The examples as programs, built when they are not.
//!
//! `cargo test` builds them beside the tests. `cargo test --test NAME` does not, and would leave none or old ones.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Those that this process has seen to.
static FRESH: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The example `name`, of the profile that this test was built with.
pub(crate) fn example(name: &str) -> Command {
    Command::new(path(name))
}

/// Where the example `name` lies, up to date.
pub(crate) fn path(name: &str) -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    let folder = test.ancestors().nth(2).expect("tests lie in a folder of the profile's");
    let path = folder.join("examples").join(name);
    let mut fresh = FRESH.lock().unwrap_or_else(PoisonError::into_inner);
    if !fresh.contains(name) {
        if modified(&path) < modified(&test) {
            build(name, folder);
        }
        fresh.insert(name.to_owned());
    }
    path
}

/// When the file was written; `None`, which is before all else, if there is no such file.
fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// Builds the example into `folder`, the profile's in some target directory. Cargo does nothing if it is not out of date.
fn build(name: &str, folder: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--example", name]);
    // What cargo tells this test of its own package. Build scripts that ask for it would run again, here and there.
    for (name, _) in env::vars_os() {
        if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|begin| name.to_string_lossy().starts_with(begin)) {
            cargo.env_remove(name);
        }
    }
    let profile = match last(folder) {
        "debug" => "dev",
        other => other,
    };
    cargo.args(["--profile", profile]);
    for (feature, is_on) in [
        ("compat-examples", cfg!(feature = "compat-examples")),
        ("store-examples", cfg!(feature = "store-examples")),
        ("tls-examples", cfg!(feature = "tls-examples")),
        ("websocket-examples", cfg!(feature = "websocket-examples")),
    ] {
        if is_on {
            cargo.args(["--features", feature]);
        }
    }
    let parent = folder.parent().expect("a profile's folder lies in a target directory");
    // With `--target` the triple stands between the two; only the directory itself has this file.
    if parent.join(".rustc_info.json").exists() {
        cargo.arg("--target-dir").arg(parent);
    } else {
        cargo.args(["--target", last(parent)]).arg("--target-dir").arg(parent.join(".."));
    }
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "the example {name} does not build: {status}");
}

fn last(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a folder with a plain name")
}
