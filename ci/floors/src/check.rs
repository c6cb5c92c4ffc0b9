//! Compares the imports of a crate with its floors, and looks for files that import each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::Files;
use crate::names::{Import, LIB};
use crate::source::{Crate, is_test_file};

/// Which floor each module is on.
struct Floors(Vec<(String, u32)>);

/// The violations of a crate, one a line, or with `list` all its imports.
pub(crate) fn check(files: &Files, list: bool) -> Result<Vec<String>, String> {
    let floors = Floors::read(files.get("README.md").map_or("", |text| text))?;
    let found = Crate::read(files)?;
    let mut imports = found.imports();
    imports.sort_by_key(|import| (import.from, import.line));
    // Each name once for each file.
    let mut seen = BTreeSet::new();
    imports
        .retain(|import| seen.insert((import.from, import.to, import.name.clone(), import.through.clone())));
    if list {
        return Ok(imports.iter().map(|import| found.describe(import, floors.as_ref())).collect());
    }
    let mut lines = Vec::new();
    if floors.is_none() {
        lines.push("README.md:1: has no block of floors".to_owned());
    }
    if let Some(floors) = &floors {
        lines.extend(floors.misfits(&found));
        lines.extend(
            imports
                .iter()
                .filter(|import| floors.rises(&found, import))
                .map(|import| found.describe(import, Some(floors))),
        );
    }
    lines.extend(cycles(&found, &imports));
    Ok(lines)
}

impl Floors {
    /// Reads the block of a README. `None`, where there is none.
    fn read(text: &str) -> Result<Option<Self>, String> {
        let mut blocks =
            text.split("```floors\n").skip(1).map(|rest| rest.split("```").next().unwrap_or(rest));
        let Some(block) = blocks.next() else { return Ok(None) };
        let mut floors: Vec<(String, u32)> = Vec::new();
        for line in block.lines() {
            let mut columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
            let floor = columns.next().and_then(|floor| floor.parse().ok());
            let (Some(floor), Some(modules)) = (floor, columns.next()) else {
                return Err(format!("README.md: no floor and modules in {line:?}"));
            };
            if floors.last().is_some_and(|&(_, above)| above < floor) {
                return Err(format!("README.md: floor {floor} is below a lower one"));
            }
            for module in modules.split(' ') {
                if floors.iter().any(|(other, _)| other == module) {
                    return Err(format!("README.md: {module} is on two floors"));
                }
                floors.push((module.to_owned(), floor));
            }
        }
        if blocks.next().is_some() {
            return Err("README.md: two blocks of floors".into());
        }
        Ok(Some(Self(floors)))
    }

    /// The entry that a file falls under.
    fn entry(&self, file: &str) -> Option<&(String, u32)> {
        let file = file.trim_start_matches("src/").trim_end_matches(".rs");
        let fits = |entry: &str| {
            file.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.0.iter().filter(|(entry, _)| fits(entry)).max_by_key(|(entry, _)| entry.len())
    }

    fn of(&self, file: &str) -> Option<u32> {
        self.entry(file).map(|&(_, floor)| floor)
    }

    /// Files without a floor, and entries without a file.
    fn misfits(&self, found: &Crate) -> Vec<String> {
        let files = || found.files.iter().skip(1).filter(|file| !is_test_file(file));
        let used: BTreeSet<_> = files().filter_map(|file| self.entry(file)).map(|(entry, _)| entry).collect();
        let bare =
            files().filter(|file| self.of(file).is_none()).map(|file| format!("{file}:1: is on no floor"));
        let idle = self.0.iter().filter(|(entry, _)| !used.contains(entry));
        bare.chain(idle.map(|(entry, _)| format!("README.md:1: no file is {entry}"))).collect()
    }

    fn rises(&self, found: &Crate, import: &Import) -> bool {
        let floor = |file: usize| self.of(&found.files[file]);
        let above = |file| file == LIB || floor(file) > floor(import.from);
        floor(import.from).is_some() && (above(import.to) || import.through.iter().any(|&file| above(file)))
    }
}

impl Crate {
    fn describe(&self, import: &Import, floors: Option<&Floors>) -> String {
        let floor = |file: usize| match floors {
            _ if file == LIB => "the crate's root".into(),
            Some(floors) => {
                floors.of(&self.files[file]).map_or("no floor".into(), |floor| format!("floor {floor}"))
            }
            None => "no floor".into(),
        };
        let Import { from, to, through, path, line, .. } = import;
        let way: String =
            through.iter().map(|&file| format!(" through {} ({})", self.files[file], floor(file))).collect();
        let (user, maker) = (&self.files[*from], &self.files[*to]);
        format!("{user}:{line}: imports {path} of {maker} ({}){way} from {}", floor(*to), floor(*from))
    }
}

/// Each set of files that import each other, with the names that tie it.
fn cycles(found: &Crate, imports: &[Import]) -> Vec<String> {
    let mut reach: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for start in 0..found.files.len() {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(file) = open.pop() {
            let next = imports.iter().filter(|import| import.from == file).map(|import| import.to);
            open.extend(next.filter(|&next| seen.insert(next)));
        }
        reach.insert(start, seen);
    }
    let mut lines = Vec::new();
    let mut done = BTreeSet::new();
    for start in 0..found.files.len() {
        let members: BTreeSet<_> =
            reach[&start].iter().copied().filter(|other| reach[other].contains(&start)).collect();
        if members.is_empty() || !done.insert(members.clone()) {
            continue;
        }
        lines.push(format!(
            "{}:1: is one of {} files that import each other",
            found.files[start],
            members.len()
        ));
        let mut ties: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for import in
            imports.iter().filter(|import| members.contains(&import.from) && members.contains(&import.to))
        {
            ties.entry((import.from, import.to))
                .or_default()
                .push(format!("{} ({})", import.path, import.line));
        }
        let files = &found.files;
        lines.extend(ties.iter().map(|((from, to), names)| {
            format!("  {} -> {}: {}", files[*from], files[*to], names.join(", "))
        }));
    }
    lines
}
