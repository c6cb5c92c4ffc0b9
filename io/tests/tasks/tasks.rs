//! What only tasks can be promised: sharing, moving between workers and runtimes, and never stopping a worker.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::common::sides::{beside, guarded, pause};
use crate::common::{everywhere, in_tasks, kind, listener, nap, pair, runtime, until};
use fibra_io::net::{TcpListener, TcpStream};
use fibra_runtime::wait::{Direction, EndedBy};
use fibra_runtime::{Handle, Runtime, spawn, yield_now};

// ---- reports ----

#[test]
fn a_report_names_the_descriptor_that_a_task_waits_for() {
    in_tasks(|| {
        let (client, mut server) = pair();
        let fd = server.as_fd().as_raw_fd();
        let reader = spawn(move || server.read(&mut [0]).unwrap());
        let found = loop {
            yield_now();
            if let Some(found) = reader.task().waits_for() {
                break found;
            }
        };
        assert_eq!((found.kind.as_str(), found.descriptor), ("descriptor", Some(fd)));
        assert_eq!(found.ended_by, EndedBy::Outside);
        drop(client);
        assert_eq!(reader.join().unwrap(), 0);
    });
}

#[test]
fn a_dump_names_fd_and_peer() {
    in_tasks(|| {
        let (client, mut server) = pair();
        let (fd, peer) = (server.as_fd().as_raw_fd(), client.local_addr().unwrap());
        let reader = spawn(move || server.read(&mut [0]).unwrap());
        while reader.task().waits_for().is_none() {
            yield_now();
        }
        assert_eq!(reader.task().waits_for().unwrap().peer, Some(peer));
        let dump = Handle::current().dump().to_string();
        assert!(dump.contains(&format!("waiting for descriptor {fd}, peer {peer}, readable,")), "{dump}");
        let json = Handle::current().dump().to_json();
        assert!(
            json.contains(&format!(r#""descriptor": {fd}, "peer": "{peer}", "direction": "readable""#)),
            "{json}"
        );
        drop(client);
        assert_eq!(reader.join().unwrap(), 0);
    });
}

#[test]
fn a_report_tells_a_wait_for_reading_from_one_for_writing() {
    in_tasks(|| {
        let (client, server) = pair();
        let mut reading = server.try_clone().unwrap();
        let mut writing = server;
        let reader = spawn(move || reading.read(&mut [0]));
        let writer = spawn(move || writing.write_all(&vec![0; 64 << 20]));
        for (task, direction) in [(reader.task(), Direction::Read), (writer.task(), Direction::Write)] {
            let found = loop {
                yield_now();
                if let Some(found) = task.waits_for() {
                    break found;
                }
            };
            assert_eq!(found.direction, Some(direction), "{found}");
        }
        drop(client);
        // What was not read makes the end a reset.
        assert!(writer.join().unwrap().is_err());
        _ = reader.join().unwrap();
    });
}

// ---- sharing ----

#[test]
fn many_tasks_read_one_socket() {
    const READERS: usize = 20;
    everywhere(|| {
        let (mut client, server) = pair();
        let server = Arc::new(server);
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let server = Arc::clone(&server);
                beside(move || {
                    let mut count = 0;
                    let mut buf = [0; 3];
                    loop {
                        match (&*server).read(&mut buf).unwrap() {
                            0 => return count,
                            n => count += n,
                        }
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            client.write_all(&[1; 17]).unwrap();
            yield_now();
        }
        client.shutdown(Shutdown::Write).unwrap();
        let total: usize = readers.into_iter().map(|reader| reader.join()).sum();
        assert_eq!(total, 200 * 17);
    });
}

#[test]
fn many_tasks_write_one_socket() {
    const WRITERS: usize = 8;
    const EACH: usize = 300_000;
    everywhere(|| {
        let (client, mut server) = pair();
        let client = Arc::new(client);
        let writers: Vec<_> = (0..WRITERS)
            .map(|i| {
                let client = Arc::clone(&client);
                beside(move || (&*client).write_all(&vec![i as u8; EACH]).unwrap())
            })
            .collect();
        drop(client);
        let mut all = Vec::new();
        server.read_to_end(&mut all).unwrap();
        for i in 0..WRITERS {
            assert_eq!(all.iter().filter(|&&byte| byte == i as u8).count(), EACH);
        }
        writers.into_iter().for_each(|writer| writer.join());
    });
}

#[test]
fn many_tasks_accept_on_one_listener() {
    everywhere(|| {
        let (listener, address) = listener();
        let listener = Arc::new(listener);
        let acceptors: Vec<_> = (0..8)
            .map(|_| {
                let listener = Arc::clone(&listener);
                beside(move || drop(listener.accept().unwrap()))
            })
            .collect();
        nap(10);
        let _clients: Vec<_> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
        acceptors.into_iter().for_each(|acceptor| acceptor.join());
    });
}

#[test]
fn a_reader_and_a_writer_share_a_socket() {
    const LEN: usize = 2 << 20;
    everywhere(|| {
        let (client, server) = pair();
        let both_ways = |stream: TcpStream| {
            let stream = Arc::new(stream);
            let reader = Arc::clone(&stream);
            let reader = beside(move || {
                let mut all = Vec::new();
                (&*reader).read_to_end(&mut all).unwrap();
                all.len()
            });
            let writer = beside(move || {
                (&*stream).write_all(&vec![1; LEN]).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
            (reader, writer)
        };
        for (reader, writer) in [both_ways(client), both_ways(server)] {
            writer.join();
            assert_eq!(reader.join(), LEN);
        }
    });
}

#[test]
fn a_reader_that_times_out_leaves_the_others_waiting() {
    everywhere(|| {
        let (mut client, server) = pair();
        let patient = server.try_clone().unwrap();
        let server = Arc::new(server);
        let reader = {
            let server = Arc::clone(&server);
            beside(move || (&*server).read(&mut [0; 8]).unwrap())
        };
        pause();
        patient.set_read_timeout(Some(std::time::Duration::from_millis(10))).unwrap();
        assert_eq!(kind((&*server).read(&mut [0])), ErrorKind::WouldBlock);
        client.write_all(&[1, 2]).unwrap();
        assert_eq!(reader.join(), 2);
    });
}

#[test]
fn hundreds_of_connections_echo() {
    const CLIENTS: usize = 200;
    in_tasks(|| {
        let (listener, address) = listener();
        let server = beside(move || {
            for stream in listener.incoming().take(CLIENTS) {
                let mut stream = stream.unwrap();
                fibra_runtime::spawn(move || {
                    let mut buf = [0; 64];
                    while let Ok(n @ 1..) = stream.read(&mut buf) {
                        stream.write_all(&buf[..n]).unwrap();
                    }
                });
            }
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|i| {
                beside(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    for round in 0..20_usize {
                        let request = (i * 1000 + round).to_ne_bytes();
                        stream.write_all(&request).unwrap();
                        let mut answer = [0; 8];
                        stream.read_exact(&mut answer).unwrap();
                        assert_eq!(answer, request);
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join());
        server.join();
    });
}

// ---- workers are not stopped ----

/// One worker: were it blocked in the read, the task that writes could not run.
#[test]
fn a_clone_turned_blocking_elsewhere_does_not_stop_a_worker() {
    guarded(|| {
        runtime(1).run(|| {
            let (mut client, mut server) = pair();
            let reader = fibra_runtime::spawn(move || {
                let elsewhere = std::net::TcpStream::from(server.as_fd().try_clone_to_owned().unwrap());
                elsewhere.set_nonblocking(false).unwrap();
                server.read(&mut [0]).unwrap()
            });
            let writer = fibra_runtime::spawn(move || client.write(&[1]).unwrap());
            assert_eq!(reader.join().unwrap() + writer.join().unwrap(), 2);
        });
    });
}

#[test]
fn a_listener_turned_blocking_elsewhere_does_not_stop_a_worker() {
    guarded(|| {
        runtime(1).run(|| {
            let (listener, address) = listener();
            let elsewhere = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned().unwrap());
            elsewhere.set_nonblocking(false).unwrap();
            let acceptor = fibra_runtime::spawn(move || drop(listener.accept().unwrap()));
            yield_now();
            TcpStream::connect(address).unwrap();
            acceptor.join().unwrap();
        });
    });
}

/// A clone that leaves for std becomes blocking, as std expects it; the ones that stay do not mind.
#[test]
fn a_listener_with_a_clone_in_std_does_not_stop_a_worker() {
    guarded(|| {
        runtime(1).run(|| {
            let (listener, address) = listener();
            let _elsewhere = std::net::TcpListener::from(listener.try_clone().unwrap());
            let acceptor = fibra_runtime::spawn(move || drop(listener.accept().unwrap()));
            yield_now();
            TcpStream::connect(address).unwrap();
            acceptor.join().unwrap();
        });
    });
}

#[test]
fn a_loop_over_a_ready_socket_lets_the_others_run() {
    guarded(|| {
        runtime(1).run(|| {
            let (mut client, server) = pair();
            client.write_all(&[1]).unwrap();
            until(|| server.peek(&mut [0]).is_ok());
            let ran = Arc::new(AtomicBool::new(false));
            let other = {
                let ran = Arc::clone(&ran);
                fibra_runtime::spawn(move || ran.store(true, Ordering::SeqCst))
            };
            let mut looks = 0;
            while !ran.load(Ordering::SeqCst) {
                server.peek(&mut [0]).unwrap();
                looks += 1;
                assert!(looks < 100_000, "the other task starves");
            }
            other.join().unwrap();
        });
    });
}

#[test]
fn a_loop_over_a_nonblocking_socket_lets_the_others_run() {
    guarded(|| {
        runtime(1).run(|| {
            let (mut client, mut server) = pair();
            server.set_nonblocking(true).unwrap();
            let writer = fibra_runtime::spawn(move || client.write(&[1]).unwrap());
            while let Err(error) = server.read(&mut [0]) {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
            }
            writer.join().unwrap();
        });
    });
}

// ---- moving ----

/// Each stream is read in turns by a few tasks, which stay on the worker that started them.
#[test]
fn streams_wander_between_workers() {
    guarded(|| {
        runtime(2).run(|| {
            let wanderers: Vec<_> = (0..20)
                .map(|_| {
                    fibra_runtime::spawn(|| {
                        let (mut client, mut server) = pair();
                        for hop in 0..30_u8 {
                            let reader = fibra_runtime::spawn(move || {
                                let mut buf = [0; 2];
                                for _ in 0..6 {
                                    server.read_exact(&mut buf).unwrap();
                                }
                                (server, buf)
                            });
                            for _ in 0..6 {
                                client.write_all(&[hop, hop]).unwrap();
                                yield_now();
                            }
                            let (back, buf) = reader.join().unwrap();
                            assert_eq!(buf, [hop, hop]);
                            server = back;
                        }
                    })
                })
                .collect();
            wanderers.into_iter().for_each(|task| task.join().unwrap());
        });
    });
}

#[test]
fn a_socket_outlives_its_runtime() {
    guarded(|| {
        let mut streams = Some(pair());
        for _ in 0..3 {
            let (mut client, mut server) = streams.take().unwrap();
            let back = runtime(1).run(move || {
                let reader = fibra_runtime::spawn(move || {
                    server.read_exact(&mut [0; 2]).unwrap();
                    server
                });
                nap(5);
                client.write_all(&[1, 2]).unwrap();
                (client, reader.join().unwrap())
            });
            streams = Some(back);
        }
        let (mut client, mut server) = streams.unwrap();
        let reader = thread::spawn(move || server.read_exact(&mut [0]).unwrap());
        client.write_all(&[3]).unwrap();
        reader.join().unwrap();
    });
}

/// Waiters of two runtimes and a plain thread on one socket; the runtime that it is registered with ends first.
#[test]
fn a_socket_is_waited_for_everywhere_at_once() {
    guarded(|| {
        let (mut client, server) = pair();
        let server = Arc::new(server);
        let read = Arc::new(AtomicUsize::new(0));
        let take = || {
            let (server, read) = (Arc::clone(&server), Arc::clone(&read));
            move || {
                (&*server).read_exact(&mut [0]).unwrap();
                read.fetch_add(1, Ordering::SeqCst);
            }
        };
        let (one, two) = (runtime(1), runtime(1));
        let first = one.spawn(take());
        nap(20);
        let second = two.spawn(take());
        let third = thread::spawn(take());
        nap(20);
        client.write_all(&[1]).unwrap();
        until(|| read.load(Ordering::SeqCst) == 1);
        client.write_all(&[2]).unwrap();
        until(|| read.load(Ordering::SeqCst) == 2);
        client.write_all(&[3]).unwrap();
        first.join().unwrap();
        drop(one);
        second.join().unwrap();
        third.join().unwrap();
    });
}

// ---- without a driver ----

/// One worker and no reactor: the waits go to the blocking pool, and the worker runs on.
#[test]
fn a_runtime_without_the_driver_waits_on_the_pool() {
    guarded(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        runtime.run(|| {
            let (listener, address) = listener();
            let server = fibra_runtime::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut buf = [0; 8];
                while let Ok(n @ 1..) = stream.read(&mut buf) {
                    stream.write_all(&buf[..n]).unwrap();
                }
            });
            let mut client = TcpStream::connect(address).unwrap();
            for round in 0..10 {
                client.write_all(&[round]).unwrap();
                let mut buf = [0];
                client.read_exact(&mut buf).unwrap();
                assert_eq!(buf, [round]);
            }
            client.set_read_timeout(Some(std::time::Duration::from_millis(30))).unwrap();
            assert_eq!(kind(client.read(&mut [0])), ErrorKind::WouldBlock);
            drop(client);
            server.join().unwrap();
        });
    });
}

#[test]
fn listeners_of_two_workers_serve_one_port_by_clones() {
    in_tasks(|| {
        let (listener, address) = listener();
        let serve = |listener: TcpListener| {
            beside(move || {
                let mut served = 0;
                loop {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut buf = [0];
                    stream.read_exact(&mut buf).unwrap();
                    match buf[0] {
                        0 => return served,
                        _ => served += 1,
                    }
                }
            })
        };
        let servers = [serve(listener.try_clone().unwrap()), serve(listener)];
        for byte in Vec::from([1; 50]).into_iter().chain([0, 0]) {
            TcpStream::connect(address).unwrap().write_all(&[byte]).unwrap();
        }
        let served: usize = servers.into_iter().map(|server| server.join()).sum();
        assert_eq!(served, 50);
    });
}
