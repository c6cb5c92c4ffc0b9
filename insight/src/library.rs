//! Tells the functions of fibra and of std from those of the program.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use fibra_runtime::stacks::Symbol;

/// The crates, and functions without a crate, that say nothing to a user at both ends of a stack.
const CRATES: [&str; 14] = [
    "fibra",
    "fibra_insight",
    "fibra_io",
    "fibra_runtime",
    "fibra_sync",
    "std",
    "core",
    "alloc",
    "lock_api",
    "corosensei",
    "rust_try",
    "start_thread",
    "clone3",
    "clone",
];

/// How functions of the C library are shown that have no name.
const LIBC: &str = "libc.so.";

/// What the paths of sources have in common that belong to std, or to crates that fibra is built of.
const SOURCES: [&str; 5] =
    ["/library/std/", "/library/core/", "/library/alloc/", "/lock_api-", "/corosensei-"];

/// Where the sources of fibra's crates lie, by the debug information.
#[derive(Default)]
pub(crate) struct Library {
    /// The folder that this crate's folder is in, and the name of that.
    folder: Option<(PathBuf, String)>,
}

impl Library {
    /// A function of this file.
    pub(crate) const ADDRESS: fn(&str) -> Library = Library::with;

    /// Learns the place of fibra's sources from the path of this file.
    pub(crate) fn with(file: &str) -> Self {
        let own = Path::new(file).parent().and_then(Path::parent);
        let folder = own.and_then(|own| Some((own.parent()?.into(), own.file_name()?.to_str()?.into())));
        Library { folder }
    }

    /// Returns true for a function of fibra or of std. One without a file is judged by its name.
    pub(crate) fn has(&self, symbol: &Symbol) -> bool {
        match &symbol.file {
            Some(file) => SOURCES.iter().any(|part| file.contains(part)) || self.has_file(Path::new(file)),
            None => CRATES.contains(&crate_of(&symbol.function)) || symbol.function.starts_with(LIBC),
        }
    }

    fn has_file(&self, file: &Path) -> bool {
        let Some((folder, own)) = &self.folder else { return false };
        let Ok(inside) = file.strip_prefix(folder) else { return false };
        let mut parts = inside.iter().map(|part| part.to_str().unwrap_or_default());
        match (parts.next(), parts.next()) {
            // A package of the registry, with its version.
            (Some(package), Some("src")) if own != "insight" => package.starts_with("fibra-"),
            // The repository: `fibra` itself is at its root.
            (Some("runtime" | "sync" | "io" | "insight"), Some("src")) => true,
            (Some("src"), Some(_)) => own == "insight",
            _ => false,
        }
    }
}

/// Returns the first crate that the name of a function mentions: `<fibra_io::net::TcpStream as std::io::Read>::read`.
fn crate_of(function: &str) -> &str {
    let name = function.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    name.split("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(library: &Library, function: &str, file: Option<&str>) -> bool {
        let file = file.map(String::from);
        library.has(&Symbol { function: function.into(), file, line: None, is_library: false })
    }

    #[test]
    fn the_sources_of_a_repository_and_of_packages_are_known() {
        let repository = Library::with("/home/fibra/insight/src/library.rs");
        let packages = Library::with("/cargo/registry/src/index/fibra-insight-0.1.0/src/library.rs");
        for (library, file, expected) in [
            (&repository, "/home/fibra/runtime/src/sleep/task_sleep.rs", true),
            (&repository, "/home/fibra/src/runtime.rs", true),
            (&repository, "/home/fibra/examples/echo.rs", false),
            (&repository, "/home/fibra/sync/tests/locks/mutex.rs", false),
            (&repository, "/home/shop/src/main.rs", false),
            (&packages, "/cargo/registry/src/index/fibra-runtime-0.1.0/src/lib.rs", true),
            (&packages, "/cargo/registry/src/index/fibra-0.1.0/src/runtime.rs", true),
            (&packages, "/cargo/registry/src/index/hyper-1.0.0/src/lib.rs", false),
            (&packages, "/cargo/registry/src/index/lock_api-0.5.0/src/mutex.rs", true),
            (&packages, "/rustc/0000/library/std/src/panicking.rs", true),
            (&Library::default(), "/home/shop/src/main.rs", false),
        ] {
            assert_eq!(has(library, "f", Some(file)), expected, "{file}");
        }
    }

    #[test]
    fn functions_without_a_file_are_judged_by_their_crate() {
        for (function, expected) in [
            ("fibra_sync::mutex::raw::lock", true),
            ("<fibra_io::net::TcpStream as std::io::Read>::read", true),
            ("<core::panic::AssertUnwindSafe<F> as FnOnce<()>>::call_once", true),
            ("__rust_try", true),
            ("libc.so.6+0x891f5", true),
            ("libcurl.so.4+0x100", false),
            ("shop::fibra::checkout", false),
            ("fibra_shop::main", false),
        ] {
            assert_eq!(has(&Library::default(), function, None), expected, "{function}");
        }
    }
}
