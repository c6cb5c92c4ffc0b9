//! What `load` promises: when servers misbehave, and when they do not; in each of its modes; and of logs that are merged.

mod faults;
mod merge;
mod modes;
mod processes;
mod rates;

use fibra::net::TcpSocket;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs, process};

/// Longer than this no run here may take: all of them are planned for a few seconds.
const HANG: Duration = Duration::from_secs(60);

/// A plan that no test waits for to its end.
const LONG: &str = "10m";

/// The tests take turns: every load has the same two processors.
static TURN: Mutex<()> = Mutex::new(());

/// A folder of its own for each test, and its turn.
struct Folder {
    path: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Folder {
    fn new(test: &str) -> Self {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let path = env::temp_dir().join(format!("fibra-load-{test}-{}", process::id()));
        fs::create_dir_all(&path).expect("the temporary folder can be written");
        Self { path, _turn }
    }

    fn page(&self) -> String {
        fs::read_to_string(self.path.join("page.html")).expect("the page was written")
    }

    fn figures(&self) -> Value {
        let text = fs::read_to_string(self.path.join("figures.json")).expect("the figures were written");
        serde_json::from_str(&text).expect("the figures are JSON")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A short load, that is patient: what is slow here is the machine. What the test says comes last, and so counts.
fn command(folder: &Folder, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_load"));
    command.args(["--connections", "4", "--duration", "600ms", "--warmup", "100ms", "--timeout", "5s"]);
    command
        .arg("--html")
        .arg(folder.path.join("page.html"))
        .arg("--json")
        .arg(folder.path.join("figures.json"));
    command.args(options).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `load` against a server of the test's own.
fn load(folder: &Folder, address: SocketAddr, options: &[&str]) -> Output {
    let address = address.to_string();
    let mut all = vec!["--address", &address, "--no-cross-check"];
    all.extend(options);
    run(command(folder, &all))
}

/// Waits for the command, but not for ever.
fn run(mut command: Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    run_out(command.spawn().expect("load can be started"))
}

/// Waits until it ends, and ends it if it hangs.
fn run_out(load: Child) -> Output {
    let (pid, (done, ended)) = (load.id(), mpsc::channel::<()>());
    let guard = thread::spawn(move || {
        let hangs = ended.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout);
        if hangs {
            signal("KILL", pid);
        }
        hangs
    });
    let output = load.wait_with_output().expect("load ends");
    drop(done);
    assert!(!guard.join().expect("it could be killed"), "it hung, and was killed: {output:?}");
    output
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().expect("a shell");
    assert!(sent.success(), "kill -{name} {pid}");
}

/// Waits until a child of `parent` plays `role`, and returns its process id.
fn child_in_role(parent: u32, role: &str) -> u32 {
    let wanted = format!("FIBRA_LOAD_ROLE={role}");
    let deadline = Instant::now() + HANG;
    loop {
        let children =
            fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let plays = |pid: &u32| {
            let variables =
                fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
            variables.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        if let Some(pid) = children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(plays) {
            return pid;
        }
        assert!(Instant::now() < deadline, "no child plays {role}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Serves every connection with `serve`, each on a thread of its own, until the test process ends.
fn serve(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("a listener has an address");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Sends everything back, changed by `change`, which also counts the pieces.
fn echo(mut stream: TcpStream, mut change: impl FnMut(&mut [u8])) {
    let _ = stream.set_nodelay(true);
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        change(&mut buffer[..count]);
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// A port without a listener. The socket is bound to it, so that no other socket gets it, not even the client's.
fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port is free");
    let address = socket.local_addr().expect("a bound socket has an address");
    (socket, address)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {value}"))
}

fn percentile(figures: &Value, share: f64) -> Duration {
    let all =
        figures.pointer("/servers/0/latency/percentiles").and_then(Value::as_array).expect("percentiles");
    let wanted = all.iter().find(|entry| entry["share"] == share).expect("this share is among them");
    Duration::from_nanos(wanted["ns"].as_u64().expect("a time"))
}

/// How many requests were due in the measured time of a row, and how many should have been at its rate.
fn due(row: &Value, rate: f64) -> (u64, u64) {
    let seconds = number(row, "/elapsed_ns") as f64 / 1e9;
    (number(row, "/latency/count"), (rate * seconds) as u64)
}
