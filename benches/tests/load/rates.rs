//! Rates, and the requests that are due by them whatever becomes of their connections.

use super::{Folder, LONG, command, due, echo, load, number, run, run_out, serve, signal, status, text};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Echoes on all connections; on one of them, counted from 0, no more than twenty pieces, and then it keeps silent.
fn freezes_once(one: usize) -> impl Fn(TcpStream) + Send + Sync + 'static {
    let seen = AtomicUsize::new(0);
    move |stream| {
        let freezes = seen.fetch_add(1, SeqCst) == one;
        let mut pieces = 0;
        echo(stream, |_| {
            pieces += 1;
            if freezes && pieces > 20 {
                loop {
                    thread::park();
                }
            }
        });
    }
}

#[test]
fn what_is_due_on_a_lost_connection_waits_to_the_end() {
    let folder = Folder::new("lost-lane");
    // The first of the second rung: it has a hundred requests a second, and is given up after 1.7 s. No other is, though
    // the machine stand still for a second.
    let options = ["--rate", "50,400", "--duration", "2s", "--timeout", "1500ms"];
    let output = load(&folder, serve(freezes_once(4)), &options);
    assert_eq!(status(&output), 1, "{output:?}");
    let figures = folder.figures();
    let row = &figures["servers"][1];
    assert_eq!(number(row, "/faults/timed_out"), 1, "{row}");
    let (due, planned) = due(row, 400.0);
    assert!(due.abs_diff(planned) <= 8, "{due} of {planned}");
    assert!(number(row, "/unsent") >= 100, "{row}");
    assert!(number(row, "/latency/max") >= 1_800_000_000, "{row}");
    let page = folder.page();
    let rate = page.split("<p class=\"rate\">").nth(1).and_then(|rest| rest.split('<').next());
    let rate: u32 = rate.and_then(|digits| digits.parse().ok()).expect("a rate of three digits at the most");
    // With the lower one as well, unless that was held up at its end.
    assert!(rate < 100 && page.contains("rate kept up with"), "{rate}");
}

/// The lane goes on, but what was lost stays due.
#[test]
fn a_request_that_is_lost_with_its_own_connection_waits_to_the_end() {
    let folder = Folder::new("lost-request");
    let serve_one = |stream| echo(stream, |_| ());
    let seen = AtomicUsize::new(0);
    let address = serve(move |stream| match seen.fetch_add(1, SeqCst) {
        50 => loop {
            thread::park();
        },
        _ => serve_one(stream),
    });
    let options =
        ["--churn", "--connections", "4", "--rate", "100", "--duration", "3s", "--timeout", "1500ms"];
    let output = load(&folder, address, &options);
    assert_eq!(status(&output), 1, "{output:?}");
    let figures = folder.figures();
    let row = &figures["servers"][0];
    assert_eq!(number(row, "/faults/timed_out"), 1, "{row}");
    // The one that was lost, and the last of each lane where the end comes while its connection is being made.
    assert!((1..=5).contains(&number(row, "/unsent")), "{row}");
    let (due, planned) = due(row, 100.0);
    assert!(due.abs_diff(planned) <= 8, "{due} of {planned}");
    assert!(number(row, "/latency/max") >= 2_000_000_000, "{row}");
}

#[test]
fn the_plain_client_counts_what_is_due_on_a_lost_connection_too() {
    let folder = Folder::new("plain-lane");
    let address = serve(freezes_once(4)).to_string();
    let options = ["--address", &address, "--rate", "400", "--duration", "2s", "--timeout", "1500ms"];
    let output = run(command(&folder, &options));
    assert_eq!(status(&output), 1, "{output:?}");
    let figures = folder.figures();
    let row = &figures["cross_check"]["server"];
    assert_eq!(number(row, "/faults/timed_out"), 1, "{row}");
    let (due, planned) = due(row, 400.0);
    assert!(due.abs_diff(planned) <= 8, "{due} of {planned}");
    assert!(number(row, "/latency/max") >= 1_800_000_000, "{row}");
}

#[test]
fn an_interrupt_at_a_rate_beyond_all_ends_with_the_figures() {
    let folder = Folder::new("beyond-all");
    let (begin, begun) = mpsc::channel();
    let address = serve(move |stream| echo(stream, |_| _ = begin.send(()))).to_string();
    let options = ["--address", &address, "--no-cross-check", "--rate", "10000k", "--duration", LONG];
    let load = command(&folder, &options).spawn().expect("load can be started");
    begun.recv().expect("it asks");
    // So many come due meanwhile that each by itself would take longer than an interrupt leaves.
    thread::sleep(Duration::from_secs(2));
    signal("INT", load.id());
    let output = run_out(load);
    assert_eq!(status(&output), 130, "{output:?}");
    let figures = folder.figures();
    assert!(number(&figures, "/servers/0/replies") > 0, "{figures}");
    assert!(number(&figures, "/servers/0/unsent") > 1_000_000, "{figures}");
}

#[test]
fn a_rate_at_which_nothing_is_due_is_no_error() {
    let folder = Folder::new("low-rate");
    let address = serve(|stream| echo(stream, |_| {}));
    // The first is due at the beginning of the warm-up, the second two and a half seconds later.
    let output = load(&folder, address, &["--rate", "0.4", "--connections", "1", "--duration", "400ms"]);
    assert_eq!(status(&output), 0, "{output:?}");
    assert_eq!(number(&folder.figures(), "/servers/0/latency/count"), 0);
    assert!(text(&output).contains("0.4 requests per second"), "{output:?}");
}
