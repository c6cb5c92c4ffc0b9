//! What std has at a path, fibra has at the same: a program ports by `use fibra::` for `use std::`.
#![cfg(target_os = "linux")]

use fibra::io::pipe;
use fibra::net::{TcpListener, TcpStream, UdpSocket};
use fibra::os::linux::net::{SocketAddrExt, TcpStreamExt};
use fibra::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::io::{self, Read, Write};

/// Says a word into the one and hears it from the other.
fn passes(mut into: impl Write, mut from: impl Read) -> io::Result<()> {
    into.write_all(b"word")?;
    let mut heard = [0; 4];
    from.read_exact(&mut heard)?;
    assert_eq!(&heard, b"word");
    Ok(())
}

#[test]
fn words_pass_through_everything_that_std_has_for_it() -> io::Result<()> {
    fibra::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        client.set_quickack(true)?;
        passes(&client, listener.accept()?.0)?;

        let (here, there) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        here.send_to(b"word", there.local_addr()?)?;
        assert_eq!(there.recv_from(&mut [0; 8])?, (4, here.local_addr()?));

        let address = SocketAddr::from_abstract_name(format!("fibra paths {}", std::process::id()))?;
        let listener = UnixListener::bind_addr(&address)?;
        let client = UnixStream::connect_addr(&address)?;
        passes(&client, listener.accept()?.0)?;

        let (here, there) = UnixDatagram::pair()?;
        here.send(b"word")?;
        assert_eq!(there.recv(&mut [0; 8])?, 4);

        let (reader, writer) = pipe()?;
        passes(writer, reader)
    })
}
