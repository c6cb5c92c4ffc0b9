//! Tests of `reply`.

use super::*;

/// Parses ever longer beginnings, as they come from a slow server, and answers with the reply.
fn slowly(text: &str) -> Reply {
    let bytes = text.as_bytes();
    for end in 0..bytes.len() {
        match Reply::parse(&bytes[..end]) {
            Ok(Length::AtLeast(wanted)) => {
                assert!(wanted > end && wanted <= bytes.len(), "{wanted} at {end}")
            }
            other => panic!("{other:?} after {end} of {}", bytes.len()),
        }
    }
    match Reply::parse(&[bytes, b"HTTP/1.1 200 OK"].concat()) {
        Ok(Length::Whole(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_end_is_told_by_a_length_or_by_chunks() {
    let head = "HTTP/1.1 200 OK\r\nServer: x\r\n";
    for rest in [
        "Content-Length: 5\r\n\r\nhello",
        "content-length:0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\na;x=y\r\n0123456789\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nTrailer: 1\r\n\r\n",
    ] {
        let text = format!("{head}{rest}");
        assert_eq!(slowly(&text), Reply { status: 200, length: text.len(), closes: false }, "{text}");
    }
}

#[test]
fn some_statuses_have_no_body_and_some_replies_are_the_last() {
    let text = "HTTP/1.1 304 Not Modified\r\n\r\n";
    assert_eq!(slowly(text), Reply { status: 304, length: text.len(), closes: false });
    let text = "HTTP/1.1 404 Not Found\r\nConnection: Close\r\nContent-Length: 1\r\n\r\n!";
    assert_eq!(slowly(text), Reply { status: 404, length: text.len(), closes: true });
}

#[test]
fn a_reply_of_any_length_is_waited_for() {
    for rest in [
        "Content-Length: 18446744073709551615\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    ] {
        let reply = Reply::parse(format!("HTTP/1.1 200 OK\r\n{rest}").as_bytes());
        assert!(matches!(reply, Ok(Length::AtLeast(usize::MAX))), "{reply:?} to {rest}");
    }
}

#[test]
fn what_is_no_reply_is_an_error() {
    for text in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n",
    ] {
        assert!(Reply::parse(text.as_bytes()).is_err(), "{text}");
    }
}
