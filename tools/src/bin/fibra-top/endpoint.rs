//! The endpoint of a program, asked over HTTP.

#![forbid(unsafe_code)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::Result;

/// How long the program may take to answer: a dump of very many tasks takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer, in bytes.
const LONGEST: u64 = 1 << 30;

/// Where the program answers.
#[derive(Clone, Args)]
pub(crate) struct Endpoint {
    /// The Unix socket of the endpoint.
    #[arg(long, required_unless_present = "tcp", conflicts_with = "tcp")]
    unix: Option<PathBuf>,
    /// The loopback address of the endpoint, with its port.
    #[arg(long, requires = "token")]
    tcp: Option<SocketAddr>,
    /// The token that the endpoint at a loopback address asks for.
    #[arg(long, env = "FIBRA_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Endpoint {
    /// Asks for a path. Returns the body of the answer.
    ///
    /// # Errors
    /// A line that says what is wrong: no endpoint, a refusal, or an answer that is none.
    pub(crate) fn get(&self, path: &str) -> Result<String> {
        let unix = || self.unix.as_ref().map(|path| path.display().to_string());
        if let Some(address) = self.tcp.filter(|address| !address.ip().to_canonical().is_loopback()) {
            return Err(format!("{address} is no loopback address: the token would be sent in the clear"));
        }
        let place = self.tcp.map(|address| address.to_string()).or_else(unix).unwrap_or_default();
        let token = self.tcp.and(self.token.as_ref());
        let token = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\n\r\n");
        let gone = |error| format!("no endpoint answers at {place}: {error}");
        body(&self.ask(&request).map_err(gone)?).map_err(|error| format!("{place} {error}"))
    }

    fn ask(&self, request: &str) -> io::Result<Vec<u8>> {
        let limit = Some(PATIENCE);
        if let Some(address) = &self.tcp {
            let connection = TcpStream::connect_timeout(address, PATIENCE)?;
            connection.set_read_timeout(limit).and(connection.set_write_timeout(limit))?;
            return exchange(connection, request);
        }
        let connection = UnixStream::connect(self.unix.as_deref().unwrap_or(Path::new("")))?;
        connection.set_read_timeout(limit).and(connection.set_write_timeout(limit))?;
        exchange(connection, request)
    }
}

fn exchange(mut connection: impl Read + Write, request: &str) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    connection.write_all(request.as_bytes())?;
    connection.take(LONGEST).read_to_end(&mut answer)?;
    Ok(answer)
}

/// Returns the body of an answer.
fn body(answer: &[u8]) -> Result<String> {
    let nonsense = || "does not answer as an endpoint of fibra does".to_owned();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(nonsense)?;
    let (head, body) = (String::from_utf8_lossy(&answer[..end]), &answer[end + 4..]);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).ok_or_else(nonsense)?;
    let length = lines.find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    if length.is_some_and(|length: usize| length != body.len()) {
        return Err("has broken off its answer".to_owned());
    }
    let body = String::from_utf8_lossy(body);
    if status != "200 OK" {
        return Err(format!("refuses: {status}: {}", body.lines().next().unwrap_or_default()));
    }
    Ok(body.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_body_or_is_an_error() {
        let error = |answer: &str| body(answer.as_bytes()).unwrap_err();
        assert_eq!(body(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap(), "ok");
        assert_eq!(
            error("HTTP/1.1 401 Unauthorized\r\nContent-Length: 22\r\n\r\nthe token is missing\r\n"),
            "refuses: 401 Unauthorized: the token is missing"
        );
        assert_eq!(error("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"), "has broken off its answer");
        for nonsense in ["", "SSH-2.0-OpenSSH_9.6\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
            assert_eq!(error(nonsense), "does not answer as an endpoint of fibra does");
        }
    }
}
