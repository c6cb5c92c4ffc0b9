//! What a cancellation means for sockets in a build with `panic = "abort"`: instead of waiting they fail with `TimedOut`.
#![cfg(panic = "abort")]

use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::at_end::AtEnd;
use crate::common::sides::pause;
use crate::common::{in_tasks, kind, listener, pair};
use crate::ending::ending;
use fibra_runtime::{spawn, task, timeout, unblock};

#[test]
fn a_cancelled_task_does_not_wait_for_its_sockets() {
    in_tasks(|| {
        let (mut client, mut server) = pair();
        let reader = spawn(move || {
            let meanwhile = server.read(&mut [0]).unwrap_err().kind();
            let afterwards = server.read(&mut [0]).unwrap_err().kind();
            (meanwhile, afterwards, server)
        });
        // Cancelled before it begins it would never enter its body.
        pause();
        reader.cancel();
        let (meanwhile, afterwards, mut server) = reader.join().unwrap();
        assert_eq!((meanwhile, afterwards), (ErrorKind::TimedOut, ErrorKind::TimedOut));
        client.write_all(&[7]).unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [7]);
    });
}

#[test]
fn call_that_need_not_wait_succeeds() {
    in_tasks(|| {
        let (mut client, mut server) = pair();
        let cancelled = spawn(move || {
            task::current().cancel();
            client.write_all(&[7]).unwrap();
            client
        });
        let _client = cancelled.join().unwrap();
        server.read_exact(&mut [0]).unwrap();
    });
}

#[test]
fn a_cancelled_accept_and_a_cancelled_write_end() {
    in_tasks(|| {
        let accepts = spawn(|| listener().0.accept().map(drop).unwrap_err().kind());
        let (mut client, _server) = pair();
        let writes = spawn(move || {
            let buf = vec![0; 1 << 20];
            loop {
                if let Err(error) = client.write(&buf) {
                    return error.kind();
                }
            }
        });
        pause();
        accepts.cancel();
        writes.cancel();
        assert_eq!(accepts.join().unwrap(), ErrorKind::TimedOut);
        assert_eq!(writes.join().unwrap(), ErrorKind::TimedOut);
    });
}

#[test]
fn a_deadline_around_a_read_ends_it() {
    in_tasks(|| {
        let (_client, mut server) = pair();
        let read = timeout(Duration::from_millis(3), || server.read(&mut [0]).map_err(|error| error.kind()));
        assert_eq!(read.unwrap(), Err(ErrorKind::TimedOut));
        assert!(!task::is_cancelled());
    });
}

#[test]
fn a_destructor_at_the_end_of_a_cancelled_task_does_not_wait_either() {
    in_tasks(|| {
        let (_silent, mut server) = pair();
        let (tell, told) = channel();
        let last = AtEnd(move || tell.send([(); 2].map(|()| kind(server.read(&mut [0])))).unwrap());
        let name = ending(move || last);
        pause();
        name.cancel();
        assert_eq!(unblock(move || told.recv()), Ok([ErrorKind::TimedOut; 2]));
    });
}
