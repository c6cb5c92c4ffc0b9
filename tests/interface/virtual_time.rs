//! Virtual time reaches every wait: locks, channels, selects and sockets.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::paused::{TICK, is_about, paused_by, taken};
use fibra::net::{TcpListener, TcpStream, UdpSocket};
use fibra::sync::channel::{after, bounded, tick};
use fibra::sync::{AutoResetEvent, Condvar, Mutex, RwLock, Semaphore};
use fibra::time::{now, settle};
use fibra::{Runtime, select, sleep, spawn, timeout};

const HOUR: Duration = Duration::from_secs(3600);

/// Runs `promise` in virtual time, with sockets.
fn paused<T>(promise: impl FnOnce() -> T) -> T {
    paused_by(Runtime::builder(), promise)
}

/// A connected pair of sockets.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connecting = spawn(move || TcpStream::connect(address).unwrap());
    (listener.accept().unwrap().0, connecting.join().unwrap())
}

#[test]
fn time_moves_while_a_task_waits_for_a_mutex() {
    paused(|| {
        let lock = Arc::new(Mutex::new(()));
        let held = lock.lock();
        let waiter = Arc::clone(&lock);
        let waiter = spawn(move || drop(waiter.lock()));
        let spent = taken(|| sleep(HOUR));
        assert!(is_about(spent, HOUR) && !waiter.is_finished());
        drop(held);
        waiter.join().unwrap();
    });
}

#[test]
fn timeouts_of_locks_and_events_are_virtual() {
    paused(|| {
        let (mutex, rwlock) = (Arc::new(Mutex::new(())), Arc::new(RwLock::new(())));
        let (semaphore, event) = (Semaphore::new(0), AutoResetEvent::new(false));
        let (held, written) = (Arc::clone(&mutex), Arc::clone(&rwlock));
        let holder = spawn(move || {
            let (_held, _written) = (held.lock(), written.write());
            sleep(HOUR * 10);
        });
        settle();
        assert!(is_about(taken(|| assert!(mutex.try_lock_for(HOUR).is_none())), HOUR));
        assert!(is_about(taken(|| assert!(rwlock.try_read_for(HOUR).is_none())), HOUR));
        assert!(is_about(taken(|| assert!(semaphore.acquire_timeout(HOUR).is_none())), HOUR));
        assert!(is_about(taken(|| assert!(!event.wait_timeout(HOUR))), HOUR));
        let (own, changed) = (Mutex::new(()), Condvar::new());
        let mut guard = own.lock();
        assert!(is_about(taken(|| assert!(changed.wait_for(&mut guard, HOUR).timed_out())), HOUR));
        holder.join().unwrap();
    });
}

#[test]
fn channels_of_time_are_virtual() {
    paused(|| {
        let (sender, receiver) = bounded::<u32>(1);
        assert!(is_about(taken(|| assert!(receiver.recv_timeout(HOUR).is_err())), HOUR));
        assert!(is_about(taken(|| _ = after(HOUR).recv().unwrap()), HOUR));
        let ticks = tick(HOUR);
        assert!(is_about(taken(|| (0..24).for_each(|_| _ = ticks.recv().unwrap())), HOUR * 24));
        let spent = taken(|| {
            select! {
                recv(receiver) -> _ => panic!("nothing was sent"),
                default(HOUR) => {}
            }
        });
        assert!(is_about(spent, HOUR));
        drop(sender);
    });
}

#[test]
fn time_stands_while_a_socket_of_the_outside_may_answer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4];
        while stream.read_exact(&mut request).is_ok() {
            thread::sleep(Duration::from_millis(5));
            stream.write_all(b"pong").unwrap();
        }
    });
    paused(|| {
        let mut stream = TcpStream::connect(address).unwrap();
        let begin = now();
        for _ in 0..3 {
            stream.write_all(b"ping").unwrap();
            let mut answer = [0; 4];
            timeout(HOUR, || stream.read_exact(&mut answer)).expect("the answer comes first").unwrap();
            assert_eq!((now(), &answer), (begin, b"pong"));
        }
        // The outside is quiet again.
        drop(stream);
        assert!(is_about(taken(|| sleep(HOUR)), HOUR));
    });
    server.join().unwrap();
}

#[test]
fn tasks_that_talk_over_sockets_need_no_time() {
    paused(|| {
        let (mut server, mut client) = connection();
        let begin = now();
        let echo = spawn(move || {
            let mut bytes = [0; 4];
            while server.read_exact(&mut bytes).is_ok() {
                server.write_all(&bytes).unwrap();
            }
        });
        for _ in 0..100 {
            client.write_all(b"ping").unwrap();
            timeout(HOUR, || client.read_exact(&mut [0; 4])).unwrap().unwrap();
        }
        assert_eq!(now(), begin);
        drop(client);
        echo.join().unwrap();
    });
}

#[test]
fn a_deadline_of_a_socket_comes_when_its_time_has_passed_for_real() {
    paused(|| {
        let wait = Duration::from_millis(20);
        let (mut server, _client) = connection();
        server.set_read_timeout(Some(wait)).unwrap();
        let begin = Instant::now();
        let spent = taken(|| assert_eq!(server.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock));
        assert!(is_about(spent, wait) && begin.elapsed() >= wait - TICK);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(is_about(taken(|| assert!(timeout(wait, || socket.recv_from(&mut [0])).is_err())), wait));
    });
}

#[test]
fn files_and_processes_keep_time_where_it_is() {
    paused(|| {
        let begin = now();
        timeout(HOUR, || {
            fibra::fs::read("/proc/self/stat").unwrap();
            let status = fibra::process::Command::new("sleep").arg("0.01").status().unwrap();
            assert!(status.success());
        })
        .unwrap();
        assert_eq!(now(), begin);
    });
}

#[test]
fn a_listener_to_a_signal_keeps_time_where_it_is() {
    paused(|| {
        let signal = fibra::signal::Signal::new(fibra::signal::SIGWINCH).unwrap();
        let begin = now();
        let raiser = thread::spawn(|| {
            thread::sleep(Duration::from_millis(5));
            signal_hook::low_level::raise(fibra::signal::SIGWINCH).unwrap();
        });
        timeout(HOUR, || signal.recv()).expect("the signal comes first");
        assert_eq!(now(), begin);
        raiser.join().unwrap();
        drop(signal);
        assert!(is_about(taken(|| sleep(HOUR)), HOUR));
    });
}
