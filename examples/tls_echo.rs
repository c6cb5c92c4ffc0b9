//! An echo server over TLS: rustls uses fibra's sockets unchanged, since it needs `Read` and `Write` only.
//!
//! Run `cargo run --release --features tls-examples --example tls_echo -- tls_echo.pem 127.0.0.1:7443` (these
//! are the defaults). It writes a certificate for this machine, valid while the server runs, to the file.
//! Then, in another terminal, `openssl s_client -connect 127.0.0.1:7443 -CAfile tls_echo.pem
//! -verify_return_error -quiet`: each line that you type comes back. Ctrl-C ends the server when all clients
//! have disconnected, or after two seconds. `FIBRA_WORKERS` sets the number of workers, `PATIENCE_MS` the
//! milliseconds of a handshake (default 10,000), and `GRACE_MS` those of the shutdown (default 2,000).
//!
//! As with every echo, a client that sends without reading is stopped once the sockets are full. So a client
//! with much to send alternates writes and reads.

use fibra::net::{TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal, exit_on_repeat};
use fibra::{CancelToken, TaskGroup};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::error::Error;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

/// The size of a TLS record.
const RECORD: usize = 16 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let certificate = arguments.next().unwrap_or_else(|| "tls_echo.pem".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7443".to_owned());
    let (patience, grace) = (millis("PATIENCE_MS", 10_000), millis("GRACE_MS", 2000));
    let config = configure(&certificate)?;
    fibra::run(|| {
        let interrupt = Signal::new(SIGINT)?;
        exit_on_repeat(SIGINT)?;
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

/// Reads a time in milliseconds from an environment variable, or returns the default.
fn millis(variable: &str, unless_set: u64) -> Duration {
    Duration::from_millis(
        env::var(variable).ok().and_then(|millis| millis.parse().ok()).unwrap_or(unless_set),
    )
}

/// Makes a certificate, writes it to `path` for clients, and returns a server's configuration with it.
fn configure(path: &str) -> Result<Arc<ServerConfig>, Box<dyn Error>> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names)?;
    fs::write(path, made.cert.pem())?;
    let server = ServerConfig::builder().with_no_client_auth();
    Ok(Arc::new(server.with_single_cert(vec![made.cert.into()], made.signing_key.into())?))
}

/// Serves until the stop signal. Returns how many connections did not end in time.
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
                    // Most likely no descriptor is left: a connection that ends frees one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // A client that disconnects, or speaks no TLS, is no error of the server. rustls has answered it.
            while connections.try_join_next().is_some() {}
        }
    });
    drop(listener);
    _ = fibra::timeout(grace, || connections.join_all());
    connections.cancel_all();
    connections.join_all().len()
}

/// Serves one connection.
fn connection(stream: TcpStream, config: Arc<ServerConfig>, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut tls = StreamOwned::new(session, stream);
    // One deadline for the whole step: a timeout of the socket would start again with every byte.
    fibra::timeout(patience, || tls.conn.complete_io(&mut tls.sock))??;
    echo(&mut tls)?;
    tls.conn.send_close_notify();
    tls.flush()
}

/// Sends received bytes back until the client ends the session.
fn echo(stream: &mut (impl Read + Write)) -> io::Result<()> {
    let mut buffer = vec![0; RECORD];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => stream.write_all(&buffer[..count])?,
        }
    }
}
