//! Text of other processes, made safe for a terminal.

#![forbid(unsafe_code)]

/// Escapes control characters and invisible ones, with which a name could move the cursor, reorder or forge a line.
///
/// # Examples
/// ```
/// let name = "job\u{1b}[2J\nnext é";
/// assert_eq!(fibra_tools::printable::printable(name), r"job\u{1b}[2J\nnext é");
/// ```
pub fn printable(text: &str) -> String {
    let is_invisible = |letter| matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let escape = |letter: char| match letter.is_control() || is_invisible(letter) {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(escape).collect()
}
