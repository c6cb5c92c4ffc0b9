//! Waiting for a socket is a cancellation point, and what a cancelled wait leaves behind is in order.

use std::cell::RefCell;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::at_end::AtEnd;
use crate::common::sides::{guarded, pause};
use crate::common::{in_tasks, kind, listener, pair, runtime, until_refused};
use crate::ending::ending;
use crate::folder::Folder;
use fibra_io::fs::File;
use fibra_io::io::{copy_bidirectional, duplex};
use fibra_io::net::{TcpStream, lookup_host};
use fibra_io::process::Command;
use fibra_runtime::{JoinError, JoinHandle, Runtime, Task, spawn, spawn_local, task, timeout, unblock};

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
        until_refused(address);
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

/// Does something in its destructor, and tells what came of it.
struct DoesInDrop<F: FnMut() -> T, T> {
    act: F,
    tell: Sender<T>,
}

impl<F: FnMut() -> T, T> Drop for DoesInDrop<F, T> {
    fn drop(&mut self) {
        let _ = self.tell.send((self.act)());
    }
}

/// What comes of something that a task does while it unwinds from a cancellation.
fn unwinding<T: Send + 'static>(act: impl FnMut() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    let holder = spawn(move || {
        let _does = DoesInDrop { act, tell };
        fibra_runtime::sleep(Duration::from_secs(600));
    });
    pause();
    holder.task().cancel();
    assert!(holder.join().unwrap_err().is_cancelled());
    told.recv().unwrap()
}

#[test]
fn a_destructor_that_would_wait_in_a_cancelled_task_times_out() {
    in_tasks(|| {
        let (_client, mut server) = pair();
        assert_eq!(kind(unwinding(move || server.read(&mut [0; 8]))), ErrorKind::TimedOut);
    });
}

#[test]
fn a_destructor_that_need_not_wait_in_a_cancelled_task_does_its_work() {
    in_tasks(|| {
        let (mut client, mut server) = pair();
        client.write_all(&[1, 2, 3]).unwrap();
        assert_eq!(unwinding(move || server.read(&mut [0; 8])).unwrap(), 3);
    });
}

#[test]
fn a_destructor_in_a_cancelled_task_locks_what_is_free_and_waits_for_no_lock() {
    in_tasks(|| {
        let folder = Folder::new();
        let path = folder.file("file");
        let (holder, file) = (File::create(&path).unwrap(), File::open(&path).unwrap());
        holder.lock().unwrap();
        let locks = move || (file.lock(), file.lock_shared());
        let outcomes = unwinding(locks);
        assert_eq!((kind(outcomes.0), kind(outcomes.1)), (ErrorKind::TimedOut, ErrorKind::TimedOut));
        holder.unlock().unwrap();
        let file = File::open(&path).unwrap();
        unwinding(move || file.lock()).unwrap();
    });
}

#[test]
fn a_destructor_in_a_cancelled_task_looks_no_name_up() {
    in_tasks(|| {
        let lookup = || lookup_host("localhost:80").map(drop);
        assert_eq!(kind(unwinding(lookup)), ErrorKind::TimedOut);
        unwinding(|| lookup_host("127.0.0.1:80").map(drop)).unwrap();
    });
}

#[test]
fn a_destructor_in_a_cancelled_task_opens_files_and_no_fifos() {
    in_tasks(|| {
        let folder = Folder::new();
        let (path, fifo) = (folder.file("file"), folder.fifo());
        let written = path.clone();
        unwinding(move || File::create(&written).and_then(|mut file| file.write_all(b"the end"))).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"the end");
        assert_eq!(kind(unwinding(move || File::open(&fifo))), ErrorKind::TimedOut);
    });
}

#[test]
fn a_destructor_in_a_cancelled_task_waits_for_no_output_of_a_child() {
    in_tasks(|| {
        let output = || Command::new("sleep").arg("100").kill_on_drop(true).output();
        assert_eq!(kind(unwinding(output)), ErrorKind::TimedOut);
    });
}

/// Panics with something in a buffer for a peer that reads nothing: the flush of the destructor has to wait.
fn panic_before_a_flush(mut stream: impl Write) -> ! {
    let mut out = BufWriter::with_capacity(16 << 20, &mut stream);
    out.write_all(&vec![0; 8 << 20]).unwrap();
    resume_unwind(Box::new("a fault"));
}

fn has_panicked<T>(end: Result<T, JoinError>) -> bool {
    end.err().unwrap().is_panic()
}

#[test]
fn a_cancel_ends_the_waits_of_destructors_in_a_task_that_panicked() {
    in_tasks(|| {
        let ((client, _server), (here, _there)) = (pair(), duplex(16));
        let fifo = Folder::new();
        let path = fifo.fifo();
        let tasks = [
            spawn(move || panic_before_a_flush(client)),
            spawn(move || panic_before_a_flush(here)),
            spawn(move || {
                let _opens = AtEnd(|| assert_eq!(kind(File::open(&path)), ErrorKind::TimedOut));
                resume_unwind(Box::new("a fault"));
            }),
        ];
        pause();
        tasks.iter().for_each(JoinHandle::cancel);
        tasks.into_iter().for_each(|task| assert!(has_panicked(task.join())));
        // The thread that was left behind.
        drop(std::fs::File::options().read(true).write(true).open(fifo.file("fifo")).unwrap());
    });
}

/// One half of the operation is over, and the task that does the other is the one to be told.
#[test]
fn a_cancel_ends_what_two_tasks_do_in_a_destructor_of_one_that_panicked() {
    in_tasks(|| {
        let ((a, _client), (b, server)) = (duplex(16), duplex(16));
        server.shutdown(Shutdown::Write).unwrap();
        let output = || Command::new("sh").args(["-c", "exec >&-; sleep 100"]).kill_on_drop(true).output();
        let tasks = [
            spawn(move || {
                let _copies = AtEnd(|| assert!(copy_bidirectional(&a, &b).is_err()));
                resume_unwind(Box::new("a fault"));
            }),
            spawn(move || {
                let _reads = AtEnd(|| assert!(output().is_err()));
                resume_unwind(Box::new("a fault"));
            }),
        ];
        pause();
        tasks.iter().for_each(JoinHandle::cancel);
        tasks.into_iter().for_each(|task| assert!(has_panicked(task.join())));
        drop(server);
    });
}

#[test]
fn a_deadline_and_the_end_do_so_too() {
    in_tasks(|| {
        let (client, _server) = pair();
        let late = spawn(|| timeout(Duration::from_millis(5), || panic_before_a_flush(client)));
        assert!(has_panicked(late.join()));
    });
    for workers in [1, 2] {
        guarded(|| {
            let (client, _server) = pair();
            let runtime = runtime(workers);
            let (begin, begun) = channel();
            let task = runtime.spawn(move || {
                begin.send(()).unwrap();
                panic_before_a_flush(client)
            });
            begun.recv().unwrap();
            pause();
            drop(runtime);
            assert!(has_panicked(task.join()));
        });
    }
}

#[test]
fn a_destructor_that_has_time_waits_in_a_task_that_panicked() {
    in_tasks(|| {
        let (client, mut server) = pair();
        let task = spawn(|| panic_before_a_flush(client));
        let mut all = Vec::new();
        server.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 8 << 20);
        assert!(has_panicked(task.join()));
    });
}

/// What is done as soon as it is dropped.
type Last = AtEnd<Box<dyn FnMut() + Send>>;

/// What drops it at the end of a task.
#[derive(Clone, Copy)]
enum Keeper {
    UnclaimedResult,
    TaskLocal,
}

const KEEPERS: [Keeper; 2] = [Keeper::UnclaimedResult, Keeper::TaskLocal];

fibra_runtime::task_local! { static KEPT: RefCell<Option<Last>> = const { RefCell::new(None) }; }

/// A detached task that does something in a destructor at its end, and has come as far as it goes.
fn waiting_at_end(keeper: Keeper, act: impl FnMut() + Send + 'static) -> Task {
    let last: Last = AtEnd(Box::new(act));
    let name = ending(move || match keeper {
        Keeper::UnclaimedResult => Some(last),
        Keeper::TaskLocal => {
            KEPT.with(|kept| *kept.borrow_mut() = Some(last));
            None
        }
    });
    pause();
    name
}

/// Something that waits for a peer, made anew for each task: it says what came of it.
type Waits = fn(Sender<ErrorKind>) -> Box<dyn FnMut() + Send>;

const WAITS: [Waits; 5] = [reads, writes, reads_in_memory, copies, opens];

fn reads(tell: Sender<ErrorKind>) -> Box<dyn FnMut() + Send> {
    let (silent, mut socket) = pair();
    Box::new(move || {
        let _open = &silent;
        tell.send(kind(socket.read(&mut [0]))).unwrap();
    })
}

fn writes(tell: Sender<ErrorKind>) -> Box<dyn FnMut() + Send> {
    let (silent, mut socket) = pair();
    Box::new(move || {
        let _open = &silent;
        tell.send(kind(socket.write_all(&vec![0; 8 << 20]))).unwrap();
    })
}

fn reads_in_memory(tell: Sender<ErrorKind>) -> Box<dyn FnMut() + Send> {
    let (silent, mut here) = duplex(16);
    Box::new(move || {
        let _open = &silent;
        tell.send(kind(here.read(&mut [0]))).unwrap();
    })
}

/// One way is over, and the other one is carried by a task beside.
fn copies(tell: Sender<ErrorKind>) -> Box<dyn FnMut() + Send> {
    let ((silent, a), (b, server)) = (duplex(16), duplex(16));
    server.shutdown(Shutdown::Write).unwrap();
    Box::new(move || {
        let _open = (&silent, &server);
        tell.send(kind(copy_bidirectional(&a, &b))).unwrap();
    })
}

fn opens(tell: Sender<ErrorKind>) -> Box<dyn FnMut() + Send> {
    let folder = Folder::new();
    let path = folder.fifo();
    Box::new(move || {
        let outcome = kind(File::open(&path));
        // The thread that was left behind.
        drop(std::fs::File::options().read(true).write(true).open(folder.file("fifo")).unwrap());
        tell.send(outcome).unwrap();
    })
}

#[test]
fn a_cancel_ends_the_waits_of_destructors_at_the_end_of_a_task() {
    in_tasks(|| {
        for (keeper, waits) in KEEPERS.into_iter().flat_map(|keeper| WAITS.map(|waits| (keeper, waits))) {
            let (tell, told) = channel();
            let task = waiting_at_end(keeper, waits(tell));
            assert!(told.try_recv().is_err(), "it waits");
            task.cancel();
            assert_eq!(unblock(move || told.recv()), Ok(ErrorKind::TimedOut));
        }
    });
}

#[test]
fn the_end_of_a_runtime_does_so_too() {
    for (keeper, waits) in KEEPERS.into_iter().flat_map(|keeper| WAITS.map(|waits| (keeper, waits))) {
        for workers in [1, 2] {
            guarded(|| {
                let (tell, told) = channel();
                let runtime = runtime(workers);
                runtime.run(|| drop(waiting_at_end(keeper, waits(tell))));
                assert!(told.try_recv().is_err(), "it waits");
                drop(runtime);
                assert_eq!(told.recv(), Ok(ErrorKind::TimedOut));
            });
        }
    }
}

#[test]
fn a_cancel_ends_them_without_the_driver_and_in_a_panic_too() {
    guarded(|| {
        Runtime::builder().workers(1).build().unwrap().run(|| {
            let (tell, told) = channel();
            let task = waiting_at_end(Keeper::UnclaimedResult, reads(tell));
            task.cancel();
            assert_eq!(unblock(move || told.recv()), Ok(ErrorKind::TimedOut));
        });
    });
    in_tasks(|| {
        let (tell, told) = channel();
        let mut reads = reads(tell);
        let task = waiting_at_end(Keeper::UnclaimedResult, move || {
            let _reads = AtEnd(&mut reads);
            resume_unwind(Box::new("a fault"));
        });
        task.cancel();
        assert_eq!(unblock(move || told.recv()), Ok(ErrorKind::TimedOut));
    });
}

#[test]
fn a_destructor_at_the_end_of_a_task_that_retries_is_told_each_time() {
    in_tasks(|| {
        let (_silent, mut socket) = pair();
        let (tell, told) = channel();
        let task = waiting_at_end(Keeper::UnclaimedResult, move || {
            let outcomes: Vec<_> = (0..300).map(|_| kind(socket.read(&mut [0]))).collect();
            tell.send(outcomes).unwrap();
        });
        task.cancel();
        assert_eq!(unblock(move || told.recv()), Ok(vec![ErrorKind::TimedOut; 300]));
    });
}

#[test]
fn a_destructor_at_the_end_of_a_task_is_shielded_by_a_shield_of_its_own() {
    in_tasks(|| {
        for keeper in KEEPERS {
            let (mut client, mut socket) = pair();
            let (tell, told) = channel();
            let task = waiting_at_end(keeper, move || {
                let read = task::shield(|| {
                    let mut bytes = [0; 2];
                    socket.read_exact(&mut bytes).map(|()| bytes)
                });
                tell.send((read.unwrap(), kind(socket.read(&mut [0])))).unwrap();
            });
            task.cancel();
            // The second byte is waited for after the cancel.
            for byte in [1, 2] {
                pause();
                client.write_all(&[byte]).unwrap();
            }
            assert_eq!(unblock(move || told.recv()), Ok(([1, 2], ErrorKind::TimedOut)));
        }
    });
}

#[test]
fn a_destructor_at_the_end_of_a_task_that_is_not_cancelled_waits_until_a_deadline_of_its_own() {
    in_tasks(|| {
        for keeper in KEEPERS {
            let ((mut client, mut socket), (tell, told)) = (pair(), channel());
            let (late, is_late) = channel();
            let _task = waiting_at_end(keeper, move || {
                late.send(timeout(Duration::from_millis(5), || socket.read(&mut [0])).is_err()).unwrap();
                tell.send(socket.read(&mut [0]).unwrap()).unwrap();
            });
            assert_eq!(unblock(move || is_late.recv()), Ok(true));
            client.write_all(&[1]).unwrap();
            assert_eq!(unblock(move || told.recv()), Ok(1));
        }
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

/// Reads when it is dropped, and tells how that ends.
struct Reads(TcpStream, Sender<ErrorKind>);

impl Drop for Reads {
    fn drop(&mut self) {
        _ = self.1.send(self.0.read(&mut [0]).unwrap_err().kind());
    }
}

#[test]
fn captures_of_an_unstarted_task_wait_for_no_socket() {
    in_tasks(|| {
        let (_silent, socket) = pair();
        let (tell, told) = channel();
        let reads = Reads(socket, tell);
        // Another worker might begin it before the cancel.
        let never = spawn_local(move || drop(reads));
        never.cancel();
        assert!(never.join().unwrap_err().is_cancelled());
        assert_eq!(told.try_recv(), Ok(ErrorKind::TimedOut));
    });
}
