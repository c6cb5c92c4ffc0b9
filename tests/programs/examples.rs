//! The examples, run as the programs that they are.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use crate::common::client::{ask, connect, ends, exchange, payload, reset, sees_an_end};
use crate::common::example::example;
use crate::common::fuzz::Random;
use crate::common::http::{self, PLAINTEXT};
use crate::common::server::Server;
use crate::common::{HANG, PATIENCE, until};

fn echoes(name: &str) {
    let server = Server::start(name);
    server.serves();
    exchange(server.connect(), 8 << 20);
    exchange(server.connect(), 0);
    (0..20).for_each(|_| reset(server.connect()));
    let mut asked = server.connect();
    asked.write_all(&[1; 1000]).expect("sent");
    reset(asked);
    let connections: Vec<TcpStream> = (0..200).map(|_| server.connect()).collect();
    connections.into_iter().for_each(|stream| exchange(stream, 100));
    server.serves();
}

#[test]
fn echo_threads_echoes() {
    echoes("echo_threads");
}

#[test]
fn echo_callbacks_echoes() {
    echoes("echo_callbacks");
}

#[test]
fn echo_server_echoes() {
    echoes("echo_server");
}

#[test]
fn echo_servers_listen_at_an_address_that_is_a_name() {
    for name in ["echo_threads", "echo_callbacks", "echo_server"] {
        Server::start_at(name, "localhost:0").serves();
    }
}

/// A message comes back whole, whatever its length, to its sender.
#[test]
fn udp_echo_echoes() {
    let server = Server::start("udp_echo");
    let client = || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(HANG)).expect("a time-out");
        socket.connect(server.address()).expect("connected");
        socket
    };
    let receives = |socket: &UdpSocket, message: &[u8]| {
        let mut reply = vec![0; 70_000];
        let len = socket.recv(&mut reply).expect("echoed");
        assert!(reply[..len] == *message, "{len} bytes came back of {}, or others", message.len());
    };
    let first = client();
    for len in [0, 1, 1400, 65_507] {
        first.send(&payload(len)).expect("sent");
        receives(&first, &payload(len));
    }
    let clients: Vec<UdpSocket> = (0..50).map(|_| client()).collect();
    for round in 1..20_usize {
        for (number, socket) in clients.iter().enumerate() {
            socket.send(&payload(number + round)).expect("sent");
        }
        for (number, socket) in clients.iter().enumerate() {
            receives(socket, &payload(number + round));
        }
    }
}

#[test]
fn tcp_proxy_carries_both_ways_and_ends_gracefully() {
    let echo = Server::start("echo_server");
    let proxy = Server::proxy(&echo, PATIENCE);
    proxy.serves();
    let idle = proxy.descriptors();
    exchange(proxy.connect(), 8 << 20);
    exchange(proxy.connect(), 0);
    (0..20).for_each(|_| reset(proxy.connect()));
    let connections: Vec<TcpStream> = (0..100).map(|_| proxy.connect()).collect();
    connections.into_iter().for_each(|stream| exchange(stream, 100));
    until(|| match proxy.descriptors() {
        now if now <= idle => Ok(()),
        now => Err(format!("it has {now} descriptors, after {idle}")),
    });
    let mut late = proxy.connect();
    ask(&mut late, &[1; 10]);
    proxy.interrupt();
    until(|| match proxy.try_connect() {
        Some(_) => Err("it still takes connections".to_owned()),
        None => Ok(()),
    });
    exchange(late, 1000);
    let text = proxy.ends();
    assert!(text.ends_with("ended by themselves, 0 were cut off\n"), "{text}");
}

#[test]
fn tcp_proxy_cuts_off_connections_that_do_not_end_in_time() {
    let echo = Server::start("echo_server");
    let proxy = Server::proxy(&echo, "100");
    let mut late = proxy.connect();
    ask(&mut late, &[1; 10]);
    proxy.interrupt();
    ends(&mut late);
    assert_eq!(proxy.ends(), "0 connections ended by themselves, 1 were cut off\n");
}

#[test]
fn million_wakes_and_joins_all() {
    for count in ["20000", "0"] {
        let text = prints("million", &[count]);
        assert!(text.contains(&format!("{count} tasks were woken and joined")), "{text}");
    }
}

/// The number before or after some words of a text.
fn number_in(text: &str, before: &str, after: &str) -> usize {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?}: {text}"));
    let (number, _) = rest.split_once(after).unwrap_or_else(|| panic!("no {after:?}: {text}"));
    number.parse().unwrap_or_else(|_| panic!("{number:?} is no number: {text}"))
}

#[test]
fn a_sleeping_task_of_million_takes_a_page_and_little_more() {
    let text = prints("million", &["20000"]);
    // Frames that are not optimized may need a second page.
    let most = if cfg!(debug_assertions) { 4700 + 4096 } else { 4700 };
    let each = number_in(&text, "MiB, ", " bytes per task");
    assert!((4096..most).contains(&each), "{text}");
}

#[test]
fn the_stacks_of_million_are_a_handful_of_mappings() {
    // Since 6.13 a guard needs no mapping of its own.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's release");
    let mut parts = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    if (parts.next(), parts.next()) < (Some(6), Some(13)) {
        return println!("SKIPPED: Linux {} has no guards in the page table", release.trim());
    }
    let text = prints("million", &["20000"]);
    assert!(number_in(&text, "mappings: ", "\n") < 200, "{text}");
}

#[test]
fn rw_cache_lets_the_writer_go_before_later_readers_and_these_enter_together() {
    for workers in ["1", "2"] {
        let text = prints("rw_cache", &[workers]);
        assert_eq!(text.matches("20 readers were inside together").count(), 2, "{text}");
        assert!(
            text.contains("early readers see 3, then the writer sets 4, then late readers see 4"),
            "{text}"
        );
    }
}

#[test]
fn cooperative_semaphore_lets_three_in_at_once() {
    for workers in ["1", "2"] {
        let text = prints("cooperative_semaphore", &[workers]);
        assert_eq!(text.matches("enters").count(), 10, "{text}");
        assert!(text.contains("at most 3 inside at once"), "{text}");
        let inside = text.lines().filter_map(|line| line.strip_suffix(" inside")?.rsplit(' ').next());
        assert!(
            inside.map(|count| count.parse::<u32>().expect("a number")).all(|count| count <= 3),
            "{text}"
        );
    }
}

#[test]
fn readers_writers_read_whole_triples() {
    for workers in ["1", "2"] {
        let text = prints("readers_writers", &["3000", workers]);
        assert!(text.contains("9000 triples were read, all of equal values"), "{text}");
    }
}

#[test]
fn trace_writes_what_it_has_recorded() {
    let path = std::env::temp_dir().join(format!("shop-{}.pftrace", std::process::id()));
    let text = prints("trace", &[path.to_str().expect("a path that is text")]);
    let length = std::fs::metadata(&path).expect("the file").len();
    std::fs::remove_file(path).expect("it is there");
    let events: u64 = text.trim_end().strip_suffix(" events").expect("a number").parse().expect("a number");
    assert!(events > 200 && length > 10 * events, "{length} bytes for {text}");
}

#[test]
fn philosophers_all_eat_and_none_beside_an_eater() {
    for workers in ["1", "2"] {
        let text = prints("philosophers", &["2000", workers]);
        for office in ["locked", "lock-free"] {
            let line = format!("{office} box office: 5 philosophers had 2000 meals each");
            assert!(text.contains(&line), "{text}");
        }
    }
}

#[test]
fn graceful_shutdown_lets_requests_end_and_cuts_off_the_others() {
    let text = prints("graceful_shutdown", &[]);
    assert!(text.contains("2 requests ended by themselves, 1 had to be cancelled"), "{text}");
    assert_eq!(text.matches("a client was answered").count(), 2, "{text}");
    assert!(text.contains("a client was cut off") && text.contains("who comes later is refused"), "{text}");
}

#[test]
fn http_server_answers_and_keeps_the_connection() {
    let server = Server::start("http_server");
    http::serves(&server);
    let mut stream = server.connect();
    stream.write_all(PLAINTEXT).expect("sent");
    let head = http::head(&mut stream).to_lowercase();
    for header in ["server: ", "date: ", "content-type: text/plain", "content-length: 13"] {
        assert!(head.contains(&format!("\r\n{header}")), "{header} is not in {head}");
    }
    stream.read_exact(&mut [0; 13]).expect("the body");
    stream.write_all(b"GET /json HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    assert_eq!(http::answer(&mut stream), (200, b"{\"message\":\"Hello, World!\"}".to_vec()));
    // The head of what a GET is answered with.
    stream.write_all(b"HEAD /plaintext HTTP/1.1\r\n\r\n").expect("sent");
    assert!(http::head(&mut stream).contains("\r\nContent-Length: 13\r\n"));
    stream.write_all(b"GET /none HTTP/1.1\r\n\r\nPUT /json HTTP/1.1\r\n\r\n").expect("sent");
    assert_eq!([http::answer(&mut stream).0, http::answer(&mut stream).0], [404, 405]);
    // A body is passed over, however it comes.
    http::post(&mut stream, "/plaintext", 1 << 20);
    assert_eq!(http::answer(&mut stream).0, 405);
    PLAINTEXT.iter().for_each(|byte| stream.write_all(&[*byte]).expect("sent"));
    assert_eq!(http::answer(&mut stream).0, 200);
    stream.write_all(b"GET /plaintext HTTP/1.1\r\nConnection: close\r\n\r\n").expect("sent");
    assert_eq!(http::answer(&mut stream).0, 200);
    ends(&mut stream);
}

#[test]
fn http_server_answers_what_is_sent_without_waiting_in_order() {
    let server = Server::start("http_server");
    let mut stream = server.connect();
    let mut reader = stream.try_clone().expect("a second handle");
    // Many more answers than the server keeps before it sends.
    const REQUESTS: usize = 20_000;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let pair = [PLAINTEXT, b"GET /json HTTP/1.1\r\nhost: x\r\n\r\n"].concat();
            stream.write_all(&pair.repeat(REQUESTS / 2)).expect("sent");
        });
        let mut reader = std::io::BufReader::new(&mut reader);
        for request in 0..REQUESTS {
            let length = if request % 2 == 0 { 13 } else { 27 };
            assert_eq!(http::answer(&mut reader).1.len(), length, "request {request}");
        }
    });
    http::serves(&server);
}

#[test]
fn http_server_refuses_what_is_too_large_or_no_http() {
    let server = Server::start("http_server");
    let refused = |request: &[u8], status: u16| {
        let mut stream = server.connect();
        stream.write_all(request).expect("sent");
        let begin = String::from_utf8_lossy(&request[..request.len().min(80)]);
        assert_eq!(http::answer(&mut stream).0, status, "{begin:?}");
        ends(&mut stream);
    };
    let mut large = b"GET /plaintext HTTP/1.1\r\nx: ".to_vec();
    large.resize(16 * 1024, b'y');
    refused(&large, 431);
    let many = "x: y\r\n".repeat(65);
    refused(format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes(), 431);
    refused(b"\x16\x03\x01 no http\r\n\r\n", 400);
    refused(b"GET /plaintext HTTP/1.1\r\ncontent-length: +1\r\n\r\n", 400);
    refused(b"GET /plaintext HTTP/1.1\r\ncontent-length: \r\n\r\n", 400);
    refused(b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400);
    refused(b"POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n", 400);
    refused(b"POST / HTTP/1.1\r\ncontent-length: 1048577\r\n\r\n", 413);
    refused(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 501);
    http::serves(&server);
}

/// Also if much more comes than the server has read when it refuses.
#[test]
fn http_server_tells_clients_that_it_refuses_them() {
    let server = Server::start("http_server");
    let more = payload(1 << 20);
    for (request, status) in [
        (&b"no http\r\n\r\n"[..], 400),
        (b"POST / HTTP/1.1\r\ncontent-length: 1048577\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 501),
        (b"POST /none HTTP/1.1\r\nconnection: close\r\ncontent-length: 1048576\r\n\r\n", 404),
    ] {
        let mut stream = server.connect();
        stream.write_all(&[request, &more].concat()).expect("sent");
        assert_eq!(http::answer(&mut stream).0, status);
        ends(&mut stream);
    }
    http::serves(&server);
}

/// A client that sends on and on after its last answer is heard for a limited number of bytes and time.
#[test]
fn http_server_does_not_read_for_ever_from_refused_clients() {
    let server = Server::with_patience("http_server", 1000);
    let before = server.settled_descriptors();
    let refused = || {
        let mut stream = server.connect();
        stream.write_all(b"no http\r\n\r\n").expect("sent");
        assert_eq!(http::answer(&mut stream).0, 400);
        ends(&mut stream);
        stream
    };
    let more = payload(100_000);
    let (mut eager, _silent) = (refused(), refused());
    until(|| match eager.write_all(&more) {
        Ok(()) => Err("the server takes bytes for ever".to_owned()),
        Err(_) => Ok(()),
    });
    server.comes_to(before);
    http::serves(&server);
}

#[test]
fn http_server_survives_all_kinds_of_nonsense() {
    let server = Server::start("http_server");
    let seeds: [&[u8]; 3] = [
        PLAINTEXT,
        b"POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
        b"GET /json HTTP/1.0\r\naccept: */*\r\n\r\n",
    ];
    let mut random = Random::new();
    for _ in 0..500 {
        let mut request = seeds[random.below(seeds.len())].repeat(1 + random.below(3));
        random.garble(&mut request, b"\r\n :\0\xff/9");
        // Answers or none, and an end.
        sees_an_end(server.connect(), &request);
    }
    http::serves(&server);
}

#[test]
fn http_server_cuts_off_slow_clients_and_serves_the_others_meanwhile() {
    let server = Server::with_patience("http_server", 2000);
    std::thread::scope(|clients| {
        // Bytes that come in time one by one do not buy more time for the whole.
        clients.spawn(|| {
            let mut drip = server.connect();
            let mut sent = 0;
            while drip.write_all(b"x").is_ok() && sent < 10_000 {
                sent += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(sent < 10_000, "a request may take for ever");
        });
        // A client that takes no answers is cut off as well, and costs little memory until then.
        clients.spawn(|| {
            let mut greedy = server.connect();
            let many = PLAINTEXT.repeat(1000);
            until(|| match greedy.write_all(&many) {
                Ok(()) => Err("the server takes requests for ever".to_owned()),
                Err(_) => Ok(()),
            });
        });
        let slow = (0..200).map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET / HTTP/1.1\r\nhost:").expect("sent");
            stream
        });
        let slow: Vec<TcpStream> = slow.collect();
        // Others are served meanwhile.
        http::serves(&server);
        for mut stream in slow {
            assert_eq!(http::answer(&mut stream).0, 408);
            ends(&mut stream);
        }
    });
    http::serves(&server);
}

#[test]
fn http_server_counts_the_time_of_each_request_from_its_own_begin() {
    // What passes while this thread or the server is held up is the client's time, too: there is room for some seconds of that.
    const PATIENCE: u64 = 6000;
    const MOST_OF_IT: Duration = Duration::from_millis(PATIENCE * 11 / 20);
    let server = Server::with_patience("http_server", PATIENCE);
    // Their heads are answered before their bodies come.
    let posted = || {
        let mut stream = server.connect();
        stream.write_all(b"POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\n").expect("sent");
        assert_eq!(http::answer(&mut stream).0, 405);
        stream.write_all(b"abc").expect("sent");
        stream
    };
    let (mut silent, mut slow) = (posted(), posted());
    silent.write_all(b"def").expect("sent");
    let (begin, rest) = PLAINTEXT.split_at(10);
    std::thread::sleep(MOST_OF_IT);
    slow.write_all(&[b"def", begin].concat()).expect("sent");
    std::thread::sleep(MOST_OF_IT);
    slow.write_all(rest).expect("sent");
    http::plaintext(&mut slow);
    silent.write_all(begin).expect("sent");
    std::thread::sleep(Duration::from_millis(20));
    silent.write_all(rest).expect("sent");
    http::plaintext(&mut silent);
}

#[test]
#[cfg(feature = "compat-examples")]
fn hyper_server_answers() {
    let server = Server::start("hyper_server");
    let mut stream = server.connect();
    // Several on one connection, the last two in one packet.
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    assert_eq!(http::answer(&mut stream), (200, b"Hello, World!".to_vec()));
    stream.write_all(b"GET /sum/2/40 HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    assert_eq!(http::answer(&mut stream), (200, b"42".to_vec()));
    let both = b"GET /sum/1/x HTTP/1.1\r\nhost: x\r\n\r\nGET /none HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(both).expect("sent");
    assert_eq!(http::answer(&mut stream).0, 400);
    assert_eq!(http::answer(&mut stream).0, 404);
    for bytes in [0, 1, 100_000, 1 << 20] {
        http::post(&mut stream, "/echo", bytes);
        assert_eq!(http::answer(&mut stream), (200, payload(bytes)));
    }
    http::post(&mut stream, "/echo", (1 << 20) + 1);
    assert_eq!(http::answer(&mut stream).0, 413);
    // Bytes that are no HTTP are refused, clients that leave are forgotten, and then it serves again.
    let mut bad = server.connect();
    bad.write_all(b"\x16\x03\x01 no http\r\n\r\n").expect("sent");
    assert_eq!(http::answer(&mut bad).0, 400);
    (0..20).for_each(|_| reset(server.connect()));
    let mut again = server.connect();
    again.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
    assert_eq!(http::answer(&mut again).0, 200);
    ends(&mut again);
}

#[test]
#[cfg(feature = "store-examples")]
fn redis_talks_to_resp_server() {
    let server = Server::start("resp_server");
    let text = prints("redis", &[server.address()]);
    assert!(
        text.contains("GET: bulk-string('\"hello\"')\nTTL: int(60)\nINCR: Server error: `ERR: value"),
        "{text}"
    );
    assert!(text.ends_with("8 tasks have counted to 8000\n"), "{text}");
}

#[test]
fn chat_shows_what_its_tasks_do() {
    let socket = std::env::temp_dir().join(format!("chat-{}.sock", std::process::id()));
    let server = Server::launch(example("chat").env("INSIGHT", &socket));
    let anna = Guest::enters(server.address(), "anna");
    let mut client = UnixStream::connect(&socket).expect("it listens");
    client.write_all(b"GET /tasks?debug=2 HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let mut shown = String::new();
    client.read_to_string(&mut shown).expect("text");
    assert!(shown.starts_with("HTTP/1.1 200 OK\r\n") && shown.contains("examples/chat.rs:"), "{shown}");
    drop(anna);
    server.interrupt();
    server.ends();
    assert!(!socket.exists());
}

/// A guest of the chat room.
struct Guest(BufReader<TcpStream>);

impl Guest {
    fn enters(address: &str, name: &str) -> Guest {
        let mut guest = Guest(BufReader::new(connect(address)));
        guest.says(name);
        assert!(guest.hears().starts_with(&format!("* welcome, {name}")));
        guest
    }

    fn says(&mut self, line: &str) {
        writeln!(self.0.get_ref(), "{line}").expect("sent");
    }

    fn hears(&mut self) -> String {
        next_line(&mut self.0)
    }

    /// Sees the orderly end.
    fn leaves(mut self) {
        assert_eq!(self.hears(), "* the room is closed");
        assert_eq!(self.0.read(&mut [0]).expect("an end"), 0);
    }
}

fn next_line(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    assert!(lines.read_line(&mut line).expect("a line") > 0, "an end, where a line was due");
    line.trim_end().to_owned()
}

#[test]
fn chat_passes_messages_on_tells_slow_guests_and_ends_on_ctrl_c() {
    /// More than the sockets keep for a guest that does not read.
    const FLOOD: usize = 16_000;
    let mut server = example("chat").arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().expect("the example");
    let mut report = BufReader::new(server.stdout.take().expect("a piped output"));
    let first = next_line(&mut report);
    let address = first.strip_prefix("listening on ").expect("the address that it listens on");

    let mut anna = Guest::enters(address, "anna");
    let mut ben = Guest::enters(address, "ben");
    assert_eq!(anna.hears(), "* ben comes");
    ben.says("hello");
    assert_eq!(anna.hears(), "ben: hello");
    anna.says("hello, ben");
    // She is welcomed before the other guests are told, and he may be one of them by then.
    let heard = ben.hears();
    let heard = if heard == "* anna comes" { ben.hears() } else { heard };
    assert_eq!(heard, "anna: hello, ben");
    // Of two bytes each, and at every place that the limit can cut: none is cut.
    for shift in 0..2 {
        let (ones, umlauts) = ("x".repeat(shift), "ü".repeat(1000));
        ben.says(&format!("{ones}{umlauts}"));
        let mut heard = String::new();
        while heard.len() < shift + umlauts.len() {
            let part = anna.hears();
            heard += part.strip_prefix("ben: ").expect("a part of what he said");
        }
        assert_eq!(heard, format!("{ones}{umlauts}"));
    }
    drop(ben);
    assert_eq!(anna.hears(), "* ben goes");
    let mut garbler = Guest::enters(address, "garbler");
    assert_eq!(anna.hears(), "* garbler comes");
    garbler.0.get_mut().write_all(b"\xff\n").expect("sent");
    assert_eq!(anna.hears(), "* garbler goes");
    drop(garbler);

    let mut slow = Guest::enters(address, "slow");
    assert_eq!(anna.hears(), "* slow comes");
    // He listens by then: his own coming is none of what he misses.
    anna.says("hello, slow");
    assert_eq!(slow.hears(), "anna: hello, slow");
    let long = "x".repeat(1000);
    (0..FLOOD).for_each(|_| anna.says(&long));
    anna.says("that was it");
    let (mut heard, mut missed) = (0, 0);
    loop {
        let line = slow.hears();
        match line
            .strip_prefix("* you have missed ")
            .and_then(|rest| rest.strip_suffix(" messages, by whomever"))
        {
            Some(count) => missed += count.parse::<usize>().expect("a number"),
            None if line == "anna: that was it" => break,
            None => heard += 1,
        }
    }
    assert_eq!(heard + missed, FLOOD);
    assert!(missed > 0, "a guest that does not read misses nothing");

    let _silent = connect(address);
    // It is let in before this one, which the others hear of.
    let carl = Guest::enters(address, "carl");
    drop(carl);
    // She may have missed some of her own.
    while anna.hears() != "* carl comes" {}
    assert_eq!(anna.hears(), "* carl goes");
    assert_eq!([slow.hears(), slow.hears()], ["* carl comes", "* carl goes"]);
    // SAFETY: two integers go in; the process has not been waited for, so the number is its own.
    assert_eq!(unsafe { libc::kill(server.id() as i32, libc::SIGINT) }, 0);
    anna.leaves();
    slow.leaves();
    assert_eq!(next_line(&mut report), "1 guests had to be cut off");
    assert!(server.wait().expect("the server's end").success());
}

/// What an example says that ends well.
fn prints(name: &str, arguments: &[&str]) -> String {
    let output = example(name).args(arguments).output().expect("the example");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}
