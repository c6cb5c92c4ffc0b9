//! The page: one file, no network, nothing but what is in the templates.

use super::figure::Figure;
use super::{Report, Row, Source, ladder, latency, table, timeline, units};
use crate::wire::Protocol;
use askama::Template;

/// How the figures came about.
const LATENCY: &str = "from the moment a request is due (without a fixed rate: is sent, or begins to connect) until its last byte is back";
const CPU: &str = "processor time of the server's process, user and system, in the measured time, by replies";
const MEMORY: &str = "resident in the server's process at the end of the measured time, all connections open";
const ECHO_CHECK: &str =
    "every request is different, and every reply is compared with its request byte for byte";
const HTTP_CHECK: &str = "every reply must be whole, as its head says, and have the status 200";
const LOGS_CHECK: &str = "as each generator has made it";

#[derive(Template)]
#[template(path = "load.html")]
struct Page<'a> {
    report: &'a Report,
    title: &'static str,
    date: String,
    cards: Vec<Card<'a>>,
    /// The figures before the table, and those after it.
    figures_before: Vec<Figure>,
    headings: Vec<&'static str>,
    /// The cells of each row, and the number of its colour.
    rows: Vec<(usize, Vec<String>)>,
    notes: Vec<String>,
    figures_after: Option<Figure>,
    facts: Vec<(&'static str, String)>,
}

/// The main figures of a server.
struct Card<'a> {
    row: &'a Row,
    rate: String,
    unit: String,
    /// The length of the bar, in percent of the longest.
    share: f64,
    facts: [(&'static str, String); 4],
}

/// Returns the report as a page.
pub(crate) fn render(report: &Report) -> String {
    let ladder = if report.is_ladder() { ladder::figure(report) } else { None };
    let page = Page {
        report,
        title: title(report),
        date: httpdate::fmt_http_date(report.started),
        cards: cards(report),
        figures_before: ladder.into_iter().chain(latency::figure(report)).collect(),
        headings: table::headings(report),
        rows: report.rows.iter().map(|row| (row.hue(), table::cells(report, row))).collect(),
        notes: notes(report),
        figures_after: timeline::figure(report),
        facts: facts(report),
    };
    page.render().expect("a text has room")
}

fn title(report: &Report) -> &'static str {
    match report.source {
        Source::Run { protocol: Protocol::Tcp | Protocol::Udp, .. } => "Echo servers under load",
        _ => "Servers under load",
    }
}

fn cards(report: &Report) -> Vec<Card<'_>> {
    let faces = report.faces();
    let best = faces.iter().map(|row| row.rate()).fold(0.0, f64::max);
    let time = |nanos: Option<u64>| nanos.map_or_else(|| "–".into(), units::nanos);
    let cards = faces.into_iter().map(|row| {
        let unit = match (report.is_ladder(), row.keeps_up()) {
            (true, true) => format!("{}, the highest rate kept up with", report.unit()),
            (true, false) => format!("{}: no rate kept up with", report.unit()),
            (false, _) => report.unit().into(),
        };
        let facts = [
            ("p50", time(row.latency(0.5))),
            ("p99", time(row.latency(0.99))),
            ("CPU per request", time(row.cpu_per_request())),
            ("memory", row.totals.server.map_or_else(|| "–".into(), |usage| units::bytes(usage.resident))),
        ];
        let share = if best > 0.0 { (row.rate() / best * 1e3).round() / 10.0 } else { 0.0 };
        Card { row, rate: units::rate(row.rate()), unit, share, facts }
    });
    cards.collect()
}

fn notes(report: &Report) -> Vec<String> {
    let own = report
        .rows
        .iter()
        .flat_map(|row| row.notes.iter().map(move |note| format!("{}: {note}", row.title())));
    let check = report.cross_check.iter().flat_map(|check| {
        std::iter::once(check.sentence()).chain(check.row.errors.iter().map(|e| format!("cross-check: {e}")))
    });
    own.chain(check).collect()
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let check = match report.source {
        Source::Run { protocol: Protocol::Tcp | Protocol::Udp, .. } => ECHO_CHECK,
        Source::Run { protocol: Protocol::Http, .. } => HTTP_CHECK,
        Source::Logs(_) => LOGS_CHECK,
    };
    vec![
        ("load", report.load()),
        ("machine", report.machine()),
        ("latency", LATENCY.into()),
        ("CPU per request", CPU.into()),
        ("memory", MEMORY.into()),
        ("check", check.into()),
    ]
}
