//! Waiting for a socket is a cancellation point, and what a cancelled wait leaves behind is in order.

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use common::sides::{guarded, pause};
use common::{in_tasks, listener, pair, runtime};
use fibra_io::net::TcpStream;
use fibra_runtime::{Runtime, spawn};

#[test]
fn a_cancelled_reader_unwinds_and_closes_its_socket() {
    in_tasks(|| {
        let (mut client, mut server) = pair();
        let reader = spawn(move || server.read(&mut [0]).unwrap());
        pause();
        reader.task().cancel();
        assert!(reader.join().unwrap_err().is_cancelled());
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn a_cancelled_writer_unwinds() {
    in_tasks(|| {
        let (mut client, _server) = pair();
        let writer = spawn(move || {
            let buf = vec![0; 1 << 20];
            while client.write(&buf).is_ok() {}
        });
        pause();
        writer.task().cancel();
        assert!(writer.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_cancelled_acceptor_unwinds_and_closes_its_listener() {
    in_tasks(|| {
        let (listener, address) = listener();
        let acceptor = spawn(move || drop(listener.accept().unwrap()));
        pause();
        acceptor.task().cancel();
        assert!(acceptor.join().unwrap_err().is_cancelled());
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_cancelled_reader_leaves_the_others_waiting() {
    in_tasks(|| {
        let (mut client, server) = pair();
        let server = Arc::new(server);
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let server = Arc::clone(&server);
                spawn(move || (&*server).read_exact(&mut [0]).unwrap())
            })
            .collect();
        pause();
        readers[1].task().cancel();
        pause();
        client.write_all(&[1, 2]).unwrap();
        let ended: Vec<bool> = readers.into_iter().map(|reader| reader.join().is_ok()).collect();
        assert_eq!(ended, [true, false, true]);
    });
}

#[test]
fn a_cancelled_wait_without_the_driver_unwinds() {
    guarded(|| {
        Runtime::builder().workers(1).build().unwrap().run(|| {
            let (_client, mut server) = pair();
            let reader = spawn(move || server.read(&mut [0]).unwrap());
            pause();
            reader.task().cancel();
            assert!(reader.join().unwrap_err().is_cancelled());
        });
    });
}

/// Reads in its destructor, and tells what came of it.
struct ReadsInDrop {
    stream: TcpStream,
    tell: Sender<io::Result<usize>>,
}

impl Drop for ReadsInDrop {
    fn drop(&mut self) {
        let _ = self.tell.send(self.stream.read(&mut [0; 8]));
    }
}

fn cancelled_holder(stream: TcpStream) -> Receiver<io::Result<usize>> {
    let (tell, told) = channel();
    let holder = spawn(move || {
        let _reads = ReadsInDrop { stream, tell };
        fibra_runtime::sleep(Duration::from_secs(600));
    });
    pause();
    holder.task().cancel();
    assert!(holder.join().unwrap_err().is_cancelled());
    told
}

#[test]
fn a_destructor_that_would_wait_in_a_cancelled_task_times_out() {
    in_tasks(|| {
        let (_client, server) = pair();
        let outcome = cancelled_holder(server).recv().unwrap();
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn a_destructor_that_need_not_wait_in_a_cancelled_task_does_its_work() {
    in_tasks(|| {
        let (mut client, server) = pair();
        client.write_all(&[1, 2, 3]).unwrap();
        let outcome = cancelled_holder(server).recv().unwrap();
        assert_eq!(outcome.unwrap(), 3);
    });
}

#[test]
fn the_end_of_a_runtime_closes_what_its_tasks_wait_for() {
    guarded(|| {
        let runtime = runtime(2);
        let mut clients = Vec::new();
        for _ in 0..10 {
            let (client, mut server) = pair();
            clients.push(client);
            drop(runtime.spawn(move || server.read(&mut [0]).unwrap()));
        }
        std::thread::sleep(Duration::from_millis(20));
        drop(runtime);
        for mut client in clients {
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
        }
    });
}
