//! Text of other processes, made safe for a terminal.

#![forbid(unsafe_code)]

/// Escapes control characters, with which a name could move the cursor or forge a line.
///
/// # Examples
/// ```
/// let name = "job\u{1b}[2J\nnext é";
/// assert_eq!(fibra_tools::printable::printable(name), r"job\u{1b}[2J\nnext é");
/// ```
pub fn printable(text: &str) -> String {
    let escape = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(escape).collect()
}
