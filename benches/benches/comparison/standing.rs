//! The table at the end: every median, and where fibra stands.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use super::{Entrant, Question, Target, group};

/// What has been measured since `begin` into `output`.
pub(super) struct Standing<'a> {
    pub(super) workers: usize,
    output: &'a Path,
    begin: SystemTime,
    spreads: Vec<Spreads>,
}

/// The luckiest in proportion to the unluckiest, of each sample that could tell.
struct Spreads {
    group: String,
    name: &'static str,
    seen: Vec<f64>,
}

/// One measurement, as criterion has left it behind.
struct Figure {
    group: String,
    name: String,
    /// Nanoseconds per operation.
    median: f64,
}

/// The figures of one question, and of whom they are.
struct Row<'a, Q: 'static> {
    figures: Vec<&'a Figure>,
    entrants: &'a [Entrant<Q>],
}

impl<'a> Standing<'a> {
    pub(super) fn new(output: &'a Path, workers: usize, begin: SystemTime) -> Self {
        Standing { workers, output, begin, spreads: Vec::new() }
    }

    /// Where the spreads of one answer are to be noted.
    pub(super) fn spreads(&mut self, question: impl Question, name: &'static str) -> &mut Vec<f64> {
        let group = group(question, self.workers);
        &mut self.spreads.push_mut(Spreads { group, name, seen: Vec::new() }).seen
    }

    /// Prints what was measured; nothing where that is nothing.
    pub(super) fn print<Q: Question>(&self, questions: &[Q], entrants: &[Entrant<Q>]) {
        let figures = read(self.output, self.begin);
        let present: Vec<&Entrant<Q>> =
            entrants.iter().filter(|entrant| measured(entrant, &figures)).collect();
        if present.is_empty() {
            return;
        }
        let mut table = format!("\n{:<44}", format!("ns per operation, workers: {}", self.workers));
        for entrant in &present {
            _ = write!(table, " {:>width$}", entrant.name, width = width(entrant));
        }
        table.push_str("   fibra against the best rival\n");
        for question in questions {
            let group = group(*question, self.workers);
            let figures: Vec<&Figure> = figures.iter().filter(|figure| figure.group == group).collect();
            let row = Row { figures, entrants };
            table.extend(row.print(*question, &present, self.workers));
        }
        println!("{table}");
        self.print_spreads(questions);
    }

    /// Prints how evenly the tasks were served, by the median sample and by the worst.
    fn print_spreads(&self, questions: &[impl Question]) {
        let told: Vec<&Spreads> = self.spreads.iter().filter(|spreads| !spreads.seen.is_empty()).collect();
        if told.is_empty() {
            return;
        }
        println!(
            "what the luckiest task got in proportion to the unluckiest: the median sample, and the worst"
        );
        for question in questions {
            let group = group(*question, self.workers);
            let cells = told.iter().filter(|spreads| spreads.group == group).map(|spreads| spreads.cell());
            let cells: Vec<String> = cells.collect();
            if !cells.is_empty() {
                println!("{:<44} {}", question.name(), cells.join(", "));
            }
        }
        println!();
    }
}

impl Spreads {
    fn cell(&self) -> String {
        let mut sorted = self.seen.clone();
        sorted.sort_by(f64::total_cmp);
        format!("{} {:.2} ({:.2})", self.name, sorted[sorted.len() / 2], sorted[sorted.len() - 1])
    }
}

impl<Q: Question> Row<'_, Q> {
    fn print(&self, question: Q, present: &[&Entrant<Q>], workers: usize) -> Option<String> {
        if self.figures.is_empty() {
            return None;
        }
        let mut row = format!("{:<44}", question.name());
        for entrant in present {
            let cell = self.median(entrant.name).map_or("-".to_owned(), |median| format!("{median:.1}"));
            _ = write!(row, " {cell:>width$}", width = width(entrant));
        }
        row.extend(self.verdict(question.target(workers)));
        row.push('\n');
        Some(row)
    }

    fn verdict(&self, target: Option<Target>) -> Option<String> {
        let ours = self.median("fibra")?;
        let (_, best) = self.best(|entrant| entrant.is_rival)?;
        let mut verdict = format!("   {:.2}", ours / best);
        let Target { ratio: most, of } = target?;
        let (name, aim) = self.best(|entrant| match of {
            "" => entrant.is_rival,
            of => entrant.name.starts_with(of),
        })?;
        let ratio = ours / aim;
        let met = if ratio <= most { "met" } else { "missed" };
        _ = write!(verdict, "; to be at most {most:.2} of {name}: {ratio:.2}, {met}");
        Some(verdict)
    }

    fn median(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.median)
    }

    /// The fastest among some.
    fn best(&self, among: impl Fn(&Entrant<Q>) -> bool) -> Option<(&'static str, f64)> {
        let some = self.entrants.iter().filter(|entrant| among(entrant));
        some.filter_map(|entrant| Some((entrant.name, self.median(entrant.name)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn measured<Q>(entrant: &Entrant<Q>, figures: &[Figure]) -> bool {
    figures.iter().any(|figure| figure.name == entrant.name)
}

fn width<Q>(entrant: &Entrant<Q>) -> usize {
    entrant.name.len().max(10)
}

fn read(output: &Path, begin: SystemTime) -> Vec<Figure> {
    let groups = folders(output);
    groups
        .flat_map(|group| folders(&group))
        .filter_map(|figure| figure_in(&figure.join("new"), begin))
        .collect()
}

fn folders(of: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(of).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn figure_in(folder: &Path, begin: SystemTime) -> Option<Figure> {
    let estimates = folder.join("estimates.json");
    if fs::metadata(&estimates).ok()?.modified().ok()? < begin {
        return None;
    }
    let (about, estimates) = (json(&folder.join("benchmark.json"))?, json(&estimates)?);
    Some(Figure {
        group: about["group_id"].as_str()?.to_owned(),
        name: about["function_id"].as_str()?.to_owned(),
        median: estimates["median"]["point_estimate"].as_f64()?,
    })
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_reader(BufReader::new(File::open(path).ok()?)).ok()
}
