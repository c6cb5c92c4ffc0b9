//! The requests of RESP, taken apart as their bytes come: arrays of byte strings, and lines as people type them.
//!
//! What was taken apart is not looked at again, but for one line, however small the pieces are that the bytes come in. What is
//! kept of a request is in proportion to what has come of it, whatever lengths it announces.

use std::error::Error;
use std::fmt;
use std::ops::Range;

/// The longest argument; Redis takes 512 MiB.
pub(crate) const BULK: usize = 1 << 20;
/// How many arguments a request may have, the name of the command among them; Redis takes two thousand million.
pub(crate) const ARGUMENTS: usize = 1024;
/// How long a request may be as a whole.
pub(crate) const REQUEST: usize = 4 << 20;
/// The longest request that is typed, and the longest line that announces a length.
pub(crate) const LINE: usize = 4096;
const LENGTH: usize = 32;
/// How many bytes there is room for at first.
const ROOM: usize = 16 * 1024;

/// What has come from a client, without the requests that were taken.
pub(crate) struct Input {
    bytes: Vec<u8>,
    filled: usize,
    /// Where the request begins that comes next, or is the last one taken.
    begin: usize,
    /// How far that has been taken apart. This and the arguments count from `begin`.
    at: usize,
    arguments: Vec<Range<usize>>,
    /// How many arguments are to come; `None` before the line that tells.
    missing: Option<usize>,
}

impl Input {
    pub(crate) fn new() -> Input {
        let (bytes, arguments) = (vec![0; ROOM], Vec::new());
        Input { bytes, filled: 0, begin: 0, at: 0, arguments, missing: None }
    }

    /// Where to put what comes next; `add` tells how much it was.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.forget_taken();
        self.bytes.copy_within(self.begin..self.filled, 0);
        self.filled -= self.begin;
        self.begin = 0;
        if self.filled == self.bytes.len() {
            self.bytes.resize(2 * self.filled, 0);
        } else if self.filled == 0 && self.bytes.len() > ROOM {
            // Who has sent much once may be silent for long.
            self.bytes = vec![0; ROOM];
        }
        &mut self.bytes[self.filled..]
    }

    pub(crate) fn add(&mut self, count: usize) {
        self.filled += count;
        assert!(self.filled <= self.bytes.len(), "there was no room for that");
    }

    /// Takes the next request, if it is complete. After an error nothing can be told of what follows.
    pub(crate) fn next(&mut self) -> Result<Option<Request<'_>>, Malformed> {
        loop {
            self.forget_taken();
            let has_grown = match self.missing {
                None => self.first_line()?,
                Some(missing) => self.argument(missing)?,
            };
            match (has_grown, self.missing) {
                (false, _) => return Ok(None),
                // An empty line, or an array of nothing.
                (true, Some(0)) if self.arguments.is_empty() => {}
                (true, Some(0)) => break,
                (true, _) => {}
            }
        }
        Ok(Some(Request { bytes: &self.bytes[self.begin..], arguments: &self.arguments }))
    }

    /// True if a part of a request is there, once `next` has found no more that are complete.
    pub(crate) fn is_begun(&self) -> bool {
        self.begin < self.filled
    }

    /// Moves on behind the request that was taken last.
    fn forget_taken(&mut self) {
        if self.missing == Some(0) {
            self.begin += self.at;
            self.at = 0;
            self.missing = None;
            self.arguments.clear();
        }
    }

    /// Takes the line that a request begins with. False if it is not complete.
    fn first_line(&mut self) -> Result<bool, Malformed> {
        let missing = match self.rest().first() {
            None => return Ok(false),
            Some(b'*') => {
                let Some(count) = self.length("too big mbulk count string", "invalid multibulk length")?
                else {
                    return Ok(false);
                };
                // As in Redis, fewer than nothing is nothing.
                usize::try_from(count).unwrap_or(0)
            }
            Some(_) => {
                let Some(line) = self.line(LINE, "too big inline request")? else { return Ok(false) };
                words(&mut self.bytes[self.begin..][line], &mut self.arguments)?;
                0
            }
        };
        if missing > ARGUMENTS {
            return Err(Malformed("invalid multibulk length"));
        }
        self.missing = Some(missing);
        Ok(true)
    }

    /// Takes one of the `missing` arguments of an array. False if it is not complete.
    fn argument(&mut self, missing: usize) -> Result<bool, Malformed> {
        let begin = self.at;
        match self.rest().first() {
            None => return Ok(false),
            Some(b'$') => {}
            Some(_) => return Err(Malformed("expected '$', for arguments are byte strings")),
        }
        let Some(length) = self.length("too big bulk count string", "invalid bulk length")? else {
            return Ok(false);
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= BULK);
        let length = length.ok_or(Malformed("invalid bulk length"))?;
        if self.at + length > REQUEST {
            return Err(Malformed("too big request"));
        }
        match self.rest().get(length..length + 2) {
            Some(b"\r\n") => {}
            Some(_) => return Err(Malformed("expected the end of a line behind an argument")),
            None => {
                self.at = begin;
                return Ok(false);
            }
        }
        self.arguments.push(self.at..self.at + length);
        self.at += length + 2;
        self.missing = Some(missing - 1);
        Ok(true)
    }

    /// Takes a line of a sign and a number.
    fn length(&mut self, too_long: &'static str, invalid: &'static str) -> Result<Option<i64>, Malformed> {
        let Some(line) = self.line(LENGTH, too_long)? else { return Ok(None) };
        match self.bytes[self.begin..][line].split_first() {
            Some((_, [digits @ .., b'\r'])) => integer(digits).map(Some).ok_or(Malformed(invalid)),
            _ => Err(Malformed(invalid)),
        }
    }

    /// Takes a line, and says where it lies without its end.
    fn line(&mut self, longest: usize, too_long: &'static str) -> Result<Option<Range<usize>>, Malformed> {
        let begin = self.at;
        let searched = self.rest().len().min(longest);
        match self.rest()[..searched].iter().position(|byte| *byte == b'\n') {
            Some(length) => {
                self.at += length + 1;
                Ok(Some(begin..begin + length))
            }
            None if searched == longest => Err(Malformed(too_long)),
            None => Ok(None),
        }
    }

    /// What was not taken apart.
    fn rest(&self) -> &[u8] {
        &self.bytes[self.begin + self.at..self.filled]
    }
}

/// A request that is complete: the name of a command, and what else it needs.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    bytes: &'a [u8],
    arguments: &'a [Range<usize>],
}

impl<'a> Request<'a> {
    /// How many arguments there are, the name among them; never none.
    pub(crate) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// The argument of that number, of which the first is the name.
    pub(crate) fn argument(&self, number: usize) -> &'a [u8] {
        &self.bytes[self.arguments[number].clone()]
    }
}

/// Why a request cannot be understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Malformed {}

/// The number that the digits are, if they are written as a number is printed.
pub(crate) fn integer(digits: &[u8]) -> Option<i64> {
    match digits.strip_prefix(b"-").unwrap_or(digits) {
        [b'0'] if digits.len() == 1 => Some(0),
        [b'1'..=b'9', ..] => str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

/// Splits a line at its spaces as a shell would. Each word is put together where the line stands, for it gets no longer by it.
fn words(line: &mut [u8], words: &mut Vec<Range<usize>>) -> Result<(), Malformed> {
    let (mut from, mut to) = (0, 0);
    loop {
        while line.get(from).is_some_and(u8::is_ascii_whitespace) {
            from += 1;
        }
        if from == line.len() {
            return Ok(());
        }
        let begin = to;
        (from, to) = word(line, from, to).ok_or(Malformed("unbalanced quotes in request"))?;
        words.push(begin..to);
        if words.len() > ARGUMENTS {
            return Err(Malformed("too many words"));
        }
    }
}

/// Moves the word at `from` to `to`, which is not behind it, without its quotes. Tells where both end.
fn word(line: &mut [u8], mut from: usize, mut to: usize) -> Option<(usize, usize)> {
    let mut quote = None;
    while let Some(&byte) = line.get(from) {
        from += 1;
        line[to] = match (quote, byte) {
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                continue;
            }
            (None, byte) if byte.is_ascii_whitespace() => break,
            (Some(end), byte) if byte == end => {
                // Only at the end of a word.
                return line.get(from).is_none_or(u8::is_ascii_whitespace).then_some((from, to));
            }
            (Some(b'"'), b'\\') => {
                let (byte, length) = escaped(&line[from..])?;
                from += length;
                byte
            }
            (Some(b'\''), b'\\') if line.get(from) == Some(&b'\'') => {
                from += 1;
                b'\''
            }
            (_, byte) => byte,
        };
        to += 1;
    }
    quote.is_none().then_some((from, to))
}

/// The byte that is meant by what follows a backslash, and how many bytes say so.
fn escaped(rest: &[u8]) -> Option<(u8, usize)> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    if let [b'x', high, low, ..] = rest
        && let (Some(high), Some(low)) = (digit(high), digit(low))
    {
        return Some(((16 * high + low) as u8, 3));
    }
    let byte = match rest.first()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 0x07,
        b'b' => 0x08,
        other => *other,
    };
    Some((byte, 1))
}
