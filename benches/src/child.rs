//! A child process that ends with this process, together with its process group.

use crate::sys;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child as Process, ChildStderr, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How many of the last lines on standard error are kept.
const LINES_KEPT: usize = 8;

/// How long to wait for the end of standard error after the child's end: another process may hold the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A running child, the first of a process group: killed with the group and reaped when dropped.
pub(crate) struct Child {
    process: Process,
    /// The process group, until it was ended: later the number may be reused.
    group: Option<u32>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    /// Closed once all lines were read.
    all_read: Receiver<()>,
}

impl Child {
    /// Starts `command` and reads its standard error.
    ///
    /// The child has a process group of its own, so that Ctrl-C reaches the orchestrator alone.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let (reading, all_read) = mpsc::channel();
        let process = command.process_group(0).spawn()?;
        let mut child = Self { group: Some(process.id()), process, complaints: Arc::default(), all_read };
        if let Some(stderr) = child.process.stderr.take() {
            let kept = Arc::clone(&child.complaints);
            let listen = move || {
                keep_last(stderr, &kept);
                drop(reading);
            };
            thread::Builder::new().name("stderr".into()).spawn(listen)?;
        }
        Ok(child)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn take_stdin(&mut self) -> io::Result<ChildStdin> {
        self.process.stdin.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    pub(crate) fn take_stdout(&mut self) -> io::Result<ChildStdout> {
        self.process.stdout.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns how the child ended and its last lines, if it has ended.
    pub(crate) fn obituary(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok().flatten()?;
        self.end_group();
        Some(self.describe_end(status))
    }

    /// Waits until the child has ended. The error of a failure has its last lines.
    #[cfg(feature = "rivals")]
    pub(crate) fn wait(&mut self) -> Result<(), String> {
        let ended = self.process.wait();
        self.end_group();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.describe_end(status)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Ends the child and the processes of its group.
    fn end_group(&mut self) {
        if let Some(group) = self.group.take() {
            // As a rule the group is empty.
            let _ = sys::kill_group(group);
        }
    }

    fn describe_end(&self, status: ExitStatus) -> String {
        // Nothing is ever said there: it closes.
        let _ = self.all_read.recv_timeout(LAST_WORDS);
        let kept = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let words = kept.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
        let colon = if words.is_empty() { "" } else { ": " };
        format!("{}{colon}{words}", describe(status))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end_group();
        // It may have left its group, or have ended already; then it is only reaped.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads JSON values from a child, one a line, in a thread, so that its silence is noticed.
///
/// A line that is no such value ends the reading, and with it the child.
pub(crate) fn listen<E: DeserializeOwned + Send + 'static>(stdout: ChildStdout) -> io::Result<Receiver<E>> {
    let (tell, told) = mpsc::channel();
    let listen = move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let mut events = lines.map_while(|line| serde_json::from_str(&line).ok());
        events.all(|event| tell.send(event).is_ok());
    };
    thread::Builder::new().name("events".into()).spawn(listen)?;
    Ok(told)
}

/// Carries out the order on the standard input.
pub(crate) fn obey<O: DeserializeOwned>(
    program: &str,
    carry_out: impl FnOnce(O) -> io::Result<()>,
) -> ExitCode {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    match read.and_then(|_| carry_out(serde_json::from_str(&line)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}{error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes one event as a line on the standard output.
pub(crate) fn say(event: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Reads to the end, so that the child never blocks on the pipe. Keeps the last lines.
fn keep_last(stderr: ChildStderr, kept: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while reader.by_ref().take(4096).read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LINES_KEPT {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).trim().to_owned());
        line.clear();
    }
}
