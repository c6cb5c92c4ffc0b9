//! The page: one file, no network, nothing but what is written here.

use super::document::{self, escape, fact};
use super::svg::{Axis, Chart, Frame, Line, Log, Tick, linear_ticks};
use super::{Report, Row, Source, ladder, table, units};
use crate::wire::Protocol;
use serde_json::json;
use std::fmt::Write as _;

const SCRIPT: &str = include_str!("page.js");

/// The page's drawings exist twice, for a wide and for a narrow window; the style sheet shows one.
pub(super) const WIDE: Frame = Frame {
    width: 960.0,
    height: 440.0,
    left: 70.0,
    right: 130.0,
    top: 30.0,
    bottom: 52.0,
    names: true,
    thin: 1,
};
pub(super) const NARROW: Frame = Frame {
    width: 400.0,
    height: 360.0,
    left: 58.0,
    right: 14.0,
    top: 30.0,
    bottom: 50.0,
    names: false,
    thin: 1,
};

/// How finely the latency curves are drawn.
const STEPS: usize = 200;

/// The share of requests that may lie below the latency axis.
const LUCKY: f64 = 0.1;

/// How the figures came about.
const LATENCY: &str = "from the moment a request is due (without a fixed rate: is sent, or begins to connect) until its last byte is back";
const CPU: &str = "processor time of the server's process, user and system, in the measured time, by replies";
const MEMORY: &str = "resident in the server's process at the end of the measured time, all connections open";
const ECHO_CHECK: &str =
    "every request is different, and every reply is compared with its request byte for byte";
const HTTP_CHECK: &str = "every reply must be whole, as its head says, and have the status 200";
const LOGS_CHECK: &str = "as each generator has made it";

/// The marks of the percentile axis.
const MARKS: [(f64, &str); 7] = [
    (0.0, "0"),
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
];

/// The report as a page.
pub(crate) fn render(report: &Report) -> String {
    let mut page = String::with_capacity(64 * 1024);
    document::open(title(report), "", &mut page);
    header(report, &mut page);
    cards(report, &mut page);
    if report.is_ladder() {
        ladder::draw(report, &mut page);
    }
    latency_figure(report, &mut page);
    table_section(report, &mut page);
    rate_figure(report, &mut page);
    facts(report, &mut page);
    document::close(SCRIPT, &mut page);
    page
}

fn title(report: &Report) -> &'static str {
    match report.source {
        Source::Run { protocol: Protocol::Tcp | Protocol::Udp, .. } => "Echo servers under load",
        _ => "Servers under load",
    }
}

fn header(report: &Report, page: &mut String) {
    let (load, date) = (escape(&report.load()), escape(&units::date(report.started)));
    let _ = writeln!(page, "<header>\n<p class=\"kicker\">fibra · load · {date}</p>");
    let _ = writeln!(page, "<h1>{}</h1>\n<p class=\"lead\">{load}.</p>", title(report));
    if report.interrupted {
        page.push_str("<p class=\"alarm\">Interrupted: this is the report so far.</p>\n");
    }
    for row in &report.rows {
        for error in &row.errors {
            let (name, error) = (escape(&row.title()), escape(error));
            let _ = writeln!(page, "<p class=\"alarm\"><b>{name}</b>: {error}</p>");
        }
    }
    page.push_str("</header>\n");
}

/// A card for every server: the figures one looks for first.
fn cards(report: &Report, page: &mut String) {
    let faces = report.faces();
    let best = faces.iter().map(|row| row.rate()).fold(0.0, f64::max);
    page.push_str("<section class=\"cards\" aria-label=\"Requests per second\">\n");
    for row in faces {
        let number = row.hue();
        let (name, about) = (escape(&row.name), escape(&row.about));
        let rate = units::rate(row.rate());
        let unit = match (report.is_ladder(), row.keeps_up()) {
            (true, true) => format!("{}, the highest rate kept up with", report.unit()),
            (true, false) => format!("{}: no rate kept up with", report.unit()),
            (false, _) => report.unit().into(),
        };
        let share = if best > 0.0 { row.rate() / best * 100.0 } else { 0.0 };
        let _ = write!(
            page,
            "<article class=\"s{number}\">\n<h2><i class=\"swatch\"></i>{name}</h2>\n<p class=\"about\">{about}</p>\n\
             <p class=\"rate\">{rate}<span> {unit}</span></p>\n\
             <div class=\"bar\"><i style=\"width:{share:.1}%\"></i></div>\n<dl>"
        );
        let time = |nanos: Option<u64>| nanos.map_or_else(|| "–".into(), units::nanos);
        fact("p50", &time(row.latency(0.5)), page);
        fact("p99", &time(row.latency(0.99)), page);
        fact("CPU per request", &time(row.cpu_per_request()), page);
        fact("memory", &row.server.map_or_else(|| "–".into(), |usage| units::bytes(usage.resident)), page);
        page.push_str("</dl>\n</article>\n");
    }
    page.push_str("</section>\n");
}

fn latency_figure(report: &Report, page: &mut String) {
    let seen: Vec<_> = report.faces().into_iter().filter(|row| !row.latencies.is_empty()).collect();
    if seen.is_empty() {
        return;
    }
    let (chart, data) = latency_chart(&seen);
    page.push_str("<figure>\n<figcaption><h2>Latency by percentile</h2><p>How long the slowest requests took, ever \
                   fewer of them to the right: at 99.9, one in a thousand took longer. Both axes are logarithmic; \
                   lower is better. Point at the chart for the figures.");
    if report.is_ladder() {
        page.push_str(" Of each server it is the highest rate that it kept up with.");
    }
    page.push_str("</p></figcaption>\n");
    legend(&seen, page);
    let _ = writeln!(page, "<div class=\"stage\" tabindex=\"0\" data-curves=\"{}\">", escape(&data));
    page.push_str(&chart.draw(WIDE, "wide"));
    page.push_str(&chart.draw(NARROW, "narrow"));
    page.push_str("<div class=\"tip\" role=\"status\" hidden></div>\n</div>\n</figure>\n");
}

pub(super) fn legend(rows: &[&Row], page: &mut String) {
    page.push_str("<ul class=\"legend\">");
    for row in rows {
        let number = row.hue();
        let _ = write!(
            page,
            "<li><svg viewBox=\"0 0 30 8\" aria-hidden=\"true\"><path class=\"line s{number}\" d=\"M1 4H29\"/></svg>{}</li>",
            escape(&row.name)
        );
    }
    page.push_str("</ul>\n");
}

/// The curves, and the same as data for whoever points at them.
fn latency_chart(rows: &[&Row]) -> (Chart, String) {
    // As far to the right as the largest count bears: with a thousand requests, 99.9.
    let most = rows.iter().map(|row| row.latencies.len()).max().unwrap_or(1);
    let reach = decades(most).clamp(1.0, 5.0);
    let shares: Vec<f64> = (0..=STEPS).map(|step| to_share(reach * step as f64 / STEPS as f64)).collect();
    // The luckiest few are left out, or they would take half the height.
    let low = rows.iter().filter_map(|row| row.latency(LUCKY)).min().unwrap_or(1);
    let high = rows.iter().filter_map(|row| row.latency(to_share(reach))).max().unwrap_or(1);
    let scale = Log::covering(low as f64, high as f64);
    let ticks = MARKS.iter().map(|&(share, label)| (decades_of(share) / reach, label));
    let ticks = ticks.filter(|(at, _)| *at <= 1.0 + 1e-9).map(|(at, label)| Tick { at, label: label.into() });
    let chart = Chart {
        description: describe(rows),
        x: Axis { title: "percentile of requests (%)".into(), ticks: ticks.collect() },
        y: Axis {
            title: "latency (from µs to s, as marked)".into(),
            ticks: scale.ticks(|value| short_time(value as u64)),
        },
        lines: rows.iter().map(|row| curve(row, reach, &shares, scale)).collect(),
    };
    (chart, curve_data(rows, reach, &shares))
}

fn curve(row: &Row, reach: f64, shares: &[f64], scale: Log) -> Line {
    let own_reach = decades(row.latencies.len());
    let point = |(step, &share): (usize, &f64)| {
        let at = step as f64 / STEPS as f64;
        (at * reach <= own_reach + 1e-9).then(|| (at, scale.share(row.latency(share).unwrap_or(1) as f64)))
    };
    Line {
        name: row.name.clone(),
        number: row.hue(),
        points: shares.iter().enumerate().filter_map(point).collect(),
    }
}

fn curve_data(rows: &[&Row], reach: f64, shares: &[f64]) -> String {
    let names: Vec<_> = shares.iter().map(|&share| percentile_name(share)).collect();
    let curves = rows.iter().map(|row| {
        let own_reach = decades(row.latencies.len());
        let text = |(step, &share): (usize, &f64)| {
            let within = reach * step as f64 / STEPS as f64 <= own_reach + 1e-9;
            row.latency(share).filter(|_| within).map_or_else(|| "–".into(), units::nanos)
        };
        json!({ "name": row.name, "number": row.hue(), "text": shares.iter().enumerate().map(text).collect::<Vec<_>>() })
    });
    json!({ "names": names, "curves": curves.collect::<Vec<_>>() }).to_string()
}

/// How many nines `count` requests can tell: the logarithm of the count.
fn decades(count: u64) -> f64 {
    (count.max(1) as f64).log10()
}

/// Where a share stands on the axis.
fn decades_of(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// The share at a place on the axis.
fn to_share(decades: f64) -> f64 {
    1.0 - 10f64.powf(-decades)
}

fn percentile_name(share: f64) -> String {
    let percent = share * 100.0;
    // One digit more than the nines it has.
    let digits = (decades_of(share) - 1.0).ceil().clamp(0.0, 4.0) as usize;
    format!("p{percent:.digits$}")
}

/// A round time without its zeros.
pub(super) fn short_time(nanos: u64) -> String {
    match nanos {
        n if n < 1_000 => format!("{n} ns"),
        n if n < 1_000_000 => format!("{} µs", n / 1_000),
        n if n < 1_000_000_000 => format!("{} ms", n / 1_000_000),
        n => format!("{} s", n / 1_000_000_000),
    }
}

fn describe(rows: &[&Row]) -> String {
    let latency = |row: &Row, share| row.latency(share).map_or_else(|| "none".into(), units::nanos);
    let parts = rows.iter().map(|row| {
        format!("{}: median {}, 99th percentile {}", row.name, latency(row, 0.5), latency(row, 0.99))
    });
    format!("Latency by percentile. {}.", parts.collect::<Vec<_>>().join("; "))
}

fn table_section(report: &Report, page: &mut String) {
    page.push_str("<section>\n<h2>All figures</h2>\n<div class=\"scroll\"><table>\n<thead><tr>");
    for heading in table::headings(report) {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escape(heading));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &report.rows {
        let (number, cells) = (row.hue(), table::cells(report, row));
        let _ = write!(
            page,
            "<tr><th scope=\"row\"><i class=\"swatch s{number}\"></i>{}</th>",
            escape(&cells[0])
        );
        for cell in &cells[1..] {
            let _ = write!(page, "<td>{}</td>", escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
    notes(report, page);
    page.push_str("</section>\n");
}

fn notes(report: &Report, page: &mut String) {
    let own = report
        .rows
        .iter()
        .flat_map(|row| row.notes.iter().map(move |note| format!("{}: {note}", row.title())));
    let check = report.cross_check.iter().flat_map(|check| {
        std::iter::once(check.sentence()).chain(check.row.errors.iter().map(|e| format!("cross-check: {e}")))
    });
    let notes: Vec<_> = own.chain(check).collect();
    if !notes.is_empty() {
        page.push_str("<ul class=\"notes\">\n");
        notes.iter().for_each(|note| {
            let _ = writeln!(page, "<li>{}</li>", escape(note));
        });
        page.push_str("</ul>\n");
    }
}

/// Replies per second as time goes by: a server that stands still now and then shows here.
fn rate_figure(report: &Report, page: &mut String) {
    let seen: Vec<_> = report.faces().into_iter().filter(|row| row.timeline.len() > 1).collect();
    let points = || seen.iter().flat_map(|row| &row.timeline);
    let length = points().map(|point| point.elapsed.as_secs_f64()).fold(0.0, f64::max);
    let highest = points().map(|point| point.rate).fold(0.0, f64::max);
    if length <= 0.0 {
        return;
    }
    let (high, y_ticks) = linear_ticks(highest, |value| units::count(value as u64));
    let lines = seen.iter().map(|row| {
        let point = |point: &crate::wire::Progress| (point.elapsed.as_secs_f64() / length, point.rate / high);
        Line { name: row.name.clone(), number: row.hue(), points: row.timeline.iter().map(point).collect() }
    });
    let chart = Chart {
        description: "Requests per second as time goes by".into(),
        x: Axis { title: "seconds since the start".into(), ticks: second_ticks(length) },
        y: Axis { title: "requests per second".into(), ticks: y_ticks },
        lines: lines.collect(),
    };
    page.push_str(
        "<figure>\n<figcaption><h2>Requests per second, as time goes by</h2><p>The warm-up is included. \
                   Higher is better; a dent is a moment in which the server stood still.</p></figcaption>\n",
    );
    legend(&seen, page);
    page.push_str("<div class=\"stage\">\n");
    page.push_str(&chart.draw(Frame { height: 300.0, ..WIDE }, "wide"));
    page.push_str(&chart.draw(Frame { height: 280.0, ..NARROW }, "narrow"));
    page.push_str("</div>\n</figure>\n");
}

/// Marks at round numbers of seconds, as far as the axis goes.
fn second_ticks(length: f64) -> Vec<Tick> {
    let step = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0];
    let step = step.into_iter().find(|step| length / step <= 8.0).unwrap_or(length / 8.0);
    let digits = usize::from(step < 1.0);
    let steps = (length / step + 1e-9).floor() as u32;
    let tick = |number: u32| {
        let seconds = f64::from(number) * step;
        Tick { at: seconds / length, label: format!("{seconds:.digits$}") }
    };
    (0..=steps).map(tick).collect()
}

fn facts(report: &Report, page: &mut String) {
    page.push_str("<section class=\"facts\">\n<h2>How it was measured</h2>\n<dl>");
    fact("load", &report.load(), page);
    fact("machine", &report.machine(), page);
    fact("latency", LATENCY, page);
    fact("CPU per request", CPU, page);
    fact("memory", MEMORY, page);
    let check = match report.source {
        Source::Run { protocol: Protocol::Tcp | Protocol::Udp, .. } => ECHO_CHECK,
        Source::Run { protocol: Protocol::Http, .. } => HTTP_CHECK,
        Source::Logs(_) => LOGS_CHECK,
    };
    fact("check", check, page);
    page.push_str("</dl>\n</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_axis_counts_nines() {
        assert!((decades_of(0.99) - 2.0).abs() < 1e-9);
        assert!((to_share(3.0) - 0.999).abs() < 1e-12);
        assert_eq!([0.5, 0.9, 0.99, 0.9995].map(percentile_name), ["p50", "p90", "p99.0", "p99.950"]);
    }

    #[test]
    fn seconds_have_round_marks() {
        let labels: Vec<_> = second_ticks(6.0).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0", "1", "2", "3", "4", "5", "6"]);
    }
}
