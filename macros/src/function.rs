//! The function that an attribute stands on.

#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Ident, Span, TokenStream, TokenTree};

use crate::error::Error;

/// A function without parameters, in its parts.
pub(crate) struct Function {
    /// The attributes and the visibility.
    pub(crate) head: Vec<TokenTree>,
    /// From `fn` to the return type. The first three are `fn`, the name, and empty parentheses.
    pub(crate) signature: Vec<TokenTree>,
    /// The block, perhaps in the group in which a `macro_rules!` has passed it on.
    pub(crate) body: TokenTree,
    pub(crate) name: Ident,
    /// Has a return type.
    pub(crate) returns: bool,
    /// Has the attribute `#[should_panic]`.
    pub(crate) should_panic: bool,
}

impl Function {
    /// Takes the function under the attribute `#[fibra::attribute]` apart.
    pub(crate) fn parse(attribute: &str, item: TokenStream) -> Result<Self, Error> {
        let error = |span, what: &str| Error::new(span, format!("`#[fibra::{attribute}]` {what}"));
        let mut head: Vec<TokenTree> = item.into_iter().collect();
        let start = head.first().map_or_else(Span::call_site, TokenTree::span);
        let no_function = |span| error(span, "is for functions with a body");
        let begin = head.iter().position(|token| is_word(token, "fn")).ok_or_else(|| no_function(start))?;
        let mut signature = head.split_off(begin);
        for token in &head {
            if is_word(token, "async") {
                let what = "is for a plain function: without `async`, calls that wait block its task, not the thread";
                return Err(error(token.span(), what));
            }
            if ["const", "unsafe", "extern"].iter().any(|word| is_word(token, word)) {
                return Err(error(token.span(), &format!("is for a plain function: not `{token}`")));
            }
        }
        let body = signature.pop().filter(is_body).ok_or_else(|| no_function(start))?;
        let name = match signature.get(1) {
            Some(TokenTree::Ident(name)) => name.clone(),
            _ => return Err(no_function(start)),
        };
        match signature.get(2) {
            Some(TokenTree::Group(parameters)) if parameters.stream().is_empty() => {}
            Some(TokenTree::Group(parameters)) => {
                return Err(error(parameters.span(), "is for a function without parameters"));
            }
            generics => {
                let span = generics.map_or(start, TokenTree::span);
                return Err(error(span, "is for a function without generic parameters"));
            }
        }
        let returns = signature.get(3).is_some_and(|token| token.to_string() == "-");
        let should_panic = head.iter().any(|token| match token {
            // As text: a `macro_rules!` may have passed it on in a group.
            TokenTree::Group(group) => group.stream().to_string().trim_start().starts_with("should_panic"),
            _ => false,
        });
        Ok(Function { head, signature, body, name, returns, should_panic })
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

fn is_body(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => matches!(group.delimiter(), Delimiter::Brace | Delimiter::None),
        _ => false,
    }
}
