//! Promises of signals. Each test has signals of its own, since they are the whole process's; what ends a process runs in
//! one that the test has started: this very program, told by a variable what to do.

use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use fibra::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use fibra::signal::{SIGINT, SIGTERM, SIGUSR1, Signal, ctrl_c, exit_on_repeat};
use fibra::{CancelToken, Runtime, select, timeout, yield_now};
use signal_hook::low_level::raise;

/// A test that takes longer than this hangs.
const HANG: Duration = Duration::from_secs(60);
/// Says what a process that a test has started is to do.
const ROLE: &str = "FIBRA_SIGNAL_ROLE";

/// Runs `promise` in a plain thread, and in a task of one worker, of two, and of four.
fn everywhere(promise: impl Fn() + Send + Sync) {
    guarded(&promise);
    in_tasks(promise);
}

/// The same, in tasks only.
fn in_tasks(promise: impl Fn() + Send + Sync) {
    for workers in [1, 2, 4] {
        guarded(|| Runtime::builder().workers(workers).build().unwrap().run(&promise));
    }
}

/// Ends the process, and says so, if `f` does not end.
fn guarded(f: impl FnOnce()) {
    let (done, ended) = channel::<()>();
    let name = thread::current().name().unwrap_or("main").to_owned();
    let guard = thread::spawn(move || {
        if ended.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{name} hangs");
            std::process::abort();
        }
    });
    f();
    drop(done);
    guard.join().unwrap();
}

/// A signal that the system has no use for; each number is for one test.
fn spare(number: i32) -> i32 {
    assert!(number < 20);
    libc::SIGRTMIN() + number
}

/// Never called: what may go to other tasks and be shared by them.
fn _promises() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Signal>();
}

// ---- deliveries ----

#[test]
fn a_delivery_is_received_once() {
    everywhere(|| {
        let signal = Signal::new(spare(0)).unwrap();
        assert_eq!(signal.number(), spare(0));
        assert!(!signal.try_recv());
        for _ in 0..50 {
            raise(spare(0)).unwrap();
            signal.recv();
            // One that comes later than that shows in the next round.
            assert!(!signal.recv_timeout(Duration::from_millis(1)), "it was one");
        }
    });
}

#[test]
fn a_delivery_ends_a_wait_that_has_begun() {
    everywhere(|| {
        let signal = Signal::new(spare(1)).unwrap();
        let sender = thread::spawn(|| {
            thread::sleep(Duration::from_millis(5));
            raise(spare(1)).unwrap();
        });
        signal.recv();
        sender.join().unwrap();
    });
}

#[test]
fn a_signal_between_two_receives_is_kept_once_at_least() {
    // Those on their way: one that the handler has noted, and one that the thread has taken and does not tell of yet.
    const UNTOLD: usize = 2;
    everywhere(|| {
        let signal = Signal::new(spare(2)).unwrap();
        // Of what was sent while an earlier one listened.
        let mut owed = UNTOLD;
        for round in 0..50 {
            let sent = 1 + round % 3;
            (0..sent).for_each(|_| raise(spare(2)).unwrap());
            signal.recv();
            let mut received = 1;
            while signal.recv_timeout(Duration::from_millis(1)) {
                received += 1;
            }
            assert!(received <= owed + sent, "{received} of {sent} and {owed} before were received");
            owed = (owed + sent - received).min(UNTOLD);
        }
    });
}

#[test]
fn every_listener_sees_each_delivery() {
    everywhere(|| {
        let signals: Vec<Signal> = (0..50).map(|_| Signal::new(spare(3)).unwrap()).collect();
        for _ in 0..20 {
            raise(spare(3)).unwrap();
            signals.iter().for_each(Signal::recv);
        }
    });
}

#[test]
fn a_listener_does_not_see_what_others_received_before_it_came() {
    everywhere(|| {
        let first = Signal::new(spare(4)).unwrap();
        raise(spare(4)).unwrap();
        first.recv();
        let second = Signal::new(spare(4)).unwrap();
        assert!(!second.try_recv());
    });
}

#[test]
fn a_listener_sees_its_own_signal_only() {
    everywhere(|| {
        let (mine, other) = (Signal::new(spare(5)).unwrap(), Signal::new(spare(6)).unwrap());
        raise(spare(6)).unwrap();
        other.recv();
        assert!(!mine.try_recv());
    });
}

#[test]
fn a_signal_without_listeners_does_nothing() {
    everywhere(|| {
        drop(Signal::new(spare(7)).unwrap());
        raise(spare(7)).unwrap();
        let later = Signal::new(spare(7)).unwrap();
        raise(spare(7)).unwrap();
        later.recv();
    });
}

/// Each delivery is for one receiver of a shared listener: ten deliveries release ten, with none left behind.
#[test]
fn one_delivery_lets_one_of_several_go() {
    in_tasks(|| {
        let signal = Arc::new(Signal::new(spare(8)).unwrap());
        let gone = Arc::new(AtomicUsize::new(0));
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let (signal, gone) = (Arc::clone(&signal), Arc::clone(&gone));
                fibra::spawn(move || {
                    signal.recv();
                    gone.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        for sent in 1..=10 {
            raise(spare(8)).unwrap();
            while gone.load(Ordering::SeqCst) < sent {
                yield_now();
            }
            assert_eq!(gone.load(Ordering::SeqCst), sent);
        }
        waiting.into_iter().for_each(|task| task.join().unwrap());
    });
}

// ---- time, cancellation, select ----

#[test]
fn a_receive_with_a_time_ends_with_it() {
    everywhere(|| {
        let signal = Signal::new(spare(9)).unwrap();
        let begin = Instant::now();
        assert!(!signal.recv_timeout(Duration::from_millis(5)));
        assert!(begin.elapsed() >= Duration::from_millis(5));
        assert!(!signal.recv_deadline(begin));
        raise(spare(9)).unwrap();
        assert!(signal.recv_timeout(Duration::MAX));
        raise(spare(9)).unwrap();
        assert!(signal.recv_deadline(Instant::now() + HANG));
    });
}

#[test]
fn a_receive_that_unwinds_has_used_up_no_delivery() {
    in_tasks(|| {
        let signal = Signal::new(spare(10)).unwrap();
        assert!(timeout(Duration::from_millis(1), || signal.recv()).is_err());
        let token = CancelToken::new();
        token.cancel();
        let other = Signal::new(spare(10)).unwrap();
        raise(spare(10)).unwrap();
        other.recv();
        assert!(token.scope(|| signal.recv()).is_err());
        signal.recv();
    });
}

#[test]
fn a_signal_is_waited_for_beside_other_things() {
    everywhere(|| {
        let signal = Signal::new(spare(11)).unwrap();
        let (sender, receiver) = fibra::sync::channel::bounded(1);
        sender.send(7).unwrap();
        select! {
            wait(signal.event()) => unreachable!("the signal was not sent"),
            recv(receiver) -> number => assert_eq!(number, Ok(7)),
        }
        raise(spare(11)).unwrap();
        select! {
            wait(signal.event()) => {}
            recv(receiver) -> number => unreachable!("{number:?}"),
        }
        assert!(!signal.try_recv());
    });
}

#[test]
fn a_signal_fires_a_token() {
    in_tasks(|| {
        let signal = Signal::new(spare(12)).unwrap();
        let token = CancelToken::new();
        let watching = {
            let token = token.clone();
            fibra::spawn(move || {
                signal.recv();
                token.cancel();
            })
        };
        let served = token.scope(|| {
            raise(spare(12)).unwrap();
            fibra::sleep(Duration::MAX);
        });
        assert!(served.is_err());
        watching.join().unwrap();
    });
}

// ---- what the rest of the process sees of it ----

#[test]
fn a_signal_that_cannot_be_caught_is_an_error_and_changes_nothing() {
    everywhere(|| {
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
        let beyond = [0, -1, i32::MIN, libc::SIGRTMAX() + 1, 127, 128, i32::MAX];
        for number in [libc::SIGKILL, libc::SIGSTOP].into_iter().chain(faults).chain(beyond) {
            let error = Signal::new(number).map(drop).expect_err("an error is due");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{number}: {error}");
        }
        let signal = Signal::new(spare(13)).unwrap();
        raise(spare(13)).unwrap();
        signal.recv();
    });
}

/// The handler runs on the stack of the task.
#[test]
fn a_task_with_a_small_stack_may_be_interrupted() {
    in_tasks(|| {
        let signal = Signal::new(spare(14)).unwrap();
        let small = fibra::task::Builder::new().stack_size(32 * 1024);
        let task = small.spawn(|| (0..100).for_each(|_| raise(spare(14)).unwrap()));
        task.join().unwrap();
        signal.recv();
    });
}

/// Workers, system calls and waits of every kind go on, however often they are interrupted.
#[test]
fn a_storm_of_signals_disturbs_no_one() {
    in_tasks(|| {
        let signal = Signal::new(spare(15)).unwrap();
        let (ended, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let storm = {
            let (ended, sent) = (Arc::clone(&ended), Arc::clone(&sent));
            // SAFETY: the call only gives the number of this process.
            let process = unsafe { libc::getpid() };
            thread::spawn(move || {
                while !ended.load(Ordering::SeqCst) {
                    // SAFETY: two integers go in; the signal has a handler.
                    if unsafe { libc::kill(process, spare(15)) } == 0 {
                        sent.fetch_add(1, Ordering::SeqCst);
                    }
                    thread::sleep(Duration::from_micros(20));
                }
            })
        };
        while sent.load(Ordering::SeqCst) == 0 {
            yield_now();
        }
        let listener = fibra::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let echo = fibra::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buf = [0; 100];
            while let n @ 1.. = stream.read(&mut buf).unwrap() {
                stream.write_all(&buf[..n]).unwrap();
            }
        });
        let mut stream = fibra::net::TcpStream::connect(address).unwrap();
        for round in 0..200_u8 {
            stream.write_all(&[round; 50]).unwrap();
            let mut back = [0; 50];
            stream.read_exact(&mut back).unwrap();
            assert_eq!(back, [round; 50]);
            fibra::sleep(Duration::from_micros(50));
        }
        assert!(Command::new("sh").args(["-c", "exit 0"]).status().unwrap().success());
        drop(stream);
        echo.join().unwrap();
        ended.store(true, Ordering::SeqCst);
        fibra::unblock(|| storm.join().unwrap());
        signal.recv();
    });
}

// ---- processes of their own ----

/// A process that does what this test does in that role.
struct Actor {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Actor {
    fn start(test: &str, role: &str) -> Actor {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, role);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Actor { child, stdin, lines: BufReader::new(stdout) }
    }

    /// Reads until it says so.
    fn says(&mut self, what: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(what) {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ends without having said {what}");
        }
    }

    fn is_sent(&self, signal: i32) {
        // SAFETY: two integers go in; the process has not been waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Lets it go on.
    fn is_told(&mut self) {
        self.stdin.write_all(b"go on\n").unwrap();
    }

    /// Sees it end well.
    fn ends(mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

/// What this process is to do, if it was started by a test.
fn role() -> Option<String> {
    env::var(ROLE).ok()
}

fn say(what: &str) {
    println!("{what}");
    std::io::stdout().flush().unwrap();
}

/// Waits until the test lets this process go on.
fn go_on() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn ctrl_c_returns_once_and_another_one_does_nothing_by_itself() {
    if role().is_some() {
        // One worker: a task that yields goes on once the other task waits.
        let runtime = Runtime::builder().workers(1).build().unwrap();
        return runtime.run(|| {
            let waiting = fibra::spawn(ctrl_c);
            yield_now();
            say("ready");
            waiting.join().unwrap().unwrap();
            say("returned");
            fibra::unblock(go_on);
            say("still there");
        });
    }
    everywhere(|| {
        let test = "ctrl_c_returns_once_and_another_one_does_nothing_by_itself";
        let mut actor = Actor::start(test, "waits");
        actor.says("ready");
        actor.is_sent(SIGINT);
        actor.says("returned");
        actor.is_sent(SIGINT);
        actor.is_told();
        actor.says("still there");
        actor.ends();
    });
}

#[test]
fn a_listener_sees_the_second_ctrl_c_too() {
    if role().is_some() {
        return fibra::run(|| {
            let signal = Signal::new(SIGINT).unwrap();
            for word in ["first", "second", "third"] {
                say("ready");
                signal.recv();
                say(word);
            }
        });
    }
    everywhere(|| {
        let mut actor = Actor::start("a_listener_sees_the_second_ctrl_c_too", "waits");
        for word in ["first", "second", "third"] {
            actor.says("ready");
            actor.is_sent(SIGINT);
            actor.says(word);
        }
        actor.ends();
    });
}

/// Sent by another process while the listener is busy, and before it waits at all.
#[test]
fn a_signal_that_comes_early_is_kept() {
    if role().is_some() {
        return fibra::run(|| {
            let signal = Signal::new(SIGTERM).unwrap();
            say("ready");
            // Blocks the worker.
            go_on();
            signal.recv();
            say("received");
        });
    }
    everywhere(|| {
        let mut actor = Actor::start("a_signal_that_comes_early_is_kept", "waits");
        actor.says("ready");
        actor.is_sent(SIGTERM);
        actor.is_told();
        actor.says("received");
        actor.ends();
    });
}

/// The default, until a listener exists.
#[test]
fn a_process_that_does_not_listen_is_ended_as_ever() {
    if role().is_some() {
        // A shell that starts the tests in the background may have had them ignore it.
        // SAFETY: the default is restored, before there are other threads that would care.
        unsafe { libc::signal(SIGINT, libc::SIG_DFL) };
        return fibra::run(|| {
            let other = Signal::new(SIGTERM).unwrap();
            say("ready");
            other.recv();
        });
    }
    everywhere(|| {
        use std::os::unix::process::ExitStatusExt;
        let mut actor = Actor::start("a_process_that_does_not_listen_is_ended_as_ever", "listens to another");
        actor.says("ready");
        actor.is_sent(SIGINT);
        assert_eq!(actor.child.wait().unwrap().signal(), Some(SIGINT));
    });
}

#[test]
fn a_listener_that_cannot_be_made_can_be_made_later() {
    if role().is_some() {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure is writable and outlives the call.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
        let none = libc::rlimit { rlim_cur: 3, ..limit };
        // SAFETY: the structure is valid and outlives the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }, 0);
        let refused = Signal::new(SIGTERM).map(drop).expect_err("no descriptors are left");
        assert!(refused.to_string().contains("RLIMIT_NOFILE"), "{refused}");
        // SAFETY: as above.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        let signal = Signal::new(SIGTERM).unwrap();
        raise(SIGTERM).unwrap();
        return signal.recv();
    }
    everywhere(|| Actor::start("a_listener_that_cannot_be_made_can_be_made_later", "lacks").ends());
}

/// A wait for a signal that never comes does not hold up the end.
#[test]
fn the_end_of_a_runtime_ends_the_waits() {
    guarded(|| {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let waiting: Vec<_> =
            (0..20).map(|_| runtime.spawn(|| Signal::new(spare(16)).unwrap().recv())).collect();
        runtime.shutdown();
        waiting.into_iter().for_each(|task| assert!(task.join().unwrap_err().is_cancelled()));
    });
}

#[test]
fn the_second_ctrl_c_ends_a_process_whose_tasks_compute() {
    if role().is_some() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let interrupts = Signal::new(SIGINT).unwrap();
        exit_on_repeat(SIGINT).unwrap();
        let listens = thread::spawn(move || {
            interrupts.recv();
            say("first");
        });
        runtime.run(move || {
            let server = fibra::spawn(|| {
                say("ready");
                loop {
                    std::hint::spin_loop();
                }
            });
            yield_now();
            drop((server, listens));
        });
        unreachable!("the task computes for ever");
    }
    guarded(|| {
        let test = "the_second_ctrl_c_ends_a_process_whose_tasks_compute";
        let mut actor = Actor::start(test, "computes");
        actor.says("ready");
        actor.is_sent(SIGINT);
        actor.says("first");
        assert!(actor.child.try_wait().unwrap().is_none(), "the first one is for the listeners");
        actor.is_sent(SIGINT);
        assert_eq!(actor.child.wait().unwrap().code(), Some(128 + SIGINT));
    });
}

#[test]
fn a_signal_prints_a_dump_also_while_every_worker_computes() {
    let test = "a_signal_prints_a_dump_also_while_every_worker_computes";
    if let Some(role) = role() {
        let builder = Runtime::builder().workers(2);
        let builder = if role == "builder" { builder.dump_on_signal(SIGUSR1) } else { builder };
        let runtime = builder.build().unwrap();
        let spin = || loop {
            std::hint::spin_loop();
        };
        let sleeper =
            fibra::task::Builder::new().name("sleeper").spawn_on(&runtime.handle(), fibra::task::park);
        while sleeper.task().waits_for().is_none() {
            thread::yield_now();
        }
        for worker in [0, 1] {
            drop(runtime.handle().spawn_on_worker(worker, spin));
        }
        while runtime.handle().tasks().len() < 3 {
            thread::yield_now();
        }
        say("ready");
        go_on();
        std::process::exit(0);
    }
    guarded(|| {
        for (role, variable) in [("builder", ""), ("variable", "SIGUSR1")] {
            let mut command = std::process::Command::new(env::current_exe().unwrap());
            command.args([test, "--exact", "--nocapture"]).env(ROLE, role).env("FIBRA_DUMP", variable);
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
            let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
            while !out.next().expect("it is ready at some time").unwrap().ends_with("ready") {}
            // SAFETY: two integers go in; the process has not been waited for, so the number is its own.
            assert_eq!(unsafe { libc::kill(child.id() as i32, SIGUSR1) }, 0);
            let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
            let head = errors.find(|line| line.starts_with("fibra: process ")).unwrap();
            assert!(head.contains("3 tasks, 2 running, 0 ready, 1 suspended"), "{head}");
            let line = errors.find(|line| line.starts_with("task 'sleeper'")).unwrap();
            assert!(line.contains("suspended") && line.contains("waiting for park"), "{line}");
            child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
            assert!(child.wait().unwrap().success());
        }
    });
}

#[test]
fn a_variable_asks_for_a_dump_before_an_abort() {
    let test = "a_variable_asks_for_a_dump_before_an_abort";
    if role().is_some() {
        Runtime::builder().workers(1).run(|| std::process::abort()).unwrap();
    }
    guarded(|| {
        let mut command = std::process::Command::new(env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env(ROLE, "variable");
        let output = command.env("FIBRA_DUMP", "SIGUSR1, SIGABRT").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("1 task, 1 running"), "{errors}");
        assert!(errors.contains("at signal::a_variable_asks_for_a_dump_before_an_abort"), "{errors}");
    });
}

#[test]
fn a_variable_that_names_no_signal_fails_the_start() {
    if role().is_some() {
        let error = Runtime::builder().workers(1).build().unwrap_err();
        assert_eq!((error.kind(), role()), (ErrorKind::InvalidInput, Some(error.to_string())));
        return;
    }
    guarded(|| {
        let mut command = std::process::Command::new(env::current_exe().unwrap());
        command.args(["a_variable_that_names_no_signal_fails_the_start", "--exact"]);
        let message = "FIBRA_DUMP is 'SIGNAL', which names no signal; SIGQUIT would be one";
        command.env(ROLE, message).env("FIBRA_DUMP", "SIGNAL");
        assert!(command.output().unwrap().status.success());
    });
}
