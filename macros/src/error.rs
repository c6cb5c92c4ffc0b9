//! Errors in the user's source.

#![forbid(unsafe_code)]

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// What is wrong, and where.
pub(crate) struct Error {
    span: Span,
    message: String,
}

impl Error {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Error { span, message: message.into() }
    }

    /// Returns a call of `compile_error!` that the compiler reports at the place of the error.
    pub(crate) fn into_tokens(self) -> TokenStream {
        let message = TokenTree::from(Literal::string(&self.message));
        let call: [TokenTree; 3] = [
            Ident::new("compile_error", self.span).into(),
            Punct::new('!', Spacing::Alone).into(),
            Group::new(Delimiter::Brace, message.into()).into(),
        ];
        let at_place = |mut token: TokenTree| {
            token.set_span(self.span);
            token
        };
        call.into_iter().map(at_place).collect()
    }
}
