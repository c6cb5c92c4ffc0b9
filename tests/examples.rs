//! The examples, run as the programs that they are.

mod common;

use std::io::Write;
use std::net::TcpStream;

use common::client::{connect, ends, exchange, payload, reset};
use common::example::example;
use common::http;
use common::server::Server;

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
fn million_wakes_and_joins_all() {
    let text = prints("million", &["20000"]);
    assert!(text.contains("20000 tasks were woken and joined"), "{text}");
}

#[test]
fn rw_cache_lets_the_writer_go_before_later_readers_and_these_enter_together() {
    let text = prints("rw_cache", &[]);
    assert_eq!(text.matches("20 readers were inside together").count(), 2, "{text}");
    assert!(text.contains("early readers see 3, then the writer sets 4, then late readers see 4"), "{text}");
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
fn philosophers_all_eat_and_nobody_beside_an_eater() {
    let text = prints("philosophers", &["2000"]);
    for office in ["locked", "lock-free"] {
        assert!(text.contains(&format!("{office} box office: 5 philosophers had 2000 meals each")), "{text}");
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
    // What is no HTTP is refused, who goes away is forgotten, and then it serves again.
    let mut bad = server.connect();
    bad.write_all(b"\x16\x03\x01 no http\r\n\r\n").expect("sent");
    assert_eq!(http::answer(&mut bad).0, 400);
    (0..20).for_each(|_| reset(server.connect()));
    let mut again = server.connect();
    again.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
    assert_eq!(http::answer(&mut again).0, 200);
    ends(&mut again);
}

/// What an example says that ends well.
fn prints(name: &str, arguments: &[&str]) -> String {
    let output = example(name).args(arguments).output().expect("the example");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}
