//! Stacks with the names of their functions.

#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use crate::base::unwinder::{self, Symbol};
use crate::tasks::sleeper::Frames;

/// The least number of repeated lines that are folded, and the longest round.
const FOLDED: usize = 32;

/// The stack of a task.
///
/// Its text has the functions from the call that waits to the closure of the task, one on a line; `{:#}` has all.
#[derive(Clone, Debug)]
pub struct Backtrace {
    frames: Vec<Frame>,
    is_complete: bool,
}

/// A frame of a stack.
#[derive(Clone, Debug)]
pub struct Frame {
    address: usize,
    symbols: Vec<Symbol>,
}

impl Backtrace {
    /// Makes a stack of the functions at each of its addresses.
    #[doc(hidden)]
    pub fn new(frames: impl Iterator<Item = (usize, Vec<Symbol>)>, is_complete: bool) -> Self {
        Backtrace {
            frames: frames.map(|(address, symbols)| Frame { address, symbols }).collect(),
            is_complete,
        }
    }

    /// Returns the frames, innermost first.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Returns true if the walk has come to the root of the stack.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns a line for each function, `all` of them or those that are of use.
    pub(crate) fn lines(&self, all: bool) -> Vec<String> {
        // Each with whether it is of the library.
        let mut lines: Vec<(String, bool)> = Vec::new();
        for frame in &self.frames {
            if frame.symbols.is_empty() {
                lines.push((format!("{:#x}", frame.address), false));
            }
            lines.extend(frame.symbols.iter().map(|symbol| (symbol.to_string(), symbol.is_library)));
        }
        let all = all || lines.iter().all(|line| line.1);
        // Of the library the calls stay that the program makes.
        let is_of_use = |at: &usize| all || lines[*at..].iter().take(2).any(|line| !line.1);
        let of_use = (0..lines.len()).filter(is_of_use).map(|at| lines[at].0.clone());
        of_use.chain((!self.is_complete).then(|| "…".to_owned())).collect()
    }

    /// Returns the lines that are of use, for people: recursions are folded.
    fn folded_lines(&self) -> Vec<String> {
        folded(&self.lines(false))
    }

    /// Returns the folded lines as the end of a text about the task: each after a line break and so many blanks.
    pub(crate) fn below(&self, blanks: usize) -> String {
        self.folded_lines().iter().map(|line| format!("\n{:blanks$}at {line}", "")).collect()
    }
}

/// Returns the lines, with each recursion shown once and the number of its rounds.
fn folded(lines: &[String]) -> Vec<String> {
    let (mut folded, mut rest) = (Vec::new(), lines);
    while !rest.is_empty() {
        let times = |calls: usize| rest.chunks(calls).take_while(|next| *next == &rest[..calls]).count();
        let repeated = (1..=FOLDED.min(rest.len())).map(|calls| (calls, times(calls)));
        let (calls, times) = repeated
            .into_iter()
            .find(|(calls, times)| calls * times >= FOLDED && *times > 2)
            .unwrap_or((1, 1));
        folded.extend_from_slice(&rest[..calls]);
        match (calls, times) {
            (_, 1) => {}
            (1, _) => folded.push(format!("… the line above {} more times", times - 1)),
            _ => folded.push(format!("… the {calls} lines above {} more times", times - 1)),
        }
        rest = &rest[calls * times..];
    }
    folded
}

impl Frame {
    /// Returns the address: that of the next instruction, which for all frames but the first stands behind a call.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Returns the functions at the address, innermost first; several where calls were inlined.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }
}

impl fmt::Display for Backtrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = if f.alternate() { self.lines(true) } else { self.folded_lines() };
        lines.iter().try_for_each(|line| writeln!(f, "  at {line}"))
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " ({file}:{line})"),
            (Some(file), None) => write!(f, " ({file})"),
            (None, _) => Ok(()),
        }
    }
}

/// The functions at the addresses of some stacks.
#[derive(Debug)]
pub(crate) struct Symbols(HashMap<(usize, bool), Vec<Symbol>>);

impl Symbols {
    /// Resolves the addresses of these stacks, each once.
    pub(crate) fn of<'a>(stacks: impl Iterator<Item = &'a Frames>) -> Self {
        let addresses: BTreeSet<_> = stacks.flat_map(|frames| frames.addresses.iter().copied()).collect();
        let addresses: Vec<_> = addresses.into_iter().collect();
        let symbols = match unwinder::installed() {
            Some(unwinder) if !addresses.is_empty() => unwinder.resolve(&addresses),
            _ => Vec::new(),
        };
        Symbols(addresses.into_iter().zip(symbols).collect())
    }

    pub(crate) fn backtrace(&self, frames: &Frames) -> Backtrace {
        let frame = |place: &(usize, bool)| (place.0, self.0.get(place).cloned().unwrap_or_default());
        Backtrace::new(frames.addresses.iter().map(frame), frames.is_complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a stack of these functions. Those of the library begin with `fibra`.
    fn lines(functions: &[&str]) -> Vec<String> {
        let symbol = |function: &&str| {
            let is_library = function.starts_with("fibra");
            vec![Symbol { function: function.to_string(), file: None, line: None, is_library }]
        };
        Backtrace::new(functions.iter().map(|function| (1, symbol(function))), true).folded_lines()
    }

    #[test]
    fn of_the_library_the_calls_are_shown_that_the_program_makes() {
        let stack =
            ["fibra::switch", "fibra::sleep", "body", "fibra::catch", "fibra::timeout", "main", "fibra::run"];
        assert_eq!(lines(&stack), ["fibra::sleep", "body", "fibra::timeout", "main"]);
        assert_eq!(lines(&["fibra::switch", "fibra::run"]), ["fibra::switch", "fibra::run"]);
    }

    #[test]
    fn a_recursion_is_shown_once_with_the_number_of_its_rounds() {
        let one = [vec!["probe"], vec!["walk"; 500], vec!["main"]].concat();
        assert_eq!(lines(&one), ["probe", "walk", "… the line above 499 more times", "main"]);
        let two = [["term", "factor"].repeat(100), vec!["term", "main"]].concat();
        assert_eq!(lines(&two), ["term", "factor", "… the 2 lines above 99 more times", "term", "main"]);
        let few = ["walk", "walk", "walk", "walk", "main"];
        assert_eq!(lines(&few), few);
    }
}
