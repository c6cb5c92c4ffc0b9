//! What an open meets whose name changes between its look and the call.

#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use socket2::SockRef;

use super::{OpenOptions, Opened};

/// A path of a test's own; what is there is removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Scratch(std::env::temp_dir().join(format!("fibra-options-{}-{number}", std::process::id())))
    }

    fn fifo() -> Scratch {
        let scratch = Scratch::new();
        mknodat(CWD, &scratch.0, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_fifo_that_takes_the_place_of_a_file_is_not_waited_for() {
    let scratch = Scratch::fifo();
    let opens = [
        OpenOptions::new().read(true).clone(),
        OpenOptions::new().write(true).create(true).truncate(true).clone(),
        OpenOptions::new().append(true).clone(),
    ];
    for options in opens {
        let opened = options.open_without_waiting(&scratch.0).unwrap();
        assert!(matches!(opened, Opened::MayWait), "{options:?}");
    }
}

#[test]
fn an_open_that_was_left_neither_makes_nor_empties_what_takes_the_place_of_a_fifo() {
    let scratch = Scratch::new();
    let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
    assert_eq!(options.waiting().open(&scratch.0).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    fs::write(&scratch.0, "text").unwrap();
    options.waiting().open(&scratch.0).unwrap();
    assert_eq!(fs::read_to_string(&scratch.0).unwrap(), "text");
}

#[test]
fn a_file_is_open_in_the_mode_that_was_asked_for() {
    let scratch = Scratch::new();
    let options = OpenOptions::new().write(true).create(true).clone();
    let Opened::File(file) = options.open_in_bounded_time(&scratch.0).unwrap() else { unreachable!() };
    assert!(!SockRef::from(&file).nonblocking().unwrap());
}
