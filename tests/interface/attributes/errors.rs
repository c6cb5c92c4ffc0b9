//! Errors of the attributes: what they say, and where.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the macros as they were built last.
fn macros() -> PathBuf {
    let exe = std::env::current_exe().expect("the path of the test binary");
    let folder = fs::read_dir(exe.parent().expect("a folder")).expect("it is read");
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_library = |path: &PathBuf| {
        let name = name(path);
        name.starts_with(&format!("{DLL_PREFIX}fibra_macros-")) && name.ends_with(DLL_SUFFIX)
    };
    let libraries = folder.filter_map(|entry| Some(entry.ok()?.path())).filter(is_library);
    let built = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    libraries.max_by_key(built).expect("the macros were built")
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interface/attributes/wrong.rs");
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=short"]);
    compiler.arg("-o").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.rmeta"));
    compiler.arg("--extern").arg(format!("fibra={}", macros().display())).arg(&source);
    let output = compiler.output().expect("the compiler runs");
    let said = String::from_utf8(output.stderr).unwrap();
    let text = fs::read_to_string(source).unwrap();
    let mut expected = 0;
    // A line of carets marks a place in the line above it, and says what is wrong there.
    for (number, line) in text.lines().enumerate() {
        let Some((place, message)) = line.strip_prefix("//").and_then(|line| line.split_once("^ ")) else {
            continue;
        };
        let wanted = format!("wrong.rs:{number}:{}: error: {message}\n", place.len() + 3);
        assert!(said.contains(&wanted), "not said: {wanted}{said}");
        expected += 1;
    }
    assert!(expected > 0 && said.contains(&format!("{expected} previous errors")), "{said}");
}
