//! An echo server over TLS: rustls takes our sockets as they are, for all that it asks of them is `Read` and `Write`.
//!
//! Run `cargo run --release --features tls-examples --example tls_echo -- tls_echo.pem 127.0.0.1:7443` (these are the
//! defaults). It makes a certificate for this machine, which is good until the server ends, and writes it to the file. Then, in
//! another terminal, `openssl s_client -connect 127.0.0.1:7443 -CAfile tls_echo.pem -verify_return_error -quiet`: each line that
//! you type comes back. Ctrl-C ends the server when those who are connected have gone, or after two seconds. `FIBRA_WORKERS`
//! sets the number of worker threads, `PATIENCE_MS` how many milliseconds a handshake may take (10,000 unless set), and `GRACE_MS`
//! how many the end (2,000 unless set).
//!
//! As with every echo, who sends without taking what comes back is held back once the sockets are full, and goes on when he
//! takes it. So a client of much to send reads in between, a piece for a piece.

use fibra::net::{TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal};
use fibra::{CancelToken, TaskGroup};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::error::Error;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

/// As much as a record of TLS holds.
const RECORD: usize = 16 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let certificate = arguments.next().unwrap_or_else(|| "tls_echo.pem".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7443".to_owned());
    let (patience, grace) = (millis("PATIENCE_MS", 10_000), millis("GRACE_MS", 2000));
    let config = configure(&certificate)?;
    fibra::run(|| {
        let interrupt = Signal::new(SIGINT)?;
        let listener = TcpListener::bind(address)?;
        println!("listening on {}", listener.local_addr()?);
        let stop = CancelToken::new();
        let serving = {
            let stop = stop.clone();
            fibra::spawn(move || serve(listener, &config, &stop, patience, grace))
        };
        interrupt.recv();
        stop.cancel();
        println!("{} connections were cut off", serving.join()?);
        Ok(())
    })
}

/// The time that an environment variable gives in milliseconds, or this one.
fn millis(variable: &str, unless_set: u64) -> Duration {
    Duration::from_millis(
        env::var(variable).ok().and_then(|millis| millis.parse().ok()).unwrap_or(unless_set),
    )
}

/// Makes a certificate, writes it to `path` for those who shall trust it, and lets a server show it.
fn configure(path: &str) -> Result<Arc<ServerConfig>, Box<dyn Error>> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names)?;
    fs::write(path, made.cert.pem())?;
    let server = ServerConfig::builder().with_no_client_auth();
    Ok(Arc::new(server.with_single_cert(vec![made.cert.into()], made.signing_key.into())?))
}

/// Serves until it is told to stop, and says how many connections did not end in time by themselves.
fn serve(
    listener: TcpListener,
    config: &Arc<ServerConfig>,
    stop: &CancelToken,
    patience: Duration,
    grace: Duration,
) -> usize {
    let connections = TaskGroup::new();
    _ = stop.scope(|| {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let config = Arc::clone(config);
                    connections.spawn(move || connection(stream, config, patience));
                }
                Err(error) => {
                    // Out of descriptors, most likely: some connection will end and free one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // That a client goes away, or speaks no TLS, is its own affair: rustls has told it so.
            while connections.try_join_next().is_some() {}
        }
    });
    drop(listener);
    _ = fibra::timeout(grace, || connections.join_all());
    connections.cancel_all();
    connections.join_all().len()
}

/// Serves one connection to its end.
fn connection(stream: TcpStream, config: Arc<ServerConfig>, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut tls = StreamOwned::new(session, stream);
    // One deadline for all of it: a time-out of the socket's begins anew with every byte that a client lets drip.
    fibra::timeout(patience, || tls.conn.complete_io(&mut tls.sock))??;
    echo(&mut tls)?;
    tls.conn.send_close_notify();
    tls.flush()
}

/// Sends back what comes, until the client says that there is no more.
fn echo(stream: &mut (impl Read + Write)) -> io::Result<()> {
    let mut buffer = vec![0; RECORD];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => stream.write_all(&buffer[..count])?,
        }
    }
}
