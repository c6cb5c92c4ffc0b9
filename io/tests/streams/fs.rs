//! Files do what std's do, and their waits are those of tasks.

use std::io::{BufRead, BufReader, ErrorKind, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::{
    DirBuilderExt, DirEntryExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::common::sides::{Side, beside};
use crate::common::{everywhere, kind, pattern, with_full_pool};
use crate::folder::Folder;
use fibra_io::fs::{self, DirBuilder, File, FileTimes, OpenOptions};
use fibra_io::os::unix::fs::symlink;
use fibra_runtime::timeout;

/// A time after which what has not come will not come.
pub(crate) const SHORT: Duration = Duration::from_millis(30);

/// A directory of a test's own, with what the tests need in it.
pub(crate) struct Scratch(pub(crate) Folder);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(Folder::new())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.file(name)
    }

    /// A file with these contents.
    pub(crate) fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// A FIFO that is open at both ends.
    pub(crate) fn fifo(&self) -> (PathBuf, File) {
        let path = self.0.fifo();
        let both = File::options().read(true).write(true).open(&path).unwrap();
        (path, both)
    }
}

/// Opens for reading and writing.
pub(crate) fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

#[test]
fn written_bytes_are_read() {
    everywhere(|| {
        let scratch = Scratch::new();
        let bytes = pattern(3 << 20);
        let mut file = File::create_new(scratch.path("file")).unwrap();
        file.write_all(&bytes).unwrap();
        assert_eq!(file.stream_position().unwrap(), bytes.len() as u64);
        file.rewind().unwrap();
        let mut read = vec![0; bytes.len()];
        (&file).read_exact(&mut read).unwrap();
        assert!(read == bytes);
        assert_eq!(file.read(&mut [0]).unwrap(), 0);
        assert_eq!(file.seek(SeekFrom::End(-3)).unwrap(), bytes.len() as u64 - 3);
        let mut rest = vec![9];
        assert_eq!(file.read_to_end(&mut rest).unwrap(), 3);
        assert_eq!(rest[1..], bytes[bytes.len() - 3..]);
        assert_eq!(file.seek(SeekFrom::Current(-3)).unwrap(), bytes.len() as u64 - 3);
    });
}

#[test]
fn vectored_transfers_fill_one_buffer_after_the_other() {
    everywhere(|| {
        let scratch = Scratch::new();
        let mut file = open(&scratch.file("file", b""));
        assert_eq!(file.write_vectored(&[IoSlice::new(b"abc"), IoSlice::new(b"def")]).unwrap(), 6);
        file.rewind().unwrap();
        let (mut one, mut two) = ([0; 2], [0; 4]);
        let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(file.read_vectored(&mut bufs).unwrap(), 6);
        assert_eq!((&one, &two), (b"ab", b"cdef"));
        assert_eq!(file.read(&mut []).unwrap(), 0);
        assert_eq!(file.write(&[]).unwrap(), 0);
    });
}

#[test]
fn positioned_transfers_leave_the_position() {
    everywhere(|| {
        let scratch = Scratch::new();
        let mut file = open(&scratch.file("file", b"0123456789"));
        let mut buf = [0; 4];
        file.read_exact_at(&mut buf, 3).unwrap();
        assert_eq!(&buf, b"3456");
        file.write_all_at(b"abc", 8).unwrap();
        assert_eq!(file.write_at(b"x", 0).unwrap(), 1);
        assert_eq!(file.read_at(&mut buf, 9).unwrap(), 2);
        assert_eq!(kind(file.read_exact_at(&mut buf, 9)), ErrorKind::UnexpectedEof);
        assert_eq!(kind(file.read_at(&mut buf, u64::MAX)), ErrorKind::InvalidInput);
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x1234567abc");
    });
}

#[test]
fn many_tasks_read_one_file() {
    everywhere(|| {
        let scratch = Scratch::new();
        let file = Arc::new(File::open(scratch.file("file", &pattern(1 << 18))).unwrap());
        let readers: Vec<_> = (0..8)
            .map(|part| {
                let file = Arc::clone(&file);
                beside(move || {
                    let mut buf = vec![0; 1 << 15];
                    file.read_exact_at(&mut buf, part << 15).unwrap();
                    buf
                })
            })
            .collect();
        let parts: Vec<u8> = readers.into_iter().flat_map(Side::join).collect();
        assert!(parts == pattern(1 << 18));
    });
}

#[test]
fn readers_at_one_position_share_the_bytes() {
    everywhere(|| {
        let scratch = Scratch::new();
        let file = Arc::new(File::open(scratch.file("file", &pattern(1 << 18))).unwrap());
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let file = Arc::clone(&file);
                beside(move || {
                    let mut all = Vec::new();
                    let mut buf = [0; 1000];
                    while let n @ 1.. = (&*file).read(&mut buf).unwrap() {
                        all.extend_from_slice(&buf[..n]);
                    }
                    all
                })
            })
            .collect();
        let mut read: Vec<u8> = readers.into_iter().flat_map(Side::join).collect();
        let mut bytes = pattern(1 << 18);
        read.sort_unstable();
        bytes.sort_unstable();
        assert!(read == bytes);
    });
}

#[test]
fn a_clone_shares_the_position() {
    everywhere(|| {
        let scratch = Scratch::new();
        let mut file = File::open(scratch.file("file", b"abcdef")).unwrap();
        let mut clone = file.try_clone().unwrap();
        let mut buf = [0; 3];
        file.read_exact(&mut buf).unwrap();
        clone.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"def");
    });
}

#[test]
fn a_buffered_reader_gives_the_lines() {
    everywhere(|| {
        let scratch = Scratch::new();
        let lines: String = (0..5000).map(|number| format!("line {number}\n")).collect();
        let file = File::open(scratch.file("file", lines.as_bytes())).unwrap();
        for (number, line) in BufReader::new(file).lines().enumerate() {
            assert_eq!(line.unwrap(), format!("line {number}"));
        }
    });
}

#[test]
fn a_file_can_be_cut_off_and_extended() {
    everywhere(|| {
        let scratch = Scratch::new();
        let path = scratch.file("file", b"abcdef");
        let file = open(&path);
        file.set_len(2).unwrap();
        file.set_len(4).unwrap();
        file.sync_data().unwrap();
        file.sync_all().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ab\0\0");
        assert_eq!(file.metadata().unwrap().len(), 4);
    });
}

#[test]
fn times_and_permissions_can_be_set() {
    everywhere(|| {
        let scratch = Scratch::new();
        let path = scratch.file("file", b"");
        let file = open(&path);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        file.set_modified(time).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
        file.set_times(FileTimes::new().set_accessed(time)).unwrap();
        assert_eq!(file.metadata().unwrap().accessed().unwrap(), time);
        file.set_permissions(PermissionsExt::from_mode(0o640)).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    });
}

#[test]
fn options_mean_what_they_say() {
    everywhere(|| {
        let scratch = Scratch::new();
        let path = scratch.path("file");
        assert_eq!(kind(File::open(&path)), ErrorKind::NotFound);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(kind(File::create_new(&path)), ErrorKind::AlreadyExists);
        assert!((&file).read(&mut [0]).is_err());
        fs::write(&path, "one").unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b" two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
        File::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        symlink(&path, scratch.path("link")).unwrap();
        let no_link = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(scratch.path("link"));
        assert_eq!(no_link.unwrap_err().raw_os_error(), Some(libc::ELOOP));
    });
}

#[test]
fn the_functions_on_paths_do_as_std() {
    everywhere(|| {
        let scratch = Scratch::new();
        let deep = scratch.path("a/b/c");
        assert_eq!(kind(fs::create_dir(&deep)), ErrorKind::NotFound);
        fs::create_dir_all(&deep).unwrap();
        let (file, other) = (deep.join("file"), deep.join("other"));
        fs::write(&file, "text").unwrap();
        assert!(fs::exists(&file).unwrap() && !fs::exists(&other).unwrap());
        assert_eq!(fs::copy(&file, &other).unwrap(), 4);
        assert_eq!(fs::read_to_string(&other).unwrap(), "text");
        fs::rename(&other, deep.join("renamed")).unwrap();
        fs::hard_link(&file, &other).unwrap();
        assert_eq!(fs::metadata(&other).unwrap().nlink(), 2);
        symlink("file", deep.join("link")).unwrap();
        assert_eq!(fs::read_link(deep.join("link")).unwrap(), Path::new("file"));
        assert!(fs::symlink_metadata(deep.join("link")).unwrap().is_symlink());
        assert_eq!(fs::canonicalize(deep.join("link")).unwrap(), fs::canonicalize(&file).unwrap());
        fs::remove_file(&file).unwrap();
        assert_eq!(kind(fs::remove_file(&file)), ErrorKind::NotFound);
        assert_eq!(kind(fs::remove_dir(&deep)), ErrorKind::DirectoryNotEmpty);
        fs::remove_dir_all(scratch.path("a")).unwrap();
        DirBuilder::new().recursive(true).mode(0o700).create(scratch.path("d/e")).unwrap();
        assert_eq!(fs::metadata(scratch.path("d/e")).unwrap().mode() & 0o777, 0o700);
        fs::remove_dir(scratch.path("d/e")).unwrap();
        assert_eq!(kind(fs::read(scratch.path("d"))), ErrorKind::IsADirectory);
        fs::write(scratch.path("not text"), [0xff]).unwrap();
        assert_eq!(kind(fs::read_to_string(scratch.path("not text"))), ErrorKind::InvalidData);
    });
}

#[test]
fn a_directory_gives_each_entry_once() {
    everywhere(|| {
        let scratch = Scratch::new();
        let mut names: Vec<String> = (0..300).map(|number| format!("entry {number}")).collect();
        names.iter().for_each(|name| drop(scratch.file(name, b"x")));
        fs::create_dir(scratch.path("directory")).unwrap();
        let entries: Vec<_> = fs::read_dir(scratch.path("")).unwrap().map(Result::unwrap).collect();
        for entry in &entries {
            let metadata = std::fs::symlink_metadata(entry.path()).unwrap();
            assert_eq!(entry.file_type().unwrap(), metadata.file_type());
            assert_eq!((entry.ino(), entry.metadata().unwrap().ino()), (metadata.ino(), metadata.ino()));
        }
        names.push("directory".to_owned());
        names.sort_unstable();
        let mut found: Vec<_> = entries.iter().map(|it| it.file_name().into_string().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, names);
        let mut read = fs::read_dir(scratch.path("directory")).unwrap();
        assert!(read.next().is_none() && read.next().is_none());
        assert_eq!(kind(fs::read_dir(scratch.path("none"))), ErrorKind::NotFound);
    });
}

#[test]
fn a_directory_that_was_left_goes_on_where_it_was() {
    let scratch = Scratch::new();
    (0..300).for_each(|number| drop(scratch.file(&number.to_string(), b"")));
    let read = Mutex::new(fs::read_dir(scratch.path("")).unwrap());
    with_full_pool(|free, taker| {
        let mut read = read.lock().unwrap();
        let mut count = 0;
        while timeout(SHORT, || read.next().unwrap()).is_ok() {
            count += 1;
        }
        drop(free);
        taker.join().unwrap();
        assert_eq!(count + read.by_ref().count(), 300);
    });
}

#[test]
fn files_go_to_std_and_come_back() {
    everywhere(|| {
        let scratch = Scratch::new();
        let path = scratch.file("file", b"abcd");
        let mut file = File::from(std::fs::File::open(&path).unwrap());
        let mut byte = [0];
        file.read_exact(&mut byte).unwrap();
        assert_eq!(file.as_fd().as_raw_fd(), file.as_raw_fd());
        let mut std = std::fs::File::from(file);
        std.read_exact(&mut byte).unwrap();
        let mut file = File::from(OwnedFd::from(std));
        file.read_exact(&mut byte).unwrap();
        // SAFETY: the descriptor has just been given away by its owner.
        let mut file = unsafe { File::from_raw_fd(OwnedFd::from(file).into_raw_fd()) };
        file.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"d");
    });
}

#[test]
fn a_directory_cannot_be_read_as_a_file() {
    everywhere(|| {
        let scratch = Scratch::new();
        let mut directory = File::open(scratch.path("")).unwrap();
        assert_eq!(kind(directory.read(&mut [0])), ErrorKind::IsADirectory);
    });
}

#[test]
fn devices_are_files() {
    everywhere(|| {
        let mut zeroes = [1; 5000];
        File::open("/dev/zero").unwrap().read_exact(&mut zeroes).unwrap();
        assert!(zeroes == [0; 5000]);
        let mut null = open(Path::new("/dev/null"));
        null.write_all(&pattern(1 << 20)).unwrap();
        assert_eq!(null.read(&mut [0]).unwrap(), 0);
        assert!(null.metadata().unwrap().file_type().is_char_device());
    });
}

/// True if a file there can be read without waiting.
#[cfg(target_os = "linux")]
fn reads_in_place(path: &Path) -> bool {
    let file = std::fs::File::open(path).unwrap();
    let mut byte = 0_u8;
    let buf = libc::iovec { iov_base: std::ptr::from_mut(&mut byte).cast(), iov_len: 1 };
    // SAFETY: there is one buffer, of one byte, and both outlive the call.
    unsafe { libc::preadv2(file.as_raw_fd(), &buf, 1, 0, libc::RWF_NOWAIT) == 1 }
}

#[cfg(target_os = "linux")]
#[test]
fn file_in_memory_is_read_without_the_pool() {
    let scratch = Scratch::new();
    let path = scratch.file("file", &pattern(1 << 16));
    if !reads_in_place(&path) {
        eprintln!("not tested: no file system here that reads in place");
        return;
    }
    let file = File::open(&path).unwrap();
    with_full_pool(|free, taker| {
        let mut buf = vec![0; 1 << 16];
        (&file).read_exact(&mut buf).unwrap();
        assert!(buf == pattern(1 << 16));
        assert_eq!((&file).read(&mut buf).unwrap(), 0);
        (&file).rewind().unwrap();
        file.read_exact_at(&mut buf[..100], 1000).unwrap();
        assert_eq!(buf[..100], pattern(2000)[1000..1100]);
        assert!(timeout(SHORT, || file.metadata().map(drop)).is_err());
        drop(free);
        taker.join().unwrap();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_that_refuses_is_read_all_the_same() {
    everywhere(|| {
        let mut file = File::open("/proc/self/status").unwrap();
        let mut first = [0; 5];
        file.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"Name:");
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("Threads:"));
        file.read_exact_at(&mut first, 0).unwrap();
        assert_eq!(&first, b"Name:");
    });
}

/// Never called: what users may do with these types.
#[expect(dead_code, reason = "it is compiled, and that is the test")]
fn types_may_cross_threads() {
    fn both<T: Send + Sync + std::fmt::Debug>() {}
    both::<File>();
    both::<OpenOptions>();
    both::<fs::ReadDir>();
    both::<fs::DirEntry>();
    both::<DirBuilder>();
}
