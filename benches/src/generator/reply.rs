//! Where a reply of HTTP/1.1 ends.

use httparse::{ParserConfig, Response, Status};
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;

/// The most headers of a reply.
const HEADERS: usize = 64;

/// The longest line that says how long a chunk is, and what ends it.
const CHUNK_LINE: usize = 1024;
const LINE_END: usize = 2;

/// A reply that has come to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// Bytes of head and body.
    pub(super) length: usize,
    /// The server will close the connection after it.
    pub(super) closes: bool,
}

/// How long a reply is, as far as one can tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// All of it is there.
    Whole(Reply),
    /// With fewer bytes than these there is no need to look again.
    AtLeast(usize),
}

/// How the end of a body is told.
enum Body {
    Sized(usize),
    Chunked,
}

impl Reply {
    /// Looks for the end of the reply with which `bytes` begin.
    ///
    /// # Errors
    ///
    /// `InvalidData` for what is no reply, or one whose end is told by the end of the connection alone.
    pub(super) fn parse(bytes: &[u8]) -> io::Result<Length> {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS];
        let mut response = Response::new(&mut []);
        let parsed =
            ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
        let head = match parsed.map_err(|error| bad(&error.to_string()))? {
            Status::Complete(length) => length,
            Status::Partial => return Ok(Length::AtLeast(bytes.len() + 1)),
        };
        let status = response.code.unwrap_or(0);
        let (body, closes) = body(&response)?;
        let length = match body {
            Body::Sized(length) => head.saturating_add(length),
            Body::Chunked => match end_of_chunks(bytes, head)? {
                Ok(end) => end,
                Err(wanted) => return Ok(Length::AtLeast(wanted)),
            },
        };
        match bytes.len() < length {
            true => Ok(Length::AtLeast(length)),
            false => Ok(Length::Whole(Self { status, length, closes })),
        }
    }
}

fn body(response: &Response<'_, '_>) -> io::Result<(Body, bool)> {
    let (mut body, mut closes) = (None, response.version == Some(0));
    for header in response.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            body = body.or(Some(Body::Sized(length.ok_or_else(|| bad("a length is no number"))?)));
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            body = Some(Body::Chunked);
        } else if header.name.eq_ignore_ascii_case("connection") {
            closes |= value.eq_ignore_ascii_case(b"close");
        }
    }
    match (body, response.code) {
        (_, Some(204 | 304)) => Ok((Body::Sized(0), closes)),
        (Some(body), _) => Ok((body, closes)),
        (None, _) => Err(bad("a reply does not say how long it is")),
    }
}

/// The end of a chunked body that begins at `begin`; otherwise how many bytes there must be before it is worth another look.
fn end_of_chunks(bytes: &[u8], begin: usize) -> io::Result<Result<usize, usize>> {
    let mut at = begin;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let (line, size) = match httparse::parse_chunk_size(rest) {
            Ok(Status::Complete((line, size))) => (line, usize::try_from(size).unwrap_or(usize::MAX)),
            Ok(Status::Partial) if rest.len() < CHUNK_LINE => {
                return Ok(Err(bytes.len().max(at).saturating_add(1)));
            }
            _ => return Err(bad("a chunk has no length")),
        };
        if size == 0 {
            return end_of_trailers(bytes, at + line);
        }
        at = (at + line).saturating_add(size).saturating_add(LINE_END);
    }
}

/// What follows the last chunk: lines up to an empty one.
fn end_of_trailers(bytes: &[u8], begin: usize) -> io::Result<Result<usize, usize>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    match httparse::parse_headers(&bytes[begin..], &mut headers) {
        Ok(Status::Complete((length, _))) => Ok(Ok(begin + length)),
        Ok(Status::Partial) => Ok(Err(bytes.len() + 1)),
        Err(error) => Err(bad(&error.to_string())),
    }
}

fn bad(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("no reply of HTTP/1.1: {why}"))
}

#[cfg(test)]
mod tests {
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
}
