//! The table at the end: every median, and where fibra stands.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;

use super::ENTRANTS;
use super::question::{Question, Target};

/// One measurement, as criterion has left it behind.
struct Figure {
    group: String,
    name: String,
    /// Nanoseconds per operation.
    median: f64,
}

/// Prints what was measured in `output` since `begin`; nothing where that is nothing.
pub(super) fn print(output: &Path, workers: usize, begin: SystemTime) {
    let figures = read(output, begin);
    let rows: String =
        Question::ALL.iter().filter_map(|question| row(*question, workers, &figures)).collect();
    if rows.is_empty() {
        return;
    }
    let mut head = format!("\n{:<32}", format!("ns per operation, workers: {workers}"));
    for entrant in &ENTRANTS {
        _ = write!(head, " {:>16}", entrant.name);
    }
    println!("{head}   fibra against the best rival\n{rows}");
}

fn row(question: Question, workers: usize, figures: &[Figure]) -> Option<String> {
    let group = question.group(workers);
    let figures: Vec<&Figure> = figures.iter().filter(|figure| figure.group == group).collect();
    if figures.is_empty() {
        return None;
    }
    let mut row = format!("{:<32}", question.name());
    for entrant in &ENTRANTS {
        let cell = median(&figures, entrant.name).map_or("-".to_owned(), |median| format!("{median:.1}"));
        _ = write!(row, " {cell:>16}");
    }
    row.extend(verdict(&figures, question.target(workers)));
    row.push('\n');
    Some(row)
}

fn verdict(figures: &[&Figure], target: Target) -> Option<String> {
    let ours = median(figures, "fibra")?;
    let (_, best) = best_rival(figures, "")?;
    let (name, aim) = best_rival(figures, target.of)?;
    let ratio = ours / aim;
    let met = if ratio <= target.ratio { "met" } else { "missed" };
    Some(format!("   {:.2}; to be at most {:.2} of {name}: {ratio:.2}, {met}", ours / best, target.ratio))
}

fn median(figures: &[&Figure], name: &str) -> Option<f64> {
    figures.iter().find(|figure| figure.name == name).map(|figure| figure.median)
}

/// The fastest of those whose names begin with `of`.
fn best_rival<'a>(figures: &[&'a Figure], of: &str) -> Option<(&'a str, f64)> {
    let rivals =
        figures.iter().filter(|figure| !figure.name.starts_with("fibra") && figure.name.starts_with(of));
    rivals.map(|figure| (figure.name.as_str(), figure.median)).min_by(|a, b| a.1.total_cmp(&b.1))
}

fn read(output: &Path, begin: SystemTime) -> Vec<Figure> {
    let groups = folders(output);
    groups
        .flat_map(|group| folders(&group))
        .filter_map(|figure| figure_in(&figure.join("new"), begin))
        .collect()
}

fn folders(of: &Path) -> impl Iterator<Item = std::path::PathBuf> + use<> {
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
