//! Logs of several generators, and the one report of them.

use super::{Folder, command, echo, load, number, run, serve, status, text};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

/// A load that keeps a log, and its figures.
fn load_with_log(folder: &Folder, address: SocketAddr, name: &str, options: &[&str]) -> (PathBuf, Value) {
    let log = folder.path.join(name);
    let path = log.to_str().expect("the folder has a name in letters");
    let output = load(folder, address, &[&["--log", path, "--timeout", "5s"], options].concat());
    assert_eq!(status(&output), 0, "{output:?}");
    (log, folder.figures())
}

fn merge(folder: &Folder, logs: &[&Path]) -> Output {
    let mut merge = Command::new(env!("CARGO_BIN_EXE_load"));
    merge.arg("merge").args(logs);
    merge.arg("--html").arg(folder.path.join("page.html"));
    merge.arg("--json").arg(folder.path.join("figures.json"));
    run(merge)
}

/// The buckets of a row's histogram: nanoseconds, and how many requests took as long.
fn buckets(row: &Value) -> Vec<(u64, u64)> {
    let pairs = row["latency"]["histogram"].as_array().expect("a list");
    pairs.iter().map(|pair| (number(pair, "/0"), number(pair, "/1"))).collect()
}

/// The latency that this share of the requests did not exceed.
fn percentile(mut buckets: Vec<(u64, u64)>, share: f64) -> u64 {
    buckets.sort_unstable();
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut left = (all as f64 * share).ceil() as u64;
    for (nanos, count) in buckets {
        match left.checked_sub(count) {
            Some(rest @ 1..) => left = rest,
            _ => return nanos,
        }
    }
    panic!("the share is beyond the end");
}

#[test]
fn two_logs_are_the_sum_of_both_with_the_percentiles_of_both() {
    let folder = Folder::new("merge");
    let quick = serve(|stream| echo(stream, |_| {}));
    let slow = serve(|stream| echo(stream, |_| thread::sleep(Duration::from_millis(3))));
    let (one, first) = load_with_log(&folder, quick, "one.hlog", &[]);
    // The same server for whoever merges, since it has the same name.
    let name = format!("{quick}={slow}");
    let path = folder.path.join("other.hlog");
    let options =
        ["--address", &name, "--no-cross-check", "--timeout", "5s", "--log", path.to_str().expect("letters")];
    assert_eq!(status(&run(command(&folder, &options))), 0);
    let second = folder.figures();

    let output = merge(&folder, &[&one, &path]);
    assert_eq!(status(&output), 0, "{output:?}");
    let merged = folder.figures();
    assert_eq!(merged["servers"].as_array().map(Vec::len), Some(1), "{merged}");
    for count in ["/servers/0/replies", "/servers/0/latency/count", "/servers/0/connected"] {
        assert_eq!(number(&merged, count), number(&first, count) + number(&second, count), "{count}");
    }
    let all = [buckets(&first["servers"][0]), buckets(&second["servers"][0])].concat();
    for (place, share) in
        merged["servers"][0]["latency"]["percentiles"].as_array().expect("a list").iter().enumerate()
    {
        let share = share["share"].as_f64().expect("a number");
        let ns = number(&merged, &format!("/servers/0/latency/percentiles/{place}/ns"));
        if (0.25..1.0).contains(&share) {
            assert_eq!(ns, percentile(all.clone(), share), "{share}");
        }
    }
    let rate = |figures: &Value| figures["servers"][0]["requests_per_second"].as_f64().expect("a number");
    assert!((rate(&merged) - rate(&first) - rate(&second)).abs() < 1.0, "{merged}");
    // One was over before the other began.
    let printed = text(&output);
    assert!(printed.contains("2 logs merged") && printed.contains("not of the same time"), "{printed}");
}

#[test]
fn rows_of_other_servers_and_other_loads_stay_apart() {
    let folder = Folder::new("apart");
    let address = serve(|stream| echo(stream, |_| {}));
    let (one, _) = load_with_log(&folder, address, "one.hlog", &["--rate", "200,400"]);
    let (other, _) = load_with_log(&folder, address, "other.hlog", &["--rate", "400,800"]);
    let output = merge(&folder, &[&one, &other]);
    assert_eq!(status(&output), 0, "{output:?}");
    let figures = folder.figures();
    let rows = figures["servers"].as_array().expect("a list");
    let asked: Vec<_> = rows.iter().map(|row| row["asked_per_second"].as_f64()).collect();
    // What both have loaded with is asked for twice.
    assert_eq!(asked, [Some(200.0), Some(800.0), Some(800.0)]);
    assert!(folder.page().contains("Latency by rate"));
}

#[test]
fn what_went_wrong_stays_wrong() {
    let folder = Folder::new("merge-wrong");
    let log = folder.path.join("wrong.hlog");
    let options = ["--log", log.to_str().expect("letters")];
    let output = load(&folder, serve(|stream| echo(stream, |bytes| bytes[3] ^= 1)), &options);
    assert_eq!(status(&output), 1, "{output:?}");
    let wrong = number(&folder.figures(), "/servers/0/faults/wrong_bytes");
    let output = merge(&folder, &[&log]);
    assert_eq!(status(&output), 1, "{output:?}");
    assert_eq!(number(&folder.figures(), "/servers/0/faults/wrong_bytes"), wrong);
}

#[test]
fn a_log_without_our_comments_is_read_too() {
    let folder = Folder::new("foreign");
    let (log, figures) = load_with_log(&folder, serve(|stream| echo(stream, |_| {})), "own.hlog", &[]);
    let text = fs::read_to_string(&log).expect("the log was written");
    let bare: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    fs::write(&log, bare.join("\n") + "\n").expect("the log can be written");
    let output = merge(&folder, &[&log]);
    assert_eq!(status(&output), 0, "{output:?}");
    let (count, merged) = ("/servers/0/latency/count", folder.figures());
    assert_eq!(number(&merged, count), number(&figures, count));
    assert_eq!(number(&merged, "/servers/0/replies"), number(&figures, count));
}

#[test]
fn what_is_no_log_is_named() {
    let folder = Folder::new("no-log");
    let broken = folder.path.join("broken.hlog");
    for text in ["", "#a comment\n", "hello\n", "Tag=x,1.0,1.0,1.0,AAAA\n", "Tag=x,1.0,1.0,1.0,!\n"] {
        fs::write(&broken, text).expect("the file can be written");
        let output = merge(&folder, &[&broken]);
        assert_eq!(status(&output), 1, "{text:?}: {output:?}");
        assert!(super::text(&output).contains("broken.hlog"), "{output:?}");
    }
    assert_eq!(status(&merge(&folder, &[&folder.path.join("missing.hlog")])), 1);
    assert_eq!(status(&merge(&folder, &[])), 2);
}
