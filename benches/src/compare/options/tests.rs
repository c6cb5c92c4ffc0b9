//! Tests of `options`.

use super::*;

#[test]
fn an_entrant_is_named_as_a_whole() {
    let options = Options::parse_from(["compare", "--among", "fibra", "--among", "tokio.*"]);
    let wanted =
        ["fibra", "fibra migr.", "tokio", "tokio multi", "may"].map(|name| options.wants_entrant(name));
    assert_eq!(wanted, [true, false, true, true, false]);
}

#[test]
fn a_question_is_found_by_any_part_of_it() {
    let options = Options::parse_from(["compare", "yield", "^locks"]);
    let wanted = ["tasks: yield, 2 tasks", "locks: mutex", "tasks: chained"]
        .map(|title| options.wants_question(title));
    assert_eq!(wanted, [true, true, false]);
}
