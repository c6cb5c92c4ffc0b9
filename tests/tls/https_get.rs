//! The example `https_get` against servers that do as they should, and against others.

use std::io::{self, Read, Write};
use std::process::{Command, Output};

use crate::common::client::payload;
use crate::common::example::example;
use crate::common::tls::{CertificateFile, Served, Sides, certify};
use crate::common::{HANG, http, on};

/// A server of one answer, for a client that is told how to find it.
fn fetch(
    name: &str,
    tell: impl FnOnce(&mut Command, &Sides) + Send,
    answer: impl FnOnce(&mut Served) -> io::Result<()> + Send,
) -> Output {
    on(1, || {
        let sides = Sides::new(name);
        let mut command = example("https_get");
        tell(&mut command, &sides);
        fibra::scope(|scope| {
            scope.spawn(|| {
                let mut served = fibra::timeout(HANG, || sides.accept()).expect("a client");
                // A client that does not trust the server goes away.
                _ = answer(&mut served);
            });
            fibra::unblock(|| command.output().expect("the example"))
        })
    })
}

/// Tells the client to trust the server's certificate, and to get that path.
fn path(path: &str) -> impl FnOnce(&mut Command, &Sides) {
    move |command, sides| _ = command.arg("--cacert").arg(sides.certificate.path()).arg(url(sides, path))
}

fn url(sides: &Sides, path: &str) -> String {
    format!("https://localhost:{}{path}", sides.address().port())
}

/// Answers, whatever is asked, and ends the session in order.
fn says(answer: &[u8]) -> impl FnOnce(&mut Served) -> io::Result<()> {
    move |served| {
        http::head(served);
        served.write_all(answer)?;
        served.conn.send_close_notify();
        served.flush()
    }
}

/// An answer with a body.
fn page(head: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes(), body].concat()
}

fn shows(output: &Output, status: &str, body: &[u8]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(error, format!("{status}\n"));
    assert!(output.stdout == body, "{} bytes of {} were printed, or others", output.stdout.len(), body.len());
}

/// It ends with an error that says so.
fn fails(output: &Output, why: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains(why), "{} {error}", output.status);
}

#[test]
fn the_body_is_printed_and_the_status_to_standard_error() {
    for bytes in [0, 1, 16_384, 1 << 20] {
        let body = payload(bytes);
        let answer = page(&format!("x: y\r\nContent-Length: {bytes}\r\n"), &body);
        shows(&fetch("localhost", path("/"), says(&answer)), "200 OK", &body);
    }
}

#[test]
fn a_body_without_a_length_goes_to_the_end_of_the_session() {
    let body = payload(300_000);
    shows(&fetch("localhost", path("/"), says(&page("", &body))), "200 OK", &body);
    shows(&fetch("localhost", path("/"), says(b"HTTP/1.0 404 none\r\n\r\nhere")), "404 none", b"here");
}

#[test]
fn the_request_names_the_host_and_the_path() {
    let (send, asked) = fibra::sync::channel::unbounded();
    let answer = |served: &mut Served| {
        send.send(http::head(served)).expect("the client listens");
        served.write_all(b"HTTP/1.0 204 \r\nContent-Length: 0\r\n\r\n")
    };
    shows(&fetch("localhost", path("/a/b?c=%20d#e"), answer), "204 ", b"");
    let head = asked.recv().expect("a request");
    assert!(head.starts_with("GET /a/b?c=%20d HTTP/1.0\r\nHost: localhost:"), "{head}");
}

#[test]
fn a_body_that_is_cut_short_is_an_error() {
    let answer = page("Content-Length: 1000\r\n", &payload(999));
    fails(&fetch("localhost", path("/"), says(&answer)), "the body ends after 999 of 1000 bytes");
    // The end of the connection is not that of the session: any party on the way could have ended it.
    let cut = |served: &mut Served| {
        http::head(served);
        served.write_all(&page("", &payload(999)))
    };
    fails(&fetch("localhost", path("/"), cut), "close_notify");
}

#[test]
fn an_answer_that_is_no_http_is_an_error() {
    for (answer, why) in [
        (b"220 mail.example ESMTP\r\n\r\n".to_vec(), "version"),
        (b"HTTP/1.1 200 OK\r\n".to_vec(), "too early"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n".to_vec(), "invalid digit"),
        (page("Transfer-Encoding: chunked\r\n", b"0\r\n\r\n"), "chunks"),
        (page(&"x: y\r\n".repeat(200), b""), "too many headers"),
        (page(&"x".repeat(100_000), b""), "too early, or never"),
    ] {
        fails(&fetch("localhost", path("/"), says(&answer)), why);
    }
}

#[test]
fn a_server_that_speaks_no_tls_is_an_error() {
    let plain = |served: &mut Served| served.sock.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    fails(&fetch("localhost", path("/"), plain), "InvalidContentType");
    fails(&fetch("localhost", path("/"), |_| Ok(())), "");
}

#[test]
fn an_untrusted_server_gets_no_request() {
    let asked = |served: &mut Served| {
        let count = served.read(&mut [0]).unwrap_or(0);
        assert_eq!(count, 0, "a request to a stranger");
        Ok(())
    };
    let by_number = |command: &mut Command, sides: &Sides| {
        let url = format!("https://127.0.0.1:{}/", sides.address().port());
        command.arg("--cacert").arg(sides.certificate.path()).arg(url);
    };
    fails(&fetch("localhost", by_number, asked), "not valid for name");
    fails(&fetch("another", path("/"), asked), "not valid for name");
    let (other, _) = certify("localhost");
    let by_others = |command: &mut Command, sides: &Sides| {
        command.env("SSL_CERT_FILE", other.path()).arg(url(sides, "/"));
    };
    fails(&fetch("localhost", by_others, asked), "invalid peer certificate");
}

#[test]
fn certificates_of_the_system_are_trusted_without_a_file() {
    let by_system = |command: &mut Command, sides: &Sides| {
        command.env("SSL_CERT_FILE", sides.certificate.path()).arg(url(sides, "/"));
    };
    shows(&fetch("localhost", by_system, says(&page("", b"hello"))), "200 OK", b"hello");
}

#[test]
fn a_server_is_found_by_its_address_too() {
    let by_number = |command: &mut Command, sides: &Sides| {
        let url = format!("https://127.0.0.1:{}", sides.address().port());
        command.arg("--cacert").arg(sides.certificate.path()).arg(url);
    };
    shows(&fetch("127.0.0.1", by_number, says(&page("", b"hello"))), "200 OK", b"hello");
}

#[test]
fn an_unusable_address_is_an_error() {
    let nowhere = CertificateFile::vacant();
    let url = "https://localhost/";
    for (arguments, why) in [
        (&[][..], "usage"),
        (&["--cacert", url], "usage"),
        (&["http://localhost/"], "address"),
        (&["https://localhost:port/"], "address"),
        (&["https://localhost/ HTTP/1.0\r\nx: y"], "address"),
        (&["https://local host/"], "address"),
        (&["--cacert", nowhere.path().to_str().expect("text"), url], "No such file"),
        (&["--cacert", "Cargo.toml", url], "no certificate"),
        (&["--cacert", "Cargo.toml", "https:///"], "no certificate"),
    ] {
        let output = example("https_get").args(arguments).output().expect("the example");
        fails(&output, why);
    }
}
