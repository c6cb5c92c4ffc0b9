//! Copies that go both ways at once.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::common::sides::beside;
use crate::common::{everywhere, in_tasks, kind, pair, pattern, read_all};
use fibra_io::io::{HalfClose, copy_bidirectional, duplex};
use fibra_io::net::{TcpStream, UnixStream};
use fibra_runtime::spawn;

/// More than sockets and their buffers hold.
const MUCH: usize = 12 << 20;

/// A server that answers a request with twice its bytes, once it has seen the end of it.
fn doubles(mut stream: TcpStream) {
    let mut request = Vec::new();
    stream.read_to_end(&mut request).unwrap();
    stream.write_all(&request).unwrap();
    stream.write_all(&request).unwrap();
}

#[test]
fn both_ways_go_on_until_both_have_ended() {
    everywhere(|| {
        let ((mut client, a), (b, server)) = (pair(), pair());
        let proxy = beside(move || copy_bidirectional(&a, &b).unwrap());
        let server = beside(move || doubles(server));
        client.write_all(&pattern(100_000)).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert!(read_all(client) == [pattern(100_000), pattern(100_000)].concat());
        assert_eq!(proxy.join(), (100_000, 200_000));
        server.join();
    });
}

#[test]
fn both_ways_run_at_once() {
    everywhere(|| {
        let ((client, a), (b, mut server)) = (pair(), pair());
        let client = Arc::new(client);
        let proxy = beside(move || copy_bidirectional(&a, &b).unwrap());
        let echo = beside(move || {
            let mut buf = [0; 1000];
            while let n @ 1.. = server.read(&mut buf).unwrap() {
                server.write_all(&buf[..n]).unwrap();
            }
        });
        let writer = {
            let client = Arc::clone(&client);
            beside(move || {
                (&*client).write_all(&pattern(MUCH)).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
            })
        };
        let mut back = Vec::new();
        (&*client).read_to_end(&mut back).unwrap();
        assert!(back == pattern(MUCH));
        assert_eq!(proxy.join(), (MUCH as u64, MUCH as u64));
        writer.join();
        echo.join();
    });
}

#[test]
fn streams_of_two_kinds_can_be_tied_together() {
    everywhere(|| {
        let ((client, a), (b, mut server)) = (pair(), duplex(10));
        let proxy = beside(move || copy_bidirectional(&a, &b).unwrap());
        (&client).write_all(b"a request").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut request = String::new();
        server.read_to_string(&mut request).unwrap();
        assert_eq!(request, "a request");
        drop(server);
        assert_eq!(read_all(client), b"");
        assert_eq!(proxy.join(), (9, 0));
    });
}

#[test]
fn unix_streams_can_be_tied_together() {
    everywhere(|| {
        let ((mut client, a), (b, mut server)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let proxy = beside(move || copy_bidirectional(&a, &b).unwrap());
        client.write_all(b"request").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut request = String::new();
        server.read_to_string(&mut request).unwrap();
        drop(server);
        assert_eq!((request.as_str(), client.read(&mut [0]).unwrap()), ("request", 0));
        assert_eq!(proxy.join(), (7, 0));
    });
}

/// A stream that fails, or panics, when it is read.
struct Faulty {
    panics: bool,
}

impl Read for &Faulty {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.panics {
            true => panic!("a faulty stream"),
            false => Err(io::Error::other("a faulty stream")),
        }
    }
}

impl Write for &Faulty {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl HalfClose for Faulty {
    fn shutdown(&self, _: Shutdown) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_way_that_fails_ends_the_other() {
    everywhere(|| {
        for faulty_first in [true, false] {
            let (stream, mut other) = duplex(10);
            let faulty = Faulty { panics: false };
            let outcome = match faulty_first {
                true => copy_bidirectional(&faulty, &stream),
                false => copy_bidirectional(&stream, &faulty),
            };
            assert_eq!(outcome.unwrap_err().to_string(), "a faulty stream");
            assert_eq!(other.read(&mut [0]).unwrap(), 0);
            assert_eq!(kind(other.write(b"x")), ErrorKind::BrokenPipe);
        }
    });
}

#[test]
fn a_way_that_panics_ends_the_other() {
    everywhere(|| {
        for faulty_first in [true, false] {
            let (stream, mut other) = duplex(10);
            let faulty = Faulty { panics: true };
            let outcome = catch_unwind(AssertUnwindSafe(|| match faulty_first {
                true => copy_bidirectional(&faulty, &stream),
                false => copy_bidirectional(&stream, &faulty),
            }));
            assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"a faulty stream"));
            assert_eq!(other.read(&mut [0]).unwrap(), 0);
        }
    });
}

#[test]
fn a_reset_of_one_stream_ends_the_other() {
    everywhere(|| {
        let ((client, a), (b, mut server)) = (pair(), pair());
        let proxy = beside(move || copy_bidirectional(&a, &b).is_err());
        client.set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
        assert!(proxy.join());
    });
}

#[test]
fn a_copy_both_ways_that_is_cancelled_ends_both() {
    in_tasks(|| {
        let ((mut client, a), (b, mut server)) = (pair(), pair());
        let proxy = spawn(move || copy_bidirectional(&a, &b).map(drop));
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
        proxy.cancel();
        assert!(proxy.join().unwrap_err().is_cancelled());
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
    });
}
