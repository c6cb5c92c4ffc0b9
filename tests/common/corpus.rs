//! Input that is malformed or odd: what lies in `tests/corpus`, and what random changes make of it.
//!
//! A file is named by what becomes of it, if nothing follows: `bad_…` is refused and its connection closed, `odd_…` is answered
//! like anything else, and `unfinished_…` waits for more until the server has waited long enough.

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::fuzz::Random;

/// A file: its name and what is in it.
pub(crate) type File = (String, Vec<u8>);

/// The files about `kind` whose names begin so.
pub(crate) fn files(kind: &str, begin: &str) -> Vec<File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
    let mut files: Vec<File> = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a plain name");
            (name, fs::read(entry.path()).expect("a file"))
        })
        .filter(|(name, _)| name.starts_with(begin))
        .collect();
    assert!(!files.is_empty(), "no file of {kind} begins with {begin}");
    files.sort();
    files
}

/// Changes files at random, each time in the same way.
pub(crate) struct Mutator {
    files: Vec<File>,
    random: Random,
}

/// What parsers have their rules for.
const WORDS: [&[u8]; 24] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\0",
    b"\xff",
    b" ",
    b":",
    b"*",
    b"$",
    b"\"",
    b"'",
    b"\\",
    b"\\x",
    b"-",
    b"+",
    b"*1\r\n",
    b"*-1\r\n",
    b"$4\r\nPING\r\n",
    b"$-1\r\n",
    b"HTTP/1.1",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
];

/// What lengths are changed to.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "2",
    "1023",
    "1025",
    "65536",
    "1048576",
    "2147483648",
    "9223372036854775807",
    "18446744073709551616",
    "01",
];

impl Mutator {
    /// Of the files about `kind`.
    pub(crate) fn new(kind: &str) -> Mutator {
        Mutator { files: files(kind, ""), random: Random::new() }
    }

    /// A number below `end`, or 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.random.below(end.max(1))
    }

    /// Gives some file after one to six changes, not much longer than it was.
    pub(crate) fn mutant(&mut self) -> Vec<u8> {
        let mut bytes = self.file();
        for _ in 0..=self.below(6) {
            self.change(&mut bytes);
        }
        bytes
    }

    fn file(&mut self) -> Vec<u8> {
        let number = self.below(self.files.len());
        let mut bytes = self.files[number].1.clone();
        // Those that are long are so by repetition.
        let length = 64 + self.below(2000);
        bytes.truncate(length);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let part = self.part(bytes.len());
        match self.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => bytes[at] = self.below(256) as u8,
            2 => drop(bytes.drain(part)),
            3 => bytes.truncate(at),
            4 => {
                let word = WORDS[self.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            5 => {
                let again = bytes[part].repeat(1 + self.below(4));
                bytes.splice(at..at, again);
            }
            6 => {
                let other = self.file();
                let part = self.part(other.len());
                bytes.splice(at..at, other[part].iter().copied());
            }
            7 => {
                let other = self.file();
                let from = self.below(other.len() + 1);
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => self.change_number(bytes, at),
        }
    }

    /// Some hundred bytes at the most, somewhere below `end`.
    fn part(&mut self, end: usize) -> Range<usize> {
        let begin = self.below(end + 1);
        begin..begin + self.below((end - begin).min(200) + 1)
    }

    /// Changes the number that comes next.
    fn change_number(&mut self, bytes: &mut Vec<u8>, from: usize) {
        let Some(begin) = (from..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else { return };
        let length = bytes[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let old: Option<u64> =
            str::from_utf8(&bytes[begin..begin + length]).ok().and_then(|text| text.parse().ok());
        let new = match (self.below(3), old) {
            (0, Some(old)) => old.wrapping_add(1).to_string(),
            (1, Some(old)) => old.wrapping_sub(1).to_string(),
            _ => NUMBERS[self.below(NUMBERS.len())].to_owned(),
        };
        bytes.splice(begin..begin + length, new.into_bytes());
    }
}
