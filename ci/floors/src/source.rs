//! Reads the modules of a crate: the names that each defines or imports, and the paths that its code mentions.

use std::collections::HashMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprPath, Field, ImplItem, Item, ItemMod, ItemUse, Macro, Meta, Path, UseTree,
    Visibility,
};

use crate::Files;

/// What a name in a module stands for.
pub(crate) enum Meaning {
    Module(usize),
    /// An item that the module's own file defines.
    Item,
    Import(Vec<String>),
}

#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) names: HashMap<String, Vec<Meaning>>,
    pub(crate) globs: Vec<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Path,
    /// A single name in an expression, which is no macro.
    Value,
    Reexport,
    Glob,
}

/// A path that the code of a module mentions.
pub(crate) struct Mention {
    pub(crate) module: usize,
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Default)]
pub(crate) struct Crate {
    /// The paths of the files, `src/lib.rs` first.
    pub(crate) files: Vec<String>,
    /// The module of each file.
    pub(crate) roots: Vec<usize>,
    pub(crate) modules: Vec<Module>,
    pub(crate) mentions: Vec<Mention>,
    /// The files with a `macro_rules!` of the name.
    pub(crate) macros: HashMap<String, Vec<usize>>,
}

impl Crate {
    pub(crate) fn read(files: &Files) -> Result<Self, String> {
        let mut found = Self::default();
        found.read_file(files, "src/lib.rs".into(), None)?;
        Ok(found)
    }

    fn read_file(&mut self, files: &Files, path: String, parent: Option<usize>) -> Result<usize, String> {
        let text = files.get(&path).ok_or_else(|| format!("{path}: no such file"))?;
        let syntax = syn::parse_file(text)
            .map_err(|error| format!("{path}:{}: {error}", error.span().start().line))?;
        let (folder, name) = path.rsplit_once('/').expect("files lie in src/");
        let folder = folder.to_owned();
        let below = match name {
            "lib.rs" | "mod.rs" => folder.clone(),
            _ => path.trim_end_matches(".rs").to_owned(),
        };
        let module = self.modules.len();
        self.modules.push(Module { file: self.files.len(), parent, ..Module::default() });
        self.roots.push(module);
        self.files.push(path);
        let mut reader = Reader { found: self, files, module, folder, below, error: None };
        syntax.items.iter().for_each(|item| reader.visit_item(item));
        reader.error.map_or(Ok(module), Err)
    }
}

/// Walks the syntax of one module.
struct Reader<'a> {
    found: &'a mut Crate,
    files: &'a Files,
    module: usize,
    /// The folders that `#[path]` starts from, and that the files of submodules lie in.
    folder: String,
    below: String,
    error: Option<String>,
}

impl Reader<'_> {
    fn define(&mut self, name: String, meaning: Meaning) {
        self.found.modules[self.module].names.entry(name).or_default().push(meaning);
    }

    fn mention(&mut self, path: Vec<String>, line: usize, kind: Kind) {
        self.found.mentions.push(Mention { module: self.module, path, line, kind });
    }

    fn read_use(&mut self, tree: &UseTree, mut path: Vec<String>, kind: Kind) {
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.read_use(&tree.tree, path, kind);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.read_use(tree, path.clone(), kind))
            }
            UseTree::Glob(glob) => {
                self.found.modules[self.module].globs.push(path.clone());
                let kind = if kind == Kind::Path { Kind::Glob } else { kind };
                self.mention(path, glob.star_token.spans[0].start().line, kind);
            }
            UseTree::Name(_) | UseTree::Rename(_) => {
                let (name, alias) = match tree {
                    UseTree::Rename(rename) => (&rename.ident, Some(&rename.rename)),
                    UseTree::Name(name) => (&name.ident, None),
                    _ => unreachable!("no other tree is a leaf"),
                };
                if name != "self" {
                    path.push(name.to_string());
                }
                let alias =
                    alias.map_or_else(|| path.last().cloned().unwrap_or_default(), ToString::to_string);
                self.mention(path.clone(), name.span().start().line, kind);
                self.define(alias, Meaning::Import(path));
            }
        }
    }

    fn read_module(&mut self, item: &ItemMod) -> Result<(), String> {
        let name = item.ident.to_string();
        let module = if let Some((_, items)) = &item.content {
            let module = self.found.modules.len();
            let file = self.found.modules[self.module].file;
            self.found.modules.push(Module { file, parent: Some(self.module), ..Module::default() });
            let below = format!("{}/{name}", self.below);
            let mut reader = Reader {
                found: self.found,
                files: self.files,
                module,
                folder: below.clone(),
                below,
                error: None,
            };
            items.iter().for_each(|item| reader.visit_item(item));
            reader.error.map_or(Ok(module), Err)?
        } else {
            let plain = [format!("{}/{name}.rs", self.below), format!("{}/{name}/mod.rs", self.below)];
            let path = item.attrs.iter().find_map(|attribute| match &attribute.meta {
                Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                    Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
                    _ => None,
                },
                _ => None,
            });
            let path = match path {
                Some(path) => format!("{}/{path}", self.folder),
                None => plain
                    .into_iter()
                    .find(|path| self.files.contains_key(path))
                    .unwrap_or_else(|| name.clone()),
            };
            if is_test_file(&path) {
                return Ok(());
            }
            self.found.read_file(self.files, path, Some(self.module))?
        };
        self.define(name, Meaning::Module(module));
        Ok(())
    }

    /// Finds paths in code that is not parsed: the input of a macro, or its rules.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: usize, sign| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
        let mut at = 0;
        while at < tokens.len() {
            let start = at;
            at += 1;
            match &tokens[start] {
                TokenTree::Group(group) => self.read_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while is(at, ':')
                        && is(at + 1, ':')
                        && let Some(TokenTree::Ident(next)) = tokens.get(at + 2)
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    let dollar = start > 0 && is(start - 1, '$');
                    if dollar && first == "crate" {
                        path[0] = "$crate".into();
                    } else if dollar || start > 0 && (is(start - 1, '.') || is(start - 1, '\'')) {
                        continue;
                    }
                    let called = matches!(tokens.get(at), Some(TokenTree::Group(group))
                        if group.delimiter() == Delimiter::Parenthesis);
                    // A lone small word is a variable more often than an item.
                    let variable = path.len() == 1 && !called && !path[0].starts_with(char::is_uppercase);
                    let global = start > 1 && is(start - 1, ':') && is(start - 2, ':');
                    if !variable && !global {
                        self.mention(path, first.span().start().line, Kind::Path);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        let (attributes, name) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Union(item) => (&item.attrs, Some(&item.ident)),
            Item::Impl(item) => (&item.attrs, None),
            Item::Macro(item) => (&item.attrs, None),
            Item::Mod(item) => (&item.attrs, None),
            Item::Use(item) => (&item.attrs, None),
            Item::Verbatim(tokens) => return self.read_tokens(tokens.clone()),
            _ => return visit::visit_item(self, item),
        };
        if is_test(attributes) {
            return;
        }
        if let Some(name) = name {
            self.define(name.to_string(), Meaning::Item);
        }
        if let Item::Macro(item) = item
            && let Some(name) = &item.ident
        {
            let file = self.found.modules[self.module].file;
            self.found.macros.entry(name.to_string()).or_default().push(file);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if let Err(error) = self.read_module(item) {
            self.error.get_or_insert(error);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if item.leading_colon.is_none() {
            let kind = if matches!(item.vis, Visibility::Inherited) { Kind::Path } else { Kind::Reexport };
            self.read_use(&item.tree, Vec::new(), kind);
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        let attributes = match item {
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Const(item) => &item.attrs,
            _ => return visit::visit_impl_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'a Field) {
        if !is_test(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Verbatim(tokens) => self.read_tokens(tokens.clone()),
            _ => visit::visit_expr(self, expr),
        }
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.visit_path(&call.path);
        self.read_tokens(call.tokens.clone());
    }

    fn visit_expr_path(&mut self, expr: &'a ExprPath) {
        match expr.path.get_ident() {
            Some(name) => self.mention(vec![name.to_string()], name.span().start().line, Kind::Value),
            None => visit::visit_expr_path(self, expr),
        }
    }

    fn visit_path(&mut self, path: &'a Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
            self.mention(names, line, Kind::Path);
        }
        visit::visit_path(self, path);
    }

    // Attributes and `pub(in …)` import nothing.
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_visibility(&mut self, _: &'a Visibility) {}
}

pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("/compile_fail.rs") || path.split('/').any(|part| part.starts_with("tests"))
}

/// Whether the item exists in test builds only.
fn is_test(attributes: &[Attribute]) -> bool {
    fn needs_test(meta: &Meta) -> bool {
        let Meta::List(list) = meta else {
            return meta.path().is_ident("test") || meta.path().is_ident("doctest");
        };
        let parts =
            list.parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated);
        list.path.is_ident("all") && parts.is_ok_and(|parts| parts.iter().any(needs_test))
    }
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args().is_ok_and(|meta| needs_test(&meta))
        }
        meta => meta.path().is_ident("test"),
    })
}
