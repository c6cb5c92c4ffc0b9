//! What other people's tools make of the examples: curl and `openssl s_client` as clients, `openssl s_server` as a server.
//! `ci/features.sh` installs them and runs these tests.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;

use common::client::payload;
use common::example::example;
use common::server::Server;
use common::tls::{CertificateFile, Sides, TlsEcho, certify};
use common::websocket::WebsocketEcho;
use common::{http, on};

/// A tool that runs, and is ended when dropped.
struct Tool {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Tool {
    fn start(program: &mut Command) -> Tool {
        let program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process =
            program.spawn().unwrap_or_else(|error| panic!("{program:?} does not start: {error}"));
        let stdout = BufReader::new(process.stdout.take().expect("a piped output"));
        Tool { process, stdout }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A client of openssl's, which insists on that certificate and on that name.
fn s_client(address: &str, trusted: &Path, name: &str) -> Command {
    let mut client = Command::new("openssl");
    client.args([
        "s_client",
        "-connect",
        address,
        "-verify_return_error",
        "-verify_hostname",
        name,
        "-CAfile",
    ]);
    // It ends when its input does, and takes no letter of that for a command.
    client.arg(trusted).args(["-quiet", "-no_ign_eof", "-nocommands"]);
    client
}

#[test]
#[ignore = "needs openssl"]
fn openssl_talks_to_tls_echo_by_both_versions_of_tls() {
    let echo = TlsEcho::start(2);
    echo.recovers(|echo| {
        for version in ["-tls1_2", "-tls1_3"] {
            let mut client = s_client(echo.server.address(), echo.certificate.path(), "localhost");
            let mut client = Tool::start(client.arg(version));
            let (mut stdin, sent) = (client.process.stdin.take().expect("a piped input"), payload(1 << 20));
            let mut back = vec![0; sent.len()];
            thread::scope(|scope| {
                scope.spawn(|| stdin.write_all(&sent).expect("sent"));
                client.stdout.read_exact(&mut back).expect("echoed");
            });
            assert!(back == sent, "other bytes came back");
            drop(stdin);
            assert!(client.process.wait().expect("it was started").success(), "{version}");
        }
    });
}

#[test]
#[ignore = "needs openssl"]
fn openssl_believes_tls_echo_no_other_name_and_no_other_certificate() {
    let (stranger, _) = certify("localhost");
    TlsEcho::start(1).recovers(|echo| {
        for (trusted, name) in [(&stranger, "localhost"), (&echo.certificate, "example.org")] {
            let output = s_client(echo.server.address(), trusted.path(), name).output().expect("openssl");
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && error.contains("certificate verify failed"), "{error}");
        }
    });
}

#[test]
#[ignore = "needs openssl"]
fn https_get_fetches_from_openssl_s_server() {
    let (certificate, key) = (CertificateFile::vacant(), CertificateFile::vacant());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(certificate.path(), made.cert.pem()).expect("a file");
    fs::write(key.path(), made.signing_key.serialize_pem()).expect("a file");
    let mut server = Command::new("openssl");
    server.args(["s_server", "-accept", "127.0.0.1:0", "-www", "-cert"]).arg(certificate.path());
    let mut server = Tool::start(server.arg("-key").arg(key.path()));
    let mut lines = (&mut server.stdout).lines().map_while(Result::ok);
    let port = lines.find_map(|line| line.strip_prefix("ACCEPT 127.0.0.1:").map(str::to_owned));
    let port = port.expect("where it listens");
    let fetch = |trusted: &CertificateFile| {
        let mut client = example("https_get");
        client.arg("--cacert").arg(trusted.path()).arg(format!("https://localhost:{port}/"));
        client.output().expect("the example")
    };
    let (status, page) = says(&fetch(&certificate));
    assert_eq!(status, "200 ok\n");
    assert!(page.contains("s_server") && page.contains("TLSv1.3"), "{page}");
    let (stranger, _) = certify("localhost");
    assert!(!fetch(&stranger).status.success());
    assert_eq!(says(&fetch(&certificate)).0, "200 ok\n");
}

/// What comes out of a tool that ends well: its standard error, and its standard output.
fn says(output: &Output) -> (String, String) {
    let [error, text] =
        [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{error}{text}");
    (error, text)
}

fn curl(arguments: &[&str]) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60", "--noproxy", "*"]).args(arguments);
    curl
}

#[test]
#[ignore = "needs curl"]
fn curl_gets_from_http_server() {
    let server = Server::start("http_server");
    let url = format!("http://{}/plaintext", server.address());
    // On one connection.
    let output = curl(&[&url, &url, "--write-out", " %{http_code} %{num_connects} "]).output().expect("curl");
    assert_eq!(says(&output).1, "Hello, World! 200 1 Hello, World! 200 0 ");
}

#[test]
#[ignore = "needs curl"]
fn curl_gets_from_a_task_over_tls_and_verifies_it() {
    on(2, || {
        let sides = Sides::new("localhost");
        let url = format!("https://localhost:{}/", sides.address().port());
        fibra::scope(|scope| {
            scope.spawn(|| {
                let mut served = sides.accept();
                http::head(&mut served);
                served.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").expect("sent");
                served.conn.send_close_notify();
                served.flush().expect("told");
            });
            let trusted = sides.certificate.path().to_str().expect("text");
            let output = fibra::unblock(|| curl(&[&url, "--cacert", trusted]).output().expect("curl"));
            assert_eq!(says(&output).1, "hello");
        });
    });
}

#[test]
#[ignore = "needs curl"]
fn curl_is_refused_by_websocket_echo_with_an_answer() {
    WebsocketEcho::start(2).recovers(|echo| {
        let url = format!("http://{}/", echo.0.address());
        let output = curl(&[&url, "--write-out", "%{http_code}"]).output().expect("curl");
        assert_eq!(says(&output).1, "400");
    });
}
