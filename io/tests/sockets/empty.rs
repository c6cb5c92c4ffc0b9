//! A transfer of nothing waits for nothing, and comes out as std's.

use std::fmt::Debug;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;

use crate::common::{everywhere, pair};
use crate::folder::Folder;
use fibra_io::fs::File;
use fibra_io::io::{PipeReader, pipe};
use fibra_io::net::UnixStream;

type Outcome = Result<usize, ErrorKind>;

/// What comes of the empty writes, scalar and vectored.
fn writes(mut to: impl Write) -> [Outcome; 3] {
    let nothing = IoSlice::new(&[]);
    [to.write(&[]), to.write_vectored(&[]), to.write_vectored(&[nothing, nothing])]
        .map(|outcome| outcome.map_err(|error| error.kind()))
}

/// What comes of the empty reads.
fn vectored_reads(mut from: impl Read) -> [Outcome; 2] {
    let (mut one, mut other): ([u8; 0], [u8; 0]) = ([], []);
    let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
    [from.read_vectored(&mut []), from.read_vectored(&mut bufs)]
        .map(|outcome| outcome.map_err(|error| error.kind()))
}

/// Writes until there is no room.
fn fill(mut to: impl Write) {
    let error = (0..).find_map(|_| to.write(&[1; 1 << 16]).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

/// Two connected streams, one of which has been told that its buffer is full and that nothing has come.
macro_rules! exhausted {
    ($pair:expr) => {{
        let (here, there) = $pair;
        let set_nonblocking = |nonblocking| here.set_nonblocking(nonblocking).unwrap();
        set_nonblocking(true);
        fill(&here);
        assert_eq!((&here).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        set_nonblocking(false);
        (here, there)
    }};
}

/// Sees that a stream behaves as its std counterpart.
fn does_as<O: Debug, S: Debug>(ours: O, std: impl Fn(O) -> S)
where
    for<'a> &'a O: Read + Write,
    for<'a> &'a S: Read + Write,
{
    let outcomes = (writes(&ours), vectored_reads(&ours));
    let std = std(ours);
    assert_eq!(outcomes, (writes(&std), vectored_reads(&std)), "{std:?}");
}

#[test]
fn empty_transfers_of_streams_wait_for_nothing() {
    everywhere(|| {
        let (here, _there) = exhausted!(pair());
        // As a wait would have left it. Room may come late: the system moves what it has taken on by itself.
        here.set_write_timeout(Some(std::time::Duration::from_millis(1))).unwrap();
        fill(&here);
        assert_eq!((writes(&here), vectored_reads(&here)), ([Ok(0); 3], [Ok(0); 2]));
        let (here, _there) = exhausted!(UnixStream::pair().unwrap());
        here.set_write_timeout(Some(std::time::Duration::from_millis(1))).unwrap();
        fill(&here);
        assert_eq!((writes(&here), vectored_reads(&here)), ([Ok(0); 3], [Ok(0); 2]));
    });
}

#[test]
fn empty_transfers_of_streams_come_out_as_those_of_std() {
    everywhere(|| {
        for how in [None, Some(Shutdown::Read), Some(Shutdown::Write), Some(Shutdown::Both)] {
            for is_full in [false, true] {
                let (here, there) = if is_full { exhausted!(pair()) } else { pair() };
                if let Some(how) = how {
                    here.shutdown(how).unwrap();
                }
                does_as(here, std::net::TcpStream::from);
                drop(there);
                let pair = UnixStream::pair().unwrap();
                let (here, there) = if is_full { exhausted!(pair) } else { pair };
                if let Some(how) = how {
                    here.shutdown(how).unwrap();
                }
                does_as(here, std::os::unix::net::UnixStream::from);
                drop(there);
            }
        }
    });
}

#[test]
fn empty_transfers_of_streams_that_came_non_blocking_are_made() {
    everywhere(|| {
        let (here, _there) = pair();
        here.set_nonblocking(true).unwrap();
        assert_eq!((writes(&here), vectored_reads(&here)), ([Ok(0); 3], [Ok(0); 2]));
    });
}

/// Sees that the empty reads give nothing, also after one that found nothing.
fn is_read_as_empty(mut reader: impl Read, wait_in_vain: impl Fn()) {
    wait_in_vain();
    assert_eq!((reader.read(&mut []).unwrap(), vectored_reads(reader)), (0, [Ok(0); 2]));
}

#[test]
fn empty_transfers_of_pipes_wait_for_nothing() {
    everywhere(|| {
        let (reader, writer) = pipe().unwrap();
        let soon = || Some(std::time::Instant::now() + std::time::Duration::from_millis(1));
        is_read_as_empty(&reader, || {
            reader.set_read_deadline(soon());
            assert!((&reader).read(&mut [0]).is_err());
            reader.set_read_deadline(None);
        });
        writer.set_write_deadline(soon());
        fill(&writer);
        writer.set_write_deadline(None);
        assert_eq!(writes(&writer), [Ok(0); 3]);
        let mut wrong = PipeReader::from(std::os::fd::OwnedFd::from(writer));
        let error = wrong.read(&mut []).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF), "it is open for writing");
    });
}

#[test]
fn empty_transfers_of_fifos_wait_for_nothing() {
    everywhere(|| {
        let folder = Folder::new();
        let file = File::options().read(true).write(true).open(folder.fifo()).unwrap();
        is_read_as_empty(&file, || {
            if fibra_runtime::wait::in_task() {
                let brief = std::time::Duration::from_millis(1);
                assert!(fibra_runtime::timeout(brief, || (&file).read(&mut [0])).is_err());
            }
        });
        if fibra_runtime::wait::in_task() {
            let brief = std::time::Duration::from_millis(30);
            assert!(fibra_runtime::timeout(brief, || (&file).write_all(&[0; 1 << 20])).is_err());
        }
        assert_eq!(writes(&file), [Ok(0); 3]);
    });
}
