//! The page: one file, no network, nothing but what is written here.

use std::fmt::Write as _;

use super::dots;
use super::entrant::Kind;
use super::figures::{Figure, Row, Verdict};
use super::question::Measure;
use super::table::{cell, columns, ratio, sentence, with_unit};
use super::{Findings, versions};
use crate::report::document::{self, escape, fact};
use crate::report::units;

const STYLE: &str = include_str!("page.css");

const TITLE: &str = "fibra beside its rivals";

/// How many colours there are for the entrants.
const HUES: usize = 14;

/// The findings as a page.
pub(super) fn render(findings: &Findings) -> String {
    let mut page = String::with_capacity(256 * 1024);
    document::open(TITLE, STYLE, &mut page);
    header(findings, &mut page);
    cards(findings, &mut page);
    missed(findings, &mut page);
    let names = names(&findings.rows);
    let same = |one: &Row, other: &Row| (one.subject, one.workers) == (other.subject, other.workers);
    findings.rows.chunk_by(same).for_each(|rows| subject(rows, &names, &mut page));
    facts(findings, &mut page);
    document::close("", &mut page);
    page
}

fn header(findings: &Findings, page: &mut String) {
    let date = escape(&units::date(findings.started));
    let _ = writeln!(page, "<header>\n<p class=\"kicker\">fibra · compare · {date}</p>\n<h1>{TITLE}</h1>");
    let _ = writeln!(
        page,
        "<p class=\"lead\">The same questions for each, asked in turns: {} rounds of {} for each question and each entrant. \
         Medians; less is better everywhere. In the charts \
         1 is what fibra needs: who is to the right of it is slower, to the left faster; the bar through a dot holds half of the \
         samples. Point at a dot for its figures.</p>",
        findings.rounds,
        units::time(findings.sample)
    );
    if findings.interrupted {
        page.push_str("<p class=\"alarm\">Interrupted: this is what was found so far.</p>\n");
    }
    for fault in &findings.faults {
        let _ = writeln!(page, "<p class=\"alarm\">{}</p>", escape(fault));
    }
    page.push_str("</header>\n");
}

/// For each half: how many targets are met, and before whom fibra is.
fn cards(findings: &Findings, page: &mut String) {
    let mut workers: Vec<usize> = findings.rows.iter().map(|row| row.workers).collect();
    workers.dedup();
    page.push_str("<section class=\"cards\" aria-label=\"Targets met\">\n");
    for (number, workers) in workers.into_iter().enumerate() {
        let rows = || findings.rows.iter().filter(|row| row.workers == workers);
        let verdicts: Vec<&Verdict> = rows().flat_map(|row| &row.verdicts).collect();
        let met = verdicts.iter().filter(|verdict| verdict.is_met()).count();
        let standings: Vec<f64> = rows().filter_map(|row| Some(row.standing.as_ref()?.ratio)).collect();
        let ahead = standings.iter().filter(|ratio| **ratio <= 1.0).count();
        let share = 100.0 * met as f64 / verdicts.len().max(1) as f64;
        let _ = write!(
            page,
            "<article class=\"s{number}\">\n<h2>{workers} worker{}</h2>\n<p class=\"big\">{met} of {}<span> targets met</span></p>\n\
             <div class=\"bar\"><i style=\"width:{share:.1}%\"></i></div>\n<dl>",
            if workers == 1 { "" } else { "s" },
            verdicts.len()
        );
        let unjudged: usize = rows().map(|row| row.unjudged.len()).sum();
        if unjudged > 0 {
            fact("not judged", &format!("{unjudged} targets, in proportion to one worker"), page);
        }
        fact("not behind the best rival", &format!("{ahead} of {} rows", standings.len()), page);
        fact("to the best rival, in the geometric mean", &mean(&standings).map_or("–".into(), ratio), page);
        page.push_str("</dl>\n</article>\n");
    }
    page.push_str("</section>\n");
}

fn mean(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
}

fn missed(findings: &Findings, page: &mut String) {
    let all = findings.rows.iter().flat_map(|row| row.verdicts.iter().map(move |verdict| (row, verdict)));
    let missed: Vec<(&Row, &Verdict)> = all.filter(|(_, verdict)| !verdict.is_met()).collect();
    if missed.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Missed targets</h2>\n<ul class=\"missed\">\n");
    for (row, verdict) in missed {
        let _ = writeln!(
            page,
            "<li><b>{}</b>, {}<span>{}</span></li>",
            escape(&row.label()),
            heading(row),
            escape(&sentence(row.measure, verdict))
        );
    }
    page.push_str("</ul>\n</section>\n");
}

fn heading(row: &Row) -> String {
    let s = if row.workers == 1 { "" } else { "s" };
    escape(&format!("{}, {} worker{s}", row.subject, row.workers))
}

/// The names of all entrants, each of which has a colour.
fn names(rows: &[Row]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for name in rows.iter().flat_map(|row| row.figures.iter().map(|figure| figure.entrant)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn subject(rows: &[Row], names: &[&'static str], page: &mut String) {
    let hue = |name: &str| names.iter().position(|known| *known == name).unwrap_or(0) % HUES;
    let _ = writeln!(page, "<figure>\n<figcaption><h2>{}</h2>", heading(&rows[0]));
    page.push_str("</figcaption>\n<ul class=\"legend\">");
    let columns = columns(rows);
    for (name, _) in &columns {
        let _ = write!(
            page,
            "<li><i class=\"dot\" style=\"background:var(--c{})\"></i>{}</li>",
            hue(name),
            escape(name)
        );
    }
    page.push_str("</ul>\n<div class=\"scroll\">");
    page.push_str(&dots::draw(&rows.iter().collect::<Vec<_>>(), hue));
    page.push_str(
        "</div>\n<details open><summary>Figures</summary>\n<div class=\"scroll\"><table>\n<thead><tr>",
    );
    page.push_str("<th scope=\"col\">nanoseconds, unless said</th><th scope=\"col\">to the best</th>");
    page.push_str("<th scope=\"col\">targets</th>");
    for (name, _) in &columns {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escape(name));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    rows.iter().for_each(|row| line(row, &columns, page));
    page.push_str("</tbody>\n</table></div>\n</details>\n</figure>\n");
}

fn line(row: &Row, columns: &[(&'static str, usize)], page: &mut String) {
    let _ = write!(page, "<tr><th scope=\"row\">{}</th>", escape(&row.label()));
    let standing = row.standing.as_ref().map(|standing| (escape(&standing.of), ratio(standing.ratio)));
    let (of, ratio) = standing.unwrap_or_default();
    let _ = write!(page, "<td title=\"of {of}\">{ratio}</td><td>");
    row.verdicts.iter().for_each(|verdict| mark(row.measure, verdict, page));
    page.push_str("</td>");
    let figures = row.figures.iter().filter(|figure| figure.kind != Kind::Floor);
    let best = figures.map(Figure::median).fold(f64::MAX, f64::min);
    for (name, _) in columns {
        match row.figure(name) {
            None => page.push_str("<td class=\"none\">·</td>"),
            Some(figure) => shown(row.measure, figure, figure.median() <= best, page),
        }
    }
    page.push_str("</tr>\n");
}

/// The cell of an entrant.
fn shown(measure: Measure, figure: &Figure, is_best: bool, page: &mut String) {
    let class = if is_best { "best" } else { "" };
    let [lower, _, upper] = figure.quartiles.map(|quartile| escape(&with_unit(measure, quartile)));
    let text = escape(&cell(measure, figure.median()));
    let _ =
        write!(page, "<td class=\"{class}\" title=\"half of the samples: {lower} to {upper}\">{text}</td>");
}

fn mark(measure: Measure, verdict: &Verdict, page: &mut String) {
    let (class, sign) = if verdict.is_met() { ("tick", '✓') } else { ("cross-mark", '✗') };
    let (title, most) = (escape(&sentence(measure, verdict)), escape(&limit(measure, verdict)));
    let _ = write!(page, "<span title=\"{title}\">{most} <b class=\"{class}\">{sign}</b></span> ");
}

fn limit(measure: Measure, verdict: &Verdict) -> String {
    match verdict.of {
        Some(_) => verdict.most.to_string(),
        None => with_unit(measure, verdict.most),
    }
}

fn facts(findings: &Findings, page: &mut String) {
    page.push_str("<section class=\"facts\">\n<h2>How it was measured</h2>\n<dl>");
    fact("machine", &findings.machine.line(), page);
    fact("versions", &versions().join(", "), page);
    fact(
        "rounds",
        "each asks every entrant once, in another order each time, so that a drift of the machine hits all",
        page,
    );
    fact("ratios", "the median of the ratios of the same round, and not the ratio of the medians", page);
    fact("CPU", "processor time of all threads of the process, by sleeps; of a server by requests", page);
    fact("lateness", "from when a sleep should have ended until the task runs", page);
    fact("most to least", "what the luckiest of the tasks got in proportion to the unluckiest", page);
    fact(
        "memory",
        "resident beyond what was before the first task, each answer in a process of its own",
        page,
    );
    fact(
        "network",
        "each server is a process on one processor, loaded for 400 ms from another, where latency is seen",
        page,
    );
    page.push_str("</dl>\n</section>\n");
}
