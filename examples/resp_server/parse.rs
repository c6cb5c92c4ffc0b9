//! Parses the requests of RESP as their bytes arrive: arrays of byte strings, and typed lines.
//!
//! Parsed bytes are not parsed again, except one line, even if they arrive one by one. The memory for a
//! request is proportional to the bytes received, whatever lengths it announces.

use std::error::Error;
use std::fmt;
use std::ops::Range;

/// The longest argument. Redis takes 512 MiB.
pub(crate) const BULK: usize = 1 << 20;
/// The most arguments of a request, the name of the command included. Redis takes two thousand million.
pub(crate) const ARGUMENTS: usize = 1024;
/// The longest request.
pub(crate) const REQUEST: usize = 4 << 20;
/// The longest typed request, and the longest line with a length.
pub(crate) const LINE: usize = 4096;
const LENGTH: usize = 32;
/// The first size of the buffer.
const ROOM: usize = 16 * 1024;

/// The received bytes of a client, without the requests that were taken.
pub(crate) struct Input {
    bytes: Vec<u8>,
    filled: usize,
    /// The start of the next request, or of the last one taken.
    begin: usize,
    /// The end of the parsed part. This and the arguments count from `begin`.
    at: usize,
    arguments: Vec<Range<usize>>,
    /// The number of missing arguments, `None` before the line with their number.
    missing: Option<usize>,
}

impl Input {
    pub(crate) fn new() -> Input {
        let (bytes, arguments) = (vec![0; ROOM], Vec::new());
        Input { bytes, filled: 0, begin: 0, at: 0, arguments, missing: None }
    }

    /// Returns the free part of the buffer. `add` says how much of it was filled.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.forget_taken();
        self.bytes.copy_within(self.begin..self.filled, 0);
        self.filled -= self.begin;
        self.begin = 0;
        if self.filled == self.bytes.len() {
            self.bytes.resize(2 * self.filled, 0);
        } else if self.filled == 0 && self.bytes.len() > ROOM {
            // A client with one large request may be silent for long.
            self.bytes = vec![0; ROOM];
        }
        &mut self.bytes[self.filled..]
    }

    pub(crate) fn add(&mut self, count: usize) {
        self.filled += count;
        assert!(self.filled <= self.bytes.len(), "there was no room for that");
    }

    /// Takes the next request if it is complete. After an error the rest is meaningless.
    pub(crate) fn next(&mut self) -> Result<Option<Request<'_>>, Malformed> {
        loop {
            self.forget_taken();
            let has_grown = match self.missing {
                None => self.first_line()?,
                Some(missing) => self.argument(missing)?,
            };
            match (has_grown, self.missing) {
                (false, _) => return Ok(None),
                // An empty line, or an empty array.
                (true, Some(0)) if self.arguments.is_empty() => {}
                (true, Some(0)) => break,
                (true, _) => {}
            }
        }
        Ok(Some(Request { bytes: &self.bytes[self.begin..], arguments: &self.arguments }))
    }

    /// Returns whether a part of a request is there, after `next` has found no more complete ones.
    pub(crate) fn is_begun(&self) -> bool {
        self.begin < self.filled
    }

    /// Skips the request that was taken last.
    fn forget_taken(&mut self) {
        if self.missing == Some(0) {
            self.begin += self.at;
            self.at = 0;
            self.missing = None;
            self.arguments.clear();
        }
    }

    /// Takes the first line of a request. Returns `false` if it is incomplete.
    fn first_line(&mut self) -> Result<bool, Malformed> {
        let missing = match self.rest().first() {
            None => return Ok(false),
            Some(b'*') => {
                let Some(count) = self.length("too big mbulk count string", "invalid multibulk length")?
                else {
                    return Ok(false);
                };
                // As in Redis, a negative number is none.
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

    /// Takes one of the `missing` arguments of an array. Returns `false` if it is incomplete.
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

    /// Takes a line with a sign and a number.
    fn length(&mut self, too_long: &'static str, invalid: &'static str) -> Result<Option<i64>, Malformed> {
        let Some(line) = self.line(LENGTH, too_long)? else { return Ok(None) };
        match self.bytes[self.begin..][line].split_first() {
            Some((_, [digits @ .., b'\r'])) => integer(digits).map(Some).ok_or(Malformed(invalid)),
            _ => Err(Malformed(invalid)),
        }
    }

    /// Takes a line. Returns its range without the line end.
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

    /// Returns the bytes that are not parsed.
    fn rest(&self) -> &[u8] {
        &self.bytes[self.begin + self.at..self.filled]
    }
}

/// A complete request: the name of a command, and its arguments.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    bytes: &'a [u8],
    arguments: &'a [Range<usize>],
}

impl<'a> Request<'a> {
    /// Returns the number of arguments, the name included. It is never 0.
    pub(crate) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Returns an argument by number; 0 is the name.
    pub(crate) fn argument(&self, number: usize) -> &'a [u8] {
        &self.bytes[self.arguments[number].clone()]
    }
}

/// The reason why a request is malformed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Malformed {}

/// Parses digits that are written as a number is printed.
pub(crate) fn integer(digits: &[u8]) -> Option<i64> {
    match digits.strip_prefix(b"-").unwrap_or(digits) {
        [b'0'] if digits.len() == 1 => Some(0),
        [b'1'..=b'9', ..] => str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

/// Splits a line at its spaces like a shell. Each word is unquoted in place, since that makes it no longer.
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

/// Moves the word at `from` down to `to` without its quotes. Returns both ends.
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
                // A closing quote ends its word.
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

/// Decodes an escape. Returns its byte and its length.
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
