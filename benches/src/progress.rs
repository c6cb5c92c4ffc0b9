//! The progress of a run: a bar on a terminal, a line now and then elsewhere.

use crate::report::units;
use crate::terminal::complain;
use crate::wire::{Order, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Shows the progress of one run on standard error: standard output is the report's.
pub(crate) enum Show {
    /// On a terminal.
    Bar(ProgressBar),
    /// Anywhere else.
    Lines {
        /// The server under load.
        title: String,
        /// When the next line is due.
        next: Instant,
    },
}

impl Show {
    pub(crate) fn new(title: &str, order: &Order) -> Self {
        if io::stderr().is_terminal() && io::stdout().is_terminal() {
            return Self::Bar(new_bar(title, order.warmup + order.duration));
        }
        complain(format_args!("{title}: loading {} with {} connections", order.address, order.connections));
        Self::Lines { title: title.to_owned(), next: Instant::now() + LINE_EVERY }
    }

    /// Shows nothing.
    #[cfg(feature = "rivals")]
    pub(crate) fn nothing() -> Self {
        Self::Bar(ProgressBar::hidden())
    }

    pub(crate) fn update(&mut self, progress: &Progress) {
        match self {
            Self::Bar(bar) => {
                bar.set_position(u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX));
                bar.set_message(describe(progress));
            }
            Self::Lines { title, next } if Instant::now() >= *next => {
                let elapsed = progress.elapsed.as_secs_f64();
                complain(format_args!("{title}: {elapsed:.1} s, {}", describe(progress)));
                *next = Instant::now() + LINE_EVERY;
            }
            Self::Lines { .. } => {}
        }
    }

    /// Replaces the progress by a last line.
    pub(crate) fn finish(self, word: &str) {
        match self {
            Self::Bar(bar) => bar.finish_with_message(word.to_owned()),
            Self::Lines { title, .. } => complain(format_args!("{title}: {word}")),
        }
    }
}

fn new_bar(title: &str, length: Duration) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{prefix:>16.bold} {bar:28.green/black.bright} {wide_msg}");
    bar.set_style(style.expect("the template is sound").progress_chars("━╸─"));
    bar.set_prefix(title.to_owned());
    bar.set_message("connecting");
    bar
}

fn describe(progress: &Progress) -> String {
    let warming = if progress.measuring { "" } else { " (warming up)" };
    let faults = match progress.faults {
        0 => String::new(),
        count => format!(" · errors: {count}"),
    };
    if progress.rate == 0.0 {
        return format!("no reply{faults}{warming}");
    }
    let rate = units::rate(progress.rate);
    format!("{rate} req/s · p99 {}{faults}{warming}", units::nanos(progress.p99))
}
