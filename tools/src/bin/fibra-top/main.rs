//! Shows what the tasks of a running program do, as `top` does for processes.

#![forbid(unsafe_code)]

mod endpoint;
mod sample;
mod view;
mod window;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, SystemTime};
use std::{env, fs, thread};

use clap::Parser;
use fibra_tools::printable::printable;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, KeyCode, KeyModifiers};
use ratatui::layout::Rect;

use endpoint::Endpoint;
use sample::Sample;
use view::View;
use window::{Sort, Window};

/// What went wrong, as a line for the user.
type Result<T> = std::result::Result<T, String>;

/// How many tasks `--once` prints at the most.
const MOST: usize = 200;

/// Shows what the tasks of a running program do, as `top` does for processes.
///
/// The program serves an endpoint (`fibra_insight::serve`).
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    endpoint: Endpoint,
    /// The seconds between two samples.
    #[arg(long, default_value = "2", value_parser = interval)]
    interval: Duration,
    /// The order of the tasks.
    #[arg(long, default_value = "ran")]
    sort: Sort,
    /// Show only tasks with this text in their names.
    #[arg(long, default_value = "")]
    filter: String,
    /// Print one view as text, and end.
    #[arg(long)]
    once: bool,
}

fn interval(text: &str) -> Result<Duration> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "it may be 0.1 to 3600 seconds".to_owned())
}

fn main() -> ExitCode {
    let Options { endpoint, interval, sort, filter, once } = Options::parse();
    let view = View { sort, filter, ..View::default() };
    let samples = sampler(endpoint.clone(), interval);
    let shown = if once { print_once(&samples, view) } else { show(&endpoint, &samples, view) };
    if let Err(error) = &shown {
        eprintln!("fibra-top: {}", printable(error));
    }
    if shown.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Has a thread take samples, for as long as they are wanted.
fn sampler(endpoint: Endpoint, interval: Duration) -> Receiver<Result<Sample>> {
    let (sender, samples) = mpsc::sync_channel(0);
    thread::spawn(move || {
        while sender.send(Sample::take(&endpoint)).is_ok() {
            thread::sleep(interval);
        }
    });
    samples
}

fn print_once(samples: &Receiver<Result<Sample>>, mut view: View) -> Result<()> {
    let mut window = Window::default();
    for _ in 0..2 {
        window.add(samples.recv().expect("samples are wanted")?);
    }
    let tasks = window.tasks(view.sort, &view.filter).len();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 160, View::height(&window, tasks.min(MOST))));
    view.message = if tasks > MOST { format!("{} further tasks", tasks - MOST) } else { " ".to_owned() };
    view.render(&window, buffer.area, &mut buffer);
    io::stdout().write_all(view::text(&buffer).as_bytes()).map_err(|error| error.to_string())
}

/// Shows views on the terminal until the user has seen enough.
fn show(endpoint: &Endpoint, samples: &Receiver<Result<Sample>>, mut view: View) -> Result<()> {
    let mut window = Window::default();
    // Before the screen is taken: an error then stands below the command.
    window.add(samples.recv().expect("samples are wanted")?);
    let io = |error: io::Error| format!("the terminal fails: {error}");
    let mut terminal = ratatui::try_init().map_err(io)?;
    let mut show = || loop {
        if let Ok(taken) = samples.try_recv() {
            window.add(taken?);
        }
        view.scroll = view.scroll.min(window.last.tasks.len().saturating_sub(1));
        terminal.draw(|frame| view.render(&window, frame.area(), frame.buffer_mut())).map_err(io)?;
        match next_key().map_err(io)? {
            Some(KeyCode::Null) => return Ok(()),
            Some(KeyCode::Char('q')) if !view.is_typing => return Ok(()),
            Some(KeyCode::Char('d')) if !view.is_typing => {
                let file = dump(endpoint, window.last.process);
                view.message = file.map_or_else(
                    |error| printable(&error),
                    |file| format!("the dump is in {}", file.display()),
                );
            }
            Some(key) => view.press(key),
            None => {}
        }
    };
    let shown = show();
    ratatui::restore();
    shown
}

/// Waits for a key for a moment; Ctrl-C is `Null`.
fn next_key() -> std::io::Result<Option<KeyCode>> {
    if !event::poll(Duration::from_millis(100))? {
        return Ok(None);
    }
    let key = event::read()?.as_key_press_event();
    Ok(key.map(|key| match (key.modifiers.contains(KeyModifiers::CONTROL), key.code) {
        (true, KeyCode::Char('c')) => KeyCode::Null,
        (_, code) => code,
    }))
}

impl View {
    /// Does what a key stands for.
    fn press(&mut self, key: KeyCode) {
        match (self.is_typing, key) {
            (true, KeyCode::Char(letter)) => self.filter.push(letter),
            (true, KeyCode::Backspace) => _ = self.filter.pop(),
            (true, KeyCode::Enter) => self.is_typing = false,
            (_, KeyCode::Esc) => (self.is_typing, self.filter) = (false, String::new()),
            (false, KeyCode::Char('/')) => self.is_typing = true,
            (false, KeyCode::Char('s')) => self.sort = [Sort::Age, Sort::Wait, Sort::Ran][self.sort as usize],
            (_, KeyCode::Up) => self.scroll = self.scroll.saturating_sub(1),
            (_, KeyCode::Down) => self.scroll += 1,
            _ => return,
        }
        self.message.clear();
    }
}

/// Writes a dump with all stacks to a new file in the current directory. Returns its path.
fn dump(endpoint: &Endpoint, process: u64) -> Result<PathBuf> {
    let text = endpoint.get("/tasks?debug=2")?;
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let path = env::current_dir().unwrap_or_default().join(format!("fibra-{process}-{seconds}.txt"));
    let written = fs::File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_filter_and_scroll() {
        let mut view = View { message: "the dump is in x".into(), ..View::default() };
        view.press(KeyCode::Char('s'));
        assert_eq!((view.sort, view.message.as_str()), (Sort::Age, ""));
        "/sq".chars().for_each(|letter| view.press(KeyCode::Char(letter)));
        assert!(view.is_typing && view.filter == "sq" && view.sort == Sort::Age);
        view.press(KeyCode::Backspace);
        view.press(KeyCode::Enter);
        assert!(!view.is_typing && view.filter == "s");
        view.press(KeyCode::Esc);
        assert_eq!(view.filter, "");
        [KeyCode::Down, KeyCode::Down, KeyCode::Up].into_iter().for_each(|key| view.press(key));
        assert_eq!(view.scroll, 1);
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        assert!(["0", "-1", "NaN", "inf", "5 s"].iter().all(|text| interval(text).is_err()));
    }
}
