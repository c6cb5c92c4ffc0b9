//! A UDP echo server: each message returns to its sender.
//!
//! Run `cargo run --release --example udp_echo -- 127.0.0.1:7777` (the default address), then `nc -u
//! 127.0.0.1 7777` in another terminal: each line that you type comes back. Four tasks share one socket:
//! while one task sends, another receives the next message. With `use std::net::UdpSocket` and threads the
//! program would read the same.

use fibra::net::UdpSocket;
use std::env;
use std::io::{self, Write};
use std::time::Duration;

/// The number of tasks that serve the socket.
const SERVERS: usize = 4;
/// The longest message.
const LONGEST: usize = 64 * 1024;

fn main() -> io::Result<()> {
    fibra::run(serve)
}

fn serve() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let socket = UdpSocket::bind(address)?;
    println!("listening on {}", socket.local_addr()?);
    io::stdout().flush()?;
    fibra::scope(|scope| {
        for _ in 1..SERVERS {
            scope.spawn(|| echo(&socket));
        }
        echo(&socket);
    });
    Ok(())
}

/// Sends each message back, for ever.
fn echo(socket: &UdpSocket) {
    let mut buffer = vec![0; LONGEST];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((len, sender)) => {
                if let Err(error) = socket.send_to(&buffer[..len], sender) {
                    // Concerns one sender only.
                    eprintln!("{sender}: {error}");
                }
            }
            Err(error) => {
                // Most likely a lack of memory, which passes.
                eprintln!("receive: {error}");
                fibra::sleep(Duration::from_millis(10));
            }
        }
    }
}
