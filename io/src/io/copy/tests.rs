//! What goes through the kernel, and by which call. That all arrives is tested in `tests/copy.rs`.

use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::behind::{behind_reader, behind_writer};
use super::kernel::{Pages, Route, Way};
use crate::fs::File;
use crate::io::{PipeReader, PipeWriter, duplex, pipe};
use crate::net::{TcpListener, TcpStream, UnixStream};

/// Less than a pipe or a socket holds.
const LITTLE: usize = 40_000;

/// A file that is gone when it is closed.
fn scratch(contents: &[u8]) -> File {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path: PathBuf = std::env::temp_dir().join(format!("fibra-kernel-{}-{number}", std::process::id()));
    fs::write(&path, contents).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn some() -> Vec<u8> {
    (0..LITTLE).map(|i| (i % 251) as u8).collect()
}

fn told<R: Read, W: Write>(reader: R, writer: W) -> &'static [Way] {
    told_of(reader, writer, Pages::Copied)
}

fn told_of<R: Read, W: Write>(reader: R, writer: W, pages: Pages) -> &'static [Way] {
    match (behind_reader(&reader), behind_writer(&writer)) {
        (Some(from), Some(to)) => Route::between(from.end(), to.end(), pages).ways,
        _ => &[],
    }
}

/// Copies with all that the kernel can.
fn by_kernel<R: Read, W: Write>(reader: &mut R, writer: &mut W) -> io::Result<u64> {
    super::by_kernel(reader, writer, Pages::Shared)
}

#[test]
fn each_pair_has_its_call() {
    let (file, other) = (scratch(b""), scratch(b""));
    let (reader, writer) = pipe().unwrap();
    let (tcp, _tcp) = pair();
    let (unix, _unix) = UnixStream::pair().unwrap();
    assert_eq!(told(&file, &other), [Way::CopyRange, Way::SendFile]);
    assert_eq!(told_of(&file, &tcp, Pages::Shared), [Way::SendFile]);
    assert_eq!(told_of(&file, &unix, Pages::Shared), [Way::SendFile]);
    for into in [told(&reader, &file), told(&reader, &tcp), told(&reader, &unix), told(&reader, &writer)] {
        assert_eq!(into, [Way::Splice]);
    }
    for from in [told(&tcp, &writer), told(&unix, &writer)] {
        assert_eq!(from, [Way::Splice]);
    }
    for none in [told(&file, &writer), told(&tcp, &unix), told(&unix, &file), told(&tcp, &file)] {
        assert_eq!(none, []);
    }
    for copied in [told(&file, &tcp), told(&file, &unix)] {
        assert_eq!(copied, []);
    }
}

#[test]
fn a_type_is_no_proof() {
    let other = scratch(b"");
    let as_socket = TcpStream::from(OwnedFd::from(scratch(b"")));
    let as_pipe = PipeReader::from(OwnedFd::from(pair().0));
    let as_file = File::from(OwnedFd::from(pipe().unwrap().0));
    let device = File::open("/dev/zero").unwrap();
    for none in
        [told(&other, &as_socket), told(&as_pipe, &other), told(&as_file, &other), told(&device, &other)]
    {
        assert_eq!(none, []);
    }
    let plain = PipeWriter::from(OwnedFd::from(scratch(b"")));
    assert_eq!(told(&other, &plain), [Way::CopyRange, Way::SendFile]);
}

/// Owned, borrowed either way, and in adapters; and what only looks like it.
#[test]
fn what_stands_behind_is_seen_through_adapters() {
    const BOTH: [Way; 2] = [Way::CopyRange, Way::SendFile];
    let (mut from, mut to) = (scratch(b""), scratch(b""));
    assert_eq!(told(scratch(b""), scratch(b"")), BOTH);
    assert_eq!(told(&mut from, &mut to), BOTH);
    assert_eq!(told((&from).take(1), BufWriter::new(&to)), BOTH);
    assert_eq!(told((&mut from).take(1), BufWriter::new(&mut to)), BOTH);
    assert_eq!(told(&mut scratch(b"").take(1), &mut BufWriter::new(&to)), BOTH);
    assert_eq!(told(BufReader::new(&from), &to), BOTH);
    assert_eq!(told(&mut BufReader::new(&mut from), &to), BOTH);
    assert_eq!(told(BufReader::new(&from).take(1), &to), BOTH);
    assert_eq!(told(BufReader::new(&from).by_ref().take(1), &to), BOTH);
    assert_eq!(told(&mut BufReader::new(&from).take(1), &to), BOTH);
    assert_eq!(told(&mut BufReader::new(&mut from).by_ref().take(1), &to), BOTH);
    assert_eq!(told(BufReader::new(&mut (&from).take(1)), &to), BOTH);
    assert_eq!(told(&mut BufReader::new(&mut (&from).take(1)), &to), BOTH);
    assert_eq!(told(&mut BufReader::new((&from).take(1)), &to), BOTH);
    assert_eq!(told(BufReader::new(from.take(1)), &to), BOTH);
    let from: &mut dyn Read = &mut scratch(b"");
    assert_eq!(told(from, &to), []);
    assert_eq!(told(Cursor::new([1]), &to), []);
    assert_eq!(told(&duplex(1).0, &to), []);
    assert_eq!(told(fs::File::open("/").unwrap(), &to), []);
}

#[test]
fn the_kernel_moves_all_between_files() {
    let (mut from, mut to) = (scratch(&some()), scratch(b""));
    from.seek(SeekFrom::Start(7)).unwrap();
    assert_eq!(by_kernel(&mut from, &mut to).unwrap(), LITTLE as u64 - 7);
    assert_eq!(
        (from.stream_position().unwrap(), to.stream_position().unwrap()),
        (LITTLE as u64, LITTLE as u64 - 7)
    );
    let mut read = Vec::new();
    to.rewind().unwrap();
    to.read_to_end(&mut read).unwrap();
    assert!(read == some()[7..]);
}

#[test]
fn the_kernel_moves_all_into_sockets_and_out_of_them() {
    let (mut from, (tcp, mut other)) = (scratch(&some()), pair());
    assert_eq!(by_kernel(&mut from, &mut &tcp).unwrap(), LITTLE as u64);
    drop(tcp);
    let (mut reader, mut writer) = pipe().unwrap();
    assert_eq!(by_kernel(&mut other, &mut writer).unwrap(), LITTLE as u64);
    drop(writer);
    let (mut here, mut there) = UnixStream::pair().unwrap();
    assert_eq!(by_kernel(&mut reader, &mut here).unwrap(), LITTLE as u64);
    drop(here);
    let (mut reader, mut writer) = pipe().unwrap();
    assert_eq!(by_kernel(&mut there, &mut writer).unwrap(), LITTLE as u64);
    drop(writer);
    let (mut last, mut writer) = pipe().unwrap();
    assert_eq!(by_kernel(&mut reader, &mut writer).unwrap(), LITTLE as u64);
    drop(writer);
    let mut to = scratch(b"");
    assert_eq!(by_kernel(&mut last, &mut to).unwrap(), LITTLE as u64);
    let mut read = Vec::new();
    to.rewind().unwrap();
    to.read_to_end(&mut read).unwrap();
    assert!(read == some());
}

/// More than fits anywhere, so that both ends are waited for.
#[test]
fn the_kernel_moves_all_where_both_ends_are_slow() {
    const MUCH: usize = 4 << 20;
    let ((mut reader, mut source), (mut tcp, mut other)) = (pipe().unwrap(), pair());
    let copier = thread::spawn(move || by_kernel(&mut reader, &mut tcp).unwrap());
    let writer = thread::spawn(move || {
        for piece in some().chunks(100).cycle().take(MUCH / 100) {
            source.write_all(piece).unwrap();
        }
    });
    let mut read = Vec::new();
    other.read_to_end(&mut read).unwrap();
    writer.join().unwrap();
    let whole: Vec<u8> = some().into_iter().cycle().take(MUCH / 100 * 100).collect();
    assert!(read == whole);
    assert_eq!(copier.join().unwrap(), read.len() as u64);
}

#[test]
fn what_was_read_ahead_goes_first_and_limits_are_kept() {
    let (from, mut to) = (scratch(&some()), scratch(b"begin "));
    to.seek(SeekFrom::End(0)).unwrap();
    let mut reader = BufReader::with_capacity(1000, &from);
    reader.fill_buf().unwrap();
    reader.consume(10);
    let mut writer = BufWriter::new(&to);
    writer.write_all(b"and ").unwrap();
    let mut some_of_it = reader.by_ref().take(300);
    assert_eq!(by_kernel(&mut some_of_it, &mut writer).unwrap(), 300);
    assert_eq!(some_of_it.limit(), 0);
    let mut more_of_it = reader.by_ref().take(5000);
    assert_eq!(by_kernel(&mut more_of_it, &mut writer).unwrap(), 5000);
    assert_eq!(more_of_it.limit(), 0);
    assert_eq!(by_kernel(&mut reader, &mut writer).unwrap(), LITTLE as u64 - 5310);
    let mut read = Vec::new();
    (&to).rewind().unwrap();
    (&to).read_to_end(&mut read).unwrap();
    assert!(read[..10] == *b"begin and " && read[10..] == some()[10..]);
    let mut limited = BufReader::with_capacity(100, scratch(&some()).take(250));
    limited.fill_buf().unwrap();
    assert_eq!(by_kernel(&mut limited, &mut writer).unwrap(), 250);
    assert_eq!(limited.get_ref().limit(), 0);
}
