//! Finds the file that defines what a path names.

use std::collections::BTreeSet;

use crate::source::{Crate, Kind, Meaning, Mention};

/// What a path leads to, and the files whose imports or re-exports it passes through.
#[derive(Clone)]
struct Target {
    what: What,
    /// The name where it is defined.
    name: String,
    through: BTreeSet<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Module(usize),
    /// An item of the file.
    Item(usize),
    /// Another crate's item, which the file imports.
    Foreign(usize),
}

impl Target {
    fn new(what: What, name: &str) -> Self {
        Self { what, name: name.to_owned(), through: BTreeSet::new() }
    }
}

/// One file's import of a name from another.
pub(crate) struct Import {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) through: BTreeSet<usize>,
    /// The path as it is written.
    pub(crate) path: String,
    /// The name of the item where it is defined.
    pub(crate) name: String,
    pub(crate) line: usize,
}

/// The file `lib.rs`.
pub(crate) const LIB: usize = 0;

impl Crate {
    /// The imports between files, those of `lib.rs` left out.
    pub(crate) fn imports(&self) -> Vec<Import> {
        self.mentions.iter().flat_map(|mention| self.imports_of(mention)).collect()
    }

    fn imports_of(&self, mention: &Mention) -> Vec<Import> {
        let from = self.modules[mention.module].file;
        let mut targets = match mention.kind {
            Kind::Value => self.look_up(mention.module, &mention.path[0], &mut Vec::new()),
            _ => self.resolve(mention.module, &mention.path, &mut Vec::new()),
        };
        if mention.kind == Kind::Glob {
            targets = targets.iter().flat_map(|target| self.contents(target)).collect();
        }
        let mut imports = Vec::new();
        for mut target in targets {
            let to = match target.what {
                What::Item(file) => file,
                What::Foreign(file) if !self.is_above(file, from) => file,
                _ => continue,
            };
            // What a macro mentions by `$crate` is written for other crates, which see the facade only.
            if mention.path[0] == "$crate" {
                target.through.clear();
            }
            // A facade is no import of what lies below it, and a module sees what its own parents import.
            target
                .through
                .retain(|&file| file == LIB || !self.is_above(file, to) && !self.is_above(file, from));
            let facade = mention.kind == Kind::Reexport && self.is_above(from, to);
            if from != LIB && from != to && !facade {
                let path = mention.path.join("::") + if mention.kind == Kind::Glob { "::*" } else { "" };
                let Target { name, through, .. } = target;
                imports.push(Import { from, to, through, path, name, line: mention.line });
            }
        }
        imports
    }

    /// Whether one file's module is another's, or contains it.
    fn is_above(&self, file: usize, other: usize) -> bool {
        let mut module = Some(self.roots[other]);
        while let Some(at) = module {
            if at == self.roots[file] {
                return true;
            }
            module = self.modules[at].parent;
        }
        false
    }

    /// What a glob brings in from a module.
    fn contents(&self, target: &Target) -> Vec<Target> {
        let What::Module(module) = target.what else { return vec![target.clone()] };
        let names = self.modules[module].names.keys();
        let mut found: Vec<_> = names.flat_map(|name| self.look_up(module, name, &mut Vec::new())).collect();
        if self.modules[module].file == LIB {
            found.push(Target::new(What::Item(LIB), "*"));
        }
        found.iter_mut().for_each(|found| found.through.extend(&target.through));
        found
    }

    /// What a path names inside a module. Nothing, for a path into another crate. `pending` are the names being looked up.
    fn resolve(&self, module: usize, path: &[String], pending: &mut Vec<(usize, String)>) -> Vec<Target> {
        let module_target = |module| vec![Target::new(What::Module(module), "")];
        let Some(first) = path.first() else { return Vec::new() };
        let mut targets = match first.as_str() {
            "crate" | "$crate" => module_target(0),
            "self" => module_target(module),
            "super" => module_target(self.modules[module].parent.unwrap_or(0)),
            "Self" => Vec::new(),
            name => self.look_up(module, name, pending),
        };
        if targets.is_empty() && path.len() == 1 {
            targets = self.macros_named(first);
        }
        for name in &path[1..] {
            let mut next = Vec::new();
            for target in &targets {
                let What::Module(module) = target.what else { continue };
                let found = match name.as_str() {
                    "super" => module_target(self.modules[module].parent.unwrap_or(0)),
                    "self" => module_target(module),
                    _ => self.look_up(module, name, pending),
                };
                let through = &target.through;
                next.extend(found.into_iter().map(|mut found| {
                    found.through.extend(through);
                    found
                }));
            }
            if next.is_empty() {
                // An associated item, or one that a macro defines in the module.
                let only_modules = targets.iter().all(|target| matches!(target.what, What::Module(_)));
                targets.retain(|target| only_modules || !matches!(target.what, What::Module(_)));
                for target in &mut targets {
                    if let What::Module(module) = target.what {
                        let exported = if module == 0 { self.macros_named(name) } else { Vec::new() };
                        let file = self.modules[module].file;
                        target.what = exported.first().map_or(What::Item(file), |exported| exported.what);
                        target.name.clone_from(name);
                    }
                }
                return targets;
            }
            targets = next;
        }
        targets
    }

    fn macros_named(&self, name: &str) -> Vec<Target> {
        let files = self.macros.get(name).into_iter().flatten();
        files.map(|&file| Target::new(What::Item(file), name)).collect()
    }

    /// What a name stands for in a module.
    fn look_up(&self, module: usize, name: &str, pending: &mut Vec<(usize, String)>) -> Vec<Target> {
        let (about, key) = (&self.modules[module], (module, name.to_owned()));
        if pending.contains(&key) {
            return Vec::new();
        }
        pending.push(key);
        let mut found = Vec::new();
        for meaning in about.names.get(name).into_iter().flatten() {
            match meaning {
                Meaning::Module(module) => {
                    found.push(Target::new(What::Module(*module), name));
                }
                Meaning::Item => found.push(Target::new(What::Item(about.file), name)),
                Meaning::Import(path) => {
                    let mut targets = self.resolve(module, path, pending);
                    if targets.is_empty() && path[0] != name {
                        targets.push(Target::new(What::Foreign(about.file), name));
                    }
                    targets.iter_mut().for_each(|target| _ = target.through.insert(about.file));
                    found.extend(targets);
                }
            }
        }
        if found.is_empty() && !about.names.contains_key(name) {
            for glob in &about.globs {
                for target in self.resolve(module, glob, pending) {
                    let What::Module(inner) = target.what else { continue };
                    let mut targets = self.look_up(inner, name, pending);
                    targets.iter_mut().for_each(|found| {
                        found.through.extend(&target.through);
                        found.through.insert(about.file);
                    });
                    found.extend(targets);
                }
            }
        }
        pending.pop();
        found
    }
}
