//! A chat room: every guest reads what the others write.
//!
//! Run `cargo run --example chat`, and `nc 127.0.0.1 7777` in several terminals. The first line that you send
//! is your name. You see the other guests arrive, talk and leave. A guest that reads too slowly misses
//! messages, and sees how many. Ctrl-C ends the server: it says goodbye, and gives slow guests a little time
//! to read that.
//!
//! With `INSIGHT=/tmp/chat.sock` in the environment the server shows what its tasks do:
//! `curl --unix-socket /tmp/chat.sock 'http://localhost/tasks?debug=2'`.

use fibra::insight::{self, Endpoint};
use fibra::net::{TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal, exit_on_repeat};
use fibra::sync::broadcast::error::RecvError;
use fibra::sync::broadcast::{Receiver, Sender};
use fibra::{CancelToken, Handle, TaskGroup};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// The most messages that a guest may lag behind.
const KEPT: usize = 64;
/// The most bytes of a message, to the end of a character. Longer lines become several messages.
const LONGEST: u64 = 1024;
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone)]
enum News {
    Said { by: u64, text: Arc<str> },
    End,
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let report = fibra::run(|| {
        let endpoint = std::env::var_os("INSIGHT").map(|path| Endpoint::unix(&Handle::current(), path));
        let _serving = endpoint.map(insight::serve).transpose()?;
        open(&address)
    })?;
    println!("{report}");
    Ok(())
}

/// Opens the room until Ctrl-C, and returns a report.
pub(crate) fn open(address: &str) -> io::Result<String> {
    let interrupt = Signal::new(SIGINT)?;
    exit_on_repeat(SIGINT)?;
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    let stop = CancelToken::new();
    let serving = {
        let stop = stop.clone();
        fibra::spawn(move || serve(listener, &stop))
    };
    interrupt.recv();
    stop.cancel();
    Ok(serving.join().expect("the server does not panic"))
}

/// Accepts guests until the stop signal, and returns how many it had to disconnect.
fn serve(listener: TcpListener, stop: &CancelToken) -> String {
    let (room, guests) = (Sender::new(KEPT), TaskGroup::new());
    let mut number = 0;
    _ = stop.scope(|| {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let room = room.clone();
                    number += 1;
                    guests.spawn(move || visit(&stream, number, &room));
                }
                Err(error) => {
                    // Most likely no descriptor is left: a connection that ends frees one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // A guest that disconnects is no error of the server.
            while guests.try_join_next().is_some() {}
        }
    });
    drop(listener);
    _ = room.send(News::End);
    _ = fibra::timeout(GRACE, || guests.join_all());
    guests.cancel_all();
    format!("{} guests had to be cut off", guests.join_all().len())
}

/// Serves one guest, from the name until either direction ends.
fn visit(stream: &TcpStream, by: u64, room: &Sender<News>) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    let Some(name) = next_line(&mut lines)? else { return Ok(()) };
    let mut news = room.subscribe();
    let say = |text: String| _ = room.send(News::Said { by, text: text.into() });
    send_line(stream, &format!("* welcome, {name}, you are one of {}", room.receiver_count()))?;
    say(format!("* {name} comes"));
    // The direction that ends first cancels the other direction.
    fibra::race(
        || read_out(&mut news, by, stream),
        || {
            while let Ok(Some(text)) = next_line(&mut lines) {
                say(format!("{name}: {text}"));
            }
        },
    );
    say(format!("* {name} goes"));
    Ok(())
}

/// Sends the other guests' messages until the room closes.
fn read_out(news: &mut Receiver<News>, reader: u64, stream: &TcpStream) -> io::Result<()> {
    loop {
        match news.recv() {
            Ok(News::Said { by, .. }) if by == reader => {}
            Ok(News::Said { text, .. }) => send_line(stream, &text)?,
            Err(RecvError::Lagged(count)) => {
                send_line(stream, &format!("* you have missed {count} messages, by whomever"))?
            }
            Ok(News::End) | Err(RecvError::Closed) => return send_line(stream, "* the room is closed"),
        }
    }
}

fn send_line(mut stream: &TcpStream, line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes())
}

fn next_line(lines: &mut impl BufRead) -> io::Result<Option<String>> {
    let (mut line, mut most) = (Vec::new(), LONGEST);
    // Reads a character that is cut off to its end.
    while lines.by_ref().take(most).read_until(b'\n', &mut line)? > 0 && is_cut(&line) {
        most = 1;
    }
    let line = String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((!line.is_empty()).then(|| line.trim_end().to_owned()))
}

/// Returns whether the text ends within a character.
fn is_cut(line: &[u8]) -> bool {
    str::from_utf8(line).is_err_and(|error| error.error_len().is_none())
}
