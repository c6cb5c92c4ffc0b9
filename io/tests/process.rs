//! Promises of child processes: in plain threads and in tasks, by descriptors of the processes and without.

#[expect(dead_code, reason = "these tests use a part of it")]
mod common;

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::UnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::sides::{beside, guarded};
use common::{everywhere, in_tasks, kind, runtime, until};
use fibra_io::os::unix::process::{CommandExt, ExitStatusExt};
use fibra_io::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use fibra_runtime::{Runtime, timeout, yield_now};

const MIB: usize = 1 << 20;

/// Does something with a child that runs that script, waited for in either way.
fn with_shell(script: &str, mut then: impl FnMut(&mut Command)) {
    then(&mut shell(script));
    then(shell(script).without_pidfd());
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// True while the system knows of a process of that number, running or ended.
fn is_known(id: u32) -> bool {
    Path::new("/proc").join(id.to_string()).exists()
}

/// Waits until the system has forgotten the process: it has ended and was waited for.
fn until_forgotten(id: u32) {
    until(|| !is_known(id));
}

/// Never called: what may go to other tasks and be shared by them.
fn _promises() {
    fn is_shared<T: Send + Sync + UnwindSafe + 'static>() {}
    is_shared::<Child>();
    is_shared::<ChildStdin>();
    is_shared::<ChildStdout>();
    is_shared::<ChildStderr>();
    fn is_sent<T: Send + Sync>() {}
    is_sent::<Command>();
}

// ---- waiting ----

#[test]
fn a_wait_gives_the_status() {
    everywhere(|| {
        with_shell("exit 3", |command| {
            let mut child = command.spawn().unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(3));
            assert_eq!(child.wait().unwrap().code(), Some(3), "once more");
            assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3), "and in another way");
            assert_eq!(child.wait_timeout(Duration::ZERO).unwrap().unwrap().code(), Some(3));
            assert!(!is_known(child.id()));
        });
    });
}

#[test]
fn a_wait_for_a_child_that_has_ended_already_gives_the_status() {
    everywhere(|| {
        with_shell("exit 4", |command| {
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
            until(|| fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") Z "));
            assert_eq!(child.wait().unwrap().code(), Some(4));
        });
    });
}

#[test]
fn a_wait_closes_the_standard_input_first() {
    everywhere(|| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        assert!(child.wait().unwrap().success());
        assert!(child.stdin.is_none());
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        while child.wait_timeout(Duration::from_millis(20)).unwrap().is_none() {}
    });
}

#[test]
fn a_wait_with_a_time_ends_with_it() {
    everywhere(|| {
        with_shell("read line; exit 5", |command| {
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            // Kept open: a wait closes what is still there.
            let mut stdin = child.stdin.take().unwrap();
            let begin = Instant::now();
            assert!(child.try_wait().unwrap().is_none());
            assert!(child.wait_timeout(Duration::from_millis(10)).unwrap().is_none());
            assert!(begin.elapsed() >= Duration::from_millis(10));
            assert!(child.wait_deadline(begin).unwrap().is_none());
            stdin.write_all(b"go on\n").unwrap();
            assert_eq!(child.wait_timeout(Duration::MAX).unwrap().unwrap().code(), Some(5));
            assert_eq!(child.wait_deadline(begin).unwrap().unwrap().code(), Some(5), "needs no time");
        });
    });
}

/// One worker: were it blocked, the task beside could not let the child go on.
#[test]
fn a_wait_does_not_stop_the_worker() {
    guarded(|| {
        for runtime in [runtime(1), Runtime::builder().workers(1).build().unwrap()] {
            runtime.run(|| {
                with_shell("read line", |command| {
                    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
                    let mut stdin = child.stdin.take().unwrap();
                    let waiting = beside(move || child.wait().unwrap().success());
                    yield_now();
                    stdin.write_all(b"go on\n").unwrap();
                    assert!(waiting.join());
                });
            });
        }
    });
}

#[test]
fn a_child_that_is_killed_says_so() {
    everywhere(|| {
        with_shell("exec sleep 100", |command| {
            let mut child = command.spawn().unwrap();
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
            child.kill().expect("nothing is left to be killed");
        });
    });
}

#[test]
fn a_wait_that_a_timeout_ended_can_be_made_again() {
    everywhere(|| {
        with_shell("read line; exit 6", |command| {
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            assert!(timeout(Duration::from_millis(5), || child.wait()).is_err());
            stdin.write_all(b"go on\n").unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(6));
        });
    });
}

/// One worker: no other worker runs the second task.
#[test]
fn repeated_try_waits_let_other_tasks_run() {
    guarded(|| {
        runtime(1).run(|| {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            let stdin = child.stdin.take();
            let other = fibra_runtime::spawn(move || drop(stdin));
            while child.try_wait().unwrap().is_none() {}
            other.join().unwrap();
        });
    });
}

/// A destructor of a cancelled task asks for the end of a child that does not end.
#[test]
fn a_task_that_unwinds_from_a_cancellation_does_not_wait() {
    struct Waits(Option<Child>);
    impl Drop for Waits {
        fn drop(&mut self) {
            let mut child = self.0.take().unwrap();
            assert_eq!(kind(child.wait()), ErrorKind::TimedOut);
            child.kill().unwrap();
        }
    }
    in_tasks(|| {
        with_shell("exec sleep 100", |command| {
            let (waits, began) = (Waits(Some(command.spawn().unwrap())), Arc::new(AtomicBool::new(false)));
            let begins = Arc::clone(&began);
            let task = fibra_runtime::spawn(move || {
                let _waits = waits;
                begins.store(true, Ordering::SeqCst);
                fibra_runtime::sleep(Duration::MAX);
            });
            until(|| began.load(Ordering::SeqCst));
            task.cancel();
            assert!(task.join().unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn two_hundred_children_at_once_are_all_waited_for() {
    in_tasks(|| {
        let tasks: Vec<_> = (0..200)
            .map(|number| {
                beside(move || {
                    let mut child = shell(&format!("exit {}", number % 100)).spawn().unwrap();
                    assert_eq!(child.wait().unwrap().code(), Some(number % 100));
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join());
    });
}

#[test]
fn a_child_moves_between_workers_threads_and_runtimes() {
    guarded(|| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        for workers in [1, 2] {
            child = runtime(workers).run(move || {
                assert!(child.wait_timeout(Duration::from_millis(2)).unwrap().is_none());
                child
            });
            assert!(child.wait_timeout(Duration::from_millis(2)).unwrap().is_none());
        }
        let waiting = thread::spawn(move || child.wait().unwrap());
        drop(stdin);
        assert!(waiting.join().unwrap().success());
    });
}

// ---- the streams ----

#[test]
fn a_child_answers_line_by_line() {
    everywhere(|| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        for round in 0..50 {
            writeln!(stdin, "line {round}").unwrap();
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            assert_eq!(line, format!("line {round}\n"));
        }
        drop(stdin);
        assert_eq!(lines.read(&mut [0]).unwrap(), 0);
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn a_mebibyte_goes_through_a_child_both_ways_at_once() {
    everywhere(|| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let sent: Vec<u8> = (0..MIB).map(|i| (i * 31 % 251) as u8).collect();
        let writer = {
            let sent = sent.clone();
            beside(move || stdin.write_all(&sent).unwrap())
        };
        let mut back = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut back).unwrap();
        writer.join();
        assert!(back == sent, "{} bytes came back, or others", back.len());
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn several_buffers_are_read_and_written_at_once() {
    everywhere(|| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let parts = [IoSlice::new(b"ab"), IoSlice::new(b"cde")];
        assert_eq!(child.stdin.as_ref().unwrap().write_vectored(&parts).unwrap(), 5);
        let (mut first, mut second) = ([0; 3], [0; 4]);
        let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(child.stdout.as_ref().unwrap().read_vectored(&mut parts).unwrap(), 5);
        assert_eq!((&first, &second), (b"abc", b"de\0\0"));
        child.wait().unwrap();
    });
}

#[test]
fn a_write_to_a_child_that_has_ended_is_a_broken_pipe() {
    everywhere(|| {
        let mut child = shell("exit 0").stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        child.wait().unwrap();
        assert_eq!(kind(stdin.write_all(&vec![0; MIB])), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_cancelled_read_has_taken_nothing() {
    in_tasks(|| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        assert!(timeout(Duration::from_millis(2), || stdout.read(&mut [0; 8])).is_err());
        child.stdin.as_mut().unwrap().write_all(b"late").unwrap();
        let mut buf = [0; 4];
        stdout.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"late");
        child.wait().unwrap();
    });
}

/// What leaves for another child is as std would have made it: `wc` knows nothing of pipes that do not wait.
#[test]
fn children_are_joined_by_a_pipe() {
    everywhere(|| {
        let script =
            "i=0; while [ $i -lt 50 ]; do echo line; i=$((i+1)); [ $((i % 25)) = 0 ] && sleep 0.02; done";
        let mut first = shell(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut second = Command::new("wc");
        second.arg("-l").stdin(first.stdout.take().unwrap());
        let counted = second.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&counted.stdout).trim(), "50");
        assert!(first.wait().unwrap().success());
    });
}

#[test]
fn streams_come_from_std_and_go_there() {
    everywhere(|| {
        let mut theirs = std::process::Command::new("cat");
        let theirs = theirs.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut child = Child::from(theirs);
        let stdin = std::process::ChildStdin::from(child.stdin.take().unwrap());
        let mut stdin = ChildStdin::from(OwnedFd::from(ChildStdin::from(stdin)));
        stdin.write_all(b"around").unwrap();
        drop(stdin);
        let stdout = std::process::ChildStdout::from(child.stdout.take().unwrap());
        // SAFETY: the descriptor is open, and the call touches no memory of ours.
        let flags = unsafe { libc::fcntl(stdout.as_raw_fd(), libc::F_GETFL) };
        assert_eq!(flags & libc::O_NONBLOCK, 0, "as std made it");
        let mut text = String::new();
        ChildStdout::from(stdout).read_to_string(&mut text).unwrap();
        assert_eq!(text, "around");
        assert!(child.wait().unwrap().success());
    });
}

/// Beside what this process has inherited itself and hands on, which std's children have as well.
#[test]
fn a_child_inherits_its_three_streams_and_nothing_else_of_ours() {
    let list = "ls /proc/self/fd";
    let theirs = std::process::Command::new("sh").args(["-c", list]).output().unwrap().stdout;
    everywhere(|| {
        let (_open, _pollable) = (common::pair(), fibra_io::Pollable::new(std::io::stdin()));
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let _stdin = other.stdin.take();
        assert!(other.wait_timeout(Duration::from_millis(1)).unwrap().is_none());
        drop(shell("read line").stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap());
        assert_eq!(shell(list).output().unwrap().stdout, theirs);
    });
}

// ---- output and status ----

#[test]
fn both_streams_are_read_at_once_however_much_comes() {
    everywhere(|| {
        let script = "head -c 1048576 /dev/zero >&2; head -c 1048576 /dev/zero; \
                      head -c 1048576 /dev/zero >&2; head -c 1048576 /dev/zero; exit 7";
        with_shell(script, |command| {
            let output = command.output().unwrap();
            assert_eq!((output.stdout.len(), output.stderr.len()), (2 * MIB, 2 * MIB));
            assert_eq!(output.status.code(), Some(7));
        });
    });
}

#[test]
fn an_output_has_what_was_asked_for_and_nothing_else() {
    everywhere(|| {
        let mut command = shell("cat; echo out; echo err >&2");
        let output = command.output().unwrap();
        assert_eq!(
            (&output.stdout[..], &output.stderr[..]),
            (&b"out\n"[..], &b"err\n"[..]),
            "an empty input"
        );
        let output = command.stderr(Stdio::null()).output().unwrap();
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b""[..]));
        let output = command.stdout(Stdio::null()).output().unwrap();
        assert!(output.stdout.is_empty());
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"in, ").unwrap();
        assert_eq!(child.wait_with_output().unwrap().stdout, b"in, out\n", "the input is closed first");
    });
}

/// The pipes were for the output alone.
#[test]
fn a_command_can_be_used_again() {
    everywhere(|| {
        let mut command = shell("exit 8");
        assert_eq!(command.output().unwrap().status.code(), Some(8));
        let mut child = command.spawn().unwrap();
        assert!(child.stdin.is_none() && child.stdout.is_none() && child.stderr.is_none());
        assert_eq!(child.wait().unwrap().code(), Some(8));
        assert_eq!(command.status().unwrap().code(), Some(8));
    });
}

#[test]
fn a_command_is_described_as_with_std() {
    everywhere(|| {
        let mut command = Command::new("sh");
        command.arg("-c").args(["echo $0 $ONE $TWO $THREE; pwd; exit $HOME"]).arg("zero");
        command.env("ONE", "1").envs([("TWO", "2"), ("THREE", "3")]).env_remove("THREE").env("HOME", "9");
        command.current_dir("/");
        assert_eq!(command.get_program(), "sh");
        assert_eq!(command.get_args().count(), 3);
        assert_eq!(command.get_envs().count(), 4);
        assert_eq!(command.get_current_dir(), Some(Path::new("/")));
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "zero 1 2\n/\n");
        assert_eq!(output.status.code(), Some(9));
        let path = std::env::var_os("PATH").unwrap();
        let cleared = shell("echo $CARGO_PKG_NAME").env_clear().env("PATH", path).output().unwrap();
        assert_eq!(cleared.stdout, b"\n");
        let renamed = Command::new("sh").arg0("another").args(["-c", "ps -o args= $$ || true"]).output();
        assert!(renamed.unwrap().status.success());
        let grouped = shell("kill -0 -$$").process_group(0).status().unwrap();
        assert!(grouped.success(), "a group of its own");
    });
}

#[test]
fn the_trait_for_unix_describes_a_child_as_the_type_does() {
    fn describe<C: CommandExt>(command: &mut C) {
        command.arg0("another").process_group(0);
        // SAFETY: a signal handler may call this.
        unsafe {
            command.pre_exec(|| {
                libc::umask(0o027);
                Ok(())
            });
        }
    }
    everywhere(|| {
        let mut command = shell("kill -0 -$$ && umask");
        describe(&mut command);
        let output = command.output().unwrap();
        assert!(output.status.success(), "a group of its own");
        assert_eq!(output.stdout, b"0027\n");
        assert_eq!(shell("kill -9 $$").status().unwrap().signal(), Some(libc::SIGKILL));
    });
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    everywhere(|| {
        assert_eq!(kind(Command::new("/no/such/program").spawn()), ErrorKind::NotFound);
        assert_eq!(kind(Command::new("/no/such/program").output()), ErrorKind::NotFound);
        assert_eq!(kind(Command::new("/").status()), ErrorKind::PermissionDenied);
    });
}

// ---- the end of a child without a waiter ----

#[test]
fn a_dropped_child_goes_on_and_leaves_no_zombie() {
    everywhere(|| {
        with_shell("read line; echo went on; read line", |command| {
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let id = child.id();
            let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            drop(child);
            stdin.write_all(b"go on\n").unwrap();
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).unwrap();
            assert_eq!(line, "went on\n");
            assert!(is_known(id));
            drop(stdin);
            until_forgotten(id);
        });
    });
}

#[test]
fn a_child_that_ended_before_it_was_dropped_leaves_no_zombie() {
    everywhere(|| {
        let mut child = shell("exit 0").stdout(Stdio::piped()).spawn().unwrap();
        let id = child.id();
        child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        until(|| fs::read_to_string(format!("/proc/{id}/stat")).unwrap().contains(") Z "));
        drop(child);
        assert!(!is_known(id));
    });
}

#[test]
fn a_child_is_killed_on_drop_by_choice() {
    everywhere(|| {
        with_shell("exec sleep 100", |command| {
            let child = command.kill_on_drop(true).spawn().unwrap();
            let id = child.id();
            assert!(is_known(id));
            drop(child);
            until_forgotten(id);
        });
    });
}

#[test]
fn a_cancelled_output_kills_the_child_by_choice() {
    in_tasks(|| {
        with_shell("echo $$; exec sleep 100", |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = command.kill_on_drop(true).spawn().unwrap();
            let id = child.id();
            let mut line = String::new();
            BufReader::new(child.stdout.as_ref().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line.trim().parse::<u32>().unwrap(), id);
            assert!(timeout(Duration::from_millis(5), move || child.wait_with_output()).is_err());
            until_forgotten(id);
        });
    });
}

#[test]
fn a_deadline_of_one_stream_ends_an_output_though_the_other_goes_on() {
    everywhere(|| {
        let mut command = Command::new("sleep");
        command.arg("100").stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let child = command.spawn().unwrap();
        let id = child.id();
        child.stdout.as_ref().unwrap().set_read_deadline(Some(Instant::now()));
        assert_eq!(kind(child.wait_with_output()), ErrorKind::WouldBlock);
        until_forgotten(id);
    });
}

#[test]
fn hundreds_of_dropped_children_leave_no_zombie() {
    everywhere(|| {
        let mut ids = Vec::new();
        for round in 0..100 {
            let mut command = shell("exec sleep 100");
            if round % 4 == 0 {
                command.without_pidfd();
            }
            ids.push(command.kill_on_drop(true).spawn().unwrap().id());
            ids.push(shell("exit 0").spawn().unwrap().id());
        }
        ids.into_iter().for_each(until_forgotten);
    });
}

/// The children are the runtime's tasks', which are unwound when it ends.
#[test]
fn the_end_of_a_runtime_kills_the_children_by_choice() {
    guarded(|| {
        for workers in [1, 2, 4] {
            let ids = runtime(workers).run(|| {
                let (send, receive) = std::sync::mpsc::channel();
                for _ in 0..10 {
                    let send = send.clone();
                    fibra_runtime::spawn(move || {
                        let mut child = shell("exec sleep 100").kill_on_drop(true).spawn().unwrap();
                        send.send(child.id()).unwrap();
                        drop(send);
                        child.wait().unwrap();
                    });
                }
                drop(send);
                fibra_runtime::unblock(move || receive.into_iter().collect::<Vec<u32>>())
            });
            assert_eq!(ids.len(), 10);
            ids.into_iter().for_each(until_forgotten);
        }
    });
}

#[test]
fn a_stream_that_is_read_by_several_gives_each_byte_once() {
    everywhere(|| {
        let mut child = shell("head -c 1048576 /dev/zero").stdout(Stdio::piped()).spawn().unwrap();
        let stdout = Arc::new(child.stdout.take().unwrap());
        assert!(stdout.as_fd().as_raw_fd() > 2);
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let stdout = Arc::clone(&stdout);
                beside(move || {
                    let mut count = 0;
                    let mut buf = [0; 5000];
                    while let n @ 1.. = (&*stdout).read(&mut buf).unwrap() {
                        count += n;
                    }
                    count
                })
            })
            .collect();
        assert_eq!(readers.into_iter().map(|reader| reader.join()).sum::<usize>(), MIB);
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn a_child_of_a_pinned_worker_may_use_all_processors() {
    let processors = || Command::new("nproc").output().unwrap().stdout;
    guarded(|| {
        let builder = Runtime::builder().driver(fibra_io::driver()).workers(1).pin_workers(true);
        assert_eq!(builder.build().unwrap().run(processors), processors());
    });
}
