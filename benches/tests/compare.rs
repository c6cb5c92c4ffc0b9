//! What `compare` promises: a table, a page and a file for what was asked, and nothing for what was not.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn compare(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_compare")).args(options).output().expect("compare can be started")
}

fn text(stream: &[u8]) -> String {
    String::from_utf8_lossy(stream).into_owned()
}

/// A path of a file that each test has for itself.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compare").join(name)
}

/// Asks few questions of few, once, for a moment.
fn ask(name: &str, questions: &[&str], workers: &str) -> (Output, String, Value) {
    let (page, figures) = (file(&format!("{name}.html")), file(&format!("{name}.json")));
    let mut options = vec!["--rounds", "1", "--seconds", "0.001", "--workers", workers];
    options.extend(["--html", page.to_str().expect("a path of text"), "--json"]);
    options.push(figures.to_str().expect("a path of text"));
    options.extend(questions);
    let output = compare(&options);
    assert!(output.status.success(), "{output:?}");
    let figures = std::fs::read_to_string(&figures).expect("the figures");
    let page = std::fs::read_to_string(&page).expect("the page");
    (output, page, serde_json::from_str(&figures).expect("figures for machines"))
}

#[test]
fn what_is_asked_comes_into_the_table_the_page_and_the_file() {
    let (output, page, figures) = ask("whole", &["^tasks: spawn and join one$"], "1");
    let table = text(&output.stdout);
    assert!(table.lines().any(|line| line.starts_with("tasks, 1 worker")), "{table}");
    let line = table.lines().find(|line| line.starts_with("spawn and join one")).expect("a line for it");
    assert!(
        line.split_whitespace().filter_map(|cell| cell.replace(',', "").parse::<f64>().ok()).count() >= 7,
        "{line}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 120 || line.starts_with("rustc")), "{table}");
    let row = &figures["rows"][0];
    assert_eq!((&row["question"], &row["workers"]), (&"spawn and join one".into(), &1.into()));
    let names: Vec<_> =
        row["entrants"].as_array().into_iter().flatten().map(|entrant| &entrant["name"]).collect();
    for name in ["fibra", "fibra migr.", "may", "tokio current", "tokio multi", "smol", "std threads"] {
        assert!(names.contains(&&Value::from(name)), "{names:?}");
        assert!(page.contains(name), "{name}");
    }
    assert!(row["ratio_to_best_rival"].as_f64().is_some_and(|ratio| ratio > 0.0), "{row}");
    assert_eq!(row["targets"][0]["at_most"], 0.5);
    assert!(figures["versions"].as_array().is_some_and(|versions| versions.len() > 5), "{figures}");
}

#[test]
fn a_reader_that_goes_away_costs_no_figures() {
    let unread = || Stdio::from(io::pipe().expect("a pipe").1);
    let (page, figures) = (file("unread.html"), file("unread.json"));
    // Those of the last run are not meant.
    for file in [&page, &figures] {
        let _ = std::fs::remove_file(file);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
    command.args(["--rounds", "1", "--seconds", "0.001", "--workers", "1", "--among", "std"]);
    command.arg("--html").arg(&page).arg("--json").arg(&figures).arg("^locks: mutex, free$");
    let status = command.stdout(unread()).stderr(unread()).status().expect("compare can be started");
    assert_eq!(status.code(), Some(1));
    let found: Value =
        serde_json::from_str(&std::fs::read_to_string(figures).expect("the figures")).expect("JSON");
    assert!(found["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{found}");
    assert!(page.exists());
}

#[test]
fn what_cannot_be_written_is_said_before_an_entrant_is_asked() {
    let output =
        compare(&["--workers", "1", "--json", env!("CARGO_TARGET_TMPDIR"), "^tasks: spawn and join one$"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty() && text(&output.stderr).contains("could not be written"), "{output:?}");
}

#[test]
fn the_page_is_whole_in_one_file() {
    let (_, page, _) = ask("page", &["^locks: mutex, free$"], "1");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<svg") && page.contains("mutex, free"));
    assert!(
        !page.contains("http://") && !page.contains("https://") && !page.contains(" src="),
        "it needs a network"
    );
}

#[test]
fn a_target_of_two_workers_knows_the_figure_with_one() {
    let (_, _, figures) = ask("halves", &["^hand-over: ping-pong, event$"], "1,2");
    let rows = figures["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().map(|row| row["workers"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    let targets = rows[1]["targets"].as_array().expect("targets");
    assert!(targets.iter().any(|target| target["in_proportion_to"] == "one worker"), "{targets:?}");
    assert_eq!(rows[1]["not_judged"], 0);
}

#[test]
fn a_target_that_lacks_the_figure_with_one_worker_is_not_judged_and_said_to_be_so() {
    let (output, page, figures) = ask("half", &["^hand-over: ping-pong, event$"], "2");
    assert_eq!(figures["rows"][0]["not_judged"], 1);
    let table = text(&output.stdout);
    let line = "? ping-pong, event: fibra to one worker, meant at most 1.3: not judged";
    assert!(table.lines().any(|found| found.starts_with(line)), "{table}");
    assert!(page.contains("not judged"));
}

#[test]
fn every_question_about_a_crowd_comes_to_an_end() {
    let (_, _, figures) = ask("crowds", &["--among=fibra", "^crowds: "], "2");
    let rows = figures["rows"].as_array().expect("rows");
    let times = rows.iter().filter(|row| row["measure"] == "Time");
    assert_eq!(times.clone().count(), 8, "{rows:?}");
    assert!(times.map(|row| &row["entrants"][0]["median"]).all(|time| time.as_f64() > Some(0.0)), "{rows:?}");
}

#[test]
fn each_answer_about_memory_has_a_process_of_its_own() {
    let (_, _, figures) = ask("memory", &["^memory: 2000 "], "1");
    let row = &figures["rows"][0];
    assert_eq!(row["measure"], "Memory");
    for entrant in row["entrants"].as_array().expect("entrants") {
        let bytes = entrant["median"].as_f64().expect("a figure");
        assert!((16.0..1e6).contains(&bytes), "{entrant}");
    }
}

#[test]
fn servers_are_asked_what_a_request_costs_and_how_long_it_takes() {
    let (_, _, figures) = ask("network", &["^network: (echo, 64 |HTTP)"], "1");
    let rows = figures["rows"].as_array().expect("rows");
    let measures: Vec<_> = rows.iter().map(|row| &row["measure"]).collect();
    assert_eq!(measures, ["Cpu", "Latency", "LatencyTail", "Cpu", "Latency", "LatencyTail"]);
    let medians = |row: &Value| -> Vec<(String, f64)> {
        let entrants = row["entrants"].as_array().into_iter().flatten();
        let figure =
            |entrant: &Value| Some((entrant["name"].as_str()?.to_owned(), entrant["median"].as_f64()?));
        entrants.filter_map(figure).collect()
    };
    let echo =
        ["fibra", "fibra migr.", "may", "tokio current", "tokio multi", "smol", "std threads", "event loop"];
    for (question, asked) in [(&rows[..3], &echo[..]), (&rows[3..], &["fibra", "may", "tokio current"])] {
        let [cpu, median, tail] = [0, 1, 2].map(|measure| medians(&question[measure]));
        assert_eq!(cpu.iter().map(|(name, _)| name).collect::<Vec<_>>(), asked);
        assert!(cpu.iter().all(|(_, nanos)| *nanos > 0.0), "{cpu:?}");
        assert!(median.iter().zip(&tail).all(|((_, median), (_, tail))| 0.0 < *median && median <= tail));
    }
    assert_eq!(rows[0]["targets"].as_array().map(Vec::len), Some(2), "{}", rows[0]);
}

#[test]
fn a_server_that_cannot_be_loaded_is_named_and_left_out() {
    let few_files = format!("ulimit -n 300; exec {} --rounds 1 --among fibra", env!("CARGO_BIN_EXE_compare"));
    let page = file("left-out.html");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{few_files} --html {} '^network: echo, 1000 '", page.display())]);
    let output = command.output().expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let words = text(&output.stderr);
    let fault = "network: echo, 1000 connections: fibra is left out: exit status 1: 1000 connections need";
    assert!(words.contains(fault), "{words}");
}

#[test]
fn the_list_names_every_subject_and_measures_nothing() {
    let output = compare(&["--list"]);
    let list = text(&output.stdout);
    assert!(output.status.success());
    for subject in [
        "tasks",
        "structured",
        "locks",
        "hand-over",
        "hand-over, apart",
        "crowds",
        "free",
        "timers",
        "skewed load",
        "memory",
        "network",
    ] {
        assert!(list.lines().any(|line| line.starts_with(&format!("{subject}: "))), "{subject}: {list}");
    }
    let some = text(&compare(&["--list", "--workers", "1", "--among", "may", "^tasks: yield, 2 "]).stdout);
    assert_eq!(some.trim(), "tasks: yield, 2 tasks [1 worker]: may");
}

#[test]
fn a_question_without_entrants_is_no_success() {
    for nothing in [&["no such question"][..], &["--among", "nobody"]] {
        let output = compare(nothing);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains("--list"), "{output:?}");
    }
}

#[test]
fn the_servers_of_the_rivals_send_everything_back() {
    for rival in ["tokio-current", "tokio-multi", "smol", "may"] {
        let echoed = asked(env!("CARGO_BIN_EXE_echo_rivals"), rival, echo);
        assert_eq!(echoed.expect("a connection"), *b"hello, you there", "{rival}");
    }
}

#[test]
fn the_http_servers_of_the_rivals_answer() {
    for rival in ["may_minihttp", "hyper"] {
        let found = asked(env!("CARGO_BIN_EXE_http_rivals"), rival, |address| get(address, "/plaintext"));
        let found = found.expect("a connection");
        assert!(found.starts_with("HTTP/1.1 200 ") && found.ends_with("\r\n\r\nHello, World!"), "{found}");
        let none = asked(env!("CARGO_BIN_EXE_http_rivals"), rival, |address| get(address, "/none"));
        assert!(none.expect("a connection").starts_with("HTTP/1.1 404 "), "{rival}");
    }
}

/// What comes of a question to a server, which runs for as long.
fn asked<T>(program: &str, rival: &str, question: impl FnOnce(&str) -> io::Result<T>) -> io::Result<T> {
    let mut command = Command::new(program);
    let mut server = command.arg(rival).stdout(Stdio::piped()).spawn().expect("it can be started");
    let mut line = String::new();
    let stdout = server.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("its first line");
    let address = line.trim().strip_prefix("listening on ").expect("where it listens");
    let answer = question(address);
    server.kill().expect("it runs until it is ended");
    server.wait().expect("it has ended");
    answer
}

/// The answer to a request, which is as long as its head says and no more than one reads.
fn get(address: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut answer = [0; 4096];
    let count = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..count]).into_owned())
}

fn echo(address: &str) -> io::Result<[u8; 16]> {
    let mut stream = TcpStream::connect(address)?;
    let mut reply = [0; 16];
    for half in [b"hello, y", b"ou there"] {
        stream.write_all(half)?;
    }
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

#[test]
fn an_interrupt_ends_the_run_with_what_was_found() {
    let page = file("interrupted.html");
    let page_option = page.to_str().expect("a path of text");
    let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
    // It would take minutes.
    command.args([
        "--rounds",
        "1",
        "--seconds",
        "200",
        "--workers",
        "1",
        "--among",
        "std",
        "--html",
        page_option,
    ]);
    let mut run =
        command.args(["^locks: mutex, free"]).stdout(Stdio::piped()).spawn().expect("compare starts");
    // It listens for signals before it prints the machine.
    let mut lines = BufReader::new(run.stdout.take().expect("a pipe")).lines();
    lines.next().expect("a first line").expect("text");
    let signal = Command::new("sh").args(["-c", &format!("kill -INT {}", run.id())]).status();
    assert!(signal.expect("a shell").success());
    assert_eq!(run.wait().expect("it ends").code(), Some(130));
    assert!(lines.map_while(Result::ok).any(|line| line.starts_with("page: ")));
    assert!(std::fs::read_to_string(page).expect("the page").contains("Interrupted"));
}

#[test]
fn a_wrong_command_line_is_status_2() {
    for wrong in ["--rounds 0", "--seconds x", "--workers 0", "--json -", "(", "--what"] {
        let wrong: Vec<_> = wrong.split(' ').collect();
        assert_eq!(compare(&wrong).status.code(), Some(2), "{wrong:?}");
    }
}
