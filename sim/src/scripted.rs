//! A stream whose other end follows a script.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fibra::sync::{Condvar, Mutex, MutexGuard};
use fibra::time;

/// A stream whose other end follows a script: the program under test reads and writes it as it would a socket.
///
/// It works with any code over [`Read`] and [`Write`], in a simulation and without one. Handles that `clone` makes are handles
/// of one stream.
///
/// # Panics
/// A write panics if it differs from the script. The drop of the last handle panics if a part of the script is left.
///
/// # Cancellation
/// A read that has to wait is a cancellation point, and so is a write.
///
/// # Examples
/// ```
/// use fibra_sim::Scripted;
/// use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
/// use std::time::{Duration, Instant};
///
/// fn greet(stream: Scripted) -> std::io::Result<String> {
///     let mut name = String::new();
///     BufReader::new(stream.clone()).read_line(&mut name)?;
///     write!(&stream, "hello, {name}")?;
///     Ok(name)
/// }
///
/// let stream = Scripted::new().sends(b"wor").waits(Duration::from_millis(1)).sends(b"ld\n").expects(b"hello, world\n");
/// assert_eq!(greet(stream).unwrap(), "world\n");
/// let stream = Scripted::new().sends(b"wor").fails(ErrorKind::ConnectionReset.into());
/// assert_eq!(greet(stream).unwrap_err().kind(), ErrorKind::ConnectionReset);
/// ```
#[derive(Clone, Default)]
pub struct Scripted(Arc<Shared>);

#[derive(Default)]
struct Shared {
    steps: Mutex<VecDeque<Step>>,
    /// A step is over.
    over: Condvar,
}

enum Step {
    Send(VecDeque<u8>),
    Expect(VecDeque<u8>),
    Wait(Duration),
    /// A wait that has begun.
    WaitTo(Instant),
    Fail(io::Error),
}

impl Scripted {
    /// Makes a stream with an empty script: a read finds the end.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on with bytes for the program to read.
    pub fn sends(self, bytes: &[u8]) -> Self {
        self.then(Step::Send(bytes.iter().copied().collect()))
    }

    /// Goes on when the program has written these bytes. Reads wait meanwhile.
    pub fn expects(self, bytes: &[u8]) -> Self {
        self.then(Step::Expect(bytes.iter().copied().collect()))
    }

    /// Goes on after that time.
    pub fn waits(self, time: Duration) -> Self {
        self.then(Step::Wait(time))
    }

    /// Goes on with an error for the next read or write.
    pub fn fails(self, error: io::Error) -> Self {
        self.then(Step::Fail(error))
    }

    fn then(self, step: Step) -> Self {
        self.0.steps.lock().push_back(step);
        self
    }
}

impl Shared {
    /// Returns the present step, after waits and steps that are over.
    fn step(&self) -> MutexGuard<'_, VecDeque<Step>> {
        loop {
            let mut steps = self.steps.lock();
            match steps.front() {
                Some(Step::Send(bytes) | Step::Expect(bytes)) if bytes.is_empty() => {
                    steps.pop_front();
                    self.over.notify_all();
                }
                Some(Step::Wait(time)) => {
                    let end = time::now() + *time;
                    steps[0] = Step::WaitTo(end);
                }
                Some(Step::WaitTo(end)) => {
                    let end = *end;
                    // Under the lock: the other direction waits as well. A cancel leaves the step.
                    fibra::sleep_until(end);
                    steps.pop_front();
                }
                _ => return steps,
            }
        }
    }
}

impl Read for &Scripted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut steps = self.0.step();
            match steps.front_mut() {
                Some(Step::Send(bytes)) => return bytes.read(buf),
                Some(Step::Fail(_)) => return fail(steps),
                Some(Step::Expect(_)) => self.0.over.wait(&mut steps),
                // Over by now.
                Some(Step::Wait(_) | Step::WaitTo(_)) => {}
                None => return Ok(0),
            }
        }
    }
}

impl Write for &Scripted {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let mut steps = self.0.step();
        match steps.front_mut() {
            Some(Step::Expect(bytes)) => {
                let len = buf.len().min(bytes.len());
                let expected: Vec<u8> = bytes.drain(..len).collect();
                let text = [&buf[..len], &expected].map(|bytes| bytes.escape_ascii().to_string());
                assert!(
                    buf[..len] == expected,
                    "\"{}\" was written in the place of \"{}\"",
                    text[0],
                    text[1]
                );
                if bytes.is_empty() {
                    steps.pop_front();
                    self.0.over.notify_all();
                }
                Ok(len)
            }
            Some(Step::Fail(_)) => fail(steps),
            _ => panic!("\"{}\" was written where the script expects nothing", buf.escape_ascii()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the error of a failing step.
fn fail(mut steps: MutexGuard<'_, VecDeque<Step>>) -> io::Result<usize> {
    match steps.pop_front() {
        Some(Step::Fail(error)) => Err(error),
        _ => unreachable!("the caller has seen the step"),
    }
}

impl Read for Scripted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }
}

impl Write for Scripted {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let is_over =
            |step: &Step| matches!(step, Step::Send(bytes) | Step::Expect(bytes) if bytes.is_empty());
        let left = self.steps.get_mut().iter().filter(|step| !is_over(step)).count();
        if left > 0 && !thread::panicking() {
            panic!("steps of the script that are left: {left}");
        }
    }
}
