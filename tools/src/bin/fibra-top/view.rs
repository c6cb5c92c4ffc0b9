//! What is on the screen.

#![forbid(unsafe_code)]

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Row, Table, Widget};

use crate::sample::Task;
use crate::window::{Sort, Window};

/// How many workers, kinds of waits and objects have a line.
const WORKERS: usize = 8;
const WAITS: usize = 5;

const STATES: [&str; 5] = ["running", "ready", "suspended", "blocking", "unstarted"];
const KEYS: &str = "q quit  s sort  / filter  d dump  arrows scroll";

/// What the user has chosen to see.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    /// The keys go into the filter.
    pub(crate) is_typing: bool,
    /// How many tasks are above the first on the screen.
    pub(crate) scroll: usize,
    /// The last line, in place of the keys.
    pub(crate) message: String,
}

impl View {
    /// Returns how many lines there are with that many tasks.
    pub(crate) fn height(window: &Window, tasks: usize) -> u16 {
        heights(window).iter().sum::<u16>() + 1 + tasks as u16 + 1
    }

    pub(crate) fn render(&self, window: &Window, area: Rect, buffer: &mut Buffer) {
        let heights = heights(window).map(Constraint::Length);
        let rows = Layout::vertical(heights.into_iter().chain([Constraint::Min(0), Constraint::Length(1)]));
        let rows = rows.split(area);
        let count = |state: &&str| window.last.number(&format!("fibra_tasks{{state=\"{state}\"}}"));
        let states = STATES.map(|state| format!("{} {state}", count(&state))).join(", ");
        let (process, up) = (window.last.process, seconds(window.last.number("fibra_uptime_seconds")));
        let all: f64 = STATES.iter().map(count).sum();
        let title = format!("process {process}, up {up}: {all} tasks, {states}");
        Line::styled(title, Modifier::BOLD).render(rows[0], buffer);
        render_workers(window, rows[1], buffer);
        render_waits(window, rows[3], buffer);
        self.render_tasks(window, rows[5], buffer);
        let bottom = match (self.is_typing, self.message.is_empty()) {
            (true, _) => format!("filter by name: {}_", self.filter),
            (false, true) => KEYS.to_owned(),
            (false, false) => self.message.clone(),
        };
        Line::from(bottom).render(rows[6], buffer);
    }

    fn render_tasks(&self, window: &Window, area: Rect, buffer: &mut Buffer) {
        let tasks = window.tasks(self.sort, &self.filter);
        let row = |task: &&Task| {
            let wait = task.wait.as_ref().map(|wait| (seconds(wait.waited), wait.text.clone()));
            let (waited, text) = wait.unwrap_or_default();
            let ran = format!("{:.0}%", window.ran(task) * 100.0);
            let id = task.id.to_string();
            Row::new([id, task.state.clone(), ran, seconds(task.age), waited, task.name.clone(), text])
        };
        let mark = |sort, title: &str| title.to_owned() + if self.sort == sort { "*" } else { "" };
        let (ran, age, wait) = (mark(Sort::Ran, "RAN"), mark(Sort::Age, "AGE"), mark(Sort::Wait, "WAITED"));
        let name = if self.filter.is_empty() { "TASK".to_owned() } else { format!("TASK /{}/", self.filter) };
        let head = ["ID".to_owned(), "STATE".to_owned(), ran, age, wait, name, "WAITS FOR".to_owned()];
        let widths = [8, 10, 5, 8, 8].map(Constraint::Length);
        let widths = widths.into_iter().chain([Constraint::Fill(2), Constraint::Fill(3)]);
        // No more rows than fit: there may be very many.
        let begin = self.scroll.min(tasks.len().saturating_sub(1));
        let rows = tasks.iter().skip(begin).take(area.height.into()).map(row);
        table(head, rows, widths.collect()).render(area, buffer);
    }
}

/// Returns the heights of the parts above the tasks.
fn heights(window: &Window) -> [u16; 5] {
    let workers = window.last.workers().min(WORKERS) as u16;
    [1, workers + 1, 1, WAITS as u16 + 1, 1]
}

fn render_workers(window: &Window, area: Rect, buffer: &mut Buffer) {
    let row = |(index, [busy, runs, parks, stolen, queued]): (usize, [f64; 5])| {
        let bar = "#".repeat((busy * 20.0).round() as usize);
        let [runs, parks, stolen] = [runs, parks, stolen].map(|rate| format!("{rate:.0}/s"));
        let busy = format!("{:3.0}% {bar}", busy * 100.0);
        Row::new([index.to_string(), busy, runs, parks, stolen, queued.to_string()])
    };
    let head = ["WORKER", "BUSY", "RUNS", "PARKS", "STOLEN", "QUEUED"].map(str::to_owned);
    let widths = [8, 26, 10, 10, 10, 10].map(Constraint::Length).to_vec();
    table(head, window.workers().into_iter().take(WORKERS).enumerate().map(row), widths).render(area, buffer);
}

/// Renders the kinds of waits, and beside them the objects with the most waiters.
fn render_waits(window: &Window, area: Rect, buffer: &mut Buffer) {
    let halves = Layout::horizontal([Constraint::Length(34), Constraint::Min(0)]).split(area);
    let row = |(count, kind): (usize, &str)| Row::new([count.to_string(), kind.to_owned()]);
    let (head, widths) =
        (["WAITING", "FOR"].map(str::to_owned), [Constraint::Length(8), Constraint::Fill(1)]);
    table(head, window.kinds().into_iter().take(WAITS).map(row), widths.to_vec()).render(halves[0], buffer);
    let name = |id: u64| {
        let owner = window.last.tasks.iter().find(|task| task.id == id);
        owner.map_or(format!("{id}"), |owner| format!("{id} {}", owner.name))
    };
    let row = |(waiters, place, owner): (usize, String, Option<u64>)| {
        Row::new([waiters.to_string(), place, owner.map_or(String::new(), name)])
    };
    let head = ["WAITERS", "AT", "OWNER"].map(str::to_owned);
    let widths = vec![Constraint::Length(8), Constraint::Fill(1), Constraint::Fill(1)];
    table(head, window.objects().into_iter().take(WAITS).map(row), widths).render(halves[1], buffer);
}

/// Returns rows below a head.
fn table<'a, const N: usize>(
    head: [String; N],
    rows: impl Iterator<Item = Row<'a>>,
    widths: Vec<Constraint>,
) -> Table<'a> {
    Table::new(rows, widths).header(Row::new(head).style(Style::new().add_modifier(Modifier::REVERSED)))
}

fn seconds(seconds: f64) -> String {
    let (unit, name) = if seconds < 100.0 { (1.0, "s") } else { (60.0, "m") };
    format!("{:.1}{name}", seconds / unit)
}

/// Returns the lines of a buffer, without the spaces at their ends and the empty lines at the end.
pub(crate) fn text(buffer: &Buffer) -> String {
    let symbols = |y| (0..buffer.area.width).map(move |x| buffer[(x, y)].symbol()).collect::<String>();
    let text: String = (0..buffer.area.height).map(|y| symbols(y).trim_end().to_owned() + "\n").collect();
    text.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::window::tests::window;

    fn view(sort: Sort) -> View {
        View { sort, ..View::default() }
    }

    fn drawn(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let window = window();
        terminal.draw(|frame| view.render(&window, frame.area(), frame.buffer_mut())).unwrap();
        text(terminal.backend().buffer())
    }

    #[test]
    fn the_screen_is_as_in_the_readme() {
        let screen = drawn(&view(Sort::Ran), 100, 19);
        let readme = include_str!("../../../README.md");
        let (_, section) = readme.split_once("## fibra-top\n").expect("a section");
        let (_, picture) = section.split_once("```text\nprocess ").expect("a picture");
        let (picture, _) = picture.split_once("```").expect("its end");
        assert_eq!(screen, format!("process {picture}"), "\n{screen}");
    }

    #[test]
    fn the_order_the_filter_and_the_scroll_show_in_the_tasks() {
        let ids = |view: &View| {
            let screen = drawn(view, 100, 19);
            let tasks = screen.lines().skip_while(|line| !line.starts_with("ID")).skip(1).take(5);
            tasks.filter_map(|line| line.split(' ').next()?.parse().ok()).collect::<Vec<u64>>()
        };
        assert_eq!(ids(&view(Sort::Wait)), [5, 3, 4, 1, 2]);
        assert_eq!(ids(&View { scroll: 3, ..view(Sort::Wait) }), [1, 2]);
        assert_eq!(ids(&View { scroll: 100, ..view(Sort::Wait) }), [2], "the last one stays");
        let typing = View { filter: "job-3".into(), is_typing: true, ..view(Sort::Age) };
        assert_eq!(ids(&typing), [3]);
        let screen = drawn(&typing, 100, 19);
        assert!(screen.contains("AGE*") && screen.ends_with("filter by name: job-3_\n"), "{screen}");
    }

    #[test]
    fn a_small_screen_is_no_panic() {
        for (width, height) in [(1, 1), (20, 3), (40, 10), (300, 4)] {
            drawn(&view(Sort::Age), width, height);
        }
    }
}
