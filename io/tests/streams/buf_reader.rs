//! A `BufReader` keeps what an operation has read that ends early.

use std::io::{BufRead, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::common::{kind, pattern, runtime};
use crate::paused::paused;
use fibra_io::io::{BufReader, DuplexStream, duplex};
use fibra_runtime::time::settle;
use fibra_runtime::{spawn, timeout};

/// A time after which what has not come will not come.
const LONG: Duration = Duration::from_secs(3600);

type Reader = BufReader<DuplexStream>;

/// What is asked for while only `half of` has come, and once more when all of `half of a line\n` has.
type Operation = fn(&mut Reader) -> String;

const OPERATIONS: [(&str, Operation); 6] = [
    ("read_line", |reader| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    }),
    ("read_until", |reader| {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).unwrap();
        String::from_utf8(line).unwrap()
    }),
    ("lines", |reader| reader.lines().next().unwrap().unwrap() + "\n"),
    ("read_exact", |reader| {
        let mut all = [0; 15];
        reader.read_exact(&mut all).unwrap();
        String::from_utf8(all.to_vec()).unwrap()
    }),
    ("read_to_string", |reader| {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }),
    ("read_to_end", |reader| {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        String::from_utf8(all).unwrap()
    }),
];

/// Runs `operation` under a small buffer and a usual one; `cut_short` is to end it while it waits.
fn resumes_after(cut_short: fn(&mut Reader, Operation)) {
    paused(|| {
        for (name, operation) in OPERATIONS {
            for capacity in [3, 8192] {
                let (reader, mut writer) = duplex(64);
                let mut reader = BufReader::with_capacity(capacity, reader);
                writer.write_all(b"half of").unwrap();
                cut_short(&mut reader, operation);
                cut_short(&mut reader, operation);
                writer.write_all(b" a line\n").unwrap();
                drop(writer);
                assert_eq!(operation(&mut reader), "half of a line\n", "{name}");
                assert_eq!(reader.fill_buf().unwrap(), b"", "{name}");
            }
        }
    });
}

#[test]
fn an_operation_that_a_timeout_ends_goes_on_where_it_was() {
    resumes_after(|reader, operation| assert!(timeout(LONG, || operation(reader)).is_err()));
}

#[test]
fn an_operation_that_an_error_ends_goes_on_where_it_was() {
    paused(|| {
        let (mut writer, stream) = duplex(64);
        let (mut reader, mut line) = (BufReader::new(&stream), String::new());
        stream.set_read_timeout(Some(LONG)).unwrap();
        writer.write_all(b"half of").unwrap();
        assert_eq!(kind(reader.read_line(&mut line)), ErrorKind::WouldBlock);
        assert_eq!(line, "");
        writer.write_all(b" a line\nmore").unwrap();
        assert_eq!(reader.read_line(&mut line).unwrap(), 15);
        assert_eq!((&*line, reader.buffer()), ("half of a line\n", &b"more"[..]));
    });
}

#[test]
fn a_task_that_is_cancelled_leaves_the_line_to_the_next() {
    paused(|| {
        let (reader, mut writer) = duplex(64);
        let reader = Arc::new(Mutex::new(BufReader::new(reader)));
        writer.write_all(b"half of").unwrap();
        let reads = {
            let reader = Arc::clone(&reader);
            spawn(move || _ = reader.lock().unwrap().read_line(&mut String::new()))
        };
        settle();
        reads.cancel();
        assert!(reads.join().unwrap_err().is_cancelled());
        writer.write_all(b" a line\n").unwrap();
        let mut line = String::new();
        // The lock is poisoned: its owner was unwound.
        let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "half of a line\n");
    });
}

#[test]
fn the_buffered_bytes_are_those_of_the_reader() {
    let bytes = pattern(100_000);
    for capacity in [0, 1, 3, 8192] {
        let mut reader = BufReader::with_capacity(capacity, &bytes[..]);
        let mut all = Vec::new();
        for (step, delimiter) in bytes.iter().enumerate().skip(1) {
            let mut piece = vec![0; step % 700];
            let n = reader.read(&mut piece).unwrap();
            all.extend_from_slice(&piece[..n]);
            if step % 5 == 0 {
                reader.read_until(*delimiter, &mut all).unwrap();
            }
            if n == 0 && !piece.is_empty() {
                break;
            }
        }
        assert!(all == bytes, "{capacity}");
    }
}

#[test]
fn a_seek_counts_from_what_was_given_out() {
    let mut reader = BufReader::with_capacity(4, std::io::Cursor::new(b"0123456789"));
    let mut byte = [0];
    for (to, place, found) in [
        (SeekFrom::Start(2), 2, b'2'),
        (SeekFrom::Current(1), 4, b'4'),
        (SeekFrom::Current(-4), 1, b'1'),
        (SeekFrom::End(-1), 9, b'9'),
    ] {
        assert_eq!(reader.seek(to).unwrap(), place);
        reader.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [found]);
    }
    assert!(reader.seek(SeekFrom::Current(-100)).is_err());
}

#[test]
fn a_line_that_is_no_text_is_an_error_and_the_next_one_comes() {
    runtime(1).run(|| {
        let mut reader = BufReader::new(&b"\xff\nnext\n"[..]);
        let mut line = "kept ".to_owned();
        assert_eq!(kind(reader.read_line(&mut line)), ErrorKind::InvalidData);
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "kept next\n");
    });
}
