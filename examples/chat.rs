//! A chat room: what one guest says, all others read.
//!
//! Run `cargo run --example chat`, and `nc 127.0.0.1 7777` in several terminals. The first line that you send is your
//! name; you will see the others come, talk and go. Who reads too slowly misses messages, and is told how many. Ctrl-C ends
//! the server: it says goodbye to everybody, and waits a little for those who are slow to hear it.

use fibra::net::{TcpListener, TcpStream};
use fibra::signal::{SIGINT, Signal};
use fibra::sync::broadcast::error::RecvError;
use fibra::sync::broadcast::{Receiver, Sender};
use fibra::{CancelToken, TaskGroup};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// How many messages a guest may be behind.
const KEPT: usize = 64;
/// After how many bytes a message ends, with its last character. Longer lines are taken for several.
const LONGEST: u64 = 1024;
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone)]
enum News {
    Said { by: u64, text: Arc<str> },
    End,
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    fibra::run(|| {
        let interrupt = Signal::new(SIGINT)?;
        let listener = TcpListener::bind(address)?;
        println!("listening on {}", listener.local_addr()?);
        let stop = CancelToken::new();
        let serving = {
            let stop = stop.clone();
            fibra::spawn(move || serve(listener, &stop))
        };
        interrupt.recv();
        stop.cancel();
        println!("{}", serving.join().expect("the server does not panic"));
        Ok(())
    })
}

/// Lets guests in until it is told to stop, and says how many it had to put out.
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
                    // Out of descriptors, most likely: some connection will end and free one.
                    eprintln!("accept: {error}");
                    fibra::sleep(Duration::from_millis(10));
                }
            }
            // That a guest leaves is his own affair.
            while guests.try_join_next().is_some() {}
        }
    });
    drop(listener);
    _ = room.send(News::End);
    _ = fibra::timeout(GRACE, || guests.join_all());
    guests.cancel_all();
    format!("{} guests had to be cut off", guests.join_all().len())
}

/// One guest, from the name to the end of either direction.
fn visit(stream: &TcpStream, by: u64, room: &Sender<News>) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    let Some(name) = next_line(&mut lines)? else { return Ok(()) };
    let mut news = room.subscribe();
    let say = |text: String| _ = room.send(News::Said { by, text: text.into() });
    send_line(stream, &format!("* welcome, {name}, you are one of {}", room.receiver_count()))?;
    say(format!("* {name} comes"));
    // Whichever ends first cancels the other one.
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

/// Writes what the others say until the room is closed.
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
    // A character that does not fit is read to its end.
    while lines.by_ref().take(most).read_until(b'\n', &mut line)? > 0 && is_cut(&line) {
        most = 1;
    }
    let line = String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((!line.is_empty()).then(|| line.trim_end().to_owned()))
}

/// True if the text ends within a character.
fn is_cut(line: &[u8]) -> bool {
    str::from_utf8(line).is_err_and(|error| error.error_len().is_none())
}
