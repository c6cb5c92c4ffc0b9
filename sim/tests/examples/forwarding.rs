//! The example `tcp_proxy`: streams through it, half of them closed, and a target that crashes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use fibra::net::{TcpListener, TcpStream};
use fibra::time;
use fibra_sim::{Host, host, random_below};

use crate::weather::{Storm, Weather, any, up_to};
use crate::{SECOND, Shared, check_determinism, tcp_proxy};

const PROXY: &str = "proxy:8888";
const GRACE: Duration = Duration::from_secs(2);
/// What the target sends after the echo of a stream.
const LAST: &[u8] = b"that was all";

/// How the target serves a connection: its first byte.
const ECHO: u8 = 0;
/// The target ends its direction at once, and reads the other.
const SWALLOW: u8 = 1;

/// How many bytes the target has read to their end, by the connection's number.
type Swallowed = Shared<BTreeMap<u64, u64>>;

#[fibra::test(seeds = 50)]
fn tcp_proxy_carries_bytes_unchanged_and_ends_with_its_target() {
    program();
}

#[test]
fn tcp_proxy_takes_one_course_for_each_seed() {
    check_determinism(program);
}

fn program() {
    fibra::timeout(3600 * SECOND, simulate).expect("a client or the proxy hangs");
}

fn simulate() {
    let (weather, swallowed) = (Weather::choose(), Swallowed::default());
    let counts = Shared::<(usize, usize)>::default();
    let target = {
        let swallowed = swallowed.clone();
        host("target", move || serve(&swallowed))
    };
    let told = counts.clone();
    let proxy = host("proxy", move || {
        *told.lock() = tcp_proxy::forward("0.0.0.0:8888", "target:7777", GRACE).unwrap();
    });
    // They begin to listen.
    time::sleep(SECOND);
    let clients: Vec<Host> = (0..2 + random_below(3))
        .map(|number| {
            let (weather, swallowed) = (weather.clone(), swallowed.clone());
            host(&format!("client-{number}"), move || client(&weather, &swallowed))
        })
        .collect();
    let links = clients.iter().chain([&target]).map(|host| [&proxy, host]).collect();
    weather.storm(&Storm { links, mortal: clients.iter().chain([&target, &proxy]).collect() });
    clients.into_iter().for_each(Host::join);

    end_gracefully(&proxy, &counts);
    proxy.restart();
    time::sleep(SECOND);
    // The target is gone: its connections end, and new ones as well.
    let open = connect();
    target.crash();
    ends(&open);
    ends(&TcpStream::connect(PROXY).unwrap());
}

/// Ends the proxy while two connections are open. One of them ends in time.
fn end_gracefully(proxy: &Host, counts: &Shared<(usize, usize)>) {
    let (ending, staying) = (connect(), connect());
    let begin = time::now();
    proxy.ctrl_c();
    time::sleep(SECOND / 2);
    let late = TcpStream::connect_timeout(&ending.peer_addr().unwrap(), 60 * SECOND);
    assert_eq!(late.unwrap_err().kind(), io::ErrorKind::ConnectionRefused, "nothing listens any more");
    (&staying).write_all(b"still here").unwrap();
    drop(ending);
    ends(&staying);
    assert!(time::now() - begin >= GRACE, "it was cut off before its time");
    // A client or a target that has crashed leaves no connection, nor does one that was served.
    time::sleep(SECOND);
    let (_, cut_off) = *counts.lock();
    assert!((1..=2).contains(&cut_off), "{cut_off} were cut off");
}

/// Connects to the target, and waits until it has answered.
fn connect() -> TcpStream {
    let mut stream = TcpStream::connect(PROXY).unwrap();
    stream.write_all(&header(ECHO, 0)).unwrap();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    stream
}

/// Reads to the end or an error, which must not take long.
fn ends(mut stream: &TcpStream) {
    let end = fibra::timeout(60 * SECOND, || io::copy(&mut stream, &mut io::sink()));
    _ = end.expect("the connection ends");
}

/// The target.
fn serve(swallowed: &Swallowed) {
    for stream in TcpListener::bind("0.0.0.0:7777").unwrap().incoming() {
        let (stream, swallowed) = (stream.unwrap(), swallowed.clone());
        fibra::spawn(move || _ = answer(&stream, &swallowed));
    }
}

fn answer(mut stream: &TcpStream, swallowed: &Swallowed) -> io::Result<()> {
    let mut header = [0; 9];
    stream.read_exact(&mut header)?;
    let number = u64::from_le_bytes(header[1..].try_into().expect("eight bytes"));
    if header[0] == ECHO {
        io::copy(&mut { stream }, &mut { stream })?;
        return stream.write_all(LAST);
    }
    stream.shutdown(Shutdown::Write)?;
    let mut check = Check { number, place: 0 };
    io::copy(&mut stream, &mut check)?;
    swallowed.lock().insert(number, check.place);
    Ok(())
}

fn header(mode: u8, number: u64) -> [u8; 9] {
    let mut header = [mode; 9];
    header[1..].copy_from_slice(&number.to_le_bytes());
    header
}

/// Returns a byte of the stream with that number.
fn byte(number: u64, place: u64) -> u8 {
    (number.wrapping_add(place).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Compares what is written with the stream of that number.
struct Check {
    number: u64,
    place: u64,
}

impl Write for Check {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for found in bytes {
            assert_eq!(*found, byte(self.number, self.place), "byte {} is unchanged", self.place);
            self.place += 1;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends streams until one has passed in calm weather.
fn client(weather: &Weather, swallowed: &Swallowed) {
    loop {
        let (is_last, mark) = (weather.is_over(), weather.mark());
        let exchanged = fibra::timeout(600 * SECOND, || exchange(swallowed)).expect("the proxy hangs");
        if weather.was_calm_since(mark) {
            exchanged.expect("nothing has broken the connection");
        }
        if is_last {
            return;
        }
        time::sleep(up_to(1000));
    }
}

/// Sends a stream, and reads what comes back.
fn exchange(swallowed: &Swallowed) -> io::Result<()> {
    let (mode, number) = (any(&[ECHO, ECHO, SWALLOW]), random_below(u64::MAX));
    let len = random_below(any(&[2, 1000, 300_000]));
    let stream = &TcpStream::connect(PROXY)?;
    let (sent, received) =
        fibra::join(|| send(stream, mode, number, len), || receive(stream, mode, number, len));
    sent.and(received)?;
    if mode == SWALLOW {
        // It was sent to the end, and is on its way.
        let arrived = fibra::timeout(300 * SECOND, || {
            while !swallowed.lock().contains_key(&number) {
                time::sleep(SECOND / 10);
            }
        });
        // The proxy ends it early if the client's connection has broken.
        if arrived.is_err() || swallowed.lock()[&number] != len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn send(mut stream: &TcpStream, mode: u8, number: u64, len: u64) -> io::Result<()> {
    stream.write_all(&header(mode, number))?;
    let mut place = 0;
    while place < len {
        let piece = (1 + random_below(30_000)).min(len - place);
        let bytes: Vec<u8> = (place..place + piece).map(|place| byte(number, place)).collect();
        stream.write_all(&bytes)?;
        place += piece;
        time::sleep(up_to(any(&[0, 0, 20])));
    }
    stream.shutdown(Shutdown::Write)
}

fn receive(mut stream: &TcpStream, mode: u8, number: u64, len: u64) -> io::Result<()> {
    let mut check = Check { number, place: 0 };
    let echoed = if mode == ECHO { len } else { 0 };
    io::copy(&mut stream.take(echoed), &mut check)?;
    let mut last = Vec::new();
    stream.read_to_end(&mut last)?;
    let due = if mode == ECHO { LAST } else { b"" };
    match check.place == echoed && last == due {
        true => Ok(()),
        // The proxy ends a connection whose other side has broken.
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
