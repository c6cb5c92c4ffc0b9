//! The examples, run as the programs that they are.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The example `name`, as `cargo test` has built it beside this test.
fn example(name: &str) -> Command {
    let mut path = std::env::current_exe().expect("the path of this test");
    path.pop();
    path.pop();
    Command::new(path.join("examples").join(name))
}

/// A running echo server; ended when dropped.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(name: &str) -> Server {
        let mut process = example(name)
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("the example {name} does not start: {error}"));
        let mut line = String::new();
        let stdout = process.stdout.take().expect("a piped output");
        BufReader::new(stdout).read_line(&mut line).expect("its first line");
        let address =
            line.trim().strip_prefix("listening on ").expect("the address that it listens on").to_owned();
        Server { process, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream
    }

    /// What every server must still do after whatever was done to it.
    fn serves(&self) {
        let mut stream = self.connect();
        for round in 0..10_u8 {
            let sent = [round; 64];
            stream.write_all(&sent).expect("sent");
            let mut back = [0; 64];
            stream.read_exact(&mut back).expect("echoed");
            assert_eq!(back, sent);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Sends `bytes` and reads them back at the same time, then closes its side and sees the server's end.
fn exchange(mut stream: TcpStream, bytes: usize) {
    let payload: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
    let mut writer = stream.try_clone().expect("a second handle");
    let sent = payload.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&sent).expect("sent");
        writer.shutdown(Shutdown::Write).expect("half-closed");
    });
    let mut back = Vec::with_capacity(bytes);
    stream.read_to_end(&mut back).expect("echoed to the end");
    writing.join().expect("the writer");
    assert!(back == payload, "{} of {bytes} bytes came back, or others", back.len());
}

/// Closes with a reset instead of an orderly end.
fn reset(stream: TcpStream) {
    let socket = socket2::Socket::from(stream);
    socket.set_linger(Some(Duration::ZERO)).expect("a linger of zero");
}

fn echoes(name: &str) {
    let server = Server::start(name);
    server.serves();
    exchange(server.connect(), 8 << 20);
    exchange(server.connect(), 0);
    (0..20).for_each(|_| reset(server.connect()));
    let mut asked = server.connect();
    asked.write_all(&[1; 1000]).expect("sent");
    reset(asked);
    let connections: Vec<TcpStream> = (0..200).map(|_| server.connect()).collect();
    connections.into_iter().for_each(|stream| exchange(stream, 100));
    server.serves();
}

#[test]
fn echo_threads_echoes() {
    echoes("echo_threads");
}

#[test]
fn echo_callbacks_echoes() {
    echoes("echo_callbacks");
}

#[test]
fn echo_server_echoes() {
    echoes("echo_server");
}

#[test]
fn million_wakes_and_joins_all() {
    let output = example("million").arg("20000").output().expect("the example");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("20000 tasks were woken and joined"), "{text}");
}
