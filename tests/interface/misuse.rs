//! Errors of the compiler for what users of other libraries may write: they name what to write instead.

use std::fs;

use crate::compiler::{library, says, source};

#[test]
fn a_select_of_a_signal_and_a_task_local_of_tokio_explain_themselves() {
    let source = source("misuse/misused.rs");
    let said = says(&source, &library("libfibra-", ".rlib"), "human");
    let text = fs::read_to_string(source).unwrap();
    let expected: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("// says: ")).collect();
    for text in &expected {
        assert!(said.contains(text), "not said: {text}\n{said}");
    }
    let errors = expected.iter().filter(|text| text.starts_with("error")).count();
    assert!(errors > 0 && said.contains(&format!("{errors} previous errors")), "{said}");
}
