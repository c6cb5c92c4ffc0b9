//! FIFOs and terminals as files: what waits for another process, and opens that wait.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks, kind, pattern, until};
use crate::fs::{SHORT, Scratch, open};
use crate::terminal::terminal;
use fibra_io::fs::{self, File};
use fibra_runtime::{Runtime, spawn, timeout, unblock};

#[test]
fn a_reader_of_a_fifo_that_is_cancelled_has_taken_nothing() {
    in_tasks(|| {
        let scratch = Scratch::new();
        let (_path, fifo) = scratch.fifo();
        let fifo = Arc::new(fifo);
        let reader = {
            let fifo = Arc::clone(&fifo);
            spawn(move || (&*fifo).read(&mut [0; 8]).unwrap())
        };
        crate::common::nap(5);
        reader.cancel();
        assert!(reader.join().unwrap_err().is_cancelled());
        (&*fifo).write_all(b"later").unwrap();
        let mut text = [0; 5];
        (&*fifo).read_exact(&mut text).unwrap();
        assert_eq!(&text, b"later");
    });
}

#[test]
fn a_writer_into_a_full_fifo_can_be_cancelled() {
    in_tasks(|| {
        let scratch = Scratch::new();
        let (_path, fifo) = scratch.fifo();
        let fifo = Arc::new(fifo);
        let writer = {
            let fifo = Arc::clone(&fifo);
            spawn(move || (&*fifo).write_all(&pattern(1 << 20)).unwrap())
        };
        until(|| !has_room(fifo.as_fd()));
        writer.cancel();
        assert!(writer.join().unwrap_err().is_cancelled());
        let mut text = [0; 4096];
        (&*fifo).read_exact(&mut text).unwrap();
        assert!(text[..] == pattern(4096));
    });
}

/// True if a FIFO or a terminal can be written to.
fn has_room(fd: BorrowedFd<'_>) -> bool {
    let mut entry = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: there is one entry, writable, and it outlives the call.
    unsafe { libc::poll(&mut entry, 1, 0) == 1 }
}

#[test]
fn a_fifo_carries_all_bytes_to_its_end() {
    everywhere(|| {
        let scratch = Scratch::new();
        let path = scratch.fifo().0;
        let reader = {
            let path = path.clone();
            beside(move || {
                let mut all = Vec::new();
                File::open(&path).unwrap().read_to_end(&mut all).unwrap();
                all
            })
        };
        let mut writer = File::options().write(true).open(&path).unwrap();
        writer.write_all(&pattern(300_000)).unwrap();
        drop(writer);
        assert!(reader.join() == pattern(300_000));
    });
}

#[test]
fn opening_a_fifo_can_be_left() {
    in_tasks(|| {
        let scratch = Scratch::new();
        let path = scratch.fifo().0;
        let opener = {
            let path = path.clone();
            spawn(move || File::open(path).map(drop))
        };
        crate::common::nap(5);
        opener.cancel();
        assert!(opener.join().unwrap_err().is_cancelled());
        // Lets the thread go that waits for a writer, now or when it gets there.
        std::mem::forget(open(&path));
    });
}

#[test]
fn an_open_of_a_fifo_is_left_by_a_timeout() {
    in_tasks(|| {
        let scratch = Scratch::new();
        let path = scratch.0.fifo();
        let opens: [fn(&Path) -> std::io::Result<File>; 4] = [
            |path| File::open(path),
            |path| File::create(path),
            |path| File::options().append(true).create(true).open(path),
            |path| File::options().write(true).truncate(true).open(path),
        ];
        for (nth, open_it) in opens.into_iter().enumerate() {
            assert!(timeout(SHORT, || open_it(&path).map(drop)).is_err(), "{nth}");
            // Lets the thread go that waits for the other end, now or when it gets there.
            std::mem::forget(open(&path));
            let in_time = timeout(Duration::from_secs(60), || open_it(&path).map(drop));
            in_time.expect("it has another end now").unwrap();
            std::fs::remove_file(&path).unwrap();
            scratch.0.fifo();
        }
    });
}

/// Gives `f` a runtime whose pool has one thread, which has always more to do than it comes to.
fn with_busy_pool(workers: usize, f: impl FnOnce() + Send) {
    guarded(|| {
        let builder = Runtime::builder().driver(fibra_io::driver()).workers(workers).max_blocking_threads(1);
        builder.build().unwrap().run(|| {
            let is_over = Arc::new(AtomicBool::new(false));
            let callers = [(); 3].map(|()| {
                let is_over = Arc::clone(&is_over);
                spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        unblock(|| std::thread::sleep(Duration::from_micros(10)));
                    }
                })
            });
            f();
            is_over.store(true, Ordering::Relaxed);
            callers.into_iter().for_each(|caller| caller.join().unwrap());
        });
    });
}

#[test]
fn a_call_that_a_timeout_ended_changes_no_file_later() {
    const ROUNDS: u64 = 200;
    type Call = fn(&Path) -> std::io::Result<()>;
    let calls: [(&str, Call); 6] = [
        ("create", |path| File::create(path).map(drop)),
        ("truncate", |path| File::options().write(true).truncate(true).open(path).map(drop)),
        ("create_new", |path| File::create_new(path).map(drop)),
        ("append", |path| File::options().append(true).create(true).open(path).map(drop)),
        ("write", |path| fs::write(path, "late")),
        ("remove_file", |path| fs::remove_file(path)),
    ];
    for workers in [1, 2] {
        with_busy_pool(workers, || {
            let scratch = Scratch::new();
            let path = scratch.path("file");
            // By this name the system takes its time to find it, so that a call may be left in its middle.
            let long_name = scratch.path(&("./".repeat(1900) + "file"));
            for (name, call) in calls {
                let mut ended_in_time = 0;
                for round in 0..ROUNDS {
                    // Every fifth has all the time it needs.
                    let limit = if round % 5 == 4 { 60_000_000 } else { round };
                    let outcome = timeout(Duration::from_micros(limit), || call(&long_name));
                    ended_in_time += u64::from(outcome.is_ok());
                    let is_rewritten = round % 2 == 0;
                    match is_rewritten {
                        true => std::fs::write(&path, "rewritten").unwrap(),
                        false => _ = std::fs::remove_file(&path),
                    }
                    // What came to the pool before this has been run or withdrawn then.
                    unblock(|| ());
                    fibra_runtime::sleep(Duration::from_micros(100));
                    let text = std::fs::read_to_string(&path).ok();
                    let expected = is_rewritten.then_some("rewritten");
                    assert_eq!(text.as_deref(), expected, "{name} in round {round}");
                }
                assert!((ROUNDS / 5..ROUNDS).contains(&ended_in_time), "{name}: {ended_in_time} in time");
            }
        });
    }
}

#[test]
fn opens_of_a_name_that_changes_can_be_left() {
    in_tasks(|| {
        let scratch = Scratch::new();
        let (name, fifo, file) = (scratch.path("name"), scratch.0.fifo(), scratch.file("plain", b"text"));
        let is_over = Arc::new(AtomicBool::new(false));
        let swapper = {
            let (is_over, name, spare) = (Arc::clone(&is_over), name.clone(), scratch.path("spare"));
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    for target in [&fifo, &file] {
                        std::fs::hard_link(target, &spare).unwrap();
                        std::fs::rename(&spare, &name).unwrap();
                    }
                }
            })
        };
        until(|| name.exists());
        for _ in 0..100 {
            let _ = timeout(Duration::from_micros(200), || File::open(&name).map(drop));
        }
        is_over.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
        // Lets the threads go that wait for a writer, now or when they get there.
        std::mem::forget(open(&scratch.path("fifo")));
    });
}

#[test]
fn a_file_that_came_non_blocking_does_not_wait() {
    everywhere(|| {
        let scratch = Scratch::new();
        let (path, mut both) = scratch.fifo();
        let options = |read| {
            let mut options = File::options();
            options.read(read).write(!read).custom_flags(libc::O_NONBLOCK);
            options
        };
        let opened = options(true).open(&path).unwrap();
        let cloned = opened.try_clone().unwrap();
        let adopted = File::from(std::fs::File::from(options(true).open(&path).unwrap()));
        for mut reader in [opened, cloned, adopted] {
            assert_eq!(kind(reader.read(&mut [0])), ErrorKind::WouldBlock);
            both.write_all(&[7]).unwrap();
            let mut byte = [0];
            assert_eq!(reader.read(&mut byte).unwrap(), 1);
            assert_eq!((byte, kind(reader.read(&mut byte))), ([7], ErrorKind::WouldBlock));
        }
        let mut writer = options(false).open(&path).unwrap();
        let error = (0..).find_map(|_| writer.write(&[0; 4096]).err()).unwrap();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_fifo_without_a_writer_that_came_non_blocking_is_at_its_end() {
    everywhere(|| {
        let scratch = Scratch::new();
        let (path, both) = scratch.fifo();
        let mut reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        assert_eq!(kind(reader.read(&mut [0])), ErrorKind::WouldBlock);
        drop((both, reader));
        let mut reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        let mut writer = File::options().write(true).open(&path).unwrap();
        assert_eq!(kind(reader.read(&mut [0])), ErrorKind::WouldBlock);
        writer.write_all(&[7]).unwrap();
        assert_eq!(reader.read(&mut [0; 2]).unwrap(), 1);
        drop(writer);
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn a_terminal_that_came_non_blocking_does_not_wait() {
    everywhere(|| {
        let (master, mut terminal) = terminal();
        // SAFETY: the descriptor is open, and the call touches no memory.
        let outcome = unsafe { libc::fcntl(terminal.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        assert_eq!(outcome, 0);
        terminal = File::from(OwnedFd::from(terminal));
        assert_eq!(kind(terminal.read(&mut [0; 8])), ErrorKind::WouldBlock);
        (&master).write_all(b"typed\n").unwrap();
        until(|| terminal.read(&mut [0; 8]).is_ok_and(|n| n == 6));
        let error = (0..).find_map(|_| terminal.write(&[b'x'; 4096]).err()).unwrap();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_writer_to_a_stalled_terminal_can_be_cancelled() {
    in_tasks(|| {
        let (master, terminal) = terminal();
        for len in [1 << 20, 1000, 77] {
            let text = vec![b'x'; len];
            assert!(timeout(SHORT, || while (&terminal).write_all(&text).is_ok() {}).is_err());
        }
        let mut master = File::from(master);
        let drain = beside(move || _ = std::io::copy(&mut master, &mut std::io::sink()));
        (&terminal).write_all(&pattern(1 << 18)).unwrap();
        drop(terminal);
        drain.join();
    });
}

#[test]
fn a_runtime_ends_with_a_task_that_writes_to_a_stalled_terminal() {
    guarded(|| {
        for workers in [1, 2] {
            let (_master, terminal) = terminal();
            let runtime = crate::common::runtime(workers);
            drop(runtime.spawn(move || (&terminal).write_all(&[b'x'; 1 << 20])));
            crate::common::nap(30);
            drop(runtime);
        }
    });
}

#[test]
fn a_terminal_that_is_open_for_reading_is_not_written_to() {
    everywhere(|| {
        let (_master, terminal) = terminal();
        let path = format!("/proc/self/fd/{}", terminal.as_raw_fd());
        let mut reader =
            File::options().read(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK).open(path).unwrap();
        for _ in 0..2 {
            assert_eq!(kind(reader.read(&mut [0])), ErrorKind::WouldBlock);
            let error = reader.write(b"text").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        }
    });
}

#[test]
fn a_terminal_takes_what_is_written_from_both_of_its_ends() {
    everywhere(|| {
        let (master, mut terminal) = terminal();
        let (mut master, mut text) = (File::from(master), [0; 7]);
        terminal.write_all(b"line\n").unwrap();
        master.read_exact(&mut text[..6]).unwrap();
        assert_eq!(&text[..6], b"line\r\n");
        master.write_all(b"typed\n").unwrap();
        terminal.read_exact(&mut text[..6]).unwrap();
        assert_eq!(&text[..6], b"typed\n");
    });
}

#[test]
fn a_task_that_waits_for_a_fifo_does_not_hold_its_worker() {
    guarded(|| {
        crate::common::runtime(1).run(|| {
            let scratch = Scratch::new();
            let (_path, fifo) = scratch.fifo();
            let fifo = Arc::new(fifo);
            let reader = {
                let fifo = Arc::clone(&fifo);
                spawn(move || {
                    let mut byte = [0];
                    (&*fifo).read_exact(&mut byte).unwrap();
                    byte[0]
                })
            };
            fibra_runtime::yield_now();
            (&*fifo).write_all(&[7]).unwrap();
            assert_eq!(reader.join().unwrap(), 7);
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn an_open_waits_until_a_lease_is_given_up() {
    in_tasks(|| {
        let scratch = Scratch::new();
        let path = scratch.file("leased", b"text");
        let holder = std::fs::File::open(&path).unwrap();
        // SAFETY: it takes numbers alone, and the descriptor is open.
        let lease = |kind: libc::c_int| unsafe { libc::fcntl(holder.as_raw_fd(), libc::F_SETLEASE, kind) };
        // SAFETY: it takes numbers alone. The signal tells the holder that its lease is wanted.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        if lease(libc::F_RDLCK) != 0 {
            return eprintln!("this file system has no leases");
        }
        let opener = spawn(move || File::options().write(true).truncate(true).open(&path).map(drop));
        crate::common::nap(20);
        assert!(!opener.is_finished());
        assert_eq!(lease(libc::F_UNLCK), 0);
        opener.join().unwrap().unwrap();
        assert_eq!(holder.metadata().unwrap().len(), 0);
    });
}
