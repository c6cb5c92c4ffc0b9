//! Tests of `chart`.

use super::*;

#[test]
fn a_log_range_has_marks_at_round_numbers() {
    let marks = |low, high| log_range(low, high).bold_points().to_vec();
    assert_eq!(marks(13_000.0, 110_000.0), [20_000.0, 50_000.0, 100_000.0]);
    assert_eq!(marks(10.0, 10.0), [10.0, 20.0], "one value has a length too");
}

#[test]
fn hints_cover_the_chart_from_side_to_side() {
    let axis = |range| Axis { title: "", range, label: &|value| value.to_string() };
    let line = Line { number: 3, points: vec![(0.0, 0.0), (9.0, 9.0)] };
    let hints = [0.0, 4.0, 9.0].map(|x| (x, x.to_string()));
    let drawing = draw(300, axis(0.0..9.0), axis(0.0..9.0), &[line], hints.into());
    assert!(drawing.svg.contains("var(--s3)") && !drawing.svg.contains("#FF00"), "{}", drawing.svg);
    let [first, .., last] = &drawing.hints[..] else { panic!("three hints") };
    assert!(first.left < 100 && last.left + last.width > WIDTH as i32 - 100, "{}", drawing.svg);
}
