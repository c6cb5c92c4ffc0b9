//! A writer into a full socket of the Unix family ends when its peer reads no more, whatever type it writes
//! through. The peer stays open, and the system tells no poll.

use std::env;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Peer;

use crate::common::sides::{beside, pause};
use crate::common::{everywhere, kind};
use fibra_io::fs::File;
use fibra_io::io::PipeWriter;
use fibra_io::net::{TcpStream, UnixStream};
use fibra_io::process::ChildStdin;

/// More than a socket has room for.
const MUCH: usize = 4 << 20;

type Make = fn(OwnedFd) -> Box<dyn Write + Send>;

/// What may be made of a descriptor and written to.
const TYPES: [(&str, Make); 8] = [
    ("UnixStream", |fd| Box::new(UnixStream::from(fd))),
    ("TcpStream", |fd| Box::new(TcpStream::from(fd))),
    ("a clone of a TcpStream", |fd| Box::new(TcpStream::from(fd).try_clone().unwrap())),
    ("File", |fd| Box::new(File::from(fd))),
    ("a clone of a File", |fd| Box::new(File::from(fd).try_clone().unwrap())),
    ("PipeWriter", |fd| Box::new(PipeWriter::from(fd))),
    ("a clone of a PipeWriter", |fd| Box::new(PipeWriter::from(fd).try_clone().unwrap())),
    ("ChildStdin", |fd| Box::new(ChildStdin::from(fd))),
];

#[test]
fn a_writer_of_any_type_ends_with_its_peers_reading() {
    everywhere(|| {
        let waiting = TYPES.map(|(name, make)| {
            let (ours, peer) = Peer::pair().unwrap();
            let mut writer = make(ours.into());
            (name, peer, beside(move || kind(writer.write_all(&vec![0; MUCH]))))
        });
        pause();
        for (_, peer, _) in &waiting {
            peer.shutdown(Shutdown::Read).unwrap();
        }
        for (name, _peer, writer) in waiting {
            assert_eq!(writer.join(), ErrorKind::BrokenPipe, "{name}");
        }
    });
}

/// The kernel writes for it.
#[test]
fn a_copy_ends_with_its_peers_reading() {
    everywhere(|| {
        let (ours, peer) = Peer::pair().unwrap();
        let copy = beside(move || {
            let mut large = File::open(env::current_exe().unwrap()).unwrap();
            kind(fibra_io::io::copy(&mut large, &mut TcpStream::from(OwnedFd::from(ours))))
        });
        pause();
        peer.shutdown(Shutdown::Read).unwrap();
        assert_eq!(copy.join(), ErrorKind::BrokenPipe);
    });
}
