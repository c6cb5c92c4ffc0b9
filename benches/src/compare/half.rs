//! One half of the comparison, that with so many workers, in processes of its own: may takes its number of
//! workers once for a process, and an entrant that dies or hangs there is not asked again.

use std::io::{self, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::driver::{Event, Order, Series, Wanted, join};
use super::entrant::Contest;
use super::options::Options;
use crate::child::{self, Child};
use crate::interrupt::Interrupt;
use crate::role::Role;

/// How long a sample may take beyond what it should before its process is given up.
const PATIENCE: Duration = Duration::from_secs(40);

/// How often the interrupt is looked at.
const GLANCE: Duration = Duration::from_millis(100);

/// What was found about one question.
pub(super) struct Found {
    /// Its place among the contests.
    pub(super) contest: usize,
    pub(super) series: Vec<Series>,
}

/// Asks all questions that are wanted of such contests.
pub(super) struct Half<'a> {
    contests: &'a [Contest],
    options: &'a Options,
    interrupt: &'a Interrupt,
    progress: ProgressBar,
    /// The faults.
    pub(super) faults: Vec<String>,
}

/// How a measuring process ended.
enum End {
    Well,
    Interrupted,
    /// Its error, and the question and the entrant that it was asking.
    Badly(String, Option<(String, String)>),
}

impl<'a> Half<'a> {
    pub(super) fn new(contests: &'a [Contest], options: &'a Options, interrupt: &'a Interrupt) -> Self {
        let progress = ProgressBar::new(contests.len() as u64);
        let style = ProgressStyle::with_template("{pos}/{len} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        progress.set_style(style);
        Half { contests, options, interrupt, progress, faults: Vec::new() }
    }

    /// Measures, and hands over what is found about each subject as soon as that is complete.
    pub(super) fn measure(&mut self, mut complete: impl FnMut(&[Found])) -> io::Result<Vec<Found>> {
        let mut all: Vec<Found> = Vec::new();
        for (first, subject) in subjects(self.contests) {
            let begin = all.len();
            match subject[0].is_alone {
                true => self.measure_alone(first, subject, &mut all)?,
                false => self.measure_together(first, subject, &mut all)?,
            }
            self.progress.suspend(|| complete(&all[begin..]));
            if self.interrupt.is_set() {
                break;
            }
        }
        self.progress.finish_and_clear();
        Ok(all)
    }

    /// In one process, or, after one died, in one more.
    fn measure_together(
        &mut self,
        first: usize,
        subject: &[Contest],
        all: &mut Vec<Found>,
    ) -> io::Result<()> {
        let mut wanted: Vec<Wanted> = subject.iter().map(|contest| self.wanted(contest)).collect();
        wanted.retain(|wanted| !wanted.entrants.is_empty());
        let mut contests = subject.iter().zip(first..);
        let progress = self.progress.clone();
        while !wanted.is_empty() {
            let order = self.order(subject[0].workers, self.options.rounds, wanted.clone());
            let end = self.run(&order, |title, series| {
                wanted.retain(|wanted| wanted.title != title);
                let contest = contests.find(|(contest, _)| contest.title() == title);
                all.extend(contest.map(|(_, contest)| Found { contest, series }));
                progress.inc(1);
            })?;
            match end {
                End::Well => break,
                End::Interrupted => return Ok(()),
                End::Badly(why, at) => self.leave_out(&mut wanted, why, at),
            }
        }
        self.faults.extend(wanted.iter().map(|wanted| format!("{}: there was no answer", wanted.title)));
        Ok(())
    }

    /// In a process for each sample.
    fn measure_alone(&mut self, first: usize, subject: &[Contest], all: &mut Vec<Found>) -> io::Result<()> {
        for (contest, number) in subject.iter().zip(first..) {
            let mut series: Vec<Series> = Vec::new();
            let mut wanted = vec![self.wanted(contest)];
            for _ in 0..self.options.rounds {
                for entrant in wanted.first().map_or_else(Vec::new, |wanted| wanted.entrants.clone()) {
                    let only = Wanted { title: contest.title(), entrants: vec![entrant] };
                    let order = self.order(contest.workers, 1, vec![only]);
                    match self.run(&order, |_, found| join(&mut series, found))? {
                        End::Well => {}
                        End::Interrupted => return Ok(()),
                        End::Badly(why, at) => self.leave_out(&mut wanted, why, at),
                    }
                }
            }
            all.push(Found { contest: number, series });
            self.progress.inc(1);
        }
        Ok(())
    }

    fn wanted(&self, contest: &Contest) -> Wanted {
        let names = contest.entrants.iter().map(|entrant| entrant.name.to_owned());
        let entrants = names.filter(|name| self.options.wants_entrant(name)).collect();
        Wanted { title: contest.title(), entrants }
    }

    fn order(&self, workers: usize, rounds: u32, wanted: Vec<Wanted>) -> Order {
        Order { workers, rounds, sample: self.options.sample(), wanted }
    }

    /// Leaves out the entrant that was being asked when the process died; all of them where that is not
    /// known.
    fn leave_out(&mut self, wanted: &mut Vec<Wanted>, why: String, at: Option<(String, String)>) {
        let Some((title, entrant)) = at else {
            self.faults.push(why);
            wanted.clear();
            return;
        };
        for wanted in wanted.iter_mut().filter(|wanted| wanted.title == title) {
            wanted.entrants.retain(|name| *name != entrant);
        }
        wanted.retain(|wanted| !wanted.entrants.is_empty());
        self.faults.push(format!("{title}: {entrant} is left out: {why}"));
    }

    fn run(&self, order: &Order, mut answered: impl FnMut(&str, Vec<Series>)) -> io::Result<End> {
        let mut child = Child::start(&mut Role::Comparer.command(None)?)?;
        writeln!(child.take_stdin()?, "{}", serde_json::to_string(order)?)?;
        let events = child::listen(child.take_stdout()?)?;
        let (mut at, mut heard) = (None, Instant::now());
        loop {
            match events.recv_timeout(GLANCE) {
                Ok(Event::Asking { title, entrant }) => {
                    self.progress.set_message(format!("{title} · {entrant}"));
                    (at, heard) = (Some((title, entrant)), Instant::now());
                }
                Ok(Event::Answered { title, series }) => {
                    answered(&title, series);
                    (at, heard) = (None, Instant::now());
                }
                Err(_) if self.interrupt.is_set() => return Ok(End::Interrupted),
                Err(RecvTimeoutError::Timeout) if heard.elapsed() > PATIENCE + 20 * order.sample => {
                    return Ok(End::Badly("no answer came".to_owned(), at));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(match child.wait() {
                        Ok(()) => End::Well,
                        Err(obituary) => End::Badly(obituary, at),
                    });
                }
            }
        }
    }
}

/// The contests of each subject, and the place of the first of them.
fn subjects(contests: &[Contest]) -> impl Iterator<Item = (usize, &[Contest])> {
    let same = |one: &Contest, other: &Contest| one.subject == other.subject;
    let mut first = 0;
    contests.chunk_by(same).map(move |subject| {
        let begin = first;
        first += subject.len();
        (begin, subject)
    })
}
