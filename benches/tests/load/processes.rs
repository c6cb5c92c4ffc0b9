//! Processes and their streams: readers that go away, children of children, servers that say odd things.

use super::{
    Folder, HANG, LONG, child_in_role, command, echo, number, run, run_out, serve, signal, status, text,
};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// A pipe without a reader.
fn unread() -> Stdio {
    io::pipe().expect("a pipe").1.into()
}

#[test]
fn server_and_generator_have_the_processors_that_they_are_to_have() {
    let folder = Folder::new("pinned");
    let options = ["--server", "echo_server", "--no-cross-check", "--duration", LONG];
    let load = command(&folder, &options).spawn().expect("load can be started");
    let allowed_to = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs until it is ended");
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.expect("the kernel tells").trim().to_owned()
    };
    let allowed = |role| allowed_to(child_in_role(load.id(), role));
    // A role is taken up a moment after the process is seen.
    let pinned = |role| {
        let deadline = Instant::now() + HANG;
        loop {
            match allowed(role).parse::<u64>() {
                Ok(cpu) => return cpu,
                Err(_) => assert!(Instant::now() < deadline, "{role} is on {}", allowed(role)),
            }
            thread::sleep(Duration::from_millis(10));
        }
    };
    // It listens for signals before it starts them.
    for role in ["echo_server", "generator"] {
        child_in_role(load.id(), role);
    }
    // More than one processor, which is a list or a range.
    let is_pinned = allowed_to(std::process::id()).parse::<u64>().is_err();
    let seen = is_pinned.then(|| (pinned("echo_server"), pinned("generator")));
    signal("INT", load.id());
    assert_eq!(status(&run_out(load)), 130);
    let figures = folder.figures();
    let told = |role| figures["pinned"][role].as_u64();
    assert_eq!((told("server"), told("generator")), seen.unzip(), "{figures}");
    assert!(seen.is_none_or(|(server, generator)| server != generator), "{figures}");
}

#[test]
fn a_reader_that_goes_away_costs_no_figures() {
    let folder = Folder::new("unread");
    let address = serve(|stream| echo(stream, |_| {})).to_string();
    for both in [false, true] {
        let log = folder.path.join(format!("{both}.hlog"));
        let mut load = command(&folder, &["--address", &address, "--no-cross-check"]);
        load.arg("--log").arg(&log).stdout(unread());
        if both {
            load.stderr(unread());
        }
        let output = load.output().expect("load can be started");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(number(&folder.figures(), "/servers/0/replies") > 0, "{output:?}");
        assert!(folder.page().ends_with("</html>\n") && log.exists(), "{output:?}");
    }
}

#[test]
fn what_a_command_has_started_ends_with_it() {
    let folder = Folder::new("grandchild");
    let address = serve(|stream| echo(stream, |_| {}));
    let file = folder.path.join("pid");
    for (rest, expected) in [(&*format!("echo listening on {address}; exec sleep 987"), 0), ("exit 3", 1)] {
        let start = format!("sleep 987 & echo $! > {}; {rest}", file.display());
        let output = run(command(&folder, &["--command", &format!("x=sh -c '{start}'"), "--no-cross-check"]));
        assert_eq!(status(&output), expected, "{output:?}");
        let pid = fs::read_to_string(&file).expect("the command has run");
        let deadline = Instant::now() + HANG;
        // A zombie has no command line.
        while fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|line| !line.is_empty()) {
            assert!(Instant::now() < deadline, "{pid} goes on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_server_may_print_what_is_no_text() {
    let folder = Folder::new("no-text");
    let address = serve(|stream| echo(stream, |_| {}));
    // It ends where there is no reader.
    let words = "while printf \"caf\\351\\n\"; do sleep 0.01; done; exit 7";
    let line = format!("x=sh -c 'trap \"\" PIPE; echo listening on {address}; {words}'");
    let output = run(command(&folder, &["--command", &line, "--no-cross-check"]));
    assert_eq!(status(&output), 0, "{output:?}");
    assert!(number(&folder.figures(), "/servers/0/replies") > 0, "{}", text(&output));
}

/// Interrupts a load that has not come to its first request, which is no fault of the server.
fn interrupt_early(folder: &Folder, load: Child) {
    signal("INT", load.id());
    let output = run_out(load);
    assert_eq!(status(&output), 130, "{output:?}");
    let (figures, printed) = (folder.figures(), text(&output));
    assert_eq!(number(&figures, "/servers/0/replies"), 0);
    assert_eq!(figures["servers"][0]["errors"].as_array().map(Vec::len), Some(0), "{figures}");
    assert!(printed.contains("report so far"), "{printed}");
}

#[test]
fn an_interrupt_is_seen_while_a_server_starts() {
    let folder = Folder::new("starting");
    for (name, told) in [("telling", ""), ("told", "{address}")] {
        let file = folder.path.join(name);
        let line = format!("x=sh -c 'echo > {}; exec sleep 987' {told}", file.display());
        let load = command(&folder, &["--command", &line]).spawn().expect("load can be started");
        while !file.exists() {
            thread::sleep(Duration::from_millis(10));
        }
        interrupt_early(&folder, load);
    }
}

#[test]
fn an_interrupt_is_seen_while_connections_are_made() {
    let folder = Folder::new("connecting");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    // SAFETY: the descriptor is that of a listener, which is alive, and any length of its queue is allowed.
    let answer = unsafe { libc::listen(listener.as_raw_fd(), 0) };
    assert_eq!(answer, 0, "{}", io::Error::last_os_error());
    let address = listener.local_addr().expect("a listener has an address");
    // It has room for one, and leaves the others waiting.
    let _first = TcpStream::connect(address).expect("room for one");
    let options = ["--address", &address.to_string(), "--timeout", LONG];
    let load = command(&folder, &options).spawn().expect("load can be started");
    child_in_role(load.id(), "generator");
    interrupt_early(&folder, load);
}

#[test]
fn a_load_that_is_stopped_for_a_while_has_its_results() {
    let folder = Folder::new("stopped");
    let (pieces, (stall, stalled)) = (AtomicUsize::new(0), mpsc::channel());
    let address = serve(move |stream| {
        echo(stream, |_| {
            // Well behind the warm-up.
            while pieces.fetch_add(1, SeqCst) >= 2000 {
                let _ = stall.send(());
                thread::park();
            }
            thread::sleep(Duration::from_millis(1));
        });
    });
    let options = ["--address", &address.to_string(), "--no-cross-check", "--duration", LONG];
    let load = command(&folder, &options).spawn().expect("load can be started");
    stalled.recv().expect("it asks");
    signal("INT", load.id());
    // The generator is told, and waits for the replies for a moment. It may then take two seconds for its last word.
    thread::sleep(Duration::from_millis(100));
    signal("STOP", load.id());
    thread::sleep(Duration::from_millis(2500));
    signal("CONT", load.id());
    let output = run_out(load);
    assert_eq!(status(&output), 130, "{output:?}");
    assert!(number(&folder.figures(), "/servers/0/replies") > 0, "{output:?}");
}

#[test]
fn what_cannot_be_written_is_said_before_a_server_is_loaded() {
    let folder = Folder::new("unwritable");
    let (connect, connected) = mpsc::channel();
    let address = serve(move |_| connect.send(()).expect("the test waits")).to_string();
    let taken = folder.path.to_str().expect("letters");
    for option in ["--json", "--html", "--log"] {
        let output = run(command(&folder, &["--address", &address, option, taken]));
        assert_eq!(status(&output), 1, "{output:?}");
        assert!(text(&output).contains("could not be written"), "{output:?}");
    }
    assert!(connected.try_recv().is_err(), "a server was loaded");
}
