//! A server among the examples, running.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::mem;
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::client::{ask, connect, leave};
use super::example;
use super::{NOISE, descriptors, resident, until};

/// A running server; ended when dropped.
pub(crate) struct Server {
    process: Child,
    address: String,
    /// What it says after its address.
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts the example `name` as it is.
    pub(crate) fn start(name: &str) -> Server {
        Server::launch(&mut example::example(name))
    }

    /// The same, with so many milliseconds of patience for a slow client.
    pub(crate) fn with_patience(name: &str, millis: u64) -> Server {
        Server::launch(example::example(name).env("PATIENCE_MS", millis.to_string()))
    }

    /// The same; its standard error goes to the caller.
    pub(crate) fn with_errors(name: &str, millis: u64) -> (Server, ChildStderr) {
        let mut program = example::example(name);
        program.env("PATIENCE_MS", millis.to_string());
        Server::launch_with_errors(&mut program)
    }

    /// The same, at an address that may be a name.
    pub(crate) fn start_at(name: &str, address: &str) -> Server {
        Server::launch_at(&mut example::example(name), address)
    }

    /// Starts `echo_server` with so many workers.
    pub(crate) fn with_workers(workers: usize) -> Server {
        Server::launch(example::example("echo_server").env("FIBRA_WORKERS", workers.to_string()))
    }

    /// The same, in a process that may have only so many descriptors; its standard error goes to the caller.
    pub(crate) fn with_descriptors(workers: usize, limit: usize) -> (Server, ChildStderr) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -n \"$0\"; exec \"$@\""]).arg(limit.to_string());
        shell.arg(example::path("echo_server")).env("FIBRA_WORKERS", workers.to_string());
        Server::launch_with_errors(&mut shell)
    }

    /// Starts the example `tcp_proxy` before another server. It gives connected clients so many milliseconds at its end.
    pub(crate) fn proxy(behind: &Server, grace: &str) -> Server {
        Server::launch(example::example("tcp_proxy").arg(&behind.address).env("GRACE_MS", grace))
    }

    /// Sends it what Ctrl-C sends.
    pub(crate) fn interrupt(&self) {
        // SAFETY: the process was started here and not waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(self.process.id() as i32, libc::SIGINT) }, 0);
    }

    /// Waits for its good end, and gives what it said last.
    pub(crate) fn ends(mut self) -> String {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("text");
        assert!(self.process.wait().expect("the server was started").success(), "{text}");
        text
    }

    fn launch_with_errors(program: &mut Command) -> (Server, ChildStderr) {
        let mut server = Server::launch(program.stderr(Stdio::piped()));
        let stderr = server.process.stderr.take().expect("a piped error output");
        (server, stderr)
    }

    /// Starts a program that takes an address as its last argument, and says where it listens.
    pub(crate) fn launch(program: &mut Command) -> Server {
        Server::launch_at(program, "127.0.0.1:0")
    }

    fn launch_at(program: &mut Command, address: &str) -> Server {
        let mut process = program
            .arg(address)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?} does not start: {error}"));
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().expect("a piped output"));
        stdout.read_line(&mut line).expect("its first line");
        let address = line.trim().strip_prefix("listening on ");
        let address = address.expect("the address that it listens on").to_owned();
        Server { process, address, stdout }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A connection with time-outs far above what it needs.
    pub(crate) fn connect(&self) -> TcpStream {
        connect(&self.address)
    }

    /// A connection, unless it is refused.
    pub(crate) fn try_connect(&self) -> Option<TcpStream> {
        TcpStream::connect(&self.address).ok()
    }

    /// What every server that echoes must still do after whatever was done to it.
    pub(crate) fn serves(&self) {
        let mut stream = self.connect();
        (0..10_u8).for_each(|round| ask(&mut stream, &[round; 64]));
        leave(stream);
    }

    /// Sees that the server still serves after `harm`, and holds no descriptor more than before.
    pub(crate) fn recovers(&self, serves: impl Fn(), harm: impl FnOnce()) {
        serves();
        let before = self.settled_descriptors();
        harm();
        serves();
        self.comes_to(before);
        serves();
    }

    /// How many descriptors it has open.
    pub(crate) fn descriptors(&self) -> usize {
        descriptors(self.process.id())
    }

    /// The same, once those of connections that have ended are closed.
    pub(crate) fn settled_descriptors(&self) -> usize {
        let mut last = self.descriptors();
        until(|| {
            thread::sleep(Duration::from_millis(20));
            let before = mem::replace(&mut last, self.descriptors());
            if before == last { Ok(()) } else { Err(format!("{before} descriptors, then {last}")) }
        });
        last
    }

    /// Waits until it has no more than `count` descriptors open.
    pub(crate) fn comes_to(&self, count: usize) {
        until(|| match self.descriptors() {
            now if now <= count => Ok(()),
            now => Err(format!("the server has {now} descriptors, more than {count}")),
        });
    }

    /// How much of its memory is resident, in KiB.
    pub(crate) fn resident(&self) -> usize {
        resident(self.process.id())
    }

    /// Waits until no more of its memory is resident than was `before`, in KiB, but for noise and for what it `keeps`.
    pub(crate) fn gives_memory_back(&self, before: usize, keeps: usize) {
        let peak = self.resident();
        until(|| match self.resident() {
            now if now < before + keeps + NOISE => Ok(()),
            now => Err(format!("from {before} KiB over {peak} back to {now} only")),
        });
    }

    /// The processor time that it has used, in the ticks of the system, of which there are 100 a second.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(self.proc("stat")).expect("the server runs");
        let (_, fields) = stat.rsplit_once(") ").expect("the name in parentheses");
        let times = fields.split(' ').skip(11).take(2);
        times.map(|time| time.parse::<u64>().expect("a number of ticks")).sum()
    }

    fn proc(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.process.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
