//! Looks and attempts count: a task that loops over them keeps no other task from its worker.

use std::cell::Cell;
use std::io::{ErrorKind, Read};
use std::process::Stdio;
use std::rc::Rc;

use crate::common::sides::guarded;
use crate::common::{kind, listener, pair, runtime};
use crate::folder::Folder;
use fibra_io::fs::File;
use fibra_io::process::Command;
use fibra_runtime::{spawn_local, yield_now};

/// Loops over a look on one worker, until another task has run twice.
fn look_until_others_run(mut look: impl FnMut()) {
    let runs = Rc::new(Cell::new(0));
    let others = Rc::clone(&runs);
    let other = spawn_local(move || {
        for _ in 0..2 {
            others.set(others.get() + 1);
            yield_now();
        }
    });
    let looks = (0..10_000).take_while(|_| runs.get() < 2).inspect(|_| look()).count();
    assert!(looks < 10_000, "no other task runs");
    other.join().unwrap();
}

#[test]
fn a_loop_over_any_look_at_files_sockets_and_children_starves_no_task() {
    let looks: [(&str, fn()); 8] = [
        ("File::try_lock", || {
            let folder = Folder::new();
            let path = folder.file("locked");
            let (owner, file) = (File::create(&path).unwrap(), File::open(&path).unwrap());
            owner.lock().unwrap();
            look_until_others_run(|| assert!(file.try_lock().is_err()));
        }),
        ("File::try_lock_shared", || {
            let folder = Folder::new();
            let path = folder.file("locked");
            let (owner, file) = (File::create(&path).unwrap(), File::open(&path).unwrap());
            owner.lock().unwrap();
            look_until_others_run(|| assert!(file.try_lock_shared().is_err()));
        }),
        ("TcpStream::take_error", || {
            let (client, _server) = pair();
            look_until_others_run(|| assert!(client.take_error().unwrap().is_none()));
        }),
        ("TcpListener::take_error", || {
            let (listener, _address) = listener();
            look_until_others_run(|| assert!(listener.take_error().unwrap().is_none()));
        }),
        ("a read of a non-blocking socket", || {
            let (mut client, _server) = pair();
            client.set_nonblocking(true).unwrap();
            look_until_others_run(|| assert_eq!(kind(client.read(&mut [0])), ErrorKind::WouldBlock));
        }),
        ("a peek at a non-blocking socket", || {
            let (client, _server) = pair();
            client.set_nonblocking(true).unwrap();
            look_until_others_run(|| assert_eq!(kind(client.peek(&mut [0])), ErrorKind::WouldBlock));
        }),
        ("an accept of a non-blocking listener", || {
            let (listener, _address) = listener();
            listener.set_nonblocking(true).unwrap();
            look_until_others_run(|| assert_eq!(kind(listener.accept()), ErrorKind::WouldBlock));
        }),
        ("Child::try_wait", || {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            look_until_others_run(|| assert!(child.try_wait().unwrap().is_none()));
            child.wait().unwrap();
        }),
    ];
    for (name, look) in looks {
        println!("{name}");
        guarded(|| runtime(1).run(look));
    }
}
