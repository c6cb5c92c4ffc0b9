//! The attributes `#[fibra::test]` and `#[fibra::main]`. Programs use them through the crate `fibra`, which documents them.
//!
//! Each keeps the function as it is, as an item inside a plain function of the same name, which passes it to
//! `fibra::attributes`:
//!
//! ```text
//!  #[test]                                  fn main() -> Result<(), E> {
//!  fn retries() -> ExitCode {                   fn main() -> Result<(), E> { … }
//!      fn retries() -> Result<(), E> { … }      fibra::attributes::main(builder, main)
//!      fibra::attributes::Test::new("retries", builder).run(retries)
//!  }                                        }
//! ```

#![forbid(unsafe_code)]

mod arguments;
mod error;
mod function;

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

use crate::arguments::{Arguments, Known};
use crate::error::Error;
use crate::function::Function;

/// Runs a test as a task.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expanded(arguments, item, expand_test)
}

/// Runs a function as the first task of a runtime.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expanded(arguments, item, expand_main)
}

/// Expands an attribute. After an error the function stays as it is, so that no other errors follow from its absence.
fn expanded(
    arguments: TokenStream,
    item: TokenStream,
    expand: fn(TokenStream, TokenStream) -> Result<TokenStream, Error>,
) -> TokenStream {
    expand(arguments, item.clone()).unwrap_or_else(|error| [error.into_tokens(), item].into_iter().collect())
}

fn expand_test(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let function = Function::parse("test", item)?;
    let known = [Known::Workers, Known::Timeout, Known::StartPaused, Known::Seeds, Known::Schedule];
    let Arguments { builder, test, simulation } = Arguments::parse(arguments, &known)?;
    let name = function.name.to_string();
    let should_panic = if function.should_panic { ".should_panic()" } else { "" };
    // A test that is to panic must return nothing, says the harness.
    let (returned, end) = if function.returns { ("-> ::std::process::ExitCode", "") } else { ("", ";") };
    let plain = name.trim_start_matches("r#");
    let run = match simulation.is_empty() {
        true => format!(
            "::fibra::attributes::Test::new({plain:?}, ::fibra::Runtime::builder().workers(1){builder})"
        ),
        false => format!("::fibra_sim::attributes::Test::new({plain:?}){simulation}"),
    };
    let run = format!("{run}{test}{should_panic}.run({name}){end}");
    let mut outer = tokens("#[::core::prelude::v1::test]");
    outer.extend(function.head.clone());
    outer.extend(function.signature[..3].to_vec());
    outer.extend(tokens(returned));
    Ok(with_body(outer, function, &run))
}

fn expand_main(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let function = Function::parse("main", item)?;
    let Arguments { builder, .. } = Arguments::parse(arguments, &[Known::Workers, Known::StartPaused])?;
    let run = format!("::fibra::attributes::main(::fibra::Runtime::builder(){builder}, {})", function.name);
    let mut outer = TokenStream::from_iter(function.head.clone());
    outer.extend(function.signature.clone());
    Ok(with_body(outer, function, &run))
}

/// Adds the body of the outer function: the function itself, and what runs it.
fn with_body(mut outer: TokenStream, inner: Function, run: &str) -> TokenStream {
    let mut body = TokenStream::from_iter(inner.signature);
    body.extend([inner.body]);
    body.extend(tokens(run));
    outer.extend([TokenTree::from(Group::new(Delimiter::Brace, body))]);
    outer
}

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("it is Rust")
}
