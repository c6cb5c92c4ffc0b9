//! Promises of `Pollable`, for descriptors of every kind that can be waited for.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::UnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks, kind, nap, runtime, until};
use fibra_io::Pollable;
use fibra_runtime::{Runtime, yield_now};

/// A pipe with non-blocking ends.
fn pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    for fd in [reader.as_raw_fd(), writer.as_raw_fd()] {
        // SAFETY: the descriptor is open, and the call touches no memory of ours.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    }
    (reader, writer)
}

fn read_byte(reader: &Pollable<PipeReader>) -> u8 {
    let mut byte = [0];
    assert_eq!(reader.read_with(|mut pipe| pipe.read(&mut byte)).unwrap(), 1);
    byte[0]
}

/// Never called: what may go to other tasks and be shared by them.
fn _promises() {
    fn is_shared<T: Send + Sync + UnwindSafe + 'static>() {}
    is_shared::<Pollable<OwnedFd>>();
}

#[test]
fn a_reader_waits_for_what_is_written_later() {
    everywhere(|| {
        let (reader, mut writer) = pipe();
        let reader = Pollable::new(reader).unwrap();
        let other = beside(move || {
            nap(5);
            writer.write_all(&[7]).unwrap();
            writer
        });
        reader.wait_readable().unwrap();
        assert_eq!(read_byte(&reader), 7);
        drop(other.join());
        reader.wait_readable().unwrap();
        assert_eq!(reader.read_with(|mut pipe| pipe.read(&mut [0])).unwrap(), 0, "the end");
    });
}

#[test]
fn a_writer_waits_for_room() {
    const LEN: usize = 1 << 20;
    everywhere(|| {
        let (reader, writer) = pipe();
        let (reader, writer) = (Pollable::new(reader).unwrap(), Pollable::new(writer).unwrap());
        let other = beside(move || {
            let mut sent = 0;
            while sent < LEN {
                sent += writer.write_with(|mut pipe| pipe.write(&vec![1; LEN - sent])).unwrap();
            }
        });
        let mut received = 0;
        let mut buf = vec![0; 10_000];
        while let n @ 1.. = reader.read_with(|mut pipe| pipe.read(&mut buf)).unwrap() {
            received += n;
        }
        other.join();
        assert_eq!(received, LEN);
    });
}

/// A wait asks the kernel, so it does not matter what was done with the descriptor behind our back.
#[test]
fn stream_with_unread_bytes_is_still_readable() {
    everywhere(|| {
        let (reader, mut writer) = pipe();
        let reader = Pollable::new(reader).unwrap();
        assert!(!reader.wait_readable_timeout(Duration::from_millis(1)).unwrap());
        writer.write_all(&[1, 2, 3]).unwrap();
        for byte in 1..=3 {
            reader.wait_readable().unwrap();
            reader.wait_readable().unwrap();
            let mut buf = [0];
            assert_eq!(reader.inner().read(&mut buf).unwrap(), 1);
            assert_eq!(buf, [byte]);
        }
        assert!(!reader.wait_readable_timeout(Duration::from_millis(1)).unwrap());
    });
}

#[test]
fn a_wait_with_a_time_ends_with_it() {
    everywhere(|| {
        let (reader, mut writer) = pipe();
        let reader = Pollable::new(reader).unwrap();
        let begin = Instant::now();
        assert!(!reader.wait_readable_timeout(Duration::from_millis(5)).unwrap());
        assert!(begin.elapsed() >= Duration::from_millis(5));
        assert!(!reader.wait_readable_deadline(begin).unwrap());
        while writer.write(&[0; 4096]).is_ok() {}
        let writer = Pollable::new(writer).unwrap();
        assert!(!writer.wait_writable_timeout(Duration::from_millis(5)).unwrap());
        assert!(!writer.wait_writable_deadline(begin).unwrap());
        assert!(reader.wait_readable_timeout(Duration::MAX).unwrap());
        assert!(reader.wait_readable_deadline(begin).unwrap(), "what is there needs no time");
        while reader.inner().read(&mut [0; 4096]).is_ok() {}
        assert!(writer.wait_writable_timeout(Duration::MAX).unwrap());
    });
}

#[test]
fn many_wait_for_one_descriptor_and_all_are_woken() {
    everywhere(|| {
        let (reader, mut writer) = pipe();
        let reader = Arc::new(Pollable::new(reader).unwrap());
        let about = Arc::new(AtomicUsize::new(0));
        let waiters: Vec<_> = (0..20)
            .map(|_| {
                let (reader, about) = (Arc::clone(&reader), Arc::clone(&about));
                beside(move || {
                    about.fetch_add(1, Ordering::SeqCst);
                    reader.wait_readable().unwrap();
                })
            })
            .collect();
        until(|| about.load(Ordering::SeqCst) == 20);
        writer.write_all(&[1]).unwrap();
        waiters.into_iter().for_each(|waiter| waiter.join());
    });
}

/// Each byte is taken by one of them; the others find nothing and wait again.
#[test]
fn many_read_from_one_descriptor_and_nothing_is_lost() {
    everywhere(|| {
        let (reader, mut writer) = pipe();
        let reader = Arc::new(Pollable::new(reader).unwrap());
        let readers: Vec<_> = (0..8)
            .map(|_| {
                let reader = Arc::clone(&reader);
                beside(move || {
                    let mut sum = 0;
                    loop {
                        match read_byte(&reader) {
                            0 => return sum,
                            byte => sum += usize::from(byte),
                        }
                    }
                })
            })
            .collect();
        for _ in 0..500 {
            writer.write_all(&[1, 2]).unwrap();
            yield_now();
        }
        writer.write_all(&[0; 8]).unwrap();
        assert_eq!(readers.into_iter().map(|reader| reader.join()).sum::<usize>(), 1500);
    });
}

/// The two share an open file, which one epoll instance takes once for each number only.
#[test]
fn one_descriptor_may_be_made_awaitable_by_several() {
    everywhere(|| {
        let (theirs, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let first = Pollable::new(&ours).unwrap();
        let second = Pollable::new(&ours).unwrap();
        for pollable in [&first, &second] {
            assert!(!pollable.wait_readable_timeout(Duration::from_millis(1)).unwrap());
        }
        (&theirs).write_all(&[1]).unwrap();
        first.wait_readable().unwrap();
        drop(first);
        second.wait_readable().unwrap();
    });
}

#[test]
fn a_socket_of_ours_may_be_made_awaitable_too() {
    everywhere(|| {
        let (mut client, server) = crate::common::pair();
        let waiting = beside(move || {
            Pollable::new(&server).unwrap().wait_readable().unwrap();
            let mut buf = [0];
            (&server).read_exact(&mut buf).unwrap();
            buf[0]
        });
        nap(2);
        client.write_all(&[9]).unwrap();
        assert_eq!(waiting.join(), 9);
    });
}

#[test]
fn descriptor_that_cannot_be_polled_is_refused() {
    everywhere(|| {
        for path in ["/proc/self/exe", "/", "/dev/null"] {
            let file = File::open(path).unwrap();
            assert_eq!(kind(Pollable::new(file).map(drop)), ErrorKind::InvalidInput, "{path}");
        }
    });
}

/// Safe code may do this; it must come to nothing worse than an error.
#[test]
fn a_value_is_refused_after_its_descriptor_changed() {
    struct Fickle {
        streams: [UnixStream; 2],
        looks: Cell<usize>,
    }
    impl AsFd for Fickle {
        fn as_fd(&self) -> BorrowedFd<'_> {
            let look = self.looks.get();
            self.looks.set(look + 1);
            self.streams[usize::from(look >= 2)].as_fd()
        }
    }
    everywhere(|| {
        let (one, other) = UnixStream::pair().unwrap();
        let fickle = Pollable::new(Fickle { streams: [one, other], looks: Cell::new(0) }).unwrap();
        assert_eq!(kind(fickle.wait_readable()), ErrorKind::InvalidInput);
        assert_eq!(
            kind(fickle.read_with(|_| Err::<(), _>(ErrorKind::WouldBlock.into()))),
            ErrorKind::InvalidInput
        );
    });
}

/// It closes its descriptor while it is awaited, and its number goes to another owner, which must
/// not be disturbed.
#[test]
fn a_value_that_closes_its_descriptor_disturbs_no_other_owner() {
    struct Closes(std::sync::Mutex<Option<UnixStream>>, RawFd, &'static File);
    impl AsFd for Closes {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match &*self.0.lock().unwrap() {
                // SAFETY: the test below closes the stream while there is no such borrow.
                Some(_) => unsafe { BorrowedFd::borrow_raw(self.1) },
                None => self.2.as_fd(),
            }
        }
    }
    let null: &'static File = Box::leak(Box::new(File::open("/dev/null").unwrap()));
    in_tasks(|| {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let number = ours.as_raw_fd();
        let closes = Pollable::new(Closes(std::sync::Mutex::new(Some(ours)), number, null)).unwrap();
        assert!(!closes.wait_readable_timeout(Duration::from_millis(1)).unwrap());
        drop(closes.inner().0.lock().unwrap().take());
        // Another test beside this one may be faster to take the number; then this shows less.
        let (mut client, server) = crate::common::pair();
        let server = Arc::new(server);
        let reader = {
            let server = Arc::clone(&server);
            beside(move || (&*server).read(&mut [0; 4]).unwrap())
        };
        nap(5);
        assert_eq!(kind(closes.wait_readable()), ErrorKind::InvalidInput);
        drop(closes);
        client.write_all(&[1, 2]).unwrap();
        assert_eq!(reader.join(), 2);
        drop(theirs);
    });
}

/// One worker: were it blocked, or spun on, the other task could not run.
#[test]
fn a_call_that_never_gets_through_lets_the_others_run_and_can_be_cancelled() {
    guarded(|| {
        runtime(1).run(|| {
            let (reader, mut writer) = pipe();
            writer.write_all(&[1]).unwrap();
            let stubborn = fibra_runtime::spawn(move || {
                let reader = Pollable::new(reader).unwrap();
                reader.read_with(|_| Err::<(), _>(ErrorKind::WouldBlock.into()))
            });
            let ran = fibra_runtime::spawn(|| true);
            assert!(ran.join().unwrap());
            stubborn.cancel();
            assert!(stubborn.join().unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn a_wait_is_a_cancellation_point_and_leaves_the_others_waiting() {
    guarded(|| {
        for workers in [1, 2, 4] {
            runtime(workers).run(|| {
                let (reader, mut writer) = pipe();
                let reader = Arc::new(Pollable::new(reader).unwrap());
                let [first, second] = [(); 2].map(|()| {
                    let reader = Arc::clone(&reader);
                    fibra_runtime::spawn(move || reader.wait_readable().unwrap())
                });
                yield_now();
                first.cancel();
                assert!(first.join().unwrap_err().is_cancelled());
                assert!(fibra_runtime::timeout(Duration::from_millis(1), || reader.wait_readable()).is_err());
                writer.write_all(&[1]).unwrap();
                second.join().unwrap();
            });
        }
    });
}

/// No duplicate of the descriptor stays.
#[test]
fn a_dropped_pollable_closes_what_it_holds() {
    everywhere(|| {
        let (reader, writer) = pipe();
        let reader = Pollable::new(reader).unwrap();
        assert!(!reader.wait_readable_timeout(Duration::from_millis(1)).unwrap());
        drop(reader);
        wait_for_a_broken_pipe(writer);
    });
}

#[test]
fn stream_taken_out_is_whole_and_awaited_no_more() {
    everywhere(|| {
        let (reader, mut writer) = pipe();
        let reader = Pollable::new(reader).unwrap();
        assert!(!reader.wait_readable_timeout(Duration::from_millis(1)).unwrap());
        let number = reader.as_raw_fd();
        let mut reader = reader.into_inner();
        assert_eq!(reader.as_raw_fd(), number);
        writer.write_all(&[1]).unwrap();
        reader.read_exact(&mut [0]).unwrap();
        drop(reader);
        wait_for_a_broken_pipe(writer);
    });
}

/// Waits until no descriptor reads from the pipe. A child that another test starts has all of them until it executes its
/// program.
fn wait_for_a_broken_pipe(mut writer: impl Write) {
    until(|| writer.write(&[1]).is_err_and(|error| error.kind() == ErrorKind::BrokenPipe));
}

#[cfg(target_os = "linux")]
#[test]
fn an_eventfd_is_awaited() {
    everywhere(|| {
        // SAFETY: two integers go in.
        let number = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        assert!(number >= 0);
        // SAFETY: it is new, and has no other owner.
        let event = Arc::new(Pollable::new(File::from(unsafe { OwnedFd::from_raw_fd(number) })).unwrap());
        let other = {
            let event = Arc::clone(&event);
            beside(move || {
                for round in 1..=100_u64 {
                    event.write_with(|mut event| event.write(&round.to_ne_bytes())).unwrap();
                    yield_now();
                }
            })
        };
        let mut sum = 0;
        while sum < 5050 {
            let mut count = [0; 8];
            assert_eq!(event.read_with(|mut event| event.read(&mut count)).unwrap(), 8);
            sum += u64::from_ne_bytes(count);
        }
        other.join();
        assert_eq!(sum, 5050);
    });
}

#[test]
fn a_runtime_without_the_driver_waits_on_the_pool() {
    guarded(|| {
        Runtime::builder().workers(1).build().unwrap().run(|| {
            let (reader, mut writer) = pipe();
            let reader = Pollable::new(reader).unwrap();
            assert!(!reader.wait_readable_timeout(Duration::from_millis(1)).unwrap());
            let other = beside(move || writer.write_all(&[3]).unwrap());
            assert_eq!(read_byte(&reader), 3);
            other.join();
        });
    });
}

/// Registered with the first runtime, which ends; the second one gets its events.
#[test]
fn a_pollable_outlives_its_runtime() {
    guarded(|| {
        let (reader, mut writer) = pipe();
        let reader = Pollable::new(reader).unwrap();
        for round in 0..3 {
            runtime(1).run(|| {
                assert!(!reader.wait_readable_timeout(Duration::from_millis(1)).unwrap());
                writer.write_all(&[round]).unwrap();
                assert_eq!(read_byte(&reader), round);
            });
        }
    });
}

#[test]
fn an_error_of_the_call_ends_it() {
    everywhere(|| {
        let (reader, _writer) = pipe();
        let reader = Pollable::new(reader).unwrap();
        let interrupted = AtomicBool::new(false);
        let outcome = reader.read_with(|_| match interrupted.swap(true, Ordering::SeqCst) {
            false => Err::<(), _>(ErrorKind::Interrupted.into()),
            true => Err(ErrorKind::InvalidData.into()),
        });
        assert_eq!(kind(outcome), ErrorKind::InvalidData);
    });
}
