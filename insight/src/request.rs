//! The head of a request, and what is said to clients.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;

/// The longest head of a request, in bytes.
const HEAD: usize = 8 * 1024;

/// The most fields of a head.
const FIELDS: usize = 64;

/// What a client wants.
#[derive(Debug)]
pub(crate) struct Request {
    /// Only the head of the answer is wanted.
    pub(crate) is_head: bool,
    pub(crate) path: String,
    query: String,
    host: String,
    authorization: String,
}

/// What a client gets.
pub(crate) struct Response {
    status: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Request {
    /// Reads the head. `Ok(None)` for a client that leaves, or whose connection breaks.
    pub(crate) fn read(client: &mut impl Read) -> Result<Option<Self>, Response> {
        let (mut head, mut len) = ([0; HEAD], 0);
        loop {
            match client.read(&mut head[len..]) {
                Ok(0) => return Ok(None),
                Ok(read) => len += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return Err(Response::refusal("408 Request Timeout", "the request took too long"));
                }
                Err(_) => return Ok(None),
            }
            match Request::parse(&head[..len])? {
                None if len == HEAD => return Err(too_long()),
                None => {}
                request => return Ok(request),
            }
        }
    }

    /// Returns `None` for a head that goes on.
    fn parse(head: &[u8]) -> Result<Option<Self>, Response> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut parsed = httparse::Request::new(&mut fields);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(too_long()),
            Err(error) => return Err(Response::wrong(format_args!("the request is not HTTP/1: {error}"))),
        }
        let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        if !matches!(method, "GET" | "HEAD") {
            let text = format_args!("{method} does not go here: only GET and HEAD do");
            return Err(Response::refusal("405 Method Not Allowed\r\nAllow: GET, HEAD", text));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if !path.starts_with('/') {
            return Err(Response::wrong("the target of the request is no path"));
        }
        let fields = |name: &'static str| {
            parsed.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name))
        };
        if fields("host").count() > 1 {
            return Err(Response::wrong("the request has more than one Host"));
        }
        let field = |name| {
            let first = fields(name).next();
            first.map_or(String::new(), |field| String::from_utf8_lossy(field.value).into_owned())
        };
        Ok(Some(Request {
            is_head: method == "HEAD",
            path: path.into(),
            query: query.into(),
            host: field("host"),
            authorization: field("authorization"),
        }))
    }

    /// Checks that the query has no parameters but these.
    pub(crate) fn allow(&self, names: &[&str]) -> Result<(), Response> {
        let wrong = self.parameters().find(|(name, _)| !names.contains(name));
        wrong.map_or(Ok(()), |(name, _)| {
            let path = &self.path;
            Err(Response::wrong(format_args!("{path} has no parameter {name:?}, but these: {names:?}")))
        })
    }

    /// Returns a parameter of the query, whose value is one of these; the first one if it is not given.
    pub(crate) fn choice<T: Copy>(&self, name: &str, values: &[(&str, T)]) -> Result<T, Response> {
        let Some(given) = self.parameter(name) else { return Ok(values[0].1) };
        let chosen = values.iter().find(|(value, _)| *value == given).map(|(_, chosen)| *chosen);
        chosen.ok_or_else(|| {
            let values: Vec<_> = values.iter().map(|(value, _)| *value).collect();
            Response::wrong(format_args!("{name} is {given:?}, and may be {}", values.join(", ")))
        })
    }

    /// Returns a parameter of the query that is a number of that range.
    pub(crate) fn number(&self, name: &str, default: u32, least: u32, most: u32) -> Result<u32, Response> {
        let Some(given) = self.parameter(name) else { return Ok(default) };
        given.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            Response::wrong(format_args!("{name} is {given:?}, and may be a number from {least} to {most}"))
        })
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        let parts = self.query.split('&').filter(|part| !part.is_empty());
        parts.map(|part| part.split_once('=').unwrap_or((part, "")))
    }

    /// Checks that a client of a loopback port knows the token, and has not been led here by a name of another host.
    pub(crate) fn admit(&self, token: &str) -> Result<(), Response> {
        let host = &self.host;
        if !is_loopback(host) {
            let text = format_args!("the host is {host:?}, and may be localhost or a loopback address");
            return Err(Response::refusal("403 Forbidden", text));
        }
        let (scheme, given) = self.authorization.split_once(' ').unwrap_or_default();
        let is_known = is_equal(given.trim().as_bytes(), token.as_bytes());
        if !scheme.eq_ignore_ascii_case("bearer") || !is_known {
            let text = "the token is missing or wrong: send it as `Authorization: Bearer TOKEN`";
            return Err(Response::refusal("401 Unauthorized\r\nWWW-Authenticate: Bearer", text));
        }
        Ok(())
    }
}

impl Response {
    pub(crate) fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Response { status: "200 OK", content_type, body: body.into() }
    }

    /// Says why there is no answer. The status may have further fields behind it.
    pub(crate) fn refusal(status: &'static str, text: impl Display) -> Self {
        let body = format!("{text}\n").into_bytes();
        Response { status, content_type: "text/plain; charset=utf-8", body }
    }

    pub(crate) fn wrong(text: impl Display) -> Self {
        Response::refusal("400 Bad Request", text)
    }

    pub(crate) fn write(&self, client: &mut impl Write, with_body: bool) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        );
        client.write_all(head.as_bytes())?;
        if with_body { client.write_all(&self.body) } else { Ok(()) }
    }
}

fn too_long() -> Response {
    let text = format_args!("the head of a request has at most {HEAD} bytes and {FIELDS} fields");
    Response::refusal("431 Request Header Fields Too Large", text)
}

/// Returns true for a host field that names this machine, with any port: that of a tunnel is another one.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Compares in a time that does not tell where the difference is.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> &'static str {
        match Request::read(&mut head.as_bytes()) {
            Ok(Some(_)) => "200",
            Ok(None) => "none",
            Err(refusal) => refusal.status.split(' ').next().unwrap_or_default(),
        }
    }

    #[test]
    fn heads_are_read_or_refused() {
        for (head, expected) in [
            ("GET /tasks?debug=2&x HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
            ("HEAD / HTTP/1.0\r\n\r\n", "200"),
            ("GET /tasks HTTP/1.1\r\nHost", "none"),
            ("", "none"),
            ("\u{16}\u{3}\u{1} nonsense", "400"),
            ("GET /tasks\r\n\r\n", "400"),
            ("GET * HTTP/1.1\r\n\r\n", "400"),
            ("GET http://a/tasks HTTP/1.1\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "400"),
            ("POST /tasks HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
            (&format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(HEAD)), "431"),
            (&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(FIELDS + 1)), "431"),
        ] {
            assert_eq!(status(head), expected, "{head}");
        }
    }

    #[test]
    fn hosts_are_loopback_by_name_or_address() {
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:6060", true),
            ("127.0.0.1:6060", true),
            ("127.8.9.1", true),
            ("[::1]:6060", true),
            ("", false),
            ("::2", false),
            ("localhost.example.com", false),
            ("127.0.0.1.example.com:6060", false),
            ("192.168.0.1:6060", false),
            ("[::2]", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}
