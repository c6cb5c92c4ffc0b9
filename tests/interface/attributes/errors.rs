//! Errors of the attributes: what they say, and where.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;

use crate::compiler::{library, says, source};

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let source = source("attributes/wrong.rs");
    let macros = library(&format!("{DLL_PREFIX}fibra_macros-"), DLL_SUFFIX);
    let said = says(&source, &macros, "short");
    let text = fs::read_to_string(source).unwrap();
    let mut expected = 0;
    // A line of carets marks a place in the line above it, and says what is wrong there.
    for (number, line) in text.lines().enumerate() {
        let Some((place, message)) = line.strip_prefix("//").and_then(|line| line.split_once("^ ")) else {
            continue;
        };
        let wanted = format!("wrong.rs:{number}:{}: error: {message}\n", place.len() + 3);
        assert!(said.contains(&wanted), "not said: {wanted}{said}");
        expected += 1;
    }
    assert!(expected > 0 && said.contains(&format!("{expected} previous errors")), "{said}");
}
