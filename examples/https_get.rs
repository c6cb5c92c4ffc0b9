//! Fetches a page over TLS: rustls over fibra's sockets, with the roots that the system trusts or with your
//! own.
//!
//! Run `cargo run --features tls-examples --example https_get -- https://www.rust-lang.org/`: the page goes
//! to the standard output, the status to the standard error. With `--cacert FILE` before the address it
//! trusts only the certificates in that file. After thirty seconds it fails.

use fibra::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_native_certs::{load_certs_from_paths, load_native_certs};
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The largest head of an answer, in bytes and in headers.
const HEAD: u64 = 64 * 1024;
const HEADERS: usize = 128;
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("https_get: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (authority, url) = match &*arguments {
        [url] => (None, url),
        [option, file, url] if option == "--cacert" => (Some(file), url),
        _ => return Err("usage: https_get [--cacert FILE] https://HOST[:PORT][/PATH]".into()),
    };
    let url = Url::parse(url).ok_or("this is no address of the kind https://HOST[:PORT][/PATH]")?;
    let config = configure(authority.map(String::as_str))?;
    fibra::run(|| fibra::timeout(PATIENCE, || get(&url, config))?)
}

/// Trusts the certificates of the file, or those that the system trusts.
fn configure(file: Option<&str>) -> Result<Arc<ClientConfig>> {
    let found = match file {
        Some(file) => load_certs_from_paths(Some(file.as_ref()), None),
        None => load_native_certs(),
    };
    let mut roots = RootCertStore::empty();
    // Some certificates of a system may be too old for rustls.
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    if taken == 0 {
        return Err(found.errors.into_iter().next().map_or("no certificate to trust".into(), Into::into));
    }
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

/// The parts of an address.
struct Url<'a> {
    host: &'a str,
    port: u16,
    /// The host, with the port if it was given, as requests name it.
    authority: &'a str,
    path: &'a str,
}

impl Url<'_> {
    fn parse(url: &str) -> Option<Url<'_>> {
        let url = url.strip_prefix("https://")?.split('#').next()?;
        let (authority, path) = match url.find('/') {
            Some(at) => url.split_at(at),
            None => (url, "/"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, 443),
        };
        // These would break the line of the request.
        let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
        is_plain.then_some(Url { host: host.trim_matches(['[', ']']), port, authority, path })
    }
}

fn get(url: &Url<'_>, config: Arc<ClientConfig>) -> Result<()> {
    let name = ServerName::try_from(url.host.to_owned())?;
    let stream = TcpStream::connect((url.host, url.port))?;
    stream.set_nodelay(true)?;
    let mut tls = StreamOwned::new(ClientConnection::new(config, name)?, stream);
    // An answer to HTTP/1.0 has no chunks, and its body ends with the connection.
    write!(tls, "GET {} HTTP/1.0\r\nHost: {}\r\nAccept: */*\r\n\r\n", url.path, url.authority)?;
    tls.flush()?;
    let mut answer = BufReader::new(tls);
    let (status, length) = head(&mut answer)?;
    eprintln!("{status}");
    let mut output = fibra::io::stdout();
    match length {
        // The end of the session tells a whole body from a truncated one. rustls reports the latter.
        None => drop(io::copy(&mut answer, &mut output)?),
        Some(length) => {
            let count = io::copy(&mut answer.take(length), &mut output)?;
            if count < length {
                return Err(format!("the body ends after {count} of {length} bytes").into());
            }
        }
    }
    Ok(())
}

/// Reads the head of an answer. Returns its first line, and the length of the body if given.
fn head(answer: &mut impl BufRead) -> Result<(String, Option<u64>)> {
    let mut bytes = Vec::new();
    let mut lines = answer.take(HEAD);
    while !bytes.ends_with(b"\r\n\r\n") {
        if lines.read_until(b'\n', &mut bytes)? == 0 {
            return Err("the head of the answer ends too early, or never".into());
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(&bytes)?;
    let mut length = None;
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            length = Some(str::from_utf8(header.value)?.trim().parse()?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err("the answer comes in chunks, which the request does not allow".into());
        }
    }
    let status = format!("{} {}", response.code.unwrap_or_default(), response.reason.unwrap_or_default());
    Ok((status, length))
}
