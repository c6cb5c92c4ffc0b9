//! The page: one file, no network, nothing but what is in the templates.

use askama::Template;

use super::dots;
use super::entrant::Kind;
use super::figures::{Figure, Row, Verdict};
use super::question::Measure;
use super::table::{cell, columns, sentence, with_unit};
use super::{Findings, versions};
use crate::report::units;

/// How many colours there are for the entrants.
const HUES: usize = 14;

#[derive(Template)]
#[template(path = "compare.html")]
struct Page<'a> {
    findings: &'a Findings,
    title: &'static str,
    date: String,
    sample: String,
    cards: Vec<Card>,
    /// The question, its table, and its targets.
    missed: Vec<(String, String, String)>,
    subjects: Vec<Subject<'a>>,
    facts: Vec<(&'static str, String)>,
}

/// One half of the comparison: how many targets are met, and how many rivals fibra is ahead of.
struct Card {
    heading: String,
    met: usize,
    targets: usize,
    /// The share of the targets that are met, in percent.
    share: f64,
    facts: Vec<(&'static str, String)>,
}

/// A chart and a table.
struct Subject<'a> {
    heading: String,
    /// The entrants, each with the number of its colour.
    columns: Vec<(&'static str, usize)>,
    dots: String,
    rows: &'a [Row],
}

/// Returns the findings as a page.
pub(super) fn render(findings: &Findings) -> String {
    let names = names(&findings.rows);
    let same = |one: &Row, other: &Row| (one.subject, one.workers) == (other.subject, other.workers);
    let verdicts =
        findings.rows.iter().flat_map(|row| row.verdicts.iter().map(move |verdict| (row, verdict)));
    let missed = verdicts.filter(|(_, verdict)| !verdict.is_met());
    let page = Page {
        findings,
        title: "fibra beside its rivals",
        date: httpdate::fmt_http_date(findings.started),
        sample: units::time(findings.sample),
        cards: findings.rows.chunk_by(|one, other| one.workers == other.workers).map(card).collect(),
        missed: missed
            .map(|(row, verdict)| (row.label(), heading(row), sentence(row.measure, verdict)))
            .collect(),
        subjects: findings.rows.chunk_by(same).map(|rows| subject(rows, &names)).collect(),
        facts: facts(findings),
    };
    page.render().expect("a text has room")
}

fn card(rows: &[Row]) -> Card {
    let verdicts: Vec<&Verdict> = rows.iter().flat_map(|row| &row.verdicts).collect();
    let (met, targets) = (verdicts.iter().filter(|verdict| verdict.is_met()).count(), verdicts.len());
    let standings: Vec<f64> = rows.iter().filter_map(|row| Some(row.standing.as_ref()?.ratio)).collect();
    let ahead = standings.iter().filter(|ratio| **ratio <= 1.0).count();
    let unjudged: usize = rows.iter().map(|row| row.unjudged.len()).sum();
    let mut facts = Vec::new();
    if unjudged > 0 {
        facts.push(("not judged", format!("{unjudged} targets, in proportion to one worker")));
    }
    facts.push(("not behind the best rival", format!("{ahead} of {} rows", standings.len())));
    let mean = mean(&standings).map_or("–".into(), units::three_digits);
    facts.push(("to the best rival, in the geometric mean", mean));
    let share = (1e3 * met as f64 / targets.max(1) as f64).round() / 10.0;
    Card { heading: workers(&rows[0]), met, targets, share, facts }
}

fn mean(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
}

fn workers(row: &Row) -> String {
    format!("{} worker{}", row.workers, if row.workers == 1 { "" } else { "s" })
}

fn heading(row: &Row) -> String {
    format!("{}, {}", row.subject, workers(row))
}

/// Returns the names of all entrants, each of which has a colour.
fn names(rows: &[Row]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for name in rows.iter().flat_map(|row| row.figures.iter().map(|figure| figure.entrant)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn subject<'a>(rows: &'a [Row], names: &[&'static str]) -> Subject<'a> {
    let hue = |name: &str| names.iter().position(|known| *known == name).unwrap_or(0) % HUES;
    let columns: Vec<_> = columns(rows).into_iter().map(|(name, _)| (name, hue(name))).collect();
    Subject { heading: heading(&rows[0]), dots: dots::draw(rows, hue), rows, columns }
}

impl Subject<'_> {
    /// The best rival and the ratio to it, in one cell.
    fn standing(&self, row: &Row) -> [(String, String); 1] {
        let standing = row.standing.as_ref();
        [standing.map_or_else(Default::default, |best| {
            (format!("of {}", best.of), units::three_digits(best.ratio))
        })]
    }

    /// The sentence and the limit of each target, and whether it is met.
    fn marks(&self, row: &Row) -> Vec<(String, String, bool)> {
        let mark = |verdict: &Verdict| {
            (sentence(row.measure, verdict), limit(row.measure, verdict), verdict.is_met())
        };
        row.verdicts.iter().map(mark).collect()
    }

    /// The class, the details and the text of each cell of a row.
    fn cells(&self, row: &Row) -> Vec<(&'static str, String, String)> {
        let figures = row.figures.iter().filter(|figure| figure.kind != Kind::Floor);
        let best = figures.map(Figure::median).fold(f64::MAX, f64::min);
        let shown = |(name, _): &(&str, usize)| {
            let Some(figure) = row.figure(name) else { return ("none", String::new(), "·".into()) };
            let [lower, _, upper] = figure.quartiles.map(|quartile| with_unit(row.measure, quartile));
            let class = if figure.median() <= best { "best" } else { "" };
            (class, format!("half of the samples: {lower} to {upper}"), cell(row.measure, figure.median()))
        };
        self.columns.iter().map(shown).collect()
    }
}

fn limit(measure: Measure, verdict: &Verdict) -> String {
    match verdict.of {
        Some(_) => verdict.most.to_string(),
        None => with_unit(measure, verdict.most),
    }
}

fn facts(findings: &Findings) -> Vec<(&'static str, String)> {
    vec![
    ("machine", findings.machine.line()),
    ("versions", versions().join(", ")),
    ("rounds", "each asks every entrant once, in another order each time, so that a drift of the machine hits all".to_owned()),
    ("ratios", "the median of the ratios of the same round, and not the ratio of the medians".to_owned()),
    ("CPU", "processor time of all threads of the process, by sleeps; of a server by requests".to_owned()),
    ("lateness", "from when a sleep should have ended until the task runs".to_owned()),
    ("most to least", "what the luckiest of the tasks got in proportion to the unluckiest".to_owned()),
    ("memory", "resident beyond what was before the first task, each answer in a process of its own".to_owned()),
    ("network", "each server is a process on one processor, loaded for 400 ms from another, where latency is seen".to_owned()),
    ]
}
