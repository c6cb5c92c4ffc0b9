//! The loads besides the default one, and servers of all kinds.

use super::{Folder, command, due, echo, number, run, serve, status, text};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Runs a very short `load` against a server of the test's own. It is patient: what is slow here is the machine.
fn load(folder: &Folder, address: SocketAddr, options: &[&str]) -> Output {
    let short = ["--duration", "300ms", "--warmup", "50ms", "--timeout", "5s"];
    super::load(folder, address, &[&short, options].concat())
}

/// Answers each datagram, as `change` has made it; of `None` not at all.
fn serve_datagrams(mut change: impl FnMut(&mut [u8]) -> Option<()> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let address = socket.local_addr().expect("a socket has an address");
    thread::spawn(move || {
        let mut buffer = [0; 64 * 1024];
        while let Ok((length, sender)) = socket.recv_from(&mut buffer) {
            if change(&mut buffer[..length]).is_some() {
                // The client may have gone.
                let _ = socket.send_to(&buffer[..length], sender);
            }
        }
    });
    address
}

/// Answers each GET with `reply`; the connection is kept as long as that does not say "close".
fn answer(mut stream: TcpStream, reply: &str) {
    let _ = stream.set_nodelay(true);
    let (mut buffer, mut filled) = ([0; 64 * 1024], 0);
    loop {
        match stream.read(&mut buffer[filled..]) {
            Ok(count @ 1..) => filled += count,
            _ => return,
        }
        while let Some(end) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") {
            assert!(buffer.starts_with(b"GET /some/path HTTP/1.1\r\nHost: 127.0.0.1:"), "another request");
            buffer.copy_within(end + 4..filled, 0);
            filled -= end + 4;
            if stream.write_all(reply.as_bytes()).is_err() || reply.contains("close") {
                return;
            }
        }
    }
}

fn load_http(folder: &Folder, reply: &'static str, options: &[&str]) -> Output {
    let address = serve(move |stream| answer(stream, reply));
    load(folder, address, &[&["--protocol", "http", "--path", "/some/path"], options].concat())
}

#[test]
fn mixed_sizes_come_back_in_any_pipeline() {
    let folder = Folder::new("mixed");
    let address = serve(|stream| echo(stream, |_| {})).to_string();
    for pipeline in ["1", "8"] {
        // With the second look: both clients can do it.
        let output = run(command(
            &folder,
            &["--address", &address, "--size", "64:3,5000:1", "--pipeline", pipeline, "--timeout", "5s"],
        ));
        assert_eq!(status(&output), 0, "{output:?}");
        let figures = folder.figures();
        assert!(number(&figures, "/servers/0/replies") > 0, "{figures}");
        assert!(number(&figures, "/cross_check/server/replies") > 0, "{figures}");
        assert_eq!(number(&figures, "/settings/sizes/1/bytes"), 5000);
        assert!(text(&output).contains("64 B (75 %), 4.88 KiB (25 %)"), "{output:?}");
    }
}

#[test]
fn with_churn_every_request_has_a_connection_of_its_own() {
    let folder = Folder::new("churn");
    let (connections, bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (accepted, echoed) = (Arc::clone(&connections), Arc::clone(&bytes));
    let count = move |stream| {
        accepted.fetch_add(1, SeqCst);
        echo(stream, |piece| _ = echoed.fetch_add(piece.len() as u64, SeqCst));
    };
    let output = load(&folder, serve(count), &["--churn"]);
    assert_eq!(status(&output), 0, "{output:?}");
    let replies = number(&folder.figures(), "/servers/0/replies");
    assert!(replies > 0, "{output:?}");
    assert!(text(&output).contains("conn/s"), "{output:?}");
    // The warm-up comes to that, and the requests after the end.
    let connections = connections.load(SeqCst);
    assert!(connections >= replies, "{connections} connections, {replies} replies");
    assert_eq!(bytes.load(SeqCst), connections * 64);
}

#[test]
fn with_churn_a_lost_connection_is_that_of_one_request() {
    let folder = Folder::new("churned");
    let number_of = AtomicU64::new(0);
    let hang_up_on_some = move |stream| {
        if number_of.fetch_add(1, SeqCst) >= 3 {
            echo(stream, |_| {});
        }
    };
    let output = load(&folder, serve(hang_up_on_some), &["--churn"]);
    assert_eq!(status(&output), 1, "{output:?}");
    let figures = folder.figures();
    assert_eq!(number(&figures, "/servers/0/faults/lost"), 3);
    assert!(number(&figures, "/servers/0/replies") > 0, "{output:?}");
}

#[test]
fn with_churn_more_than_was_asked_for_is_found() {
    let folder = Folder::new("churn-more");
    // In one piece with the reply, which is whole and right.
    let generous = |mut stream: TcpStream| {
        let mut reply = [b'!'; 65];
        if stream.read_exact(&mut reply[..64]).is_ok() {
            let _ = stream.write_all(&reply);
        }
    };
    let output = load(&folder, serve(generous), &["--churn"]);
    assert_eq!(status(&output), 1, "{output:?}");
    assert!(number(&folder.figures(), "/servers/0/faults/wrong_bytes") > 0, "{output:?}");
}

#[test]
fn churn_has_a_rate_as_well() {
    let folder = Folder::new("churn-rate");
    let output = load(&folder, serve(|stream| echo(stream, |_| {})), &["--churn", "--rate", "200"]);
    assert_eq!(status(&output), 0, "{output:?}");
    let (due, planned) = due(&folder.figures()["servers"][0], 200.0);
    assert!(due.abs_diff(planned) <= 4, "{due} of {planned}");
}

#[test]
fn idle_connections_are_open_to_the_end_and_silent() {
    let folder = Folder::new("idle");
    let (silent, busy) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (without, with) = (Arc::clone(&silent), Arc::clone(&busy));
    let count = move |stream| {
        let mut asked = false;
        echo(stream, |_| asked = true);
        if asked { &with } else { &without }.fetch_add(1, SeqCst);
    };
    let output = load(&folder, serve(count), &["--idle", "30"]);
    assert_eq!(status(&output), 0, "{output:?}");
    let figures = folder.figures();
    assert_eq!(number(&figures, "/servers/0/connected"), 4);
    assert!(number(&figures, "/servers/0/replies") > 0);
    assert!(text(&output).contains("4 connections beside 30 silent ones"), "{output:?}");
    // All of them end with the generator, which the server sees a moment later.
    while silent.load(SeqCst) + busy.load(SeqCst) < 34 {
        thread::yield_now();
    }
    assert_eq!((silent.load(SeqCst), busy.load(SeqCst)), (30, 4));
}

#[test]
fn idle_connections_that_the_server_closes_are_lost() {
    let folder = Folder::new("idle-lost");
    // They are the first to be connected.
    let seen = AtomicU64::new(0);
    let hang_up_on_the_silent = move |stream| {
        if seen.fetch_add(1, SeqCst) >= 5 {
            echo(stream, |_| {});
        }
    };
    // They are looked at once, when that is over.
    let output = load(&folder, serve(hang_up_on_the_silent), &["--idle", "5", "--duration", "2s"]);
    assert_eq!(status(&output), 1, "{output:?}");
    assert_eq!(number(&folder.figures(), "/servers/0/faults/lost"), 5, "{output:?}");
}

#[test]
fn datagrams_come_back() {
    let folder = Folder::new("udp");
    let output = load(&folder, serve_datagrams(|_| Some(())), &["--protocol", "udp", "--pipeline", "3"]);
    assert_eq!(status(&output), 0, "{output:?}");
    let figures = folder.figures();
    assert!(number(&figures, "/servers/0/replies") > 0, "{figures}");
    assert_eq!(number(&figures, "/servers/0/unanswered"), 0);
}

#[test]
fn lost_datagrams_are_told_and_are_no_error() {
    let folder = Folder::new("udp-lost");
    let mut seen = 0;
    let lose_some = move |_: &mut [u8]| {
        seen += 1;
        (seen % 10 != 0).then_some(())
    };
    let options = ["--protocol", "udp", "--timeout", "50ms", "--pipeline", "2"];
    let output = load(&folder, serve_datagrams(lose_some), &options);
    assert_eq!(status(&output), 0, "{output:?}");
    let figures = folder.figures();
    let (lost, replies) = (number(&figures, "/servers/0/unanswered"), number(&figures, "/servers/0/replies"));
    assert!(lost > 0 && replies > 0, "{lost} lost, {replies} replies");
    assert!(text(&output).contains("no reply came to"), "{output:?}");
}

#[test]
fn wrong_datagrams_are_found() {
    let folder = Folder::new("udp-wrong");
    let mut seen = 0;
    let one_in_ten = move |datagram: &mut [u8]| {
        seen += 1;
        datagram[20] ^= u8::from(seen % 10 == 0);
        Some(())
    };
    let output = load(&folder, serve_datagrams(one_in_ten), &["--protocol", "udp"]);
    assert_eq!(status(&output), 1, "{output:?}");
    let figures = folder.figures();
    let (wrong, right) =
        (number(&figures, "/servers/0/faults/wrong_bytes"), number(&figures, "/servers/0/replies"));
    assert!(wrong > 0 && right > wrong, "{wrong} of {right}");
}

#[test]
fn http_replies_are_read_by_length_and_by_chunks() {
    let folder = Folder::new("http");
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        for pipeline in ["1", "4"] {
            let output = load_http(&folder, reply, &["--pipeline", pipeline]);
            assert_eq!(status(&output), 0, "{output:?}");
            assert!(number(&folder.figures(), "/servers/0/replies") > 0, "{output:?}");
        }
    }
}

#[test]
fn a_server_that_closes_after_its_reply_is_connected_to_anew() {
    let folder = Folder::new("http-close");
    let reply = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let output = load_http(&folder, reply, &[]);
    assert_eq!(status(&output), 0, "{output:?}");
    assert!(number(&folder.figures(), "/servers/0/replies") > 0, "{output:?}");
}

#[test]
fn another_status_is_an_error_and_so_is_what_is_no_http() {
    let folder = Folder::new("http-wrong");
    let output = load_http(&folder, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", &[]);
    assert_eq!(status(&output), 1, "{output:?}");
    assert!(number(&folder.figures(), "/servers/0/faults/wrong_status") > 0, "{output:?}");
    let output = load_http(&folder, "220 mail.example ESMTP\r\n", &[]);
    assert_eq!(status(&output), 1, "{output:?}");
    assert!(text(&output).contains("no reply of HTTP/1.1"), "{output:?}");
    let longest = "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n";
    let output = load_http(&folder, longest, &[]);
    assert_eq!(status(&output), 1, "{output:?}");
    assert!(text(&output).contains("longer than 64 MiB"), "{output:?}");
}

#[test]
fn a_ladder_is_climbed_with_each_server() {
    let folder = Folder::new("ladder");
    let [one, other] = [(); 2].map(|()| serve(|stream| echo(stream, |_| {})));
    let (one, other) = (format!("one={one}"), format!("other={other}"));
    let output = run(command(
        &folder,
        &[
            "--address",
            &one,
            "--address",
            &other,
            "--rate",
            "200..800",
            "--no-cross-check",
            "--timeout",
            "5s",
        ],
    ));
    assert_eq!(status(&output), 0, "{output:?}");
    let figures = folder.figures();
    for (place, (name, rate)) in
        ["one", "other"].into_iter().flat_map(|name| [200, 400, 800].map(|rate| (name, rate))).enumerate()
    {
        let row = &figures["servers"][place];
        assert_eq!((&row["name"], row["asked_per_second"].as_f64()), (&name.into(), Some(f64::from(rate))));
        let (due, planned) = due(row, f64::from(rate));
        assert!(due.abs_diff(planned) <= 4, "{due} of {planned}");
    }
    let page = folder.page();
    assert!(page.contains("Latency by rate") && page.contains("99.9th percentile"), "the charts");
    assert!(text(&output).contains("asked/s"), "{output:?}");
}

#[test]
fn a_rung_with_which_a_server_does_not_keep_up_is_said() {
    let folder = Folder::new("rung");
    let slow = serve(|stream| echo(stream, |_| thread::sleep(Duration::from_millis(10))));
    let output = load(&folder, slow, &["--rate", "20,5000"]);
    assert_eq!(status(&output), 0, "{output:?}");
    assert!(text(&output).contains("at 5,000/s: did not keep up"), "{output:?}");
    assert!(number(&folder.figures(), "/servers/1/unsent") > 0);
}

#[test]
fn servers_are_given_by_name_by_address_and_by_command() {
    let folder = Folder::new("kinds");
    let address = format!("mine={}", serve(|stream| echo(stream, |_| {})));
    let load = env!("CARGO_BIN_EXE_load");
    // One of ours, as a stranger would be started: told where to listen, or telling it.
    let start = format!("FIBRA_LOAD_ROLE=echo_threads FIBRA_LOAD_PARENT=$PPID {load}");
    let told = format!("told=env {start} {{address}}");
    let port = format!("port=env {start} 127.0.0.1:{{port}}");
    let telling = format!("telling=env {start} 127.0.0.1:0");
    let output = run(command(
        &folder,
        &[
            "--server",
            "echo_server",
            "--address",
            &address,
            "--command",
            &told,
            "--command",
            &port,
            "--command",
            &telling,
            "--timeout",
            "5s",
        ],
    ));
    assert_eq!(status(&output), 0, "{output:?}");
    let figures = folder.figures();
    for (place, name) in ["echo_server", "told", "port", "telling", "mine"].into_iter().enumerate() {
        let row = &figures["servers"][place];
        assert_eq!(row["name"], name);
        assert!(number(row, "/replies") > 0, "{row}");
        // Of a process that we have not started nothing is known.
        assert_eq!(row["server_cpu_per_request_ns"].is_u64(), name != "mine", "{row}");
    }
}

#[test]
fn a_command_that_ends_or_never_listens_is_a_clear_line() {
    let folder = Folder::new("command");
    let output = run(command(&folder, &["--command", "broken=sh -c 'echo no such luck >&2; exit 3'"]));
    assert_eq!(status(&output), 1, "{output:?}");
    let printed = text(&output);
    assert!(printed.contains("exit status 3") && printed.contains("no such luck"), "{printed}");
    let output = run(command(&folder, &["--command", "broken=sh -c 'exit 4' {address}"]));
    assert_eq!(status(&output), 1, "{output:?}");
    assert!(text(&output).contains("exit status 4"), "{output:?}");
}

#[test]
fn the_servers_that_are_carried_speak_all_protocols() {
    let folder = Folder::new("carried");
    for name in ["udp_echo", "http_server"] {
        let output = run(command(&folder, &["--server", name, "--timeout", "5s"]));
        assert_eq!(status(&output), 0, "{output:?}");
        assert!(number(&folder.figures(), "/servers/0/replies") > 0, "{output:?}");
    }
}

#[test]
fn a_closed_port_of_datagrams_is_refused() {
    let folder = Folder::new("udp-refused");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let address = socket.local_addr().expect("a socket has an address");
    // It hears itself alone.
    socket.connect(address).expect("connected");
    let output = load(&folder, address, &["--protocol", "udp"]);
    assert_eq!(status(&output), 1, "{output:?}");
    assert_eq!(number(&folder.figures(), "/servers/0/faults/refused"), 4, "{output:?}");
}
