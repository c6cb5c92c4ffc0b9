//! The servers under load: ours, started here, or a user's.

use crate::child::Child;
use crate::generator;
use crate::interrupt::Interrupt;
use crate::role::Role;
use crate::wire::Protocol;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::process::{ChildStdout, ExitCode};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// The beginning of a server's first line. Its address follows.
const GREETING: &str = "listening on ";

/// The longest first line that is read.
const LINE: u64 = 4096;

/// Stand for the address, and for its port alone, in a user's command.
const ADDRESS: &str = "{address}";
const PORT: &str = "{port}";

/// Time between two looks at a server that does not listen yet.
const KNOCK: Duration = Duration::from_millis(20);

/// How long a server may take to accept a connection that asks whether it listens.
const CONNECT: Duration = Duration::from_secs(1);

/// Bytes that an echo server over datagrams is asked for until it answers.
const HELLO: [u8; 8] = *b"are you ";

/// A server that this executable carries: an example with its `main`.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// The example's name.
    pub name: &'static str,
    /// Its architecture, in a few words.
    pub about: &'static str,
    /// The protocol of the server.
    pub protocol: Protocol,
    /// The `main` of the example: listens at the address in the first argument and prints it.
    pub main: fn() -> ExitCode,
}

/// A server that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) name: String,
    /// HOST:PORT.
    pub(crate) place: String,
}

/// A server to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub(crate) name: String,
    /// For a shell.
    pub(crate) line: String,
}

/// A server to be loaded.
pub(crate) enum Target<'a> {
    /// An example that is linked into this executable.
    Ours(&'a Server),
    /// A server that runs already.
    Outside(&'a Address),
    /// A server that a user's command starts.
    Command(&'a Command),
    /// A server of this executable with this name.
    #[cfg(feature = "rivals")]
    Played(&'a str),
}

impl Target<'_> {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Ours(server) => server.name,
            Self::Outside(address) => &address.name,
            Self::Command(command) => &command.name,
            #[cfg(feature = "rivals")]
            Self::Played(name) => name,
        }
    }

    pub(crate) fn about(&self) -> &str {
        match self {
            Self::Ours(server) => server.about,
            Self::Outside(address) if address.name == address.place => "given by address",
            Self::Outside(address) => &address.place,
            Self::Command(command) => &command.line,
            #[cfg(feature = "rivals")]
            Self::Played(_) => "played by this program",
        }
    }

    pub(crate) fn start(
        &self,
        protocol: Protocol,
        cpu: Option<usize>,
        interrupt: &Interrupt,
    ) -> io::Result<Running> {
        match self {
            Self::Ours(server) => Running::start(server.name, cpu, interrupt),
            Self::Outside(address) => Running::outside(&address.place, protocol, interrupt),
            Self::Command(command) => Running::command(&command.line, protocol, cpu, interrupt),
            #[cfg(feature = "rivals")]
            Self::Played(name) => Running::start(name, cpu, interrupt),
        }
    }
}

/// A server that listens.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// The address as HTTP has it: by name where there is one.
    pub(crate) host: String,
    child: Option<Child>,
}

impl Running {
    /// Starts a server of this executable, in a process of its own, at a free port.
    pub(crate) fn start(name: &str, cpu: Option<usize>, interrupt: &Interrupt) -> io::Result<Self> {
        let mut command = Role::Server(name.to_owned()).command(cpu)?;
        Self::greeted(Child::start(command.arg("127.0.0.1:0"))?, interrupt)
    }

    /// Starts a user's command. It prints its address, or is given one.
    fn command(
        line: &str,
        protocol: Protocol,
        cpu: Option<usize>,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        if !line.contains(ADDRESS) && !line.contains(PORT) {
            return Self::greeted(
                Child::start(&mut Role::Command(line.to_owned()).command(cpu)?)?,
                interrupt,
            );
        }
        let address = free_address(protocol)?;
        let line = line.replace(ADDRESS, &address.to_string()).replace(PORT, &address.port().to_string());
        let mut child = Child::start(&mut Role::Command(line).command(cpu)?)?;
        drain(child.take_stdout()?)?;
        let deadline = Instant::now() + PATIENCE;
        while !answers(address, protocol) {
            check(&mut child, deadline, interrupt)?;
            thread::sleep(KNOCK);
        }
        Ok(Self { address, host: address.to_string(), child: Some(child) })
    }

    /// Waits until the child prints its address.
    fn greeted(mut child: Child, interrupt: &Interrupt) -> io::Result<Self> {
        let line = first_line(child.take_stdout()?)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match line.recv_timeout(KNOCK) {
                Ok(line) => {
                    let address = parse_greeting(&line)?;
                    return Ok(Self { address, host: address.to_string(), child: Some(child) });
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Its streams are closed; it ends soon.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(KNOCK),
            }
            check(&mut child, deadline, interrupt)?;
        }
    }

    /// Takes a server that runs already, elsewhere or here. A thread looks for it, since a lookup cannot be
    /// interrupted.
    fn outside(host: &str, protocol: Protocol, interrupt: &Interrupt) -> io::Result<Self> {
        let (tell, told) = mpsc::channel();
        let name = host.to_owned();
        let look = move || {
            // The caller has given up if it came too late.
            let _ = tell.send(find(&name, protocol));
        };
        thread::Builder::new().name("lookup".into()).spawn(look)?;
        let address = hear(&told, Instant::now() + PATIENCE, interrupt)?;
        Ok(Self { address, host: host.into(), child: None })
    }

    /// Returns the process, if this program started it.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Returns how the server ended, if this program started it and it has ended.
    pub(crate) fn obituary(&mut self) -> Option<String> {
        self.child.as_mut().and_then(Child::obituary)
    }
}

/// Waits for the result of a thread.
fn hear<T>(told: &Receiver<io::Result<T>>, deadline: Instant, interrupt: &Interrupt) -> io::Result<T> {
    loop {
        match told.recv_timeout(KNOCK) {
            Ok(found) => return found,
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(RecvTimeoutError::Timeout) => interrupt.check()?,
        }
        if Instant::now() >= deadline {
            let seconds = PATIENCE.as_secs();
            return Err(io::Error::other(format!("its address was not found within {seconds} seconds")));
        }
    }
}

/// Returns the addresses of the server of that name.
fn find(host: &str, protocol: Protocol) -> io::Result<SocketAddr> {
    let addresses: Vec<_> = host.to_socket_addrs()?.collect();
    choose(&addresses, protocol).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// Checks whether to wait longer for a server that does not listen yet.
fn check(child: &mut Child, deadline: Instant, interrupt: &Interrupt) -> io::Result<()> {
    interrupt.check()?;
    if let Some(how) = child.obituary() {
        return Err(io::Error::other(format!("it ended before it listened ({how})")));
    }
    match Instant::now() < deadline {
        true => Ok(()),
        false => Err(io::Error::other(format!("it did not listen within {} seconds", PATIENCE.as_secs()))),
    }
}

/// Returns an address that is free at this moment.
fn free_address(protocol: Protocol) -> io::Result<SocketAddr> {
    let any = (Ipv4Addr::LOCALHOST, 0);
    match protocol {
        Protocol::Udp => UdpSocket::bind(any)?.local_addr(),
        Protocol::Tcp | Protocol::Http => TcpListener::bind(any)?.local_addr(),
    }
}

/// The first of the addresses of a name at which a server answers, or just the first. An only one is not
/// troubled with a connection that asks for nothing.
fn choose(addresses: &[SocketAddr], protocol: Protocol) -> Option<SocketAddr> {
    let mut all = addresses.iter();
    all.find(|&&address| addresses.len() == 1 || answers(address, protocol)).or(addresses.first()).copied()
}

/// Returns true once a server listens there.
fn answers(address: SocketAddr, protocol: Protocol) -> bool {
    let echoes = || -> io::Result<bool> {
        let socket = UdpSocket::bind(generator::any_like(address))?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(KNOCK))?;
        socket.send(&HELLO)?;
        Ok(socket.recv(&mut [0; HELLO.len()])? == HELLO.len())
    };
    match protocol {
        Protocol::Udp => echoes().unwrap_or(false),
        Protocol::Tcp | Protocol::Http => TcpStream::connect_timeout(&address, CONNECT).is_ok(),
    }
}

/// Reads and drops the output, so that the server never blocks on the pipe.
fn drain(mut stdout: ChildStdout) -> io::Result<()> {
    let drain = move || io::copy(&mut stdout, &mut io::sink());
    thread::Builder::new().name("stdout".into()).spawn(drain).map(drop)
}

/// Where the first line will be told; a thread goes on to read what follows, whatever it is, so that the
/// server never waits for us.
fn first_line(stdout: ChildStdout) -> io::Result<Receiver<String>> {
    let (tell, told) = mpsc::channel();
    let listen = move || {
        let (mut reader, mut line) = (BufReader::new(stdout), Vec::new());
        if reader.by_ref().take(LINE).read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            // The caller has given up if it came too late.
            let _ = tell.send(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        drop(tell);
        io::copy(&mut reader, &mut io::sink())
    };
    thread::Builder::new().name("stdout".into()).spawn(listen)?;
    Ok(told)
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
mod tests;
