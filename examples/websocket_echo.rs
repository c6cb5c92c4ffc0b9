//! A websocket server that sends back each message: tungstenite takes our sockets as they are, by its blocking interface.
//!
//! Run `cargo run --release --features websocket-examples --example websocket_echo -- 127.0.0.1:9001` (that address is the
//! default), and in the console of a browser `s = new WebSocket("ws://127.0.0.1:9001"); s.onmessage = m => console.log(m.data)`,
//! then `s.send("hello")`. Ctrl-C ends the server: it tells those who are connected, and waits up to two seconds for them to go.
//! `FIBRA_WORKERS` sets the number of worker threads, `PATIENCE_MS` how many milliseconds the upgrade and the end of a connection
//! may take each (10,000 unless set), and `GRACE_MS` how many the end of the server (2,000 unless set).
//!
//! A message is echoed when it has come whole, so one of any size may be written before the first byte is read. Who sends
//! many without reading is held back once the sockets are full, and goes on when he reads.

use fibra::net::{Shutdown, TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal};
use fibra::{CancelToken, TaskGroup};
use std::io::{self, Write};
use std::time::Duration;
use std::{env, error};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket, accept_with_config};

/// The longest message. It is in memory as a whole, when it comes and when it goes: twice this, times the connections, is
/// what clients can make the server hold. Take less where less will do.
const LONGEST: usize = 64 << 20;
/// How much is read at once, for which each connection has room from the beginning.
const BUFFER: usize = 8 * 1024;

fn main() -> Result<(), Box<dyn error::Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9001".to_owned());
    let (patience, grace) = (millis("PATIENCE_MS", 10_000), millis("GRACE_MS", 2000));
    fibra::run(|| {
        let interrupt = Signal::new(SIGINT)?;
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

/// The time that an environment variable gives in milliseconds, or this one.
fn millis(variable: &str, unless_set: u64) -> Duration {
    Duration::from_millis(
        env::var(variable).ok().and_then(|millis| millis.parse().ok()).unwrap_or(unless_set),
    )
}

/// Serves until it is told to stop, and says how many connections did not end in time.
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
                    // Out of descriptors, most likely: some connection will end and free one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // That a client goes away is its own affair, and what it does wrong it has been told.
            while connections.try_join_next().is_some() {}
        }
    });
    drop(listener);
    _ = fibra::timeout(grace, || connections.join_all());
    connections.cancel_all();
    connections.join_all().len()
}

/// Serves one connection from the request for a websocket to the end.
fn connection(stream: &TcpStream, stop: &CancelToken, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // Also a message in one frame may be as long as it likes, up to the limit.
    let config = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
    let config = config.read_buffer_size(BUFFER).write_buffer_size(0);
    // One deadline for all of it: a time-out of the socket's begins anew with every byte that a client lets drip.
    let upgraded = fibra::timeout(patience, || accept_with_config(stream, Some(config)).ok())?;
    let Some(mut socket) = upgraded else { return refuse(stream, patience) };
    let code = match stop.scope(|| echo(&mut socket)) {
        Ok(Error::Protocol(_)) => CloseCode::Protocol,
        Ok(Error::Utf8(_)) => CloseCode::Invalid,
        Ok(Error::Capacity(_)) => CloseCode::Size,
        // It has ended, in order or not.
        Ok(_) => return Ok(()),
        // The end of the server. tungstenite is not to read again, for that is what was broken off; it can write.
        Err(_) => CloseCode::Away,
    };
    fibra::timeout(patience, || {
        _ = socket.close(Some(CloseFrame { code, reason: "".into() }));
        linger(stream)
    })?
}

/// Sends back each message, until there are no more for the reason that it returns.
fn echo(socket: &mut WebSocket<&TcpStream>) -> Error {
    loop {
        let done = match socket.read() {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => socket.send(message),
            // tungstenite has an answer ready to a ping and to a close, which goes out with the next call.
            Ok(_) => Ok(()),
            Err(error) => return error,
        };
        if let Err(error) = done {
            return error;
        }
    }
}

/// Answers what is no request for a websocket.
fn refuse(mut stream: &TcpStream, patience: Duration) -> io::Result<()> {
    fibra::timeout(patience, || {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")?;
        linger(stream)
    })?
}

/// Takes what is still under way, for a socket that is closed over it sends a reset, which may overtake the last word.
fn linger(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut stream, &mut io::sink()).map(drop)
}
