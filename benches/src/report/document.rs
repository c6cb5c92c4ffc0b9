//! What all pages have in common.

use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// Begins a page, with the styles that all have and some of its own.
pub(crate) fn open(title: &str, style: &str, page: &mut String) {
    let title = escape(title);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
    );
}

/// Ends a page, with the script that it needs.
pub(crate) fn close(script: &str, page: &mut String) {
    let _ = write!(page, "</main>\n<script>\n{script}</script>\n</body>\n</html>\n");
}

/// Makes a text safe between tags and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// A line of a list of facts.
pub(crate) fn fact(name: &str, value: &str, page: &mut String) {
    let _ = write!(page, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_markup_is_escaped() {
        assert_eq!(escape("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    }
}
