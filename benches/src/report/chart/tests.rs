//! Tests of `chart`.

use super::*;

#[test]
fn what_could_be_markup_is_escaped() {
    let (width, height) = (9.0, 9.0);
    let (left, right, top, bottom) = (0.0, 0.0, 0.0, 0.0);
    let frame = Frame { width, height, left, right, top, bottom, names: true, thin: 1 };
    let axis = || Axis { title: String::new(), ticks: Vec::new() };
    let lines = vec![Line { name: "<b>".into(), number: 0, points: vec![(0.0, 0.0)] }];
    let chart = Chart { description: "\"&'".into(), x: axis(), y: axis(), lines };
    let svg = chart.draw(frame, "wide");
    assert!(svg.contains("aria-label=\"&#34;&#38;&#39;\"") && svg.contains("&#60;b&#62;"), "{svg}");
}

#[test]
fn a_log_scale_ends_at_round_numbers() {
    let scale = LogScale::covering(13_000.0, 4_100_000.0);
    let labels: Vec<_> = scale.ticks(|v| format!("{v:.0}")).into_iter().map(|tick| tick.label).collect();
    assert_eq!(labels.first().map(String::as_str), Some("10000"));
    assert_eq!(labels.last().map(String::as_str), Some("5000000"));
    assert!((scale.share(10_000.0)).abs() < 1e-9 && (scale.share(5e6) - 1.0).abs() < 1e-9);
}

#[test]
fn a_linear_scale_has_few_marks_whatever_its_end() {
    for high in [0.0, 1.0, 5e15, 1e17, f64::MAX] {
        let (end, ticks) = linear_ticks(high, |_| String::new());
        assert!(end >= high && (2..=7).contains(&ticks.len()), "{high}: {end}, {}", ticks.len());
    }
}

#[test]
fn a_log_scale_over_one_value_has_a_length() {
    assert!(LogScale::covering(10.0, 10.0).share(10.0).is_finite());
    assert!(LogScale::covering(0.0, 0.0).share(0.0).is_finite());
}

#[test]
fn a_linear_scale_begins_at_zero_and_covers() {
    let (high, ticks) = linear_ticks(123_000.0, |v| format!("{v:.0}"));
    assert_eq!((high, ticks.len(), ticks[0].label.as_str()), (150_000.0, 4, "0"));
}
