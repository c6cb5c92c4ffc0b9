//! The standard streams, in processes of their own: this very test, started again with other streams.

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use common::sides::{Side, beside, guarded, pause};
use common::{runtime, until};
use fibra_io::io::{IsTerminal, stderr, stdin, stdout};
use fibra_io::process;
use fibra_runtime::{Runtime, spawn, timeout};

/// What the process is to do, and with how many workers; none is a plain thread.
const ROLE: &str = "FIBRA_STDIO_ROLE";
const WORKERS: &str = "FIBRA_STDIO_WORKERS";
/// The line with which it begins, after what the test harness says.
const BEGIN: &str = "begin";
/// A time after which what has not come will not come.
const SHORT: Duration = Duration::from_millis(30);

/// A process in some role; ended when dropped.
struct Actor(Child);

impl Actor {
    /// Starts one. Its output has been read up to its begin.
    fn start(role: &str, workers: usize, input: impl Into<Stdio>) -> (Actor, BufReader<ChildStdout>) {
        let mut actor = Actor::start_on(Stdio::piped(), role, workers, input);
        let mut output = BufReader::new(actor.0.stdout.take().unwrap());
        while !line(&mut output).ends_with(BEGIN) {}
        (actor, output)
    }

    /// Starts a process that writes there. Its output has not been read.
    fn start_on(output: impl Into<Stdio>, role: &str, workers: usize, input: impl Into<Stdio>) -> Actor {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "the_actor", "--nocapture"]).env(ROLE, role);
        command.env(WORKERS, workers.to_string()).stdin(input).stdout(output).stderr(Stdio::piped());
        Actor(command.spawn().unwrap())
    }

    fn input(&mut self) -> ChildStdin {
        self.0.stdin.take().unwrap()
    }

    fn errors(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.0.stderr.take().unwrap())
    }

    /// Sees the good end of the process.
    fn ends(mut self) {
        let mut errors = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            stderr.read_to_string(&mut errors).unwrap();
        }
        assert!(self.0.wait().unwrap().success(), "{errors}");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// The next line, without its newline.
fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    assert!(from.read_line(&mut line).unwrap() > 0, "a line, where the end came");
    line.trim_end().to_owned()
}

/// A terminal: the typing end, and that of the process.
fn terminal() -> (File, OwnedFd) {
    let (mut typist, mut process) = (0, 0);
    // SAFETY: the two numbers are writable, and everything else may be null.
    assert_eq!(unsafe { libc::openpty(&mut typist, &mut process, null_mut(), null(), null()) }, 0);
    // SAFETY: the call has made both descriptors, and there is no other owner.
    unsafe { (File::from_raw_fd(typist), OwnedFd::from_raw_fd(process)) }
}

/// Where an actor begins; as a test it does nothing.
#[test]
fn the_actor() {
    let Ok(role) = env::var(ROLE) else { return };
    let play = match role.as_str() {
        "echo" => echo,
        "all" => all,
        "patient" => patient,
        "queue" => queue,
        "talker" => talker,
        "chorus" => chorus,
        "parent" => parent,
        "farewell" => farewell,
        "hook" => hook,
        "unheard" => unheard,
        "closed" => closed,
        _ => unreachable!("no such role"),
    };
    writeln!(stdout(), "\n{BEGIN}").unwrap();
    match env::var(WORKERS).unwrap().parse().unwrap() {
        0 => play(),
        workers => runtime(workers).run(play),
    }
    std::process::exit(0);
}

/// Panics with the stream in its hands that its hooks write to: std's, and the runtime's in its place.
fn hook() {
    std::panic::set_hook(Box::new(|_| writeln!(stdout(), "std's hook").unwrap()));
    let builder = || Runtime::builder().driver(fibra_io::driver()).workers(1);
    let told = builder().on_task_panic(|_| writeln!(stdout(), "the runtime's hook").unwrap());
    for builder in [builder(), told] {
        let panics = || {
            let _held = stdout().lock();
            panic!("a panic");
        };
        assert!(builder.run(move || spawn(panics).join().unwrap_err().is_panic()).unwrap());
    }
}

/// Writes to a socket with a peer that stops reading.
fn unheard() {
    let (output, reader) = UnixStream::pair().unwrap();
    put(output, 2);
    let writer = spawn(move || stderr().write_all(&vec![b'x'; 4 << 20]).unwrap_err().kind());
    pause();
    reader.shutdown(Shutdown::Read).unwrap();
    assert_eq!(writer.join().unwrap(), ErrorKind::BrokenPipe);
}

/// Has no streams any more, as std sees it as well, and then some again.
fn closed() {
    let kept = [0, 1, 2].map(|number| {
        // SAFETY: the stream is open, and belongs to the whole process.
        let stream = unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned().unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { libc::close(number) }, 0);
        stream
    });
    let mut text = String::new();
    let outcomes = [
        std::io::stdin().read_to_string(&mut text).unwrap(),
        std::io::stderr().write_vectored(&[IoSlice::new(b"two "), IoSlice::new(b"pieces")]).unwrap(),
    ];
    std::io::stdout().write_all(b"all\n").unwrap();
    assert_eq!(stdin().read_to_string(&mut text).unwrap(), outcomes[0]);
    assert_eq!(
        stderr().write_vectored(&[IoSlice::new(b"two "), IoSlice::new(b"pieces")]).unwrap(),
        outcomes[1]
    );
    stdout().write_all(b"all\n").unwrap();
    for (number, stream) in (0..).zip(kept) {
        put(stream, number);
    }
    writeln!(stdout(), "open again").unwrap();
    stdin().read_to_string(&mut text).unwrap();
    assert_eq!(text, "something");
}

/// Makes it the stream of that number.
fn put(file: impl Into<OwnedFd>, number: i32) {
    // SAFETY: both are open, and the second is a standard stream, which belongs to the whole process.
    assert_eq!(unsafe { libc::dup2(file.into().as_raw_fd(), number) }, number);
}

/// Says every line again.
fn echo() {
    for line in stdin().lock().lines() {
        let mut held = stdout().lock();
        write!(held, "you said ").unwrap();
        writeln!(stdout(), "{}", line.unwrap()).unwrap();
    }
    writeln!(stdout(), "no more lines").unwrap();
}

/// Tells how much there was.
fn all() {
    let mut text = String::new();
    assert_eq!(stdin().read_to_string(&mut text).unwrap(), text.len());
    writeln!(stdout(), "{} bytes, {:?}", text.len(), text.get(..3)).unwrap();
}

/// Gives up several times, then reads.
fn patient() {
    until(|| pending() == 3);
    let reader = spawn(|| stdin().read_line(&mut String::new()));
    until(|| pending() == 0);
    reader.cancel();
    assert!(reader.join().unwrap_err().is_cancelled());
    assert!(timeout(SHORT, || stdin().read_to_string(&mut String::new())).is_err());
    assert!(timeout(SHORT, || stdin().read_to_end(&mut Vec::new())).is_err());
    assert!(timeout(SHORT, || stdin().read_exact(&mut [0; 100])).is_err());
    assert!(timeout(SHORT, || stdin().lock().read_until(b'x', &mut Vec::new())).is_err());
    writeln!(stdout(), "gave up").unwrap();
    let mut text = String::new();
    stdin().read_line(&mut text).unwrap();
    assert_eq!(text, "hello\n");
    let mut start = [0; 2];
    stdin().read_exact(&mut start).unwrap();
    stdin().read_to_string(&mut text).unwrap();
    assert_eq!((&start, text.as_str()), (b"th", "hello\ne rest"));
}

/// The bytes that wait in the pipe.
fn pending() -> libc::c_int {
    let mut bytes = 0;
    // SAFETY: the number is writable and outlives the call.
    assert_eq!(unsafe { libc::ioctl(stdin().as_raw_fd(), libc::FIONREAD, &mut bytes) }, 0);
    bytes
}

/// Several wait for one line.
fn queue() {
    let (tell, locked) = channel();
    let first = spawn(move || {
        let mut input = stdin().lock();
        writeln!(stdout(), "locked").unwrap();
        tell.send(()).unwrap();
        let mut text = String::new();
        input.read_line(&mut text).unwrap();
        text
    });
    until(|| locked.try_recv().is_ok());
    let second = spawn(|| stdin().read_line(&mut String::new()));
    pause();
    second.cancel();
    assert!(second.join().unwrap_err().is_cancelled());
    writeln!(stdout(), "one has left").unwrap();
    assert_eq!(first.join().unwrap(), "a line\n");
}

/// Writes without a reader, and does something else then.
fn talker() {
    assert!(timeout(SHORT, || stdout().write_all(&vec![b'x'; 1 << 20])).is_err());
    writeln!(stderr(), "no reader is there").unwrap();
    until(|| timeout(SHORT, || stdout().write_all(b"\nat last")).is_ok());
}

/// Many write lines at once.
fn chorus() {
    let singers: Vec<_> = (b'a'..b'e')
        .map(|letter| {
            beside(move || {
                let text = char::from(letter).to_string().repeat(20_000);
                (0..20).for_each(|_| writeln!(stdout(), "{text}").unwrap());
            })
        })
        .collect();
    singers.into_iter().for_each(Side::join);
}

/// Has children that write where it does, and says what is a terminal.
fn parent() {
    let child = |text: &str, output: Stdio| {
        let mut echo = process::Command::new("sh");
        assert!(echo.args(["-c", text]).stdout(output).status().unwrap().success());
    };
    child("echo into the output", stdout().into());
    child("echo into the errors", stderr().into());
    let terminals = (stdin().is_terminal(), IsTerminal::is_terminal(&stdin().lock()), stderr().is_terminal());
    writeln!(stdout(), "{terminals:?}").unwrap();
}

/// Has a task use the streams while it unwinds from a cancellation, once when they are held and once when they are free.
fn farewell() {
    let (input, output) = (stdin().lock(), stdout().lock());
    let errors = [ErrorKind::TimedOut; 6].map(Err);
    assert_eq!(outcomes_in_farewell(), errors);
    drop((input, output));
    assert_eq!(outcomes_in_farewell(), [Ok(0), Ok(0), Ok(0), Ok(5), Ok(0), Ok(0)]);
}

fn outcomes_in_farewell() -> [Result<usize, ErrorKind>; 6] {
    struct Farewell(Sender<[Result<usize, ErrorKind>; 6]>);
    impl Drop for Farewell {
        fn drop(&mut self) {
            let (mut text, all) = (String::new(), "all");
            let outcomes = [
                stdin().read(&mut [0]),
                stdin().read_line(&mut text),
                stdin().read_to_string(&mut text),
                stdout().write(b"good "),
                stdout().write_all(b"bye").map(|()| 0),
                writeln!(stdout(), ", {all}").map(|()| 0),
            ];
            self.0.send(outcomes.map(|outcome| outcome.map_err(|error| error.kind()))).unwrap();
        }
    }
    let (tell, told) = channel();
    let (begin, begun) = channel();
    let leaving = spawn(move || {
        let _farewell = Farewell(tell);
        begin.send(()).unwrap();
        fibra_runtime::task::park();
    });
    until(|| begun.try_recv().is_ok());
    leaving.cancel();
    assert!(leaving.join().unwrap_err().is_cancelled());
    told.recv().unwrap()
}

#[test]
fn a_cancelled_task_that_unwinds_waits_for_no_stream() {
    guarded(|| {
        for workers in 1..3 {
            let (actor, mut output) = Actor::start("farewell", workers, Stdio::null());
            assert_eq!(line(&mut output), "good bye, all");
            actor.ends();
        }
    });
}

#[test]
fn output_that_a_terminal_does_not_take_holds_one_task() {
    guarded(|| {
        for workers in 1..3 {
            let (mut reader, terminal) = terminal();
            let mut actor = Actor::start_on(terminal, "talker", workers, Stdio::null());
            assert_eq!(line(&mut actor.errors()), "no reader is there");
            let mut output = Vec::new();
            let hang_up = reader.read_to_end(&mut output).unwrap_err();
            assert_eq!(hang_up.raw_os_error(), Some(libc::EIO));
            assert!(output.ends_with(b"at last"));
            actor.ends();
        }
    });
}

#[test]
fn children_write_into_the_streams_of_their_parent() {
    guarded(|| {
        for workers in 0..3 {
            let (_typist, input) = terminal();
            let (mut actor, mut output) = Actor::start("parent", workers, input);
            assert_eq!(line(&mut output), "into the output");
            assert_eq!(line(&mut output), "(true, true, false)");
            assert_eq!(line(&mut actor.errors()), "into the errors");
            actor.ends();
        }
    });
}

#[test]
fn lines_come_one_by_one_from_a_pipe() {
    guarded(|| {
        for workers in 0..3 {
            let (mut actor, mut output) = Actor::start("echo", workers, Stdio::piped());
            let mut input = actor.input();
            for text in ["one", "two", ""] {
                writeln!(input, "{text}").unwrap();
                assert_eq!(line(&mut output), format!("you said {text}").trim_end());
            }
            write!(input, "three").unwrap();
            drop(input);
            assert_eq!(line(&mut output), "you said three");
            assert_eq!(line(&mut output), "no more lines");
            actor.ends();
        }
    });
}

#[test]
fn lines_come_one_by_one_from_a_socket() {
    guarded(|| {
        for workers in 0..3 {
            let (mut here, there) = UnixStream::pair().unwrap();
            let (actor, mut output) = Actor::start("echo", workers, OwnedFd::from(there));
            writeln!(here, "one").unwrap();
            assert_eq!(line(&mut output), "you said one");
            drop(here);
            assert_eq!(line(&mut output), "no more lines");
            actor.ends();
        }
    });
}

#[test]
fn lines_come_one_by_one_from_a_terminal() {
    guarded(|| {
        for workers in 0..3 {
            let (mut typist, process) = terminal();
            let (actor, mut output) = Actor::start("echo", workers, process);
            for text in ["one", "two"] {
                writeln!(typist, "{text}").unwrap();
                assert_eq!(line(&mut output), format!("you said {text}"));
            }
            // What a terminal takes for the end.
            typist.write_all(&[4]).unwrap();
            assert_eq!(line(&mut output), "no more lines");
            actor.ends();
        }
    });
}

#[test]
fn all_of_a_file_can_be_read() {
    guarded(|| {
        let path = env::temp_dir().join(format!("fibra-stdio-{}", std::process::id()));
        std::fs::write(&path, "abc".repeat(100_000)).unwrap();
        for workers in 0..3 {
            let (actor, mut output) = Actor::start("all", workers, File::open(&path).unwrap());
            assert_eq!(line(&mut output), "300000 bytes, Some(\"abc\")");
            actor.ends();
            let (actor, mut output) = Actor::start("all", workers, Stdio::null());
            assert_eq!(line(&mut output), "0 bytes, None");
            actor.ends();
        }
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn a_cancelled_reader_loses_no_byte() {
    guarded(|| {
        for workers in 1..3 {
            let (mut actor, mut output) = Actor::start("patient", workers, Stdio::piped());
            let mut input = actor.input();
            write!(input, "hel").unwrap();
            assert_eq!(line(&mut output), "gave up");
            write!(input, "lo\nthe rest").unwrap();
            drop(input);
            actor.ends();
        }
    });
}

#[test]
fn a_waiter_for_the_lock_of_stdin_can_be_cancelled() {
    guarded(|| {
        for workers in 1..3 {
            let (mut actor, mut output) = Actor::start("queue", workers, Stdio::piped());
            assert_eq!(line(&mut output), "locked");
            assert_eq!(line(&mut output), "one has left");
            writeln!(actor.input(), "a line").unwrap();
            actor.ends();
        }
    });
}

#[test]
fn output_without_a_reader_holds_one_task() {
    guarded(|| {
        for workers in 1..3 {
            let (mut actor, mut output) = Actor::start("talker", workers, Stdio::null());
            assert_eq!(line(&mut actor.errors()), "no reader is there");
            let mut text = line(&mut output);
            assert!(text.bytes().all(|byte| byte == b'x') && text.len() < 1 << 20);
            text.clear();
            output.read_to_string(&mut text).unwrap();
            assert!(text.ends_with("at last"));
            actor.ends();
        }
    });
}

#[test]
fn lines_do_not_mix() {
    guarded(|| {
        for workers in 0..3 {
            let (actor, output) = Actor::start("chorus", workers, Stdio::null());
            let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
            assert_eq!(lines.len(), 80);
            for line in lines {
                assert!(line.len() == 20_000 && line.bytes().all(|byte| byte == line.as_bytes()[0]));
            }
            actor.ends();
        }
    });
}

#[test]
fn a_panic_hook_writes_to_the_stream_that_its_task_has() {
    guarded(|| {
        let (actor, output) = Actor::start("hook", 0, Stdio::null());
        let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["std's hook", "the runtime's hook"]);
        actor.ends();
    });
}

/// Of an actor that looks for itself.
fn ends_in_tasks(role: &str) {
    guarded(|| {
        for workers in 1..3 {
            let (actor, _output) = Actor::start(role, workers, Stdio::null());
            actor.ends();
        }
    });
}

#[test]
fn a_writer_to_a_socket_fails_once_its_peer_stops_to_read() {
    ends_in_tasks("unheard");
}

#[test]
fn a_stream_that_is_closed_is_an_empty_one_and_takes_everything() {
    guarded(|| {
        for workers in 0..3 {
            let (mut actor, mut output) = Actor::start("closed", workers, Stdio::piped());
            actor.input().write_all(b"something").unwrap();
            assert_eq!(line(&mut output), "open again");
            actor.ends();
        }
    });
}
