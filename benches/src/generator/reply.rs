//! Finds the end of a reply of HTTP/1.1.

use httparse::{ParserConfig, Response, Status};
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;

/// The most headers of a reply.
const HEADERS: usize = 64;

/// The longest line that says how long a chunk is, and what ends it.
const CHUNK_LINE: usize = 1024;
const LINE_END: usize = 2;

/// A complete reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// Bytes of head and body.
    pub(super) length: usize,
    /// The server will close the connection after it.
    pub(super) closes: bool,
}

/// The length of a reply, as far as it is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// The reply is complete.
    Whole(Reply),
    /// With fewer bytes than these there is no need to look again.
    AtLeast(usize),
}

/// The framing of a body.
enum Body {
    Sized(usize),
    Chunked,
}

impl Reply {
    /// Looks for the end of the reply with which `bytes` begin.
    ///
    /// # Errors
    ///
    /// `InvalidData` for bytes that are no reply, and for a reply that ends with its connection.
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

/// The end of a chunked body that begins at `begin`; otherwise how many bytes there must be before it is
/// worth another look.
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

/// Returns the length of the trailer: the lines after the last chunk, up to an empty one.
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
mod tests;
