//! Copies: of one stream into another, of a file by the kernel, of two streams both ways.

use std::io::{self, BufRead, BufReader, BufWriter, Cursor, ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::sides::{Side, beside, guarded};
use crate::common::{everywhere, in_tasks, kind, nap, pair, pattern, read_all, runtime};
use fibra_io::fs::{self, File};
use fibra_io::io::{PipeReader, PipeWriter, copy, pipe};
use fibra_io::net::{TcpStream, UnixStream};
use fibra_io::process::{ChildStdin, ChildStdout, Command, Stdio};
use fibra_runtime::{spawn, timeout};

/// More than sockets and their buffers hold.
const MUCH: usize = 12 << 20;
/// Bytes that a copy keeps in its buffer at most.
const LARGEST_BUFFER: usize = 64 << 10;
/// A time after which what has not come will not come.
const SHORT: Duration = Duration::from_millis(30);

/// A path of a test's own; what is there is removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("fibra-copy-{}-{number}", std::process::id())))
    }

    /// A file with these contents, open for reading and writing.
    fn file(contents: &[u8]) -> (Scratch, File) {
        let scratch = Scratch::new();
        std::fs::write(&scratch.0, contents).unwrap();
        let file = File::options().read(true).write(true).open(&scratch.0).unwrap();
        (scratch, file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_copy_carries_all() {
    everywhere(|| {
        for len in [0, 1, 8191, 8192, 8193, 1_000_000] {
            let mut copied = Vec::new();
            assert_eq!(copy(&mut Cursor::new(pattern(len)), &mut copied).unwrap(), len as u64);
            assert!(copied == pattern(len));
        }
    });
}

#[test]
fn a_copy_passes_over_interruptions_and_tells_errors() {
    struct Tired(u8);
    impl Read for Tired {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(ErrorKind::Interrupted.into()),
                2 => Ok(buf.len().min(3)),
                _ => Err(ErrorKind::ConnectionReset.into()),
            }
        }
    }
    let mut copied = Vec::new();
    assert_eq!(kind(copy(&mut Tired(0), &mut copied)), ErrorKind::ConnectionReset);
    assert_eq!(copied.len(), 3);
    assert_eq!(kind(copy(&mut &b"abc"[..], &mut &mut [0; 2][..])), ErrorKind::WriteZero);
}

#[test]
fn a_file_goes_through_a_socket_into_a_file() {
    everywhere(|| {
        let (_one, mut from) = Scratch::file(&pattern(1 << 20));
        let (_other, mut to) = Scratch::file(b"");
        let (mut client, mut server) = pair();
        let sender = beside(move || {
            assert_eq!(copy(&mut from, &mut client).unwrap(), 1 << 20);
        });
        assert_eq!(copy(&mut server, &mut to).unwrap(), 1 << 20);
        sender.join();
        to.rewind().unwrap();
        let mut read = Vec::new();
        to.read_to_end(&mut read).unwrap();
        assert!(read == pattern(1 << 20));
    });
}

#[test]
fn the_kernel_copies_what_is_left_of_a_file() {
    everywhere(|| {
        let (_one, mut from) = Scratch::file(&pattern(MUCH));
        let (_other, mut to) = Scratch::file(b"begin");
        from.seek(SeekFrom::Start(100)).unwrap();
        to.seek(SeekFrom::End(0)).unwrap();
        assert_eq!(from.copy_to(&to).unwrap(), MUCH as u64 - 100);
        assert_eq!(from.stream_position().unwrap(), MUCH as u64);
        assert_eq!(from.copy_to(&to).unwrap(), 0);
        to.rewind().unwrap();
        let mut read = Vec::new();
        to.read_to_end(&mut read).unwrap();
        assert!(read[..5] == *b"begin" && read[5..] == pattern(MUCH)[100..]);
    });
}

#[test]
fn the_kernel_sends_a_file_to_a_slow_reader() {
    everywhere(|| {
        let (_scratch, mut file) = Scratch::file(&pattern(MUCH));
        file.seek(SeekFrom::Start(7)).unwrap();
        let (client, server) = pair();
        let reader = beside(move || {
            nap(5);
            read_all(client)
        });
        assert_eq!(file.copy_to(&server).unwrap(), MUCH as u64 - 7);
        assert!(!socket2::SockRef::from(&server).nonblocking().unwrap());
        drop(server);
        assert!(reader.join() == pattern(MUCH)[7..]);
    });
}

#[test]
fn bytes_copied_into_a_socket_stay_unchanged() {
    everywhere(|| {
        let (_scratch, mut file) = Scratch::file(&pattern(50_000));
        let (mut here, mut there) = UnixStream::pair().unwrap();
        assert_eq!(copy(&mut file, &mut here).unwrap(), 50_000);
        file.write_all_at(&[0xff; 50_000], 0).unwrap();
        drop(here);
        let mut read = Vec::new();
        there.read_to_end(&mut read).unwrap();
        assert!(read == pattern(50_000));
    });
}

#[test]
fn the_kernel_sends_a_file_into_a_unix_socket() {
    everywhere(|| {
        let (_scratch, file) = Scratch::file(&pattern(MUCH));
        let (here, mut there) = UnixStream::pair().unwrap();
        let reader = beside(move || {
            let mut all = Vec::new();
            there.read_to_end(&mut all).unwrap();
            all
        });
        assert_eq!(file.copy_to(&here).unwrap(), MUCH as u64);
        drop(here);
        assert!(reader.join() == pattern(MUCH));
    });
}

#[test]
fn copy_works_where_the_kernel_does_not_copy() {
    everywhere(|| {
        let (scratch, appended) = Scratch::file(b"one ");
        drop(appended);
        let appended = File::options().append(true).open(&scratch.0).unwrap();
        let (_other, two) = Scratch::file(b"two");
        assert_eq!(two.copy_to(&appended).unwrap(), 3);
        assert_eq!(fs::read(&scratch.0).unwrap(), b"one two");
        let (_third, status) = Scratch::file(b"");
        let copied = File::open("/proc/self/status").unwrap().copy_to(&status).unwrap();
        assert!(copied > 0);
        let mut name = [0; 5];
        status.read_exact_at(&mut name, 0).unwrap();
        assert_eq!(&name, b"Name:");
    });
}

#[test]
fn an_end_of_the_reader_is_an_error_of_the_sender() {
    everywhere(|| {
        let (_scratch, file) = Scratch::file(&pattern(MUCH));
        let (client, server) = pair();
        drop(client);
        let error = kind(file.copy_to(&server));
        assert!(matches!(error, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error:?}");
    });
}

#[test]
fn a_file_that_is_sent_heeds_the_write_timeout() {
    everywhere(|| {
        let (_scratch, file) = Scratch::file(&pattern(MUCH));
        let (_client, server) = pair();
        server.set_write_timeout(Some(SHORT)).unwrap();
        assert_eq!(kind(file.copy_to(&server)), ErrorKind::WouldBlock);
        assert!(!socket2::SockRef::from(&server).nonblocking().unwrap());
    });
}

#[test]
fn a_file_that_is_sent_can_be_cut_short() {
    in_tasks(|| {
        let (_scratch, mut file) = Scratch::file(&pattern(MUCH));
        let (client, server) = pair();
        assert!(timeout(SHORT, || file.copy_to(&server)).is_err());
        let read = file.stream_position().unwrap();
        assert!(read < MUCH as u64);
        assert!(!socket2::SockRef::from(&server).nonblocking().unwrap());
        drop(server);
        // What was in the buffer is lost.
        let sent = read_all(client);
        assert!(sent.len() as u64 <= read && sent == pattern(MUCH)[..sent.len()]);
    });
}

// ---- between descriptors of all kinds ----

/// Both ends of a copy of `MUCH` bytes, with those beside it that fill the one and empty the other.
macro_rules! carries {
    ($name:ident: $source:expr => $sink:expr) => {
        #[test]
        fn $name() {
            everywhere(|| {
                let ((mut from, feeder), (mut to, eater)) = ($source(), $sink());
                assert_eq!(copy(&mut from, &mut to).unwrap(), MUCH as u64);
                drop(to);
                assert!(eater() == pattern(MUCH));
                drop(from);
                feeder.join();
            });
        }
    };
}

carries!(from_file_to_file: a_file => a_new_file);
carries!(from_file_to_tcp: a_file => a_tcp_writer);
carries!(from_file_to_unix: a_file => a_unix_writer);
carries!(from_file_to_pipe: a_file => a_pipe_writer);
carries!(from_file_to_child: a_file => a_child_that_reads);
carries!(from_tcp_to_file: a_tcp_reader => a_new_file);
carries!(from_tcp_to_tcp: a_tcp_reader => a_tcp_writer);
carries!(from_tcp_to_pipe: a_tcp_reader => a_pipe_writer);
carries!(from_unix_to_pipe: a_unix_reader => a_pipe_writer);
carries!(from_unix_to_child: a_unix_reader => a_child_that_reads);
carries!(from_pipe_to_file: a_pipe_reader => a_new_file);
carries!(from_pipe_to_tcp: a_pipe_reader => a_tcp_writer);
carries!(from_pipe_to_unix: a_pipe_reader => a_unix_writer);
carries!(from_pipe_to_pipe: a_pipe_reader => a_pipe_writer);
carries!(from_child_to_file: a_child_that_writes => a_new_file);
carries!(from_child_to_tcp: a_child_that_writes => a_tcp_writer);
carries!(from_child_to_child: a_child_that_writes => a_child_that_reads);

/// Writes in pieces of many sizes, with a rest now and then, so that the reader waits too.
fn feed<W: Write + Send + 'static>(mut stream: W) -> Side<()> {
    beside(move || {
        let all = pattern(MUCH);
        let (mut rest, mut len) = (&all[..], 1);
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(len.min(rest.len()));
            stream.write_all(piece).unwrap();
            (rest, len) = (others, (2 * len + 1) % 700_001);
            if len < 100 {
                nap(1);
            }
        }
    })
}

/// Reads all beside, and gives it when it is asked for.
fn eat<R: Read + Send + 'static>(mut stream: R) -> impl FnOnce() -> Vec<u8> {
    let eater = beside(move || {
        nap(3);
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    move || eater.join()
}

fn a_file() -> (File, Side<()>) {
    let (_scratch, file) = Scratch::file(&pattern(MUCH));
    (file, beside(|| ()))
}

fn a_new_file() -> (File, impl FnOnce() -> Vec<u8>) {
    let (_scratch, file) = Scratch::file(b"");
    let mut clone = file.try_clone().unwrap();
    let eater = move || {
        let mut all = Vec::new();
        clone.rewind().unwrap();
        clone.read_to_end(&mut all).unwrap();
        all
    };
    (file, eater)
}

fn a_tcp_reader() -> (TcpStream, Side<()>) {
    let (client, server) = pair();
    (client, feed(server))
}

fn a_tcp_writer() -> (TcpStream, impl FnOnce() -> Vec<u8>) {
    let (client, server) = pair();
    (client, eat(server))
}

fn a_unix_reader() -> (UnixStream, Side<()>) {
    let (here, there) = UnixStream::pair().unwrap();
    (here, feed(there))
}

fn a_unix_writer() -> (UnixStream, impl FnOnce() -> Vec<u8>) {
    let (here, there) = UnixStream::pair().unwrap();
    (here, eat(there))
}

fn a_pipe_reader() -> (PipeReader, Side<()>) {
    let (reader, writer) = pipe().unwrap();
    (reader, feed(writer))
}

fn a_pipe_writer() -> (PipeWriter, impl FnOnce() -> Vec<u8>) {
    let (reader, writer) = pipe().unwrap();
    (writer, eat(reader))
}

fn cat() -> (ChildStdin, ChildStdout) {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    (child.stdin.take().unwrap(), child.stdout.take().unwrap())
}

fn a_child_that_writes() -> (ChildStdout, Side<()>) {
    let (stdin, stdout) = cat();
    (stdout, feed(stdin))
}

fn a_child_that_reads() -> (ChildStdin, impl FnOnce() -> Vec<u8>) {
    let (stdin, stdout) = cat();
    (stdin, eat(stdout))
}

#[test]
fn nothing_is_copied_from_what_has_ended_already() {
    everywhere(|| {
        let (_, nothing) = Scratch::file(b"");
        let (mut reader, _) = pipe().unwrap();
        let ((mut tcp, _), (here, there)) = (pair(), UnixStream::pair().unwrap());
        drop(there);
        let (_rest, mut writer) = pipe().unwrap();
        let mut file = &nothing;
        assert_eq!(copy(&mut file, &mut writer).unwrap(), 0);
        assert_eq!(copy(&mut reader, &mut writer).unwrap(), 0);
        assert_eq!(copy(&mut reader, &mut file).unwrap(), 0);
        assert_eq!(copy(&mut tcp, &mut writer).unwrap(), 0);
        assert_eq!(copy(&mut &here, &mut writer).unwrap(), 0);
    });
}

#[test]
fn a_limit_is_kept_and_what_was_read_ahead_is_not_lost() {
    everywhere(|| {
        let (mut reader, mut writer) = pipe().unwrap();
        writer.write_all(b"first line\nsecond line\nthird line\n").unwrap();
        let (mut tcp, mut other) = pair();
        let mut lines = BufReader::with_capacity(16, &mut reader);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let mut second = lines.by_ref().take(12);
        assert_eq!(copy(&mut second, &mut BufWriter::new(&tcp)).unwrap(), 12);
        assert_eq!(second.limit(), 0);
        drop(writer);
        assert_eq!(copy(&mut lines, &mut tcp).unwrap(), 11);
        drop(tcp);
        let mut rest = String::new();
        other.read_to_string(&mut rest).unwrap();
        assert_eq!((line.as_str(), rest.as_str()), ("first line\n", "second line\nthird line\n"));
    });
}

#[test]
fn copy_refused_by_the_kernel_goes_through_the_buffer() {
    everywhere(|| {
        let (scratch, _) = Scratch::file(b"one ");
        let mut appended = File::options().append(true).open(&scratch.0).unwrap();
        let (mut reader, mut writer) = pipe().unwrap();
        writer.write_all(b"two ").unwrap();
        drop(writer);
        assert_eq!(copy(&mut reader, &mut appended).unwrap(), 4);
        let (_, three) = Scratch::file(b"three");
        assert_eq!(copy(&mut &three, &mut appended).unwrap(), 5);
        assert_eq!(fs::read(&scratch.0).unwrap(), b"one two three");
        // Their length is said to be zero.
        let (tcp, other) = pair();
        let mut status = File::open("/proc/self/status").unwrap();
        let sent = copy(&mut status, &mut &tcp).unwrap();
        drop(tcp);
        let status = read_all(other);
        assert!(status.starts_with(b"Name:") && status.len() as u64 == sent);
        let mut zeroes = File::open("/dev/zero").unwrap().take(100_000);
        assert_eq!(
            copy(&mut zeroes, &mut File::options().write(true).open("/dev/null").unwrap()).unwrap(),
            100_000
        );
    });
}

#[test]
fn a_file_of_another_file_system_is_copied() {
    everywhere(|| {
        // Where there is one.
        let path = PathBuf::from(format!("/dev/shm/fibra-copy-{}", std::process::id()));
        if std::fs::write(&path, pattern(MUCH)).is_err() {
            return;
        }
        let scratch = Scratch(path);
        let (mut to, eater) = a_new_file();
        assert_eq!(copy(&mut File::open(&scratch.0).unwrap(), &mut to).unwrap(), MUCH as u64);
        assert!(eater() == pattern(MUCH));
    });
}

#[test]
fn a_reader_that_goes_away_is_told_whatever_is_copied() {
    everywhere(|| {
        let broken = |error| matches!(error, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        let (mut from, feeder) = a_file();
        let (reader, mut writer) = pipe().unwrap();
        drop(reader);
        assert!(broken(kind(copy(&mut from, &mut writer))));
        feeder.join();
        let (mut reader, mut source) = pipe().unwrap();
        source.write_all(b"x").unwrap();
        assert!(broken(kind(copy(&mut reader, &mut writer))));
        let ((mut tcp, other), (mut reader, source)) = (pair(), pipe().unwrap());
        let gone = beside(move || {
            (&other).read_exact(&mut [0; 1000]).unwrap();
            other.set_linger(Some(Duration::ZERO)).unwrap();
        });
        let feeder = beside(move || while (&source).write(&[1; 1000]).is_ok() {});
        assert!(broken(kind(copy(&mut reader, &mut tcp))));
        drop(reader);
        gone.join();
        feeder.join();
    });
}

#[test]
fn a_copy_from_a_peer_that_resets_fails() {
    everywhere(|| {
        let ((mut tcp, other), (_reader, mut writer)) = (pair(), pipe().unwrap());
        let peer = beside(move || {
            (&other).write_all(b"x").unwrap();
            nap(3);
            other.set_linger(Some(Duration::ZERO)).unwrap();
        });
        assert_eq!(kind(copy(&mut tcp, &mut writer)), ErrorKind::ConnectionReset);
        peer.join();
    });
}

/// A cut loses what is in the buffer, and nothing else.
#[test]
fn a_copy_that_is_cut_short_loses_its_buffer_at_most() {
    in_tasks(|| {
        let ((mut reader, feeder), (mut tcp, eater)) = (a_pipe_reader(), a_tcp_writer());
        let mut cuts = 0;
        while timeout(Duration::from_micros(300), || copy(&mut reader, &mut tcp).unwrap()).is_err() {
            cuts += 1;
        }
        drop(tcp);
        let arrived = eater();
        assert!(arrived.len() <= MUCH && MUCH - arrived.len() <= cuts * LARGEST_BUFFER);
        // In the pattern each byte follows from the one before.
        let gaps = arrived.windows(2).filter(|pair| pair[1] != pattern_after(pair[0])).count();
        assert!(gaps <= cuts);
        assert!(cuts > 0);
        feeder.join();
    });
}

fn pattern_after(byte: u8) -> u8 {
    ((u16::from(byte) + 31) % 251) as u8
}

#[test]
fn a_copy_that_waits_can_be_cancelled() {
    in_tasks(|| {
        // For the reading end.
        let (reader, mut source) = pipe().unwrap();
        let (mut here, mut there) = UnixStream::pair().unwrap();
        source.write_all(b"12345").unwrap();
        let mut limited = reader.take(100);
        // On a busy machine the time may be over before the copy begins.
        while limited.limit() > 95 {
            assert!(timeout(SHORT, || copy(&mut limited, &mut here)).is_err());
        }
        assert_eq!(limited.limit(), 95);
        there.read_exact(&mut [0; 5]).unwrap();
        // For the writing end.
        let ((reader, mut source), (stuck, mut full)) = (pipe().unwrap(), pair());
        let feeder = beside(move || source.write_all(&pattern(MUCH)).is_err());
        let mut limited = reader.take(MUCH as u64);
        assert!(timeout(SHORT, || copy(&mut limited, &mut full)).is_err());
        drop(full);
        // What was in the buffer is lost.
        assert!(read_all(stuck).len() as u64 <= MUCH as u64 - limited.limit());
        drop(limited);
        assert!(feeder.join());
    });
}

#[test]
fn a_copy_holds_up_no_worker() {
    guarded(|| {
        runtime(1).run(|| {
            let (mut reader, source) = pipe().unwrap();
            let (mut tcp, mut other) = pair();
            let copier = spawn(move || copy(&mut reader, &mut tcp).unwrap());
            // The one worker has to run both, turn by turn.
            for i in 0..100 {
                (&source).write_all(&[i]).unwrap();
                let mut byte = [0];
                other.read_exact(&mut byte).unwrap();
                assert_eq!(byte, [i]);
            }
            drop(source);
            assert_eq!(copier.join().unwrap(), 100);
        });
    });
}

#[test]
fn timeouts_and_modes_hold_where_the_kernel_copies() {
    everywhere(|| {
        let ((mut tcp, _other), (_reader, mut writer)) = (pair(), pipe().unwrap());
        tcp.set_read_timeout(Some(SHORT)).unwrap();
        assert_eq!(kind(copy(&mut tcp, &mut writer)), ErrorKind::WouldBlock);
        tcp.set_read_timeout(None).unwrap();
        tcp.set_nonblocking(true).unwrap();
        assert_eq!(kind(copy(&mut tcp, &mut writer)), ErrorKind::WouldBlock);
        assert!(is_nonblocking(&tcp));
        let (mut reader, mut source) = pipe().unwrap();
        source.write_all(&[1; 10]).unwrap();
        drop(source);
        assert_eq!(copy(&mut reader, &mut tcp).unwrap(), 10);
    });
}

fn is_nonblocking(stream: &TcpStream) -> bool {
    socket2::SockRef::from(stream).nonblocking().unwrap()
}

#[test]
fn a_stream_made_of_a_duplicate_during_a_copy_waits() {
    in_tasks(|| {
        let (_scratch, file) = Scratch::file(&pattern(MUCH));
        let (client, server) = pair();
        let duplicate = server.as_fd().try_clone_to_owned().unwrap();
        let copier = spawn(move || file.copy_to(&server).map(drop));
        // The copy is under way, and has more than fits.
        (&client).read_exact(&mut [0]).unwrap();
        let mut made = TcpStream::from(duplicate);
        copier.cancel();
        assert!(copier.join().unwrap_err().is_cancelled());
        assert!(!is_nonblocking(&made));
        let writer = beside(move || {
            nap(5);
            (&client).write_all(&[7]).unwrap();
        });
        let mut byte = [0];
        made.read_exact(&mut byte).unwrap();
        writer.join();
        assert_eq!(byte, [7]);
    });
}

#[test]
fn several_copies_into_one_socket_carry_all_and_can_be_cut_short() {
    in_tasks(|| {
        let (client, server) = pair();
        let server = Arc::new(server);
        let copiers: Vec<_> = (1..=6)
            .map(|part| {
                let server = Arc::clone(&server);
                spawn(move || {
                    let (_scratch, file) = Scratch::file(&pattern(MUCH / 6 / part));
                    file.copy_to(&*server).unwrap()
                })
            })
            .collect();
        let reader = beside(move || read_all(client).len() as u64);
        let sent: u64 = copiers.into_iter().map(|copier| copier.join().unwrap()).sum();
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(reader.join(), sent);
        assert!(!is_nonblocking(&server));

        let (client, server) = pair();
        let (_one, much) = Scratch::file(&pattern(MUCH));
        let clone = server.try_clone().unwrap();
        let copier = spawn(move || much.copy_to(&clone).map(drop));
        (&client).read_exact(&mut [0]).unwrap();
        assert!(!is_nonblocking(&server), "a copy leaves the mode of the descriptor alone");
        copier.cancel();
        assert!(copier.join().unwrap_err().is_cancelled());
    });
}
