//! The entrants: the libraries that are asked.

use super::question::{Answer, Question, Row, Size, Target};
use super::targets;

/// A library that was started with some number of workers.
pub(super) trait Rival<Q> {
    /// Does `operations` of the kind that `question` asks about.
    fn answer(&self, question: Q, operations: u64) -> Answer;
}

/// A library before its start.
pub(super) struct Entrant<Q: 'static> {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) start: Start<Q>,
    pub(super) enters: Enters<Q>,
}

/// Starts a library with so many workers.
pub(super) type Start<Q> = fn(workers: usize) -> Box<dyn Rival<Q>>;

/// Whether it is asked a question with so many workers.
pub(super) type Enters<Q> = fn(Q, workers: usize) -> bool;

impl<Q> Entrant<Q> {
    pub(super) const fn ours(name: &'static str, start: Start<Q>, enters: Enters<Q>) -> Self {
        Entrant { name, kind: Kind::Ours, start, enters }
    }

    pub(super) const fn theirs(name: &'static str, start: Start<Q>, enters: Enters<Q>) -> Self {
        Entrant { name, kind: Kind::Theirs, start, enters }
    }

    pub(super) const fn floor(name: &'static str, start: Start<Q>, enters: Enters<Q>) -> Self {
        Entrant { name, kind: Kind::Floor, start, enters }
    }
}

/// For entrants that are asked everything.
pub(super) fn always<Q>(_: Q, _: usize) -> bool {
    true
}

/// For entrants that have one worker.
pub(super) fn on_one_worker<Q>(_: Q, workers: usize) -> bool {
    workers == 1
}

/// The side of an entrant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// fibra, in some form.
    Ours,
    /// A rival of fibra.
    Theirs,
    /// The needs of the machine itself, or a lower bound.
    Floor,
}

/// A question and its entrants, of any subject.
pub struct Contest {
    /// The table in which it stands.
    pub subject: &'static str,
    /// The question.
    pub name: &'static str,
    /// How many workers each runtime has.
    pub workers: usize,
    /// The entrants, in the order of the columns.
    pub entrants: Vec<Contestant>,
    pub(super) size: Size,
    pub(super) targets: Vec<Target>,
    pub(super) is_alone: bool,
}

/// An entrant that is asked a certain question.
pub struct Contestant {
    /// The head of its column.
    pub name: &'static str,
    pub(super) kind: Kind,
    /// Its place among all entrants of the subject.
    pub(super) place: usize,
    start: Box<dyn Fn() -> Started>,
}

/// Does so many operations.
pub type Started = Box<dyn Fn(u64) -> Answer>;

impl Contestant {
    /// Starts the library, which ends when what this returns is dropped.
    #[must_use]
    pub fn start(&self) -> Started {
        (self.start)()
    }
}

impl Contest {
    /// Its name on the command line and in the records.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}: {}", self.subject, self.name)
    }

    /// Whether it is the time that is asked for, of as many operations as fill it.
    #[must_use]
    pub fn is_about_time(&self) -> bool {
        matches!(self.size, Size::Filling { .. })
    }

    /// All questions of one kind with so many workers.
    pub(super) fn all<Q: Question>(entrants: &'static [Entrant<Q>], workers: usize) -> Vec<Self> {
        let rows = Q::ALL.iter().flat_map(|(subject, rows)| rows.iter().map(move |row| (*subject, row)));
        let asked = rows.filter(|(_, row)| row.0.includes(workers));
        asked.map(|(subject, row)| Contest::new(subject, row, entrants, workers)).collect()
    }

    fn new<Q: Question>(
        subject: &'static str,
        &(_, question, name, size): &Row<Q>,
        entrants: &'static [Entrant<Q>],
        workers: usize,
    ) -> Self {
        let numbered = entrants.iter().enumerate();
        let entering = numbered.filter(|(_, entrant)| (entrant.enters)(question, workers));
        let contestant = |(place, entrant): (usize, &'static Entrant<Q>)| Contestant {
            name: entrant.name,
            kind: entrant.kind,
            place,
            start: Box::new(move || {
                let rival = (entrant.start)(workers);
                Box::new(move |operations| rival.answer(question, operations))
            }),
        };
        Contest {
            subject,
            name,
            workers,
            entrants: entering.map(contestant).collect(),
            size,
            targets: targets::of(&format!("{subject}: {name}"), workers),
            is_alone: Q::IS_ALONE,
        }
    }
}
