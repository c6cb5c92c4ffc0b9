//! Clients and servers of TLS, as tasks; and certificates, which are made for one test and trusted nowhere else.

use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fibra::net::{TcpListener, TcpStream};
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{
    ClientConfig, ClientConnection, ConnectionCommon, RootCertStore, ServerConfig, ServerConnection,
    StreamOwned, pki_types,
};

use super::client::{connect_task, payload, try_connect_task, write_until_timeout};
use super::example::example;
use super::line::Sessions;
use super::server::Server;
use super::{HANG, MOST, PATIENCE, STUCK, on, until};

/// A session, seen from the client.
pub(crate) type Client = StreamOwned<ClientConnection, TcpStream>;
/// A session, seen from the server.
pub(crate) type Served = StreamOwned<ServerConnection, TcpStream>;

/// So much is written before as much is read: less than sockets hold at the least, and no multiple of a record.
pub(crate) const PIECE: usize = 30_000;

/// A file with a certificate, removed when dropped.
pub(crate) struct CertificateFile(PathBuf);

impl CertificateFile {
    /// A path where no file is.
    pub(crate) fn vacant() -> CertificateFile {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        // Relaxed: the numbers need only differ.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("certificate-{}-{number}.pem", std::process::id());
        CertificateFile(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What a client needs that trusts this certificate alone.
    pub(crate) fn trusted(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let certificate = pki_types::CertificateDer::from_pem_file(&self.0).expect("a certificate");
        roots.add(certificate).expect("a certificate to trust");
        Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }
}

impl Drop for CertificateFile {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

/// Makes a certificate for that name, and what a server needs that shows it.
pub(crate) fn certify(name: &str) -> (CertificateFile, Arc<ServerConfig>) {
    let file = CertificateFile::vacant();
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    fs::write(file.path(), made.cert.pem()).expect("a file");
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![made.cert.into()], made.signing_key.into()).expect("a key");
    (file, Arc::new(server))
}

/// The example `tls_echo`, running.
pub(crate) struct TlsEcho {
    pub(crate) server: Server,
    pub(crate) certificate: CertificateFile,
    config: Arc<ClientConfig>,
}

impl TlsEcho {
    /// With so many workers, and with more patience than any client needs.
    pub(crate) fn start(workers: usize) -> TlsEcho {
        TlsEcho::with_grace(workers, PATIENCE)
    }

    /// Starts it as `start` does; connected clients have so many milliseconds at its end.
    pub(crate) fn with_grace(workers: usize, grace: &str) -> TlsEcho {
        let mut program = example("tls_echo");
        program.env("FIBRA_WORKERS", workers.to_string()).env("PATIENCE_MS", PATIENCE).env("GRACE_MS", grace);
        TlsEcho::launch(&mut program)
    }

    /// With patience of so many milliseconds for a handshake.
    pub(crate) fn with_patience(millis: u64) -> TlsEcho {
        TlsEcho::launch(example("tls_echo").env("PATIENCE_MS", millis.to_string()))
    }

    fn launch(program: &mut Command) -> TlsEcho {
        let certificate = CertificateFile::vacant();
        let server = Server::launch(program.arg(certificate.path()));
        let config = certificate.trusted();
        TlsEcho { server, certificate, config }
    }

    /// A connection to the server that the certificate names, before the handshake.
    pub(crate) fn connect(&self) -> Client {
        connect(self.server.address(), &self.config)
    }

    /// A session that the server has taken. Where it has little patience, a busy machine may hold up a handshake for longer;
    /// a client that is cut off for that comes again.
    pub(crate) fn connect_in_time(&self) -> Client {
        until(|| {
            let mut client = self.connect();
            match client.write_all(b"x").and_then(|()| client.read_exact(&mut [0])) {
                Ok(()) => Ok(client),
                Err(error) => Err(format!("no session: {error}")),
            }
        })
    }

    /// Does `harm`. The server must serve afterwards, and have closed everything.
    pub(crate) fn recovers(&self, harm: impl FnOnce(&TlsEcho)) {
        self.server.recovers(|| self.serves(), || harm(self));
    }

    /// What it must still do after whatever was done to it. In a task or a thread.
    pub(crate) fn serves(&self) {
        exchange(self.connect(), &payload(1000));
    }
}

impl Sessions for TlsEcho {
    type Client = Client;

    fn start(workers: usize) -> TlsEcho {
        TlsEcho::start(workers)
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn serves(&self) {
        self.serves();
    }

    fn talk(&self, address: &str, bytes: usize) -> io::Result<()> {
        try_exchange(session(try_connect_task(address)?, &self.config), &payload(bytes))
    }

    fn stick(&self, address: &str) -> Client {
        let mut client = connect(address, &self.config);
        write_until_stuck(&mut client, &payload(MOST));
        client
    }
}

/// Does `deed` as a task to a server: each of the two with one worker, then with two.
pub(crate) fn with_server(deed: impl Fn(&TlsEcho) + Sync) {
    for workers in [1, 2] {
        TlsEcho::start(workers).recovers(|echo| on(workers, || deed(echo)));
    }
}

/// A server and a client that trusts it, for tasks of one runtime.
pub(crate) struct Sides {
    pub(crate) certificate: CertificateFile,
    pub(crate) listener: TcpListener,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Sides {
    pub(crate) fn new(name: &str) -> Sides {
        let (certificate, server) = certify(name);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let client = certificate.trusted();
        Sides { certificate, listener, server, client }
    }

    pub(crate) fn accept(&self) -> Served {
        let (stream, _) = self.listener.accept().expect("a client");
        stream.set_read_timeout(Some(HANG)).expect("a time-out");
        let session = ServerConnection::new(Arc::clone(&self.server)).expect("a session");
        StreamOwned::new(session, stream)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("an address")
    }

    pub(crate) fn connect(&self) -> Client {
        connect(&self.address().to_string(), &self.client)
    }
}

/// Connects to `localhost` at that address.
pub(crate) fn connect(address: &str, config: &Arc<ClientConfig>) -> Client {
    session(connect_task(address), config)
}

fn session(stream: TcpStream, config: &Arc<ClientConfig>) -> Client {
    let name = ServerName::try_from("localhost").expect("a name");
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).expect("a session"), stream)
}

/// Sends `bytes` and reads them back, a piece for a piece, then ends the session and sees the server do so.
pub(crate) fn exchange(stream: Client, bytes: &[u8]) {
    try_exchange(stream, bytes).expect("all of it echoed, and an end that is told");
}

/// The same, unless the connection ends before.
pub(crate) fn try_exchange(mut stream: Client, bytes: &[u8]) -> io::Result<()> {
    let mut back = [0; PIECE];
    for piece in bytes.chunks(PIECE) {
        stream.write_all(piece)?;
        let back = &mut back[..piece.len()];
        stream.read_exact(back)?;
        assert!(back == piece, "other bytes came back");
    }
    end(&mut stream)?;
    assert_eq!(stream.read(&mut [0])?, 0, "a byte, where the end was due");
    Ok(())
}

/// Says that no more will come, which a session can say once there is one.
pub(crate) fn end(stream: &mut Client) -> io::Result<()> {
    stream.flush()?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// What a session has to send.
pub(crate) fn records<S>(session: &mut ConnectionCommon<S>) -> Vec<u8> {
    let mut records = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut records).expect("written to memory");
    }
    records
}

/// Sends the beginning of a handshake, and reads that of the answer: from then on the server waits for the rest.
pub(crate) fn begin(client: &mut Client) {
    client.sock.write_all(&records(&mut client.conn)).expect("sent");
    client.sock.peek(&mut [0]).expect("an answer");
}

/// Writes until the server takes no more. Tells how many bytes that were.
pub(crate) fn write_until_stuck(client: &mut Client, bytes: &[u8]) -> usize {
    let timeouts = |stream: &TcpStream, time| {
        stream.set_write_timeout(Some(time)).expect("a time-out");
        // Where it cannot write, rustls looks for something to read.
        stream.set_read_timeout(Some(time)).expect("a time-out");
    };
    client.flush().expect("a handshake");
    timeouts(&client.sock, STUCK);
    let sent = write_until_timeout(client, bytes);
    timeouts(&client.sock, HANG);
    sent
}
