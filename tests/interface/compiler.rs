//! The compiler, run on sources that are wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the library of this workspace whose file is called so as it was built last.
pub(crate) fn library(start: &str, end: &str) -> PathBuf {
    let folder = fs::read_dir(folder()).expect("it is read");
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_wanted = |path: &PathBuf| name(path).starts_with(start) && name(path).ends_with(end);
    let libraries = folder.filter_map(|entry| Some(entry.ok()?.path())).filter(is_wanted);
    let built = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    libraries.max_by_key(built).expect("the library was built")
}

/// The folder of the test binary and of what it was built of.
fn folder() -> PathBuf {
    let exe = std::env::current_exe().expect("the path of the test binary");
    exe.parent().expect("a folder").to_owned()
}

/// Returns what the compiler says about `source`, which uses `library` as the crate `fibra`.
pub(crate) fn says(source: &Path, library: &Path, format: &str) -> String {
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition=2024", "--crate-type=lib", "--emit=metadata"]);
    compiler.arg(format!("--error-format={format}"));
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.file_name().expect("a file"));
    compiler.arg("-o").arg(output.with_extension("rmeta"));
    compiler.arg("--extern").arg(format!("fibra={}", library.display()));
    compiler.arg("-L").arg(format!("dependency={}", folder().display())).arg(source);
    let output = compiler.output().expect("the compiler runs");
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the path of a source that is not compiled with the tests.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interface").join(path)
}
