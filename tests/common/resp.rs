//! A client of RESP that knows as much of it as the tests need.

use std::io::{Read, Write};
use std::net::TcpStream;

/// A request as clients send it: an array of byte strings.
pub(crate) fn pack<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments.iter().map(A::as_ref) {
        request.extend(format!("${}\r\n", argument.len()).into_bytes());
        request.extend(argument);
        request.extend(b"\r\n");
    }
    request
}

/// Reads one answer, and nothing beyond it, as it is sent.
pub(crate) fn reply(stream: &mut impl Read) -> Vec<u8> {
    let mut reply = Vec::new();
    while !reply.ends_with(b"\r\n") {
        let mut byte = [0];
        let read = stream.read(&mut byte).expect("an answer");
        assert_eq!(read, 1, "the connection ends in {:?}", String::from_utf8_lossy(&reply));
        reply.extend(byte);
    }
    let number = || str::from_utf8(&reply[1..]).ok().and_then(|number| number.trim().parse::<i64>().ok());
    match reply[0] {
        b'$' if number() != Some(-1) => {
            let begin = reply.len();
            let length = number().and_then(|length| usize::try_from(length).ok()).expect("a length");
            reply.resize(begin + length + 2, 0);
            stream.read_exact(&mut reply[begin..]).expect("a byte string");
        }
        b'*' => (0..number().expect("a length")).for_each(|_| {
            let member = self::reply(stream);
            reply.extend(member);
        }),
        _ => {}
    }
    reply
}

/// Sends a request, and reads its answer.
pub(crate) fn ask<A: AsRef<[u8]>>(stream: &mut TcpStream, arguments: &[A]) -> Vec<u8> {
    stream.write_all(&pack(arguments)).expect("sent");
    reply(stream)
}
