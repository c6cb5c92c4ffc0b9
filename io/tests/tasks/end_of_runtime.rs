//! The end of a runtime takes nothing from tasks that must not be unwound: their calls in a shield and in a destructor behave as
//! those of std.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{panic, thread};

use crate::at_end::AtEnd;
use crate::common::sides::guarded;
use crate::common::{kind, listener, nap, runtime};
use crate::folder::Folder;
use crate::silent::Silent;
use fibra_io::fs::File;
use fibra_io::io::{DuplexStream, copy_bidirectional, duplex};
use fibra_io::net::{TcpStream, lookup_host};
use fibra_io::process::Command;
use fibra_runtime::{spawn, task, timeout};

/// Runs `act` in tasks that go on after the end of their runtime has begun: `around` calls it there, where nothing may be raised.
fn past_the_end<T: Send + 'static>(
    act: impl Fn() -> T + Clone + Send + 'static,
    around: Around,
    check: impl Fn(T) + Sync,
) {
    for workers in [1, 2] {
        guarded(|| {
            let ((tell, told), (enter, entered)) = (channel(), channel());
            let act = act.clone();
            runtime(workers).run(move || {
                let mut witness = Some(spawn(task::park));
                drop(spawn(move || {
                    enter.send(()).unwrap();
                    around(Box::new(move || {
                        // Un-run or unwound: either way by the end.
                        assert!(witness.take().unwrap().join().unwrap_err().is_cancelled());
                        tell.send(act()).unwrap();
                    }));
                }));
                while entered.try_recv().is_err() {
                    nap(1);
                }
            });
            check(told.recv().unwrap());
        });
    }
}

fn shielded(mut act: Box<dyn FnMut() + Send>) {
    task::shield(&mut act);
}

fn unwinding_from_the_end(act: Box<dyn FnMut() + Send>) {
    let _acts = AtEnd(act);
    task::park();
}

fn unwinding_from_a_panic(act: Box<dyn FnMut() + Send>) {
    let _acts = AtEnd(act);
    panic::resume_unwind(Box::new("a panic"));
}

/// A place in a task.
type Around = fn(Box<dyn FnMut() + Send>);

const EVERYWHERE: [Around; 3] = [shielded, unwinding_from_the_end, unwinding_from_a_panic];
/// Where a wait is none that a cancel ends.
const WAITING: [Around; 1] = [shielded];

#[test]
fn files_are_opened() {
    for around in EVERYWHERE {
        let folder = Folder::new();
        let path = folder.file("file");
        past_the_end(
            move || File::create(&path).and_then(|mut file| file.write_all(b"the end")),
            around,
            |written| {
                written.unwrap();
                assert_eq!(std::fs::read(folder.file("file")).unwrap(), b"the end");
            },
        );
    }
}

#[test]
fn a_fifo_is_opened() {
    for around in WAITING {
        let folder = Folder::new();
        let path = folder.fifo();
        past_the_end(
            move || {
                let writes = path.clone();
                let writer = thread::spawn(move || std::fs::write(writes, b"hello").unwrap());
                let mut read = String::new();
                let outcome = File::open(&path).and_then(|mut file| file.read_to_string(&mut read));
                writer.join().unwrap();
                outcome.map(|_| read)
            },
            around,
            |read| assert_eq!(read.unwrap(), "hello"),
        );
    }
}

#[test]
fn the_open_of_a_fifo_ends_by_a_deadline_inside_the_shield() {
    for around in WAITING {
        let folder = Folder::new();
        let path = folder.fifo();
        past_the_end(
            move || {
                let opened = timeout(Duration::from_millis(5), || File::open(&path).map(drop));
                // The thread that was left behind.
                drop(std::fs::File::options().read(true).write(true).open(&path).unwrap());
                opened.is_err()
            },
            around,
            |left| assert!(left),
        );
    }
}

#[test]
fn names_are_looked_up() {
    for around in WAITING {
        past_the_end(
            || lookup_host("localhost:80").map(Vec::from_iter),
            around,
            |ours: std::io::Result<Vec<SocketAddr>>| {
                assert_eq!(ours.unwrap(), Vec::from_iter("localhost:80".to_socket_addrs().unwrap()));
            },
        );
    }
}

#[test]
fn the_output_of_a_child_is_read() {
    let script = "echo one; echo two >&2";
    for around in WAITING {
        past_the_end(
            move || Command::new("sh").args(["-c", script]).output(),
            around,
            |ours| {
                let (ours, stds) =
                    (ours.unwrap(), std::process::Command::new("sh").args(["-c", script]).output().unwrap());
                assert_eq!((ours.stdout, ours.stderr), (stds.stdout, stds.stderr));
            },
        );
    }
}

/// What comes of carrying a word each way, and the word that came through one of them.
fn carry(ends: bool) -> (std::io::Result<(u64, u64)>, String) {
    let ((mut client, a), (b, mut server)) = (duplex(64), duplex(64));
    client.write_all(b"request").unwrap();
    server.write_all(b"an answer").unwrap();
    let close = |end: &DuplexStream| end.shutdown(Shutdown::Write).unwrap();
    close(&client);
    if ends {
        close(&server);
    }
    let carried = copy_bidirectional(&a, &b);
    let mut request = String::new();
    server.read_to_string(&mut request).unwrap();
    (carried, request)
}

#[test]
fn both_ways_are_copied() {
    for around in EVERYWHERE {
        past_the_end(
            || carry(true),
            around,
            |(carried, request)| {
                assert_eq!((carried.unwrap(), request.as_str()), ((7, 9), "request"));
            },
        );
    }
}

#[test]
fn a_copy_in_a_cancelled_task_waits_for_neither_way() {
    past_the_end(
        || carry(false),
        unwinding_from_the_end,
        |(carried, _)| assert_eq!(kind(carried), ErrorKind::TimedOut),
    );
    past_the_end(
        || {
            // The way that is carried beside.
            let ((client, a), (b, server)) = (duplex(64), duplex(64));
            server.shutdown(Shutdown::Write).unwrap();
            let carried = copy_bidirectional(&a, &b);
            drop(client);
            carried
        },
        unwinding_from_the_end,
        |carried| assert_eq!(kind(carried), ErrorKind::TimedOut),
    );
}

#[test]
fn a_connection_is_raced_for() {
    for around in WAITING {
        past_the_end(
            || {
                let (silent, (listener, address)) = (Silent::new(), listener());
                let stream = TcpStream::connect(&[silent.address, address][..]);
                stream.map(|stream| stream.peer_addr().unwrap() == listener.local_addr().unwrap())
            },
            around,
            |reached| assert!(reached.unwrap()),
        );
    }
}
