//! Promises of sockets as arms of a select.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{HANG, until};
use fibra::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use fibra::sync::{Barrier, ManualResetEvent, channel};
use fibra::{Builder, CancelToken, Handle, Readiness, Runtime, select, select_biased, spawn, timeout};

/// Long enough for a waiter to fall asleep, mostly.
const NAP: Duration = Duration::from_millis(5);

/// Runs a promise in a task of one worker, of two, and of four.
fn in_tasks(promise: impl Fn() + Send + Sync) {
    for workers in [1, 2, 4] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        runtime.run(|| timeout(HANG, &promise).expect("it hangs"));
    }
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Waits until a read of it would not wait.
fn await_readable(ready: &Readiness) {
    select! {
        wait(ready.readable().unwrap()) => {},
        default(HANG) => panic!("it hangs"),
    }
}

/// Never called: what may go to other tasks and be shared by them.
fn _promises() {
    fn is_shared<T: Send + Sync + Unpin + 'static>() {}
    is_shared::<Readiness>();
}

// ---- one select ----

#[test]
fn the_case_of_a_socket_wins_when_bytes_come() {
    in_tasks(|| {
        let ((mut theirs, mut ours), (_sender, receiver)) = (connection(), channel::unbounded::<()>());
        let ready = Readiness::new(&ours).unwrap();
        let sent = spawn(move || {
            fibra::sleep(NAP);
            theirs.write_all(b"bytes").unwrap();
            theirs
        });
        select! {
            wait(ready.readable().unwrap()) => {},
            recv(receiver) -> _ => unreachable!("nothing was sent"),
        }
        let mut bytes = [0; 5];
        ours.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"bytes");
        drop(sent.join().unwrap());
    });
}

#[test]
fn the_case_of_a_channel_wins_and_the_socket_is_readable_later() {
    in_tasks(|| {
        let ((mut theirs, mut ours), (sender, receiver)) = (connection(), channel::unbounded());
        let ready = Readiness::new(&ours).unwrap();
        let sent = spawn(move || {
            fibra::sleep(NAP);
            sender.send(1).unwrap();
            sender
        });
        select! {
            wait(ready.readable().unwrap()) => unreachable!("it is empty"),
            recv(receiver) -> number => assert_eq!(number, Ok(1)),
        }
        let _sender = sent.join().unwrap();
        theirs.write_all(b"x").unwrap();
        select! {
            wait(ready.readable().unwrap()) => assert_eq!(ours.read(&mut [0; 2]).unwrap(), 1),
            recv(receiver) -> _ => unreachable!("nothing was sent"),
        }
    });
}

#[test]
fn what_is_ready_already_needs_no_wait() {
    in_tasks(|| {
        let (mut theirs, ours) = connection();
        theirs.write_all(b"x").unwrap();
        ours.peek(&mut [0]).unwrap();
        let ready = Readiness::new(&ours).unwrap();
        select! {
            wait(ready.readable().unwrap()) => {},
            default => unreachable!("there is a byte"),
        }
        assert!(ready.writable().unwrap().is_set());
    });
}

#[test]
fn bytes_that_stay_unread_keep_it_ready() {
    in_tasks(|| {
        let (mut theirs, mut ours) = connection();
        let ready = Readiness::new(&ours).unwrap();
        theirs.write_all(b"four").unwrap();
        for _ in 0..4 {
            await_readable(&ready);
            ours.read_exact(&mut [0]).unwrap();
        }
        assert!(!ready.readable().unwrap().is_set());
    });
}

#[test]
fn a_closed_peer_makes_it_ready() {
    in_tasks(|| {
        let (theirs, mut ours) = connection();
        let ready = Readiness::new(&ours).unwrap();
        let closer = spawn(move || {
            fibra::sleep(NAP);
            drop(theirs);
        });
        for _ in 0..3 {
            await_readable(&ready);
            assert_eq!(ours.read(&mut [0]).unwrap(), 0);
        }
        closer.join().unwrap();
    });
}

#[test]
fn a_full_socket_is_writable_once_its_peer_reads() {
    in_tasks(|| {
        let (mut theirs, mut ours) = connection();
        ours.set_nonblocking(true).unwrap();
        let mut sent = 0;
        let ready = Readiness::new(&ours).unwrap();
        loop {
            match ours.write(&[0; 1 << 16]) {
                Ok(n) => sent += n,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    // The peer's system may still take some.
                    select! {
                        wait(ready.writable().unwrap()) => {},
                        default(NAP * 4) => break,
                    }
                }
            }
        }
        let reader = spawn(move || {
            fibra::sleep(NAP);
            theirs.read_exact(&mut vec![0; sent]).unwrap();
            theirs
        });
        select! {
            wait(ready.writable().unwrap()) => {},
            default(HANG) => panic!("it hangs"),
        }
        assert!(ours.write(&[0]).is_ok());
        drop(reader.join().unwrap());
    });
}

#[test]
fn both_directions_are_waited_for_at_once() {
    in_tasks(|| {
        let (theirs, ours) = connection();
        let ready = Readiness::new(&ours).unwrap();
        select! {
            wait(ready.readable().unwrap()) => unreachable!("it is empty"),
            wait(ready.writable().unwrap()) => {},
        }
        (&theirs).write_all(b"x").unwrap();
        await_readable(&ready);
    });
}

#[test]
fn a_timeout_ends_the_select_and_takes_nothing() {
    in_tasks(|| {
        let (mut theirs, mut ours) = connection();
        let ready = Readiness::new(&ours).unwrap();
        select! {
            wait(ready.readable().unwrap()) => unreachable!("it is empty"),
            default(NAP) => {},
        }
        let late = timeout(NAP, || ready.readable().unwrap().wait());
        assert!(late.is_err());
        theirs.write_all(b"x").unwrap();
        await_readable(&ready);
        ours.read_exact(&mut [0]).unwrap();
    });
}

#[test]
fn a_cancelled_select_leaves_it_to_others() {
    in_tasks(|| {
        let (mut theirs, ours) = connection();
        let ready = Arc::new(Readiness::new(&ours).unwrap());
        let theirs_too = Arc::clone(&ready);
        let waiter = spawn(move || {
            select! {
                wait(theirs_too.readable().unwrap()) => {},
                wait(ManualResetEvent::new(false)) => {},
            }
        });
        fibra::sleep(NAP);
        waiter.cancel();
        assert!(waiter.join().is_err_and(|error| error.is_cancelled()));
        assert!(!ready.readable().unwrap().is_set());
        theirs.write_all(b"x").unwrap();
        await_readable(&ready);
    });
}

// ---- what can be waited for ----

#[test]
fn listeners_messages_and_pipes_are_waited_for_as_well() {
    /// Waits for `receiver` until `send` has come to pass.
    fn check<S: Send>(receiver: &impl AsFd, send: impl FnOnce() -> S + Send) {
        let ready = Readiness::new(receiver).unwrap();
        assert!(!ready.readable().unwrap().is_set());
        fibra::scope(|scope| {
            let sent = scope.spawn(|| {
                fibra::sleep(NAP);
                send()
            });
            await_readable(&ready);
            drop(sent.join().unwrap());
        });
    }
    in_tasks(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        check(&listener, || TcpStream::connect(address).unwrap());
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let address = one.local_addr().unwrap();
        check(&one, || other.send_to(b"x", address).unwrap());
        let (one, mut other) = UnixStream::pair().unwrap();
        check(&one, || other.write_all(b"x").unwrap());
        let (one, other) = UnixDatagram::pair().unwrap();
        check(&one, || other.send(b"x").unwrap());
        let (reader, mut writer) = fibra::io::pipe().unwrap();
        check(&reader, || writer.write_all(b"x").unwrap());
        let (reader, writer) = fibra::io::pipe().unwrap();
        check(&reader, || drop(writer));
        let path = std::env::temp_dir().join(format!("fibra-readiness-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        check(&listener, || UnixStream::connect(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn a_socket_in_non_blocking_mode_and_a_buffered_reader_may_be_waited_for() {
    in_tasks(|| {
        let (mut theirs, ours) = connection();
        ours.set_nonblocking(true).unwrap();
        let mut ours = std::io::BufReader::new(ours);
        let ready = Readiness::new(ours.get_ref()).unwrap();
        theirs.write_all(b"a line\n").unwrap();
        await_readable(&ready);
        let mut line = String::new();
        std::io::BufRead::read_line(&mut ours, &mut line).unwrap();
        assert_eq!(line, "a line\n");
    });
}

#[test]
fn what_cannot_be_waited_for_is_refused() {
    in_tasks(|| {
        let error = Readiness::new(File::open("/proc/self/exe").unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn it_is_refused_without_a_reactor() {
    let refused = || {
        let (receiver, _sender) = std::io::pipe().unwrap();
        assert_eq!(Readiness::new(&receiver).unwrap_err().kind(), ErrorKind::Unsupported);
    };
    refused();
    Builder::new().workers(1).run(refused).unwrap();
}

#[test]
fn a_plain_thread_uses_it_while_a_runtime_runs() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (mut theirs, mut ours, ready) = runtime.run(|| {
        let (theirs, ours) = connection();
        let ready = Readiness::new(&ours).unwrap();
        (theirs, ours, ready)
    });
    for _ in 0..100 {
        assert!(!ready.readable().unwrap().is_set());
        theirs.write_all(b"x").unwrap();
        await_readable(&ready);
        ours.read_exact(&mut [0]).unwrap();
    }
    let last = ready.readable().unwrap();
    runtime.shutdown();
    assert!(last.is_set(), "the end of the runtime lets all look again");
    assert_eq!(ready.readable().unwrap_err().kind(), ErrorKind::Unsupported);
    Runtime::new().unwrap().run(|| {
        theirs.write_all(b"x").unwrap();
        await_readable(&ready);
    });
}

#[test]
fn a_socket_stays_open_until_its_readiness_is_dropped_too() {
    in_tasks(|| {
        let (mut theirs, ours) = connection();
        let ready = Readiness::new(&ours).unwrap();
        assert!(!ready.readable().unwrap().is_set());
        drop(ours);
        theirs.set_read_timeout(Some(NAP)).unwrap();
        assert_eq!(theirs.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(ready);
        theirs.set_read_timeout(None).unwrap();
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
    });
}

// ---- loops ----

#[test]
fn a_loop_hears_a_thousand_messages_each_way() {
    const MESSAGES: usize = 1000;
    in_tasks(|| {
        let ((mut theirs, mut ours), (sender, receiver)) = (connection(), channel::bounded(4));
        ours.set_nonblocking(true).unwrap();
        let mut theirs_too = theirs.try_clone().unwrap();
        let writer = spawn(move || (0..MESSAGES).for_each(|_| theirs_too.write_all(b"x").unwrap()));
        let speaker = spawn(move || (0..MESSAGES).for_each(|number| sender.send(number).unwrap()));
        let listener = spawn(move || {
            theirs.read_exact(&mut [0; MESSAGES]).unwrap();
            theirs
        });
        let ready = Readiness::new(&ours).unwrap();
        let (mut bytes, mut numbers) = (0, 0);
        while bytes < MESSAGES || numbers < MESSAGES {
            select! {
                wait(ready.readable().unwrap()) => loop {
                    match ours.read(&mut [0; 3]) {
                        Ok(0) => unreachable!("the peer is there"),
                        Ok(n) => bytes += n,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => panic!("{error}"),
                    }
                },
                recv(receiver) -> number => if let Ok(number) = number {
                    assert_eq!(number, numbers);
                    numbers += 1;
                    ours.write_all(b"y").unwrap();
                } else {
                    assert_eq!(numbers, MESSAGES);
                    fibra::yield_now();
                },
            }
        }
        writer.join().unwrap();
        speaker.join().unwrap();
        drop(listener.join().unwrap());
    });
}

#[test]
fn two_tasks_play_ping_pong_by_selects() {
    fn player(mut stream: TcpStream, rounds: usize) {
        let ready = Readiness::new(&stream).unwrap();
        for _ in 0..rounds {
            select_biased! {
                wait(ManualResetEvent::new(false)) => unreachable!(),
                wait(ready.readable().unwrap()) => stream.read_exact(&mut [0]).unwrap(),
            }
            stream.write_all(b"x").unwrap();
        }
    }
    in_tasks(|| {
        let (mut one, other) = connection();
        one.write_all(b"x").unwrap();
        let players = [one, other].map(|stream| spawn(move || player(stream, 1000)));
        players.into_iter().for_each(|player| player.join().unwrap());
    });
}

#[test]
fn several_tasks_select_over_one() {
    const BYTES: usize = 2000;
    in_tasks(|| {
        let (mut theirs, ours) = connection();
        ours.set_nonblocking(true).unwrap();
        let ours = Arc::new((Readiness::new(&ours).unwrap(), ours));
        let stop = CancelToken::new();
        let (sender, receiver) = channel::unbounded();
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let (ours, stop, sender) = (Arc::clone(&ours), stop.clone(), sender.clone());
                spawn(move || {
                    loop {
                        select! {
                            wait(ours.0.readable().unwrap()) => if let Ok(n) = (&ours.1).read(&mut [0; 2]) {
                                sender.send(n).unwrap();
                            },
                            wait(stop) => return,
                        }
                    }
                })
            })
            .collect();
        let mut seen = 0;
        for sent in 1..=BYTES {
            theirs.write_all(b"x").unwrap();
            while seen < sent && (sent % 7 == 0 || sent == BYTES) {
                seen += receiver.recv_timeout(HANG).expect("a reader hears of each byte");
            }
        }
        stop.cancel();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn a_worker_that_computes_does_not_hold_up_the_selects_of_others() {
    // This thread is worker 0.
    let runtime = Runtime::builder().workers(2);
    let outcome = runtime.run(|| {
        let (mut theirs, ours) = connection();
        let ready = Arc::new(Readiness::new(&ours).unwrap());
        // Registers it with the worker that computes.
        assert!(!ready.readable().unwrap().is_set());
        let computes = Arc::new(Barrier::new(2));
        let (ready_too, computes_too) = (Arc::clone(&ready), Arc::clone(&computes));
        let elsewhere = Handle::current().spawn_on_worker(1, move || {
            let event = ready_too.readable().unwrap();
            computes_too.wait();
            event.wait();
        });
        computes.wait();
        theirs.write_all(b"x").unwrap();
        let begun = Instant::now();
        while !elsewhere.task().is_finished() {
            assert!(begun.elapsed() < HANG, "it hangs");
            thread::yield_now();
        }
        elsewhere.join().unwrap();
    });
    outcome.unwrap();
}

// ---- the end ----

#[test]
fn it_may_be_dropped_while_its_wait_is_open() {
    in_tasks(|| {
        for round in 0..200 {
            let (mut theirs, ours) = connection();
            let ready = Readiness::new(&ours).unwrap();
            assert!(!ready.readable().unwrap().is_set());
            let writer = (round % 2 == 0).then(|| spawn(move || theirs.write_all(b"x").unwrap()));
            if round % 4 == 0 {
                fibra::yield_now();
            }
            drop(ready);
            writer.into_iter().for_each(|writer| writer.join().unwrap());
        }
    });
}

#[test]
fn a_panic_and_a_cancelled_task_drop_it() {
    in_tasks(|| {
        let (mut theirs, ours) = connection();
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let ready = Readiness::new(&ours).unwrap();
            assert!(!ready.readable().unwrap().is_set());
            panic!("on purpose");
        }));
        assert!(unwound.is_err());
        let holder = spawn(move || {
            let ready = Readiness::new(&ours).unwrap();
            drop(ours);
            ready.readable().unwrap().wait();
        });
        fibra::sleep(NAP);
        holder.cancel();
        assert!(holder.join().is_err_and(|error| error.is_cancelled()));
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0, "the descriptor is closed");
    });
}

#[test]
fn the_end_of_the_runtime_drops_it() {
    for workers in [1, 2, 4] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let (theirs, started) = runtime.run(|| {
            let (theirs, ours) = connection();
            let started = spawn(move || {
                let ready = Readiness::new(&ours).unwrap();
                select! {
                    wait(ready.readable().unwrap()) => {},
                    wait(ManualResetEvent::new(false)) => {},
                }
            });
            fibra::sleep(NAP);
            (theirs, started)
        });
        runtime.shutdown();
        assert!(started.join().is_err_and(|error| error.is_cancelled()));
        let mut theirs = theirs;
        until(|| match theirs.read(&mut [0]) {
            Ok(0) => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }
}

#[test]
fn a_future_may_wait_for_its_event() {
    in_tasks(|| {
        let (mut theirs, ours) = connection();
        let ready = Readiness::new(&ours).unwrap();
        let sent = spawn(move || {
            fibra::sleep(NAP);
            theirs.write_all(b"x").unwrap();
            theirs
        });
        fibra::block_on(async { ready.readable().unwrap().wait_async().await });
        assert!(ready.readable().unwrap().is_set());
        drop(sent.join().unwrap());
    });
}
