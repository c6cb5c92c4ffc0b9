//! A client of HTTP/1.1 that knows as much of it as the tests need.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::client::{leave, payload};
use super::server::Server;

/// A request for the plain text.
pub(crate) const PLAINTEXT: &[u8] = b"GET /plaintext HTTP/1.1\r\nhost: x\r\n\r\n";

/// What `http_server` must still do after whatever was done to it.
pub(crate) fn serves(server: &Server) {
    let mut stream = server.connect();
    for _ in 0..3 {
        stream.write_all(PLAINTEXT).expect("sent");
        plaintext(&mut stream);
    }
    leave(stream);
}

/// Reads the answer to it.
pub(crate) fn plaintext(stream: &mut impl Read) {
    assert_eq!(answer(stream), (200, b"Hello, World!".to_vec()));
}

/// Sends a request with a body of so many bytes, those of [`payload`].
pub(crate) fn post(stream: &mut TcpStream, path: &str, bytes: usize) {
    let mut request =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {bytes}\r\n\r\n").into_bytes();
    request.extend(payload(bytes));
    // A server that refuses the body may close before it has read all of it.
    _ = stream.write_all(&request);
}

/// Reads one answer: its status and its body, which has a length.
pub(crate) fn answer(stream: &mut impl Read) -> (u16, Vec<u8>) {
    let head = head(stream);
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let lengths = head.lines().filter_map(|line| line.split_once(':'));
    let mut length = lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length")).map(|(_, n)| n);
    let length = length.next().map_or(0, |length| length.trim().parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    (status.unwrap_or_else(|| panic!("no status: {head}")), body)
}

/// Reads the head of an answer, and nothing beyond it.
pub(crate) fn head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        let read = stream.read(&mut byte).expect("an answer");
        assert_eq!(read, 1, "the connection ends in {:?}", String::from_utf8_lossy(&head));
        head.extend(byte);
    }
    String::from_utf8(head).expect("a head of text")
}
