//! Errors in the user's source.

#![forbid(unsafe_code)]

use proc_macro::{Span, TokenStream, TokenTree};

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
        let call: TokenStream =
            format!("::core::compile_error! {{ {:?} }}", self.message).parse().expect("it is Rust");
        let at_place = |mut token: TokenTree| {
            token.set_span(self.span);
            token
        };
        call.into_iter().map(at_place).collect()
    }
}
