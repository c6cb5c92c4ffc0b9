//! The arguments of the attributes: `name = value`, separated by commas.

#![forbid(unsafe_code)]

use proc_macro::{Delimiter, TokenStream, TokenTree};

use crate::error::Error;

/// An argument that an attribute knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Workers,
    Timeout,
    StartPaused,
    Seeds,
    Schedule,
}

impl Known {
    fn name(self) -> &'static str {
        match self {
            Known::Workers => "workers",
            Known::Timeout => "timeout",
            Known::StartPaused => "start_paused",
            Known::Seeds => "seeds",
            Known::Schedule => "schedule",
        }
    }

    /// Describes its value.
    fn value(self) -> &'static str {
        match self {
            Known::Workers => "a number from 1 on, such as `2`",
            Known::Timeout => r#"a time above zero with its unit, such as "500ms", "30s", "2m" or "1h""#,
            Known::StartPaused => "`true` or `false`",
            Known::Seeds => "a number from 1 on, such as `1000`",
            Known::Schedule => r#"a schedule, such as "random" or "pct(3)""#,
        }
    }
}

/// The calls of methods that the arguments stand for.
#[derive(Default)]
pub(crate) struct Arguments {
    /// Those of the runtime's builder.
    pub(crate) builder: String,
    /// Those of the test.
    pub(crate) test: String,
    /// Those of the simulation, which takes the place of the runtime.
    pub(crate) simulation: String,
}

impl Arguments {
    /// Reads the arguments of an attribute that has the known ones.
    pub(crate) fn parse(arguments: TokenStream, known: &[Known]) -> Result<Self, Error> {
        let (mut read, mut seen) = (Arguments::default(), Vec::new());
        let mut tokens = arguments.into_iter();
        while let Some(name) = tokens.next() {
            let (text, span) = (name.to_string(), name.span());
            let Some(argument) = known.iter().find(|known| known.name() == text) else {
                let names: Vec<_> = known.iter().map(|known| format!("`{}`", known.name())).collect();
                return Err(Error::new(
                    span,
                    format!("unknown argument `{text}`, known: {}", names.join(", ")),
                ));
            };
            if seen.contains(argument) {
                return Err(Error::new(span, format!("`{text}` is given twice")));
            }
            seen.push(*argument);
            if !is(tokens.next().as_ref(), '=') {
                return Err(Error::new(span, format!("`{text}` takes a value: `{text} = …`")));
            }
            let value = tokens.next();
            let place = value.as_ref().map_or(span, TokenTree::span);
            value
                .and_then(|value| read.add(*argument, &plain(value).to_string()))
                .ok_or_else(|| Error::new(place, format!("`{text}` takes {}", argument.value())))?;
            if !read.builder.is_empty() && !read.simulation.is_empty() {
                let message = "`seeds` and `schedule` make a simulation, whose runtime takes no arguments";
                return Err(Error::new(span, message.to_owned()));
            }
            expect_comma(tokens.next())?;
        }
        Ok(read)
    }

    /// Adds the call for an argument. Returns `None` for a value that it does not take.
    fn add(&mut self, argument: Known, value: &str) -> Option<()> {
        match argument {
            Known::Workers => {
                self.builder += &format!(".workers({})", number(value)?);
            }
            Known::Timeout => {
                let time = milliseconds(text(value)?)?;
                self.test += &format!(".timeout(::core::time::Duration::from_millis({time}))");
            }
            Known::StartPaused => {
                let paused: bool = value.parse().ok()?;
                self.builder += &format!(".start_paused({paused})");
            }
            Known::Seeds => self.simulation += &format!(".seeds({})", number(value)?),
            Known::Schedule => self.simulation += &format!(".schedule({:?})", text(value)?),
        }
        Some(())
    }
}

fn is(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn expect_comma(token: Option<TokenTree>) -> Result<(), Error> {
    match token {
        Some(token) if !is(Some(&token), ',') => Err(Error::new(token.span(), "expected a comma")),
        _ => Ok(()),
    }
}

/// Takes a value out of the group that it stands in where a `macro_rules!` has passed it on.
fn plain(value: TokenTree) -> TokenTree {
    match &value {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let mut inner = group.stream().into_iter();
            match (inner.next(), inner.next()) {
                (Some(only), None) => plain(only),
                _ => value,
            }
        }
        _ => value,
    }
}

/// Reads a number from 1 on.
fn number(value: &str) -> Option<usize> {
    value.replace('_', "").parse().ok().filter(|number| *number > 0)
}

/// Returns the text inside quotes.
fn text(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

/// Reads a time such as `30s`.
fn milliseconds(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|time| *time > 0)
}
