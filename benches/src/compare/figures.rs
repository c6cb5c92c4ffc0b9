//! Medians and quartiles of the samples, fibra's ratio to the best rival, and the targets that are met.

use std::collections::BTreeMap;

use super::driver::Series;
use super::entrant::{Contest, Kind};
use super::half::Found;
use super::question::{Bound, Measure, Target};

/// One line of a table: a question and a measure.
pub(super) struct Row {
    pub(super) subject: &'static str,
    pub(super) workers: usize,
    pub(super) name: &'static str,
    pub(super) measure: Measure,
    pub(super) figures: Vec<Figure>,
    pub(super) standing: Option<Ratio>,
    pub(super) verdicts: Vec<Verdict>,
    /// Targets in proportion to what was found with one worker, where nothing was.
    pub(super) unjudged: Vec<Target>,
}

/// The figures of one entrant.
pub(super) struct Figure {
    pub(super) entrant: &'static str,
    pub(super) kind: Kind,
    /// Its place among all entrants of the subject.
    pub(super) place: usize,
    pub(super) samples: Vec<f64>,
    pub(super) quartiles: [f64; 3],
}

/// fibra in proportion to another entrant: the median of the rounds' ratios.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) of: String,
    pub(super) ratio: f64,
}

/// The verdict on a target.
pub(super) struct Verdict {
    pub(super) entrant: &'static str,
    pub(super) most: f64,
    /// What it is in proportion to; `None` for the figure itself.
    pub(super) of: Option<String>,
    pub(super) reached: f64,
}

/// The figures with one worker that targets of the other half are in proportion to: by title, measure and
/// entrant.
#[derive(Default)]
pub(super) struct OneWorker(BTreeMap<(String, Measure, &'static str), f64>);

impl Figure {
    pub(super) fn median(&self) -> f64 {
        self.quartiles[1]
    }
}

impl Verdict {
    pub(super) fn is_met(&self) -> bool {
        self.reached <= self.most
    }
}

/// Returns the lines of one question, one for each measure.
pub(super) fn rows(contest: &Contest, found: &Found, one_worker: &mut OneWorker) -> Vec<Row> {
    let mut measures: Vec<Measure> = found.series.iter().map(|series| series.measure).collect();
    measures.sort();
    measures.dedup();
    let row = |measure| {
        let mut row = Row {
            subject: contest.subject,
            workers: contest.workers,
            name: contest.name,
            measure,
            figures: figures(contest, &found.series, measure),
            standing: None,
            verdicts: Vec::new(),
            unjudged: Vec::new(),
        };
        row.standing = row.standing();
        for target in contest.targets.iter().filter(|target| target.measure == measure) {
            match row.verdict(target, one_worker) {
                Some(verdict) => row.verdicts.push(verdict),
                None if target.of == Bound::OneWorker => row.unjudged.push(*target),
                // One of the two has not entered.
                None => {}
            }
        }
        if contest.workers == 1 {
            let median = |figure: &Figure| ((contest.title(), measure, figure.entrant), figure.median());
            one_worker.0.extend(row.figures.iter().map(median));
        }
        row
    };
    measures.into_iter().map(row).collect()
}

fn figures(contest: &Contest, series: &[Series], measure: Measure) -> Vec<Figure> {
    let figure = |series: &Series| {
        let entrant = contest.entrants.iter().find(|entrant| entrant.name == series.entrant)?;
        Some(Figure {
            entrant: entrant.name,
            kind: entrant.kind,
            place: entrant.place,
            samples: series.samples.clone(),
            quartiles: quartiles(&series.samples),
        })
    };
    let mut figures: Vec<Figure> =
        series.iter().filter(|series| series.measure == measure).filter_map(figure).collect();
    figures.sort_by_key(|figure| figure.place);
    figures
}

impl Row {
    /// The name of the question and, but for times, of the measure.
    pub(super) fn label(&self) -> String {
        format!("{}{}", self.name, self.measure.suffix())
    }

    pub(super) fn figure(&self, entrant: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.entrant == entrant)
    }

    /// fibra in proportion to the best rival. Shares are in no proportion to each other.
    fn standing(&self) -> Option<Ratio> {
        let best = self.best(|figure| figure.kind == Kind::Theirs)?;
        (self.measure != Measure::Shares).then(|| self.ratio("fibra", best))?
    }

    fn best(&self, among: impl Fn(&Figure) -> bool) -> Option<&Figure> {
        let some = self.figures.iter().filter(|figure| among(figure));
        some.min_by(|one, other| one.median().total_cmp(&other.median()))
    }

    fn ratio(&self, entrant: &str, of: &Figure) -> Option<Ratio> {
        let ratio = median_ratio(&self.figure(entrant)?.samples, &of.samples)?;
        Some(Ratio { of: of.entrant.to_owned(), ratio })
    }

    fn verdict(&self, target: &Target, one_worker: &OneWorker) -> Option<Verdict> {
        let ours = self.figure(target.entrant)?;
        let Ratio { of, ratio } = match target.of {
            Bound::Best => self.ratio(target.entrant, self.best(|figure| figure.kind == Kind::Theirs)?)?,
            Bound::Named(name) => {
                self.ratio(target.entrant, self.best(|figure| figure.entrant.starts_with(name))?)?
            }
            Bound::OneWorker => {
                let key = (format!("{}: {}", self.subject, self.name), self.measure, target.entrant);
                Ratio { of: "one worker".to_owned(), ratio: ours.median() / one_worker.0.get(&key)? }
            }
            Bound::Itself => Ratio { of: String::new(), ratio: ours.median() },
        };
        let of = Some(of).filter(|of| !of.is_empty());
        Some(Verdict { entrant: target.entrant, most: target.most, of, reached: ratio })
    }
}

/// Returns the median of the ratios within the rounds.
fn median_ratio(ours: &[f64], theirs: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    (!ratios.is_empty()).then(|| quartiles(&ratios)[1])
}

/// Returns the quartiles, interpolated between samples.
fn quartiles(samples: &[f64]) -> [f64; 3] {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|share| {
        let place = share * (sorted.len() - 1) as f64;
        let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        below + (above - below) * place.fract()
    })
}

#[cfg(test)]
mod tests;
