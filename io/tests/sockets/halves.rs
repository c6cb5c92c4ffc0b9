//! The halves of a stream that was split.

use std::io::{Read, Write};
use std::sync::Arc;

use crate::common::sides::beside;
use crate::common::{everywhere, in_tasks, pair, pattern};
use fibra_io::net::{OwnedReadHalf, OwnedWriteHalf, ReuniteError, TcpStream, UnixStream};
use fibra_runtime::spawn;

#[test]
fn both_halves_work_at_once_in_two_tasks() {
    everywhere(|| {
        let (client, server) = pair();
        let (mut from_client, mut to_client) = server.into_split();
        let echo = beside(move || std::io::copy(&mut from_client, &mut to_client).unwrap());
        let (mut from_server, mut to_server) = client.into_split();
        let writer = beside(move || to_server.write_all(&pattern(1 << 20)).unwrap());
        let mut all = Vec::new();
        from_server.read_to_end(&mut all).unwrap();
        writer.join();
        assert_eq!(echo.join(), 1 << 20);
        assert!(all == pattern(1 << 20));
    });
}

#[test]
fn the_half_that_writes_tells_the_peer_of_its_end() {
    everywhere(|| {
        let (here, mut there) = UnixStream::pair().unwrap();
        let (mut reader, writer) = here.into_split();
        drop(writer);
        assert_eq!(there.read(&mut [0]).unwrap(), 0);
        there.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        reader.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
        drop(reader);
        assert!(there.write_all(&[0; 10]).is_err());
    });
}

#[test]
fn a_task_that_is_cancelled_ends_the_direction_of_its_half() {
    in_tasks(|| {
        let (here, mut there) = UnixStream::pair().unwrap();
        let (reader, mut writer) = here.into_split();
        let writes = spawn(move || {
            loop {
                writer.write_all(&[0; 1 << 16]).unwrap();
            }
        });
        there.read_exact(&mut [0]).unwrap();
        writes.cancel();
        assert!(writes.join().map(|never: ()| never).unwrap_err().is_cancelled());
        there.read_to_end(&mut Vec::new()).unwrap();
        drop(reader);
    });
}

#[test]
fn halves_are_put_together_to_the_stream_they_were() {
    everywhere(|| {
        let (client, server) = pair();
        let address = client.local_addr().unwrap();
        let (reader, writer) = client.into_split();
        assert_eq!(writer.as_ref().local_addr().unwrap(), address);
        let client = reader.reunite(writer).unwrap();
        (&client).write_all(&[7]).unwrap();
        let mut byte = [0];
        (&server).read_exact(&mut byte).unwrap();
        assert_eq!((byte, client.local_addr().unwrap()), ([7], address));
    });
}

/// A byte goes from one stream to the other.
fn talks(mut here: impl Write, mut there: impl Read) {
    here.write_all(&[7]).unwrap();
    there.read_exact(&mut [0]).unwrap();
}

#[test]
fn reunite_gives_halves_of_two_streams_back() {
    everywhere(|| {
        let (client, server) = pair();
        let ends = [client.peer_addr().unwrap(), server.peer_addr().unwrap()];
        let ((of_client, to_server), (of_server, to_client)) = (client.into_split(), server.into_split());
        let error = of_client.reunite(to_client).unwrap_err();
        assert_eq!(error.to_string(), "the halves are of two streams");
        let ReuniteError(of_client, to_client) = error;
        let (client, server) = (of_client.reunite(to_server).unwrap(), of_server.reunite(to_client).unwrap());
        assert_eq!([client.peer_addr().unwrap(), server.peer_addr().unwrap()], ends);
        // Neither direction has ended.
        talks(&client, &server);
        talks(&server, &client);
    });
}

#[test]
fn a_half_that_writes_and_is_forgotten_leaves_its_direction_open() {
    everywhere(|| {
        let (client, server) = pair();
        let (mut of_client, to_server) = client.into_split();
        to_server.forget();
        talks(of_client.as_ref(), &server);
        talks(&server, &mut of_client);
        drop(of_client);
        assert_eq!((&server).read(&mut [0]).unwrap(), 0);

        let (here, there) = UnixStream::pair().unwrap();
        let (reader, writer) = here.into_split();
        writer.forget();
        talks(reader.as_ref(), &there);
        drop(reader);
        assert_eq!((&there).read(&mut [0]).unwrap(), 0);
    });
}

/// Never called: halves go to other tasks.
#[expect(dead_code, reason = "it is compiled, and that is the test")]
fn halves_may_cross_threads() {
    fn both<T: Send + Sync + std::fmt::Debug>() {}
    both::<OwnedReadHalf<TcpStream>>();
    both::<OwnedWriteHalf<UnixStream>>();
    both::<Arc<OwnedWriteHalf<TcpStream>>>();
}
