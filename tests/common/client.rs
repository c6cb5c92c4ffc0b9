//! What a client does, well or badly.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use super::{HANG, STUCK};

/// A connection whose reads and writes do not wait for ever.
pub(crate) fn connect(address: &str) -> TcpStream {
    try_connect(address).expect("a connection")
}

/// The same, unless it is reset before it is seen to be there.
pub(crate) fn try_connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(HANG))?;
    stream.set_write_timeout(Some(HANG))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The first, for tasks.
pub(crate) fn connect_task(address: &str) -> fibra::net::TcpStream {
    try_connect_task(address).expect("a connection")
}

/// The second, for tasks.
pub(crate) fn try_connect_task(address: &str) -> io::Result<fibra::net::TcpStream> {
    let stream = fibra::net::TcpStream::connect(address)?;
    stream.set_read_timeout(Some(HANG))?;
    stream.set_write_timeout(Some(HANG))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Bytes in which a loss, a repetition or an exchange shows: a round of 251, to which no buffer's size is a multiple.
pub(crate) fn payload(bytes: usize) -> Vec<u8> {
    let round: Vec<u8> = (0..251_u16).map(|i| (i * 31 % 251) as u8).collect();
    let mut payload = round.repeat(bytes / round.len() + 1);
    payload.truncate(bytes);
    payload
}

/// Sends `request`, which is small, and reads it back.
pub(crate) fn ask(stream: &mut TcpStream, request: &[u8]) {
    stream.write_all(request).expect("sent");
    let mut reply = vec![0; request.len()];
    stream.read_exact(&mut reply).expect("echoed");
    assert_eq!(reply, request);
}

/// Sends `bytes` in pieces of `piece` and reads them back at the same time, as slowly as `between` makes it, then closes
/// its side and sees the server's end.
pub(crate) fn exchange_paced(mut stream: TcpStream, bytes: usize, piece: usize, mut between: impl FnMut()) {
    let sent = payload(bytes);
    let mut back = Vec::with_capacity(bytes);
    let mut writer = stream.try_clone().expect("a second handle");
    thread::scope(|scope| {
        scope.spawn(|| {
            sent.chunks(piece).for_each(|chunk| writer.write_all(chunk).expect("sent"));
            writer.shutdown(Shutdown::Write).expect("half-closed");
        });
        let mut buffer = [0; 64 * 1024];
        while let count @ 1.. = stream.read(&mut buffer).expect("echoed to the end") {
            back.extend_from_slice(&buffer[..count]);
            between();
        }
    });
    assert!(back == sent, "{} of {bytes} bytes came back, or others", back.len());
}

/// The same, as fast as it goes.
pub(crate) fn exchange(stream: TcpStream, bytes: usize) {
    exchange_paced(stream, bytes, bytes.max(1), || {});
}

/// Writes `bytes` without reading until the server takes no more. Tells how many it took, which are not all.
pub(crate) fn write_until_stuck(stream: &mut TcpStream, bytes: &[u8]) -> usize {
    stream.set_write_timeout(Some(STUCK)).expect("a time-out");
    let sent = write_until_timeout(stream, bytes);
    stream.set_write_timeout(Some(HANG)).expect("a time-out");
    sent
}

/// The same, by whatever has a time-out already.
pub(crate) fn write_until_timeout(stream: &mut impl Write, bytes: &[u8]) -> usize {
    let mut sent = 0;
    loop {
        match stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return sent,
            Err(error) => panic!("the server ends a connection that is merely slow: {error}"),
        }
        assert!(sent < bytes.len(), "the server keeps {sent} bytes or more that are not read");
    }
}

/// Closes with a reset instead of an orderly end.
pub(crate) fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a linger of zero");
}

/// Ends a connection, and waits until the server has closed its side.
pub(crate) fn leave(mut stream: TcpStream) {
    stream.shutdown(Shutdown::Write).expect("half-closed");
    stream.read_to_end(&mut Vec::new()).expect("the server's end");
}

/// Sees the orderly end of what the server sends.
pub(crate) fn ends(stream: &mut TcpStream) {
    assert_eq!(stream.read(&mut [0]).expect("an end"), 0, "a byte, where the end was due");
}

/// Sends `request`, says that there is no more, and gives whatever is answered until the server has made an end of it,
/// orderly or not.
pub(crate) fn sees_an_end(mut stream: TcpStream, request: &[u8]) -> Vec<u8> {
    // The server may be quicker with its end.
    _ = stream.write_all(request);
    _ = stream.shutdown(Shutdown::Write);
    rest(stream)
}

/// Gives what comes until the server's end, orderly or not.
pub(crate) fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "after {:?}", String::from_utf8_lossy(&answer));
    }
    answer
}
