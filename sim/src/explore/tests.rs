//! How an exhaustive exploration goes through its runs.

#![forbid(unsafe_code)]

use std::collections::HashSet;

use super::*;

/// Runs three tasks that wait for each other once. Returns how many runs there were, and how many courses.
fn runs_and_courses(preemptions: usize) -> (usize, usize) {
    let program: Program = Arc::new(|| {
        fibra::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(fibra::yield_now);
            }
        });
    });
    let (mut path, mut courses, mut runs) = (Some(Path::new(preemptions)), HashSet::new(), 0);
    while path.is_some() {
        let outcome = Sim::builder().run_once(&program, "", path, 0);
        (path, runs) = (outcome.path.and_then(Path::next), runs + 1);
        courses.insert(outcome.report.fingerprint());
    }
    (runs, courses.len())
}

#[test]
fn exhaustive_visits_each_interleaving_once() {
    let ((runs, courses), (fewer, _)) = (runs_and_courses(1), runs_and_courses(0));
    assert!(courses == runs && runs > fewer && fewer > 5, "{courses} courses in {runs} runs, {fewer}");
}
