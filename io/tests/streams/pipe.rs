//! Anonymous pipes keep the promises of std's, in plain threads and in tasks.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks, kind, nap, pattern, runtime, until};
use crate::folder::Folder;
use fibra_io::io::{PipeReader, PipeWriter, pipe};
use fibra_runtime::{Runtime, spawn};
use socket2::SockRef;

// ---- std's own scenarios ----

#[test]
fn pipe_creation_clone_and_rw() {
    everywhere(|| {
        let (reader, writer) = pipe().unwrap();
        writer.try_clone().unwrap().write_all(b"12345").unwrap();
        drop(writer);
        let mut clone = reader.try_clone().unwrap();
        drop(reader);
        let mut text = String::new();
        clone.read_to_string(&mut text).unwrap();
        assert_eq!(text, "12345");
    });
}

// ---- what std's docs say beside ----

#[test]
fn a_read_waits_for_a_write() {
    everywhere(|| {
        let (mut reader, mut writer) = pipe().unwrap();
        let other = beside(move || {
            nap(5);
            writer.write_all(b"hello").unwrap();
            nap(5);
            writer.write_all(b"world").unwrap();
        });
        let mut buf = [0; 5];
        for word in [b"hello", b"world"] {
            reader.read_exact(&mut buf).unwrap();
            assert_eq!(&buf, word);
        }
        other.join();
        assert_eq!(reader.read(&mut buf).unwrap(), 0);
    });
}

#[test]
fn a_write_waits_for_room() {
    const LEN: usize = 1 << 20;
    everywhere(|| {
        let (mut reader, mut writer) = pipe().unwrap();
        let sent: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
        let expected = sent.clone();
        let other = beside(move || writer.write_all(&sent).unwrap());
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(read == expected);
        other.join();
    });
}

#[test]
fn vectored() {
    everywhere(|| {
        let (mut reader, mut writer) = pipe().unwrap();
        let bufs = [b"hello".as_slice(), b"", b" world"].map(IoSlice::new);
        assert_eq!(writer.write_vectored(&bufs).unwrap(), 11);
        let (mut one, mut other) = ([0; 6], [0; 6]);
        let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
        assert_eq!(reader.read_vectored(&mut bufs).unwrap(), 11);
        assert_eq!((&one, &other), (b"hello ", b"world\0"));
        assert_eq!(reader.read(&mut []).unwrap() + writer.write(&[]).unwrap(), 0);
        // More than the system takes at once are taken in part.
        let many = vec![IoSlice::new(b"x"); 3000];
        let n = writer.write_vectored(&many).unwrap();
        assert!(n > 0 && n < 3000, "{n}");
    });
}

#[test]
fn a_writer_that_is_dropped_wakes_the_readers() {
    everywhere(|| {
        let (reader, writer) = pipe().unwrap();
        let readers = [reader.try_clone().unwrap(), reader]
            .map(|mut reader| beside(move || reader.read(&mut [0]).unwrap()));
        nap(5);
        drop(writer);
        assert!(readers.into_iter().all(|reader| reader.join() == 0));
    });
}

#[test]
fn a_reader_that_is_dropped_wakes_the_writers() {
    everywhere(|| {
        let (reader, writer) = pipe().unwrap();
        let writers = [writer.try_clone().unwrap(), writer]
            .map(|mut writer| beside(move || kind(writer.write_all(&vec![0; 1 << 20]))));
        nap(5);
        drop(reader);
        assert!(writers.into_iter().all(|writer| writer.join() == ErrorKind::BrokenPipe));
    });
}

#[test]
fn data_and_end_that_come_before_the_first_read() {
    everywhere(|| {
        let (mut reader, mut writer) = pipe().unwrap();
        writer.write_all(b"last words").unwrap();
        drop(writer);
        let mut buf = [0; 64];
        assert_eq!(reader.read(&mut buf).unwrap(), 10);
        assert_eq!(reader.read(&mut buf).unwrap(), 0);
    });
}

/// A pipe in packet mode gives one packet for each read.
#[test]
fn packets_are_read_one_by_one() {
    everywhere(|| {
        let mut fds = [0; 2];
        // SAFETY: the array has room for the two descriptors.
        assert_eq!(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC | libc::O_DIRECT) }, 0);
        // SAFETY: the descriptors were made just now, and have no other owner.
        let (mut reader, mut writer) =
            unsafe { (PipeReader::from_raw_fd(fds[0]), PipeWriter::from_raw_fd(fds[1])) };
        let other = beside(move || {
            let mut buf = [0; 64];
            (0..3).map(|_| reader.read(&mut buf).unwrap()).collect::<Vec<_>>()
        });
        nap(5);
        (1..=3).for_each(|len| writer.write_all(&vec![7; len]).unwrap());
        assert_eq!(other.join(), [1, 2, 3]);
    });
}

#[test]
fn non_blocking_descriptor_stays_so() {
    everywhere(|| {
        let (reader, writer) = std::io::pipe().unwrap();
        SockRef::from(&reader).set_nonblocking(true).unwrap();
        let mut reader = PipeReader::from(reader);
        assert_eq!(kind(reader.read(&mut [0])), ErrorKind::WouldBlock);
        assert!(SockRef::from(&std::io::PipeReader::from(reader)).nonblocking().unwrap());
        drop(writer);
    });
}

// ---- other processes ----

#[test]
fn children_read_and_write_pipes_and_find_them_blocking() {
    everywhere(|| {
        let (child_in, mut to_child) = pipe().unwrap();
        let (mut from_child, child_out) = pipe().unwrap();
        // Waited on before they leave, so that they are registered, and clones stay here.
        let (clone_in, clone_out) = (child_in.try_clone().unwrap(), child_out.try_clone().unwrap());
        let mut cat = Command::new("cat").stdin(clone_in).stdout(clone_out).spawn().unwrap();
        drop((child_in, child_out));
        let reader = beside(move || {
            let mut text = String::new();
            from_child.read_to_string(&mut text).unwrap();
            text
        });
        nap(5);
        to_child.write_all(b"to the cat").unwrap();
        drop(to_child);
        assert_eq!(reader.join(), "to the cat");
        assert!(cat.wait().unwrap().success());
    });
}

/// The mode of what has been waited for is as std would have it, for all that share it.
#[test]
fn the_mode_of_a_pipe_that_is_in_use_stays_blocking() {
    everywhere(|| {
        let (mut reader, mut writer) = pipe().unwrap();
        let other = beside(move || {
            reader.read_exact(&mut [0; 100_000]).unwrap();
            reader
        });
        nap(5);
        writer.write_all(&[0; 100_000]).unwrap();
        let reader = other.join();
        for blocking in
            [!SockRef::from(&reader).nonblocking().unwrap(), !SockRef::from(&writer).nonblocking().unwrap()]
        {
            // Linux knows the flag for pipes since 6.4.
            assert!(blocking || kernel_is_older_than(6, 4));
        }
        assert!(!SockRef::from(&std::io::PipeReader::from(reader)).nonblocking().unwrap());
    });
}

fn kernel_is_older_than(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap()) < (major, minor)
}

fn is_nonblocking(fd: impl AsFd) -> bool {
    SockRef::from(&fd).nonblocking().unwrap()
}

/// Neither end of a terminal knows the flag that keeps a call from waiting, and other processes share the mode of both.
#[test]
fn descriptor_that_is_no_pipe_is_used_and_keeps_its_mode() {
    everywhere(|| {
        let (master, slave) = terminal();
        let shared = slave.try_clone().unwrap();
        let (mut reads, mut writes) = (PipeReader::from(slave.try_clone().unwrap()), PipeWriter::from(slave));
        let mut typist = PipeWriter::from(master);
        let other = beside(move || {
            let mut buf = [0; 64];
            let n = reads.read(&mut buf).unwrap();
            writes.write_all(b"shown\n").unwrap();
            buf[..n].to_vec()
        });
        nap(5);
        assert!(!is_nonblocking(&shared), "while a task waits");
        typist.write_all(b"typed\n").unwrap();
        assert_eq!(other.join(), b"typed\n");
        drop(typist);
        assert!(!is_nonblocking(&shared), "after all have gone");
    });
}

#[test]
fn descriptor_that_is_no_pipe_is_waited_for() {
    everywhere(|| {
        let (master, slave) = terminal();
        let mut reader = PipeReader::from(slave);
        let mut keyboard = File::from(master);
        let other = beside(move || {
            let mut buf = [0; 64];
            let n = reader.read(&mut buf).unwrap();
            (buf[..n].to_vec(), reader)
        });
        nap(5);
        keyboard.write_all(b"typed\n").unwrap();
        let (line, reader) = other.join();
        assert_eq!(line, b"typed\n");
        assert!(!SockRef::from(&OwnedFd::from(reader)).nonblocking().unwrap());
    });
}

/// The mode is that of all clones, so whichever of them leaves restores it.
#[test]
fn a_clone_that_was_not_used_leaves_in_its_own_mode() {
    everywhere(|| {
        let (master, slave) = terminal();
        let mut reader = PipeReader::from(slave);
        let clone = reader.try_clone().unwrap();
        let mut keyboard = File::from(master);
        keyboard.write_all(b"typed\n").unwrap();
        assert_eq!(reader.read(&mut [0; 64]).unwrap(), 6);
        drop(reader);
        assert!(!SockRef::from(&OwnedFd::from(clone)).nonblocking().unwrap());
    });
}

/// No task can wait for one, and yet it may not be in memory.
#[test]
fn plain_files_pass_for_pipes_as_in_std() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.file("plain");
        let bytes = pattern(1 << 20);
        let mut writer = PipeWriter::from(OwnedFd::from(File::create(&path).unwrap()));
        let other = writer.try_clone().unwrap();
        writer.write_all(&bytes[..1000]).unwrap();
        (&other).write_all(&bytes[1000..]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        // SAFETY: integers go in. Out of memory with it, if the system is so kind.
        assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
        let mut reader = PipeReader::from(OwnedFd::from(file));
        let mut first = vec![0; 1000];
        reader.read_exact(&mut first).unwrap();
        let mut rest = Vec::new();
        reader.try_clone().unwrap().read_to_end(&mut rest).unwrap();
        assert!([first, rest].concat() == bytes);
        let mut end = std::io::PipeReader::from(reader);
        assert_eq!(end.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn devices_pass_for_pipes_as_in_std() {
    everywhere(|| {
        let open = || OwnedFd::from(File::options().read(true).write(true).open("/dev/null").unwrap());
        assert_eq!(PipeReader::from(open()).read(&mut [0]).unwrap(), 0);
        assert_eq!(PipeWriter::from(open()).write(b"nothing").unwrap(), 7);
    });
}

/// A pair of terminal ends.
fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: both numbers are written, the rest is left to the system.
    let made = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptors were made just now, and have no other owner.
    unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

#[test]
fn named_pipes_are_read_and_written() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.fifo();
        // Opened for both ways, so that the open does not wait.
        let both = || File::options().read(true).write(true).open(&path).unwrap();
        let mut reader = PipeReader::from(OwnedFd::from(both()));
        let mut writer = PipeWriter::from(OwnedFd::from(both()));
        let other = beside(move || reader.read(&mut [0; 8]).unwrap());
        nap(5);
        writer.write_all(b"abc").unwrap();
        assert_eq!(other.join(), 3);
    });
}

// ---- changing hands ----

#[test]
fn pipes_change_into_std_and_back() {
    everywhere(|| {
        let (reader, writer) = pipe().unwrap();
        assert!(format!("{reader:?} {writer:?}").starts_with("PipeReader"));
        let mut reader = PipeReader::from(std::io::PipeReader::from(reader));
        let mut writer = PipeWriter::from(std::io::PipeWriter::from(writer));
        writer.write_all(&[1]).unwrap();
        reader.read_exact(&mut [0]).unwrap();
        // SAFETY: the descriptors come from `into_raw_fd`, so they are open and ours alone.
        let (mut reader, mut writer) = unsafe {
            (
                PipeReader::from_raw_fd(OwnedFd::from(reader).into_raw_fd()),
                PipeWriter::from_raw_fd(writer.into_raw_fd()),
            )
        };
        assert!(reader.as_raw_fd() != writer.as_raw_fd());
        writer.write_all(&[2]).unwrap();
        reader.read_exact(&mut [0]).unwrap();
    });
}

/// Never called: the markers and traits are what is tested.
#[expect(dead_code, reason = "it is there to be compiled")]
fn the_types_are_as_usable_as_those_of_std() {
    fn movable<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + std::fmt::Debug + 'static>() {}
    movable::<PipeReader>();
    movable::<PipeWriter>();
    fn readable<T: Read>() {}
    readable::<PipeReader>();
    readable::<&PipeReader>();
    fn writable<T: Write>() {}
    writable::<PipeWriter>();
    writable::<&PipeWriter>();
    fn given<T: Into<Stdio>>() {}
    given::<PipeReader>();
    given::<PipeWriter>();
}

// ---- tasks ----

#[test]
fn many_tasks_read_and_write_one_pipe() {
    const EACH: usize = 100;
    everywhere(|| {
        let (reader, writer) = pipe().unwrap();
        let (reader, writer) = (Arc::new(reader), Arc::new(writer));
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let writer = Arc::clone(&writer);
                beside(move || (0..EACH).for_each(|_| (&*writer).write_all(&[1; 16]).unwrap()))
            })
            .collect();
        drop(writer);
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let reader = Arc::clone(&reader);
                beside(move || {
                    let mut buf = [0; 30];
                    std::iter::from_fn(|| Some((&*reader).read(&mut buf).unwrap()).filter(|n| *n > 0))
                        .sum::<usize>()
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join());
        assert_eq!(readers.into_iter().map(|reader| reader.join()).sum::<usize>(), 8 * EACH * 16);
    });
}

/// One worker: were it blocked in a read or a write, the other task could not run.
#[test]
fn pipes_with_clones_elsewhere_do_not_stop_a_worker() {
    guarded(|| {
        runtime(1).run(|| {
            let (mut reader, mut writer) = pipe().unwrap();
            let _elsewhere = std::io::PipeReader::from(reader.try_clone().unwrap());
            let _elsewhere = std::io::PipeWriter::from(writer.try_clone().unwrap());
            let read = spawn(move || reader.read_exact(&mut vec![0; 1 << 20]).unwrap());
            writer.write_all(&vec![0; 1 << 20]).unwrap();
            read.join().unwrap();
        });
    });
}

// ---- deadlines ----

#[test]
fn a_read_and_a_write_fail_at_their_deadlines() {
    everywhere(|| {
        let (mut reader, mut writer) = pipe().unwrap();
        let deadline = Instant::now() + Duration::from_millis(40);
        reader.set_read_deadline(Some(deadline));
        writer.set_write_deadline(Some(deadline));
        assert_eq!(reader.try_clone().unwrap().read_deadline(), Some(deadline), "clones share it");
        assert_eq!(writer.try_clone().unwrap().write_deadline(), Some(deadline), "clones share it");
        let error = reader.read(&mut [0]).unwrap_err();
        assert!(Instant::now() >= deadline);
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
        // What there is room for is written, and what is there is read.
        writer.write_all(b"x").unwrap();
        reader.read_exact(&mut [0]).unwrap();
        assert_eq!(kind(writer.write_all(&vec![0; 1 << 20])), ErrorKind::WouldBlock);
        reader.set_read_deadline(None);
        writer.set_write_deadline(None);
        assert_eq!((reader.read_deadline(), writer.write_deadline()), (None, None));
        drop(writer);
        reader.read_to_end(&mut Vec::new()).unwrap();
    });
}

#[test]
fn the_streams_of_a_child_have_deadlines() {
    everywhere(|| {
        let mut child = fibra_io::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let soon = || Some(Instant::now() + Duration::from_millis(20));
        stdout.set_read_deadline(soon());
        stderr.set_read_deadline(soon());
        assert_eq!(kind(stdout.read(&mut [0])), ErrorKind::WouldBlock);
        assert_eq!(kind(stderr.read(&mut [0])), ErrorKind::WouldBlock);
        stdin.set_write_deadline(soon());
        assert_eq!(kind(stdin.write_all(&vec![0; 1 << 20])), ErrorKind::WouldBlock);
        assert!(stdin.write_deadline().is_some() && stdout.read_deadline().is_some());
        drop((stdin, stdout, stderr));
        child.wait().unwrap();
    });
}

#[test]
fn a_copy_of_a_pipe_heeds_its_deadline() {
    everywhere(|| {
        let ((mut reader, mut writer), (mut other, mut into)) = (pipe().unwrap(), pipe().unwrap());
        writer.write_all(b"some").unwrap();
        reader.set_read_deadline(Some(Instant::now() + Duration::from_millis(20)));
        assert_eq!(kind(fibra_io::io::copy(&mut reader, &mut into)), ErrorKind::WouldBlock);
        other.read_exact(&mut [0; 4]).unwrap();
    });
}

/// It never has to wait, so it keeps the deadline for its getter.
#[test]
fn a_plain_file_has_a_deadline_in_name() {
    everywhere(|| {
        let folder = Folder::new();
        let file = File::create(folder.file("plain")).unwrap();
        let mut writer = PipeWriter::from(OwnedFd::from(file));
        let past = Instant::now();
        writer.set_write_deadline(Some(past));
        assert_eq!(writer.try_clone().unwrap().write_deadline(), Some(past));
        writer.write_all(b"all the same").unwrap();
    });
}

#[test]
fn a_cancelled_reader_unwinds_and_closes_its_end() {
    in_tasks(|| {
        let (mut reader, mut writer) = pipe().unwrap();
        let reader = spawn(move || reader.read(&mut [0]).unwrap());
        nap(5);
        reader.task().cancel();
        assert!(reader.join().unwrap_err().is_cancelled());
        // A child that another test starts at this moment has it open, until it is the program that it is to be.
        until(|| writer.write(&[1]).is_err_and(|error| error.kind() == ErrorKind::BrokenPipe));
    });
}

/// One worker and no reactor: the waits go to the blocking pool, and the worker runs on.
#[test]
fn a_runtime_without_the_driver_waits_on_the_pool() {
    guarded(|| {
        Runtime::builder().workers(1).build().unwrap().run(|| {
            let (mut reader, mut writer) = pipe().unwrap();
            let read = spawn(move || reader.read_exact(&mut vec![0; 1 << 20]).unwrap());
            writer.write_all(&vec![0; 1 << 20]).unwrap();
            read.join().unwrap();
        });
    });
}
