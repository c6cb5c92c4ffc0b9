//! TLS over the simulated network.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fibra::net::{TcpListener, TcpStream};
use fibra_sim::{host, net};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

const SECOND: Duration = Duration::from_secs(1);
/// How many bytes are echoed.
const LEN: usize = 100 * 1024;
/// So much is written before as much is read.
const PIECE: usize = 10_000;

type Client = StreamOwned<ClientConnection, TcpStream>;

/// How the sessions have ended at the server.
type Ends = Arc<Mutex<Vec<io::Result<usize>>>>;

/// rustls takes random numbers from the system. So keys and the lengths of some messages differ from run to run, and with them
/// what the network does: this program is not deterministic.
#[fibra::test(seeds = 20)]
fn rustls_over_the_simulated_net() {
    net::latency(Duration::ZERO..=Duration::from_millis(50));
    net::loss(0.1);
    let (certificate, config) = certify();
    let ends = Ends::default();
    let server = {
        let ends = Arc::clone(&ends);
        host("server", move || serve(&config, &ends))
    };
    // It begins to listen.
    fibra::sleep(SECOND);

    let mut clean = connect(&certificate);
    echo(&mut clean, LEN);
    clean.conn.send_close_notify();
    clean.flush().unwrap();
    assert_eq!(clean.read(&mut [0]).unwrap(), 0, "the server says goodbye as well");

    let mut reset = connect(&certificate);
    echo(&mut reset, PIECE);
    net::reset("main", "server");
    assert_eq!(reset.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);

    let mut cut = connect(&certificate);
    echo(&mut cut, PIECE);
    cut.sock.shutdown(Shutdown::Write).unwrap();
    assert_eq!(cut.read(&mut [0]).unwrap_err().kind(), ErrorKind::UnexpectedEof);

    server.join();
    let ends = ends.lock().unwrap();
    let ends: Vec<_> = ends.iter().map(|end| end.as_ref().map_err(io::Error::kind)).collect();
    assert_eq!(ends, [Ok(&LEN), Err(ErrorKind::ConnectionReset), Err(ErrorKind::UnexpectedEof)]);
}

/// Makes a certificate, and the configuration of a server that shows it.
fn certify() -> (CertificateDer<'static>, Arc<ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(["server".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate.clone()], made.signing_key.into()).unwrap();
    (certificate, Arc::new(config))
}

/// Echoes three sessions, one after the other.
fn serve(config: &Arc<ServerConfig>, ends: &Ends) {
    let listener = TcpListener::bind("0.0.0.0:443").unwrap();
    for _ in 0..3 {
        let (stream, _) = listener.accept().unwrap();
        let session = ServerConnection::new(Arc::clone(config)).unwrap();
        let end = answer(&mut StreamOwned::new(session, stream));
        ends.lock().unwrap().push(end);
    }
}

/// Sends back what comes until the client says goodbye. Returns how many bytes there were.
fn answer(tls: &mut StreamOwned<ServerConnection, TcpStream>) -> io::Result<usize> {
    let (mut buf, mut len) = ([0; 4096], 0);
    loop {
        match tls.read(&mut buf)? {
            0 => break,
            n => {
                len += n;
                tls.write_all(&buf[..n])?;
            }
        }
    }
    tls.conn.send_close_notify();
    tls.flush()?;
    Ok(len)
}

/// Connects to the server, and trusts that certificate only.
fn connect(certificate: &CertificateDer<'static>) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), ServerName::try_from("server").unwrap()).unwrap();
    StreamOwned::new(session, TcpStream::connect("server:443").unwrap())
}

/// Sends so many bytes, and reads them back.
fn echo(client: &mut Client, len: usize) {
    let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    for piece in bytes.chunks(PIECE) {
        client.write_all(piece).unwrap();
        let mut read = vec![0; piece.len()];
        client.read_exact(&mut read).unwrap();
        assert!(read == piece, "the bytes come back unchanged");
    }
}
