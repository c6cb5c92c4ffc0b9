//! Plants imports in a small tree, one at a time, and sees the check find them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::check::check;
use crate::{Files, read};

const README: &str = "# A crate

```floors
3  api          what users call
2  task         the tasks
1  wait queue  where they wait
0  base         system calls
```
";

/// A crate whose imports all point downward, with one file changed or added.
fn tree(path: &str, text: &str) -> Files {
    let clean = [
        ("README.md", README),
        (
            "src/lib.rs",
            "mod api; mod base; mod queue; mod task; mod wait; pub use api::spawn; pub use task::Task;",
        ),
        (
            "src/api.rs",
            "use crate::task::{self, Task}; pub fn spawn() -> Task { task::start(); crate::wait::wait(); todo!() } \
             macro_rules! spare { () => {} }",
        ),
        ("src/task/mod.rs", "mod raw; mod state; pub(crate) use raw::start; pub use state::Task;"),
        (
            "src/task/raw.rs",
            "use super::Task; use crate::wait; pub(crate) fn start() -> Task { wait::wait(); Task }",
        ),
        ("src/task/state.rs", "pub struct Task; #[cfg(test)] mod tests { use crate::api::spawn; }"),
        (
            "src/wait.rs",
            "use crate::base as b; pub(crate) use b::sleep; pub(crate) fn wait() { b::sleep(); sleep() }",
        ),
        ("src/queue.rs", "use crate::base::{log, sleep}; pub(crate) fn pop() { log!(sleep()) }"),
        (
            "src/base.rs",
            "use std::thread; pub(crate) fn sleep() {} fn variable(spare: u8) -> u8 { spare } macro_rules! log { ($x:expr) => { $x } } pub(crate) use log;",
        ),
    ];
    let mut files: Files = clean.map(|(path, text)| (path.into(), text.into())).into();
    files.entry(path.into()).or_default().push_str(text);
    files
}

fn violations(path: &str, text: &str) -> Vec<String> {
    check(&tree(path, text), false).unwrap()
}

#[test]
fn a_clean_tree_passes() {
    assert_eq!(violations("src/lib.rs", ""), [""; 0]);
    assert_eq!(check(&tree("src/lib.rs", ""), true).unwrap().len(), 8, "imports");
}

#[test]
fn every_import_that_points_upward_is_found() {
    let upward = [
        ("a use", "use crate::task::Task;"),
        ("a renamed use", "use crate::task::Task as T;"),
        ("a use in a group", "use crate::{base::sleep as s, task::{Task}};"),
        ("a use of super", "use super::task::Task;"),
        ("a use in a function", "fn f() { use crate::task::Task; }"),
        ("a use of a trait for its methods", "use crate::api::Api as _;"),
        ("an inline path", "fn f() { crate::task::start(); }"),
        ("an inline path of super", "fn f(_: super::task::Task) {}"),
        ("a path through an alias", "use crate::task as t; fn f() { t::start(); }"),
        ("a path through an alias of the root", "use crate as root; fn f() { root::task::start(); }"),
        ("a path of self", "fn f() { self::super::task::start(); }"),
        ("a glob", "use crate::task::*;"),
        ("a glob of the root", "use crate::*;"),
        ("a glob of super", "use super::*;"),
        ("a glob of variants", "use crate::api::Api::*;"),
        ("a re-export of the root", "use crate::Task;"),
        ("an inline path of the root", "fn f() { crate::spawn(); }"),
        ("a path of a qualified type", "fn f() { <u8 as crate::task::Task>::g(); }"),
        ("a generic argument", "fn f(_: Vec<crate::task::Task>) {}"),
        ("a re-export", "pub(crate) use crate::task::Task;"),
        ("a path in a macro's input", "fn f() { assert!(1 == crate::task::start()); }"),
        ("a path in a macro's rules", "macro_rules! m { () => { $crate::task::start() } }"),
        ("a macro by its path", "fn f() { crate::api::call!(); }"),
        ("a macro by its name", "fn f() { risen!(); }"),
        ("a path in an inner module", "mod inner { use super::super::task::Task; }"),
        ("a path in a module for a platform", "#[cfg(any(test, unix))] fn f() { crate::task::start(); }"),
    ];
    for (what, text) in upward {
        let mut files = tree("src/wait.rs", &format!("\n{text}"));
        *files.get_mut("src/api.rs").unwrap() +=
            "trait Api {} macro_rules! risen { () => {} } pub(crate) use risen as call;";
        let found = check(&files, false).unwrap();
        assert!(found.iter().any(|line| line.starts_with("src/wait.rs:2: imports ")), "{what}: {found:?}");
    }
    let found = violations("src/base.rs", "\nuse crate::task::Task;");
    assert_eq!(
        found,
        ["src/base.rs:2: imports crate::task::Task of src/task/state.rs (floor 2) from floor 0"]
    );
    // Lower items through a higher module are imports of that module as well.
    let mut files = tree("src/task/mod.rs", "pub(crate) use crate::base::sleep;");
    *files.get_mut("src/queue.rs").unwrap() += "use crate::task::sleep as s;";
    assert_eq!(check(&files, false).unwrap().len(), 1);
}

#[test]
fn files_that_import_each_other_are_found() {
    let mutual = [
        (
            "two on one floor",
            "src/wait.rs",
            "use crate::queue::pop;",
            "src/queue.rs",
            "use crate::wait::wait;",
        ),
        (
            "by an inline path",
            "src/wait.rs",
            "fn f() { crate::queue::pop() }",
            "src/queue.rs",
            "fn f() { super::wait::wait() }",
        ),
        ("through a re-export", "src/task/state.rs", "fn f() { super::start() }", "src/task/state.rs", ""),
        (
            "a parent and its child",
            "src/task/mod.rs",
            "struct Own; fn f(_: Task) {}",
            "src/task/state.rs",
            "use super::Own;",
        ),
        (
            "by a macro",
            "src/wait.rs",
            "macro_rules! m { () => { crate::queue::pop() } }",
            "src/queue.rs",
            "m!();",
        ),
    ];
    for (what, path, text, other, more) in mutual {
        let mut files = tree(path, text);
        *files.get_mut(other).unwrap() += more;
        let found = check(&files, false).unwrap();
        assert!(
            found.len() == 3 && found[0].ends_with("is one of 2 files that import each other"),
            "{what}: {found:?}"
        );
    }
    let mut files = tree("src/wait.rs", "use crate::queue::pop;");
    *files.get_mut("src/queue.rs").unwrap() += "mod inner;";
    files.insert("src/queue/inner.rs".into(), "use crate::wait::wait;".into());
    assert_eq!(check(&files, false).unwrap(), [""; 0], "a parent that uses nothing of its child");
    *files.get_mut("src/queue.rs").unwrap() += "fn f() { inner::g() }";
    assert_eq!(check(&files, false).unwrap().len(), 4, "a circle of three");
}

/// Plants imports in the crates as they are.
#[test]
fn each_crate_keeps_to_its_floors() {
    let planted = [
        // Crate, a file of the lowest floor, a path to the highest one, an item that the root re-exports.
        ("runtime", "src/base/spin_lock.rs", "crate::runtime::builder::planted", "crate::spawn"),
        ("sync", "src/primitive.rs", "crate::channel::select::planted", "crate::Mutex"),
        ("io", "src/primitive.rs", "crate::os::planted", "crate::Pollable"),
    ];
    for (name, low, high, root) in planted {
        let files = read(name).unwrap();
        let with = |path: &str, text: &str| {
            let mut files = files.clone();
            *files.get_mut(path).unwrap() += text;
            check(&files, false).unwrap()
        };
        assert_eq!(with(low, ""), [""; 0], "{name}");
        for text in [
            format!("use {high};"),
            format!("fn f() {{ {high}(); }}"),
            format!("use {root};"),
            format!("fn f(_: {root}) {{}}"),
            "use crate::*;".into(),
        ] {
            let found = with(low, &format!("\n{text}"));
            assert!(
                found.iter().any(|line| line.starts_with(&format!("{low}:"))),
                "{name}: {text}: {found:?}"
            );
        }
    }
    let mut files = read("sync").unwrap();
    *files.get_mut("src/rwlock/raw.rs").unwrap() += "fn f() { super::lock::planted() }";
    let found = check(&files, false).unwrap();
    assert!(found.iter().any(|line| line.contains("files that import each other")), "{found:?}");
}

#[test]
fn a_crate_without_floors_is_found() {
    let mut files = tree("src/lib.rs", "");
    files.insert("README.md".into(), "# A crate".into());
    assert_eq!(check(&files, false).unwrap(), ["README.md:1: has no block of floors"]);
}

#[test]
fn every_file_is_on_one_floor() {
    let mut files = tree("src/lib.rs", "mod more;");
    files.insert("src/more.rs".into(), String::new());
    assert_eq!(check(&files, false).unwrap(), ["src/more.rs:1: is on no floor"]);
    let planted = [
        ("2  task", "2  more", "src/task/mod.rs:1: is on no floor"),
        ("2  task", "2  task gone", "README.md:1: no file is gone"),
        (
            "2  task",
            "2  task  the tasks\n1  task/raw",
            "src/task/raw.rs:1: imports super::Task of src/task/state.rs (floor 2) from floor 1",
        ),
    ];
    for (old, new, found) in planted {
        let files =
            tree("src/lib.rs", "").into_iter().map(|(path, text)| (path, text.replace(old, new))).collect();
        assert!(check(&files, false).unwrap().iter().any(|line| line == found), "{new}");
    }
    for (old, new) in
        [("2  task", "2  task wait"), ("2  task", "4  task"), ("0  base", "base"), ("A crate", README)]
    {
        let files =
            tree("src/lib.rs", "").into_iter().map(|(path, text)| (path, text.replace(old, new))).collect();
        assert!(check(&files, false).is_err(), "{new}");
    }
}

#[test]
fn test_code_is_left_out() {
    for text in [
        "#[cfg(test)] mod tests { use crate::task::Task; }",
        "#[cfg(all(test, unix))] use crate::task::Task;",
        "#[test] fn f() { crate::task::start(); }",
        "#[cfg(test)] mod tests;",
        "mod compile_fail;",
        "/// See [`crate::task::Task`].\nstruct Documented;",
        "pub(in crate::wait) struct Visible;",
    ] {
        let mut files = tree("src/wait.rs", text);
        files.insert("src/wait/compile_fail.rs".into(), "use crate::task::Task;".into());
        assert_eq!(check(&files, false).unwrap(), [""; 0], "{text}");
    }
}

/// Looks for the functions that the walks of `DESIGN.md` name, and counts them.
#[test]
fn the_walks_name_functions_where_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let design = fs::read_to_string(root.join("DESIGN.md")).unwrap();
    let (mut steps, mut walk) = (0, BTreeSet::new());
    for line in design.lines() {
        if line.contains(" functions in ") && line.ends_with(" files.") {
            let files: BTreeSet<_> = walk.iter().map(|&(_, file)| file).collect();
            assert_eq!(line, format!("{} functions in {} files.", walk.len(), files.len()));
            walk.clear();
        }
        if !line.starts_with("| `") {
            continue;
        }
        let names: Vec<_> = line.split('`').skip(1).step_by(2).collect();
        walk.insert((names[0], names[1]));
        let file = names[1].strip_prefix("r/").map_or(names[1].into(), |rest| format!("runtime/src/{rest}"));
        let text = fs::read_to_string(root.join(&file)).expect(&file);
        let name = names[0].rsplit("::").next().unwrap();
        let found = text
            .split("fn ")
            .skip(1)
            .any(|rest| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', '<'])));
        assert!(found, "{name} is not in {file}");
        steps += 1;
    }
    assert!(steps > 80, "{steps} steps");
}
