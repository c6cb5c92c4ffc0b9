//! An HTTP/1.1 server over httparse: keep-alive, pipelining, and limits on what a client may send and how
//! slowly.
//!
//! Run `cargo run --release --example http_server -- 127.0.0.1:8080` (the default address), then in another
//! terminal `curl -i localhost:8080/plaintext` and `curl -i localhost:8080/json`; both routes are those of
//! the TechEmpower benchmarks. The environment variable `FIBRA_WORKERS` sets the number of workers.
//! `PATIENCE_MS` sets how many milliseconds a client may take to send a request (default 10,000). It may take
//! twice as long to read its answers, and stay idle six times as long.

use fibra::net::{Shutdown, TcpListener, TcpStream};
use httparse::{Request, Status};
use std::borrow::Cow;
use std::cell::RefCell;
use std::env;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant, SystemTime};

/// The largest head of a request, in bytes and in headers.
const HEAD: usize = 16 * 1024;
const HEADERS: usize = 64;
/// The first size of the buffer, enough for most requests.
const SMALL: usize = 2 * 1024;
/// The longest body. Bodies are read and discarded.
const BODY: usize = 1 << 20;
/// The most bytes that are discarded after the last answer.
const REST: u64 = 4 << 20;
/// Answers are sent at this many bytes, even if more requests are complete.
const ENOUGH: usize = 64 * 1024;
/// How many times `PATIENCE_MS` a connection may stay idle.
const IDLE: u32 = 6;

fn main() -> io::Result<()> {
    // With many clients a worker that sleeps finds several requests when it wakes, which is cheaper than
    // polling for each.
    fibra::Runtime::builder().polling(false).run(serve)?
}

fn serve() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let patience = env::var("PATIENCE_MS").ok().and_then(|millis| millis.parse().ok()).unwrap_or(10_000);
    let patience = Duration::from_millis(patience);
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    io::stdout().flush()?;
    loop {
        match listener.accept() {
            // A client that disconnects is no error of the server.
            Ok((stream, _)) => drop(fibra::spawn(move || connection(stream, patience))),
            Err(error) => {
                // Most likely no descriptor is left: a connection that ends frees one.
                eprintln!("accept: {error}");
                fibra::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Serves one connection.
fn connection(mut stream: TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // A deadline reads the clock only if a call must wait.
    stream.set_read_timeout(Some(patience * IDLE))?;
    stream.set_write_timeout(Some(patience))?;
    let mut input = Input { bytes: vec![0; SMALL], filled: 0, skip: 0 };
    let mut output = Vec::new();
    // When the first byte of an incomplete request arrived.
    let mut begun = None;
    loop {
        let (before, in_body) = (output.len(), input.skip > 0);
        let next = input.answer(&mut output);
        // A request is answered after its head, and complete after its body.
        if output.len() > before || (in_body && input.skip == 0) {
            begun = None;
        }
        if !output.is_empty() {
            send(&mut stream, &output, patience)?;
            output.clear();
        }
        match next {
            Next::Close => return end(&stream, patience),
            Next::Again => continue,
            Next::Read => {}
        }
        let is_idle = input.filled == 0 && input.skip == 0;
        let read = match is_idle {
            true => Ok(stream.read(&mut input.bytes[input.filled..])),
            false => {
                let left = patience.saturating_sub(begun.get_or_insert_with(Instant::now).elapsed());
                fibra::timeout(left, || stream.read(&mut input.bytes[input.filled..]))
            }
        };
        match read {
            Ok(Ok(0)) => return Ok(()),
            Ok(Ok(count)) => input.came(count),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                respond(&mut output, "408 Request Timeout", "text/plain", "too slow");
                send(&mut stream, &output, patience)?;
                return end(&stream, patience);
            }
        }
    }
}

/// Sends answers, with a deadline for the client to take them.
fn send(stream: &mut TcpStream, answers: &[u8], patience: Duration) -> io::Result<()> {
    match stream.write(answers)? {
        all if all == answers.len() => Ok(()),
        some => fibra::timeout(patience, || stream.write_all(&answers[some..]))?,
    }
}

/// Closes a connection after its last answer has arrived.
///
/// Closing a socket with unread bytes sends a reset, which may overtake the answer. So this shuts down the
/// writing side first and discards, within limits, what the client still sends.
fn end(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    fibra::timeout(patience, || io::copy(&mut stream.take(REST), &mut io::sink()).map(drop))?
}

/// Received bytes of requests that are not answered yet.
struct Input {
    bytes: Vec<u8>,
    filled: usize,
    /// Bytes of a body that are to be discarded first.
    skip: usize,
}

/// The next step once the answers are sent.
enum Next {
    Read,
    Again,
    Close,
}

impl Input {
    /// Adds received bytes. A client that fills the buffer gets a larger one.
    fn came(&mut self, count: usize) {
        self.filled += count;
        if self.filled == self.bytes.len() {
            self.bytes.resize(HEAD.min(2 * self.filled), 0);
        }
    }

    /// Answers every complete request.
    fn answer(&mut self, output: &mut Vec<u8>) -> Next {
        let mut used = 0;
        let next = loop {
            let skipped = self.skip.min(self.filled - used);
            self.skip -= skipped;
            used += skipped;
            let left = &self.bytes[used..self.filled];
            if left.is_empty() {
                break Next::Read;
            }
            match head(left) {
                Ok(Some(head)) => {
                    let (status, kind, body) = route(head.method, head.path);
                    respond(output, status, kind, &body);
                    if head.method == "HEAD" {
                        output.truncate(output.len() - body.len());
                    }
                    used += head.length;
                    self.skip = head.body;
                    if head.closes {
                        break Next::Close;
                    }
                }
                Ok(None) if left.len() < HEAD => break Next::Read,
                Ok(None) => {
                    respond(output, "431 Request Header Fields Too Large", "text/plain", "too large");
                    break Next::Close;
                }
                Err(status) => {
                    respond(output, status, "text/plain", status);
                    break Next::Close;
                }
            }
            if output.len() >= ENOUGH {
                break Next::Again;
            }
        };
        self.bytes.copy_within(used..self.filled, 0);
        self.filled -= used;
        next
    }
}

/// The head of a request.
struct Head<'a> {
    method: &'a str,
    path: &'a str,
    length: usize,
    /// The length of the body.
    body: usize,
    closes: bool,
}

/// Parses the head at the start of `bytes`. Returns `None` if it is incomplete, and the status of the answer
/// as an error.
fn head(bytes: &[u8]) -> Result<Option<Head<'_>>, &'static str> {
    const BAD: &str = "400 Bad Request";
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS];
    let mut request = Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err("431 Request Header Fields Too Large"),
        Err(_) => return Err(BAD),
    };
    let (Some(method), Some(path)) = (request.method, request.path) else { return Err(BAD) };
    let mut head = Head { method, path, length, body: 0, closes: request.version == Some(0) };
    let mut sized = false;
    for header in request.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            // Only digits and one length: signs and second lengths serve request smuggling.
            if sized || !value.iter().all(u8::is_ascii_digit) {
                return Err(BAD);
            }
            sized = true;
            head.body = str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).ok_or(BAD)?;
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err("501 Not Implemented");
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.closes |= value
                .split(|byte| *byte == b',')
                .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"));
        }
    }
    if head.body > BODY { Err("413 Content Too Large") } else { Ok(Some(head)) }
}

/// The status, the type and the body of an answer.
fn route(method: &str, path: &str) -> (&'static str, &'static str, Cow<'static, str>) {
    match (method, path) {
        ("GET" | "HEAD", "/plaintext") => ("200 OK", "text/plain", "Hello, World!".into()),
        ("GET" | "HEAD", "/json") => ("200 OK", "application/json", json("message", "Hello, World!").into()),
        (_, "/plaintext" | "/json") => ("405 Method Not Allowed", "text/plain", "GET, please".into()),
        _ => ("404 Not Found", "text/plain", "not found".into()),
    }
}

/// A JSON object with one name, which needs no escapes, and a text.
fn json(name: &str, text: &str) -> String {
    let mut json = format!("{{\"{name}\":\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            '\0'..' ' => json.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => json.push(letter),
        }
    }
    json.push_str("\"}");
    json
}

fn respond(output: &mut Vec<u8>, status: &str, kind: &str, body: &str) {
    let mut digits = itoa::Buffer::new();
    let length = digits.format(body.len());
    for part in ["HTTP/1.1 ", status, "\r\nContent-Type: ", kind, "\r\nContent-Length: ", length] {
        output.extend_from_slice(part.as_bytes());
    }
    output.extend_from_slice(b"\r\nServer: fibra\r\nDate: ");
    add_date(output);
    output.extend_from_slice(b"\r\n\r\n");
    output.extend_from_slice(body.as_bytes());
}

/// Adds the date. Each worker formats it once a second and keeps it in a thread-local, since a task stays on
/// its thread.
fn add_date(output: &mut Vec<u8>) {
    thread_local! {
        static DATE: RefCell<String> = const { RefCell::new(String::new()) };
    }
    DATE.with_borrow_mut(|date| {
        if date.is_empty() {
            let now = SystemTime::now();
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let left = Duration::from_secs(since.as_secs() + 1) - since;
            *date = httpdate::fmt_http_date(now);
            fibra::spawn_local(move || {
                fibra::sleep(left);
                DATE.with_borrow_mut(String::clear);
            });
        }
        output.extend_from_slice(date.as_bytes());
    });
}
