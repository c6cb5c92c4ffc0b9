//! A worker that computes and polls no event: a waiter on another worker is woken nevertheless.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::sides::{guarded, pause};
use crate::common::{kind, listener, pair, runtime};
use fibra_io::net::{UdpSocket, UnixStream};
use fibra_runtime::{JoinHandle, spawn, spawn_local, wait};

/// Something to wait for: twice, by two tasks.
struct Wanted {
    wait: Box<dyn Fn() + Send + Sync>,
    /// Waits in vain, for a short time.
    wait_in_vain: Box<dyn Fn() + Send + Sync>,
    /// Lets one wait end, without waiting itself.
    tell: Box<dyn Fn() + Send + Sync>,
}

const BRIEF: Option<Duration> = Some(Duration::from_millis(1));

fn bytes() -> Wanted {
    let (client, server) = pair();
    let server = Arc::new(server);
    let timed = Arc::clone(&server);
    Wanted {
        wait: Box::new(move || (&*server).read_exact(&mut [0]).unwrap()),
        wait_in_vain: Box::new(move || {
            timed.set_read_timeout(BRIEF).unwrap();
            assert_eq!(kind((&*timed).read(&mut [0])), ErrorKind::WouldBlock);
            timed.set_read_timeout(None).unwrap();
        }),
        tell: Box::new(move || assert_eq!((&client).write(&[1]).unwrap(), 1)),
    }
}

fn connections() -> Wanted {
    let (listener, address) = listener();
    let listener = Arc::new(listener);
    let timed = Arc::clone(&listener);
    Wanted {
        wait: Box::new(move || drop(listener.accept().unwrap())),
        wait_in_vain: Box::new(move || {
            timed.set_accept_deadline(BRIEF.map(|brief| Instant::now() + brief));
            assert!(timed.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
            timed.set_accept_deadline(None);
        }),
        tell: Box::new(move || drop(std::net::TcpStream::connect(address).unwrap())),
    }
}

fn messages() -> Wanted {
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let (timed, address) = (Arc::clone(&socket), socket.local_addr().unwrap());
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    Wanted {
        wait: Box::new(move || assert_eq!(socket.recv(&mut [0]).unwrap(), 1)),
        wait_in_vain: Box::new(move || {
            timed.set_read_timeout(BRIEF).unwrap();
            assert_eq!(kind(timed.recv(&mut [0])), ErrorKind::WouldBlock);
            timed.set_read_timeout(None).unwrap();
        }),
        tell: Box::new(move || assert_eq!(sender.send_to(&[1], address).unwrap(), 1)),
    }
}

/// Makes polled datagram sockets.
#[cfg(feature = "tokio-io")]
fn polled_messages() -> Wanted {
    use fibra_io::compat::Async;
    use fibra_runtime::{block_on, timeout};

    let socket = Arc::new(Async::new(UdpSocket::bind("127.0.0.1:0").unwrap()));
    let (polled, address) = (Arc::clone(&socket), socket.get_ref().local_addr().unwrap());
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    Wanted {
        wait: Box::new(move || assert_eq!(block_on(socket.recv(&mut [0])).unwrap(), 1)),
        wait_in_vain: Box::new(move || {
            assert!(timeout(BRIEF.unwrap(), || block_on(polled.recv(&mut [0]))).is_err());
        }),
        tell: Box::new(move || assert_eq!(sender.send_to(&[1], address).unwrap(), 1)),
    }
}

/// Runs `promise` in a task of two workers, for each thing that can be waited for.
fn of_everything(promise: fn(Arc<Wanted>)) {
    let all = [
        bytes,
        connections,
        messages,
        #[cfg(feature = "tokio-io")]
        polled_messages,
    ];
    for wanted in all {
        guarded(|| runtime(2).run(move || promise(Arc::new(wanted()))));
    }
}

/// Holds the worker of the caller until `done`.
fn compute_until(done: impl Fn() -> bool) {
    while !done() {
        std::hint::spin_loop();
    }
}

/// Starts a task on the other worker, which has begun when this returns; the caller's computes in between.
fn spawn_elsewhere<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&begun);
    let task = spawn(move || {
        begins.store(true, Ordering::SeqCst);
        f()
    });
    compute_until(|| begun.load(Ordering::SeqCst));
    task
}

/// Starts a task that waits, on another worker.
fn wait_elsewhere(wanted: &Arc<Wanted>) -> JoinHandle<()> {
    let wanted = Arc::clone(wanted);
    spawn_elsewhere(move || (wanted.wait)())
}

fn wait_here(wanted: &Arc<Wanted>) -> JoinHandle<()> {
    let wanted = Arc::clone(wanted);
    spawn_local(move || (wanted.wait)())
}

/// Computes until that task has received what it waits for.
fn tell_and_compute(wanted: &Wanted, waiting: JoinHandle<()>) {
    (wanted.tell)();
    compute_until(|| waiting.task().has_ended());
    waiting.join().unwrap();
}

#[test]
fn a_wait_that_begins_while_the_former_worker_computes_is_woken() {
    of_everything(|wanted| {
        (wanted.wait_in_vain)();
        let waiting = wait_elsewhere(&wanted);
        compute_until(wait::others_are_asleep);
        tell_and_compute(&wanted, waiting);
    });
}

#[test]
fn a_waiter_is_woken_after_the_former_worker_begins_to_compute() {
    of_everything(|wanted| {
        (wanted.wait_in_vain)();
        let waiting = wait_elsewhere(&wanted);
        pause();
        tell_and_compute(&wanted, waiting);
    });
}

#[test]
fn a_waiter_after_a_task_of_the_stuck_worker_is_woken() {
    of_everything(|wanted| {
        let here = wait_here(&wanted);
        pause();
        let elsewhere = wait_elsewhere(&wanted);
        pause();
        tell_and_compute(&wanted, elsewhere);
        (wanted.tell)();
        here.join().unwrap();
    });
}

#[test]
fn a_waiter_beside_a_task_of_the_stuck_worker_is_woken() {
    of_everything(|wanted| {
        let elsewhere = wait_elsewhere(&wanted);
        pause();
        let here = wait_here(&wanted);
        pause();
        tell_and_compute(&wanted, elsewhere);
        (wanted.tell)();
        here.join().unwrap();
    });
}

#[test]
fn either_of_two_workers_is_woken_while_the_other_computes_again_and_again() {
    of_everything(|wanted| {
        for _ in 0..20 {
            let here = wait_here(&wanted);
            let elsewhere = wait_elsewhere(&wanted);
            pause();
            tell_and_compute(&wanted, elsewhere);
            // And now the other one.
            let (stuck, free) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
            let (holds, held) = (Arc::clone(&stuck), Arc::clone(&free));
            let computes = spawn_elsewhere(move || {
                held.store(true, Ordering::SeqCst);
                compute_until(|| !holds.load(Ordering::SeqCst));
            });
            compute_until(|| free.load(Ordering::SeqCst));
            (wanted.tell)();
            here.join().unwrap();
            stuck.store(false, Ordering::SeqCst);
            computes.join().unwrap();
        }
    });
}

/// The kernel tells no writer of a full Unix socket that it was shut down.
#[cfg(target_os = "linux")]
#[test]
fn a_recheck_is_made_while_the_worker_of_another_writer_computes() {
    guarded(|| {
        runtime(2).run(|| {
            let (near, _far) = UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            while (&near).write(&[0; 4096]).is_ok() {}
            near.set_nonblocking(false).unwrap();
            let near = Arc::new(near);
            let write = || {
                let near = Arc::clone(&near);
                move || kind((&*near).write_all(&[0; 4096]))
            };
            let here = spawn_local(write());
            pause();
            let elsewhere = spawn_elsewhere(write());
            pause();
            near.shutdown(Shutdown::Write).unwrap();
            compute_until(|| elsewhere.task().is_finished());
            assert_eq!(elsewhere.join().unwrap(), ErrorKind::BrokenPipe);
            assert_eq!(here.join().unwrap(), ErrorKind::BrokenPipe);
        });
    });
}
