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
    // One server in the merged report, since its name is equal.
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
fn what_the_server_used_is_told_if_one_log_knows() {
    let folder = Folder::new("merge-usage");
    let [one, other] = ["one.hlog", "other.hlog"].map(|name| folder.path.join(name));
    let known = |log: &Path| {
        let log = log.to_str().expect("letters");
        assert_eq!(status(&run(command(&folder, &["--server", "echo_server", "--log", log]))), 0);
        folder.figures()
    };
    let (first, _) = (known(&one), known(&other));
    // As if another generator had loaded the same server meanwhile, which it has not started.
    let text = fs::read_to_string(&one).expect("the log was written");
    let (head, rest) = text.split_once("\"server\":{").expect("the usage");
    let (_, rest) = rest.split_once("},\"unsent\"").expect("what follows it");
    let unknowing = folder.path.join("unknowing.hlog");
    fs::write(&unknowing, format!("{head}\"server\":null,\"unsent\"{rest}")).expect("it can be written");

    let cpu = "/servers/0/server_cpu_per_request_ns";
    for (logs, is_known) in [
        (vec![&*one], true),
        (vec![&*one, &unknowing], true),
        (vec![&*unknowing], false),
        (vec![&*one, &other], false),
    ] {
        assert_eq!(status(&merge(&folder, &logs)), 0, "{logs:?}");
        let merged = folder.figures();
        assert_eq!(merged["servers"][0]["resident_bytes"].is_u64(), is_known, "{logs:?}: {merged}");
        if is_known {
            // Twice the replies in the same time, by the same processor time.
            let expected = number(&first, cpu) / logs.len() as u64;
            assert!(number(&merged, cpu).abs_diff(expected) <= 1, "{logs:?}: {merged}");
        }
    }
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
    // These are logs, but of no time that there is, or of too many of them.
    let log = folder.path.join("own.hlog");
    let options = ["--log", log.to_str().expect("letters")];
    load(&folder, serve(|stream| echo(stream, |_| {})), &options);
    let own = fs::read_to_string(&log).expect("the log was written");
    let histogram = own.trim_end().rsplit(',').next().expect("a histogram");
    let beyond = "18446744073709551615.5";
    let interval = |stamp, length| format!("Tag=c/x,{stamp},{length},1.0,{histogram}\n");
    for text in [
        interval(beyond, "1.0"),
        format!("#[BaseTime: {beyond} (seconds since epoch)]\n{}", interval("1.0", "1.0")),
        interval("1.0", beyond).repeat(2),
        own.replace("\"elapsed\":{\"secs\":", "\"elapsed\":{\"secs\":9999999999999999"),
    ] {
        fs::write(&broken, &text).expect("the file can be written");
        let output = merge(&folder, &[&broken]);
        assert_eq!(status(&output), 1, "{text}: {output:?}");
        let printed = super::text(&output);
        assert!(printed.contains("broken.hlog") && printed.contains("calendars"), "{text}: {output:?}");
    }
    assert_eq!(status(&merge(&folder, &[&folder.path.join("missing.hlog")])), 1);
    assert_eq!(status(&merge(&folder, &[])), 2);
}

#[test]
fn counts_beyond_all_numbers_stay_at_the_last() {
    let folder = Folder::new("merge-counts");
    let (log, figures) = load_with_log(&folder, serve(|stream| echo(stream, |_| {})), "own.hlog", &[]);
    let text = fs::read_to_string(&log).expect("the log was written");
    let replies = format!("\"replies\":{}", number(&figures, "/servers/0/replies"));
    fs::write(&log, text.replace(&replies, &format!("\"replies\":{}", u64::MAX))).expect("it can be written");
    let output = merge(&folder, &[&log, &log]);
    assert_eq!(status(&output), 0, "{output:?}");
    assert_eq!(number(&folder.figures(), "/servers/0/replies"), u64::MAX);
}

#[test]
fn stamps_that_count_from_the_start_of_a_log_are_dated_so() {
    let folder = Folder::new("relative");
    let (log, figures) = load_with_log(&folder, serve(|stream| echo(stream, |_| {})), "own.hlog", &[]);
    let text = fs::read_to_string(&log).expect("the log was written");
    let (_, histogram) = text.trim_end().rsplit_once(',').expect("an interval");
    let day = 24 * 3600;
    for (base, started) in [("", 20_000 * day + 2), ("#[BaseTime: 100.0 (seconds since epoch)]\n", 102)] {
        let head = format!("#[StartTime: {}.0 (seconds since epoch)]\n{base}", 20_000 * day);
        fs::write(&log, format!("{head}2.5,1.0,1.0,{histogram}\n")).expect("the log can be written");
        let output = merge(&folder, &[&log]);
        assert_eq!(status(&output), 0, "{output:?}");
        let merged = folder.figures();
        assert_eq!(number(&merged, "/started_unix"), started);
        assert_eq!(number(&merged, "/servers/0/replies"), number(&figures, "/servers/0/latency/count"));
        assert!(merged["machine"].is_null(), "whose it is the log does not say: {merged}");
    }
}

#[test]
fn a_server_that_could_not_start_does_not_date_the_others() {
    let folder = Folder::new("unstarted");
    let [one, other] = ["one.hlog", "other.hlog"].map(|name| folder.path.join(name));
    let address = format!("x={}", serve(|stream| echo(stream, |_| {})));
    for (log, server) in [(&one, ["--command", "x=false"]), (&other, ["--address", &address])] {
        run(command(&folder, &[&server[..], &["--log", log.to_str().expect("letters")]].concat()));
    }
    let figures = folder.figures();
    let output = merge(&folder, &[&one, &other]);
    assert_eq!(status(&output), 1, "{output:?}");
    let merged = folder.figures();
    // The other one was begun after its start, which the figures have in whole seconds.
    let began = number(&merged, "/started_unix").checked_sub(number(&figures, "/started_unix"));
    assert!(began.is_some_and(|seconds| seconds < 60), "{merged}");
    for sum in ["/servers/0/elapsed_ns", "/servers/0/replies"] {
        assert_eq!(number(&merged, sum), number(&figures, sum), "{sum}");
    }
    assert!(!text(&output).contains("not of the same time"), "{output:?}");
}

#[test]
fn to_merge_what_was_interrupted_is_no_interrupt() {
    let folder = Folder::new("merge-interrupted");
    let (log, _) = load_with_log(&folder, serve(|stream| echo(stream, |_| {})), "own.hlog", &[]);
    let text = fs::read_to_string(&log).expect("the log was written");
    fs::write(&log, text.replace("\"interrupted\":false", "\"interrupted\":true"))
        .expect("it can be written");
    assert_eq!(status(&merge(&folder, &[&log])), 0);
    assert_eq!(folder.figures()["logs"][0]["interrupted"], true);
}
