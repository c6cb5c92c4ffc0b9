//! Names functions, files and lines by the debug information and the symbol tables of the loaded files.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use fibra_runtime::stacks::Symbol;

use crate::library::Library;
use crate::modules::Modules;
use crate::object::Object;

/// The files that were read. What was looked up in them once is found at once.
#[derive(Default)]
pub struct Symbols {
    files: HashMap<PathBuf, Option<Loader>>,
    library: Library,
}

impl Symbols {
    /// Reads what it has to know of the program first.
    pub fn new(modules: &Modules) -> Self {
        let mut symbols = Symbols::default();
        let here = symbols.functions_at(modules, Library::ADDRESS as *const () as usize);
        if let Some(file) = here.and_then(|mut functions| functions.pop()?.file) {
            symbols.library = Library::with(&file);
        }
        symbols
    }

    /// Returns the functions at each address, innermost first. Those of a return address are those of the call.
    pub fn resolve(&mut self, modules: &Modules, addresses: &[(usize, bool)]) -> Vec<Vec<Symbol>> {
        let one = |(address, is_return): &(usize, bool)| {
            let functions = self.functions_at(modules, address - usize::from(*is_return));
            let mut functions = functions.unwrap_or_else(|| vec![symbol(shown(modules, *address))]);
            for function in &mut functions {
                function.is_library = self.library.has(function);
            }
            functions
        };
        addresses.iter().map(one).collect()
    }

    fn functions_at(&mut self, modules: &Modules, place: usize) -> Option<Vec<Symbol>> {
        let object = modules.at(place)?;
        let file = self.files.entry(object.path.clone()).or_insert_with(|| open(&object.path));
        functions(file.as_ref()?, place.wrapping_sub(object.base) as u64)
    }
}

/// Opens a file, unless it is another one than was loaded.
fn open(path: &Path) -> Option<Loader> {
    let gone = format!("{} (deleted)", path.display());
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if !path.is_absolute() || maps.lines().any(|line| line.ends_with(&gone)) {
        return None;
    }
    Loader::new(path).ok()
}

/// Returns the functions at an address of the file, inlined ones first.
fn functions(file: &Loader, place: u64) -> Option<Vec<Symbol>> {
    let mut functions = Vec::new();
    let mut frames = file.find_frames(place).ok();
    while let Some(Ok(Some(frame))) = frames.as_mut().map(|frames| frames.next()) {
        let name = frame.function.as_ref().and_then(|name| Some(name.demangle().ok()?.into_owned()));
        let mut function = symbol(name.unwrap_or_default());
        if let Some(location) = frame.location {
            (function.file, function.line) = (location.file.map(str::to_owned), location.line);
        }
        functions.push(function);
    }
    if functions.is_empty() {
        functions.push(symbol(String::new()));
    }
    // The outermost one is in the symbol table. Lines alone have names without their modules.
    let last = functions.last_mut().expect("one at the least");
    if !is_qualified(&last.function)
        && let Some(name) = file.find_symbol(place)
    {
        last.function = addr2line::demangle_auto(name.into(), None).into_owned();
    }
    functions.retain(|function| !function.function.is_empty());
    (!functions.is_empty()).then_some(functions)
}

/// Returns true for `module::function<T>` and `<T as Trait>::function`, and false for `function<module::T>`.
fn is_qualified(function: &str) -> bool {
    function.starts_with('<') || function.split('<').next().is_some_and(|name| name.contains("::"))
}

fn symbol(function: String) -> Symbol {
    Symbol { function, file: None, line: None, is_library: false }
}

/// Returns the module and the address in it, for an address without a name.
fn shown(modules: &Modules, address: usize) -> String {
    match modules.at(address) {
        Some(object) => format!("{}+{:#x}", name(object), address.wrapping_sub(object.base)),
        None => format!("{address:#x}"),
    }
}

fn name(object: &Object) -> String {
    let program = fs::read_link(&object.path);
    let path = program.as_deref().unwrap_or(&object.path);
    path.file_name().unwrap_or(path.as_os_str()).display().to_string()
}
