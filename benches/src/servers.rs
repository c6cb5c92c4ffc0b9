//! The servers under load: ours, started here, or somebody's.

use crate::child::Child;
use crate::role::Role;
use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::{ChildStdout, ExitCode};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a server's first line begins with; its address follows.
const GREETING: &str = "listening on ";

/// A server that this executable carries: an example with its `main`.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// The example's name.
    pub name: &'static str,
    /// Its architecture, in a few words.
    pub about: &'static str,
    /// Its `main`: listens at the address in the first argument and says where.
    pub main: fn() -> ExitCode,
}

/// A server that listens.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    child: Option<Child>,
}

impl Running {
    /// Starts a server of ours in a process of its own, at a free port.
    pub(crate) fn start(name: &str, cpu: Option<usize>) -> io::Result<Self> {
        let mut command = Role::Server(name.to_owned()).command(cpu)?;
        let mut child = Child::start(command.arg("127.0.0.1:0"))?;
        let stdout = child.take_stdout()?;
        match first_line(stdout)? {
            Some(line) => Ok(Self { address: parse_greeting(&line)?, child: Some(child) }),
            None => Err(io::Error::other(match child.obituary() {
                Some(how) => format!("it ended before it listened ({how})"),
                None => format!("it did not listen within {} seconds", PATIENCE.as_secs()),
            })),
        }
    }

    /// Takes a server that runs already, elsewhere or here.
    pub(crate) fn outside(address: &str) -> io::Result<Self> {
        let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { address, child: None })
    }

    /// Its process, if it is ours.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// How it ended, if it is ours and has ended.
    pub(crate) fn obituary(&mut self) -> Option<String> {
        self.child.as_mut().and_then(Child::obituary)
    }
}

/// Waits for the first line; a thread goes on to read what follows, so that the server never waits for us.
fn first_line(stdout: ChildStdout) -> io::Result<Option<String>> {
    let (tell, told) = mpsc::channel();
    let listen = move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Nobody listens after the first.
            let _ = tell.send(line);
        }
    };
    thread::Builder::new().name("stdout".into()).spawn(listen)?;
    match told.recv_timeout(PATIENCE) {
        Ok(line) => Ok(Some(line)),
        Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            // Its streams are closed; its end is a moment away.
            thread::sleep(Duration::from_millis(100));
            Ok(None)
        }
    }
}

fn parse_greeting(line: &str) -> io::Result<SocketAddr> {
    let address = line.split_once(GREETING).and_then(|(_, rest)| rest.split_whitespace().next());
    address.and_then(|address| address.parse().ok()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("its first line was '{line}', not '{GREETING}ADDRESS'"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_tells_the_address() {
        let address = |line| parse_greeting(line).map(|address| address.port()).ok();
        assert_eq!(address("listening on 127.0.0.1:4000"), Some(4000));
        assert_eq!(address("echo_server listening on [::1]:80 (1 worker)"), Some(80));
        assert_eq!(address("hello"), None);
    }
}
