//! A websocket echo server: tungstenite uses fibra's sockets unchanged, by its blocking interface.
//!
//! Run `cargo run --release --features websocket-examples --example websocket_echo -- 127.0.0.1:9001` (that
//! address is the default), and in the console of a browser `s = new WebSocket("ws://127.0.0.1:9001");
//! s.onmessage = m => console.log(m.data)`, then `s.send("hello")`: you see the message come back. Ctrl-C
//! ends the server: it closes the open connections, and waits up to two seconds for them. `FIBRA_WORKERS`
//! sets the number of workers, `PATIENCE_MS` the milliseconds of an upgrade and of the end of a connection
//! (default 10,000), and `GRACE_MS` those of the shutdown (default 2,000).
//!
//! A message is echoed once it is complete, so a client may write a message of any size before it reads. A
//! client that sends many without reading is stopped once the sockets are full.

use fibra::net::{Shutdown, TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal, exit_on_repeat};
use fibra::{CancelToken, TaskGroup};
use std::io::{self, Write};
use std::time::Duration;
use std::{env, error};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket, accept_with_config};

/// The longest message. The server holds it whole when it arrives and when it leaves: twice this for each
/// connection, which bounds the memory that clients can take.
const LONGEST: usize = 64 << 20;
/// The size of one read, allocated for each connection.
const BUFFER: usize = 8 * 1024;

fn main() -> Result<(), Box<dyn error::Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9001".to_owned());
    let (patience, grace) = (millis("PATIENCE_MS", 10_000), millis("GRACE_MS", 2000));
    fibra::run(|| {
        let interrupt = Signal::new(SIGINT)?;
        exit_on_repeat(SIGINT)?;
        let listener = TcpListener::bind(address)?;
        println!("listening on {}", listener.local_addr()?);
        let stop = CancelToken::new();
        let serving = {
            let stop = stop.clone();
            fibra::spawn(move || serve(listener, &stop, patience, grace))
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

/// Serves until the stop signal. Returns how many connections did not end in time.
fn serve(listener: TcpListener, stop: &CancelToken, patience: Duration, grace: Duration) -> usize {
    let connections = TaskGroup::new();
    _ = stop.scope(|| {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let stop = stop.clone();
                    connections.spawn(move || connection(&stream, &stop, patience));
                }
                Err(error) => {
                    // Most likely no descriptor is left: a connection that ends frees one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // A client that disconnects is no error of the server, and a wrong one has got its answer.
            while connections.try_join_next().is_some() {}
        }
    });
    drop(listener);
    _ = fibra::timeout(grace, || connections.join_all());
    connections.cancel_all();
    connections.join_all().len()
}

/// Serves one connection, from the upgrade to the end.
fn connection(stream: &TcpStream, stop: &CancelToken, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // A single frame may be as long as a message.
    let config = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
    let config = config.read_buffer_size(BUFFER).write_buffer_size(0);
    // One deadline for the whole step: a timeout of the socket would start again with every byte.
    let upgraded = fibra::timeout(patience, || accept_with_config(stream, Some(config)).ok())?;
    let Some(mut socket) = upgraded else { return refuse(stream, patience) };
    let code = match stop.scope(|| echo(&mut socket)) {
        Ok(Error::Protocol(_)) => CloseCode::Protocol,
        Ok(Error::Utf8(_)) => CloseCode::Invalid,
        Ok(Error::Capacity(_)) => CloseCode::Size,
        // The connection has ended.
        Ok(_) => return Ok(()),
        // The server shuts down. The cancelled read must not be repeated, but writing works.
        Err(_) => CloseCode::Away,
    };
    fibra::timeout(patience, || {
        _ = socket.close(Some(CloseFrame { code, reason: "".into() }));
        linger(stream)
    })?
}

/// Sends each message back. Returns why there are no more.
fn echo(socket: &mut WebSocket<&TcpStream>) -> Error {
    loop {
        let done = match socket.read() {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => socket.send(message),
            // The next call of tungstenite sends its answer to a ping and to a close.
            Ok(_) => Ok(()),
            Err(error) => return error,
        };
        if let Err(error) = done {
            return error;
        }
    }
}

/// Answers a request that is no upgrade.
fn refuse(mut stream: &TcpStream, patience: Duration) -> io::Result<()> {
    fibra::timeout(patience, || {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")?;
        linger(stream)
    })?
}

/// Discards the bytes still under way: closing a socket with unread bytes sends a reset, which may overtake
/// the answer.
fn linger(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut stream, &mut io::sink()).map(drop)
}
