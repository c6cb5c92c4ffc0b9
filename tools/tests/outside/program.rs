//! The program that is looked at: this test binary, in a child.

use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, fs, process, thread};

use fibra_io::net::UnixStream;
use fibra_runtime::task::{self, Builder};
use fibra_runtime::{self as fibra, Runtime};
use fibra_sync::{Mutex, channel, select};

use crate::common::{deep, until_asleep};
use crate::rerun;

const NAME: &str = "program::program";
const LONG: Duration = Duration::from_secs(3600);
/// Says that both workers are to hang.
const HANGS: &str = "FIBRA_TEST_HANGS";
/// Ends the dump that the program takes of itself.
const END: &str = "-- end of the dump";

/// Runs in the child only: prints a dump of itself, and answers each line of its input by a task.
#[test]
fn program() {
    if !rerun::is_child() {
        return;
    }
    fibra_insight::install();
    let runtime = Runtime::builder().driver(fibra_io::driver()).workers(2).build().expect("a runtime");
    let safe = Arc::new(Mutex::new(()));
    let named = |name: &str| Builder::new().name(name);
    let own = Arc::clone(&safe);
    let auditor = named("auditor").spawn_on(&runtime.handle(), move || {
        let _guard = own.lock();
        deep(3, &mut task::park);
    });
    until_asleep(auditor.task());
    let customer = named("customer").spawn_on(&runtime.handle(), move || {
        deep(2, &mut || drop(safe.lock()));
    });
    let sleeper = runtime.spawn(|| fibra::sleep(LONG));
    let asleep = sleeper.task().clone();
    let joiner = named("joiner").spawn_on(&runtime.handle(), move || sleeper.join());
    let (_sender, first) = channel::bounded::<u32>(1);
    let (_other, second) = channel::bounded::<u32>(1);
    let chooser = named("chooser").spawn_on(&runtime.handle(), move || {
        select! {
            recv(first) -> _ => {}
            recv(second) -> _ => {}
        }
    });
    let outer = named("on a big stack").spawn_on(&runtime.handle(), || {
        deep(1, &mut || task::on_big_stack(1 << 20, || _ = deep(1, &mut task::park)));
    });
    let (mut reader, _writer) = UnixStream::pair().expect("a pair");
    let red = named("r\x1b[31med").spawn_on(&runtime.handle(), task::park);
    until_asleep(red.task());
    let reader = named("reader").spawn_on(&runtime.handle(), move || reader.read(&mut [0]));
    for task in [customer.task(), &asleep, joiner.task(), chooser.task(), outer.task(), reader.task()] {
        until_asleep(task);
    }
    if env::var_os(HANGS).is_some() {
        let running = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let running = Arc::clone(&running);
            named("hangs").spawn_on(&runtime.handle(), move || spins(&running));
        }
        while running.load(Ordering::Relaxed) < 2 {
            thread::yield_now();
        }
        println!("{END}");
    } else {
        println!("{}{END}", runtime.handle().dump());
    }
    for line in io::stdin().lines() {
        let line = line.expect("text");
        println!("{}", runtime.spawn(move || line).join().expect("a task"));
    }
    process::exit(0);
}

#[inline(never)]
fn spins(running: &AtomicUsize) {
    running.fetch_add(1, Ordering::Relaxed);
    loop {
        black_box(());
    }
}

/// A program that runs.
pub(crate) struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where its core file goes.
    folder: Scratch,
    /// What it says of itself: a dump, unless it hangs.
    pub(crate) dump: String,
}

impl Program {
    pub(crate) fn start() -> Self {
        Program::run(&rerun::child(NAME))
    }

    /// Starts one all of whose workers hang.
    pub(crate) fn hanging() -> Self {
        let mut command = rerun::child(NAME);
        command.env(HANGS, "1");
        Program::run(&command)
    }

    /// Starts another file with the same contents, but for a change.
    pub(crate) fn of_file(path: &Path) -> Self {
        let ordinary = rerun::child(NAME);
        let mut command = Command::new(path);
        command.args(ordinary.get_args());
        command.envs(ordinary.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Program::run(&command)
    }

    /// Starts one that has loaded a library.
    pub(crate) fn beside(library: &Path) -> Self {
        Program::run(rerun::child(NAME).env("LD_PRELOAD", library))
    }

    fn run(command: &Command) -> Self {
        let folder = scratch("cores");
        let mut command = with_cores(command, &folder);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut program = Program { child, input, output, folder, dump: String::new() };
        loop {
            match program.line() {
                line if line.contains(END) => break,
                line => program.dump += &line,
            }
        }
        // What libtest says comes first.
        let begin = program.dump.find("process ").unwrap_or(program.dump.len());
        program.dump.drain(..begin);
        program
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("text");
        assert!(read > 0, "it has ended: {}", self.dump);
        line
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Has a task of the program answer.
    pub(crate) fn answers(&mut self, question: &str) {
        writeln!(self.input, "{question}").expect("it reads");
        assert_eq!(self.line().trim_end(), question);
    }

    /// Ends it. Returns its core file, unless the system does not write one into its folder.
    pub(crate) fn core(&mut self) -> Option<PathBuf> {
        core_of(&mut self.child, &self.folder)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A file or a folder that is removed at the end of the test.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a path beside the test binary that no other test has.
pub(crate) fn scratch(name: &str) -> Scratch {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);

    let own = env::current_exe().expect("the path of the test binary");
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Scratch(own.with_file_name(format!("{name}-{}-{number}", process::id())))
}

/// Copies a file, in a process of its own: a file that this one writes cannot be run while another thread forks.
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status();
    assert!(copied.expect("cp runs").success());
}

/// Makes a command run in that folder, which is made, and leave a core file there if a signal ends it.
pub(crate) fn with_cores(command: &Command, folder: &Scratch) -> Command {
    fs::create_dir(&folder.0).expect("a folder");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"]).arg(command.get_program());
    shell.args(command.get_args()).current_dir(&folder.0);
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// Ends a process by a signal. Returns its core file, unless the system does not write one into that folder.
///
/// Not by gdb: what it writes ends at the first guard of a stack, where the kernel has guards inside of mappings.
pub(crate) fn core_of(child: &mut Child, folder: &Scratch) -> Option<PathBuf> {
    let killed = Command::new("kill").args(["-ABRT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    child.wait().expect("its end");
    let core =
        fs::read_dir(&folder.0).expect("the folder").next().map(|entry| entry.expect("an entry").path());
    if core.is_none() {
        let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
        println!("SKIPPED: the system does not write core files into the folder of the program: {pattern}");
    }
    core
}

/// Returns true if the program can be run, and says so if not.
pub(crate) fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        println!("SKIPPED: there is no {program}");
    }
    is_there
}

/// Makes a library with the note of tables that the tools do not read.
pub(crate) fn library_of_another_version() -> Scratch {
    let [source, library] = ["note", "library"].map(scratch);
    let note = r#"__asm__(".pushsection .note.fibra,\"a\",%note\n.long 6,8,99\n.asciz \"fibra\"\n.balign 4\n.quad 0\n.popsection");
int used(void) { return 1; }"#;
    fs::write(&source.0, note).expect("the source");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-xc"]).arg(&source.0).arg("-o").arg(&library.0);
    assert!(cc.status().expect("cc runs").success());
    library
}

/// Runs `fibra-dump`.
pub(crate) fn fibra_dump(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fibra-dump")).args(arguments).output().expect("it runs")
}

/// Returns what `fibra-dump` shows.
pub(crate) fn shown(arguments: &[&str]) -> String {
    let output = fibra_dump(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the lines about a task: its own, and those of its stack.
pub(crate) fn about<'a>(dump: &'a str, task: &str) -> &'a str {
    let begin =
        dump.find(&format!("\ntask '{task}'")).unwrap_or_else(|| panic!("no task '{task}' in {dump}"));
    dump[begin + 1..].split("\n\n").next().expect("one at the least")
}

/// Checks that the stacks of both tasks that hang are there.
pub(crate) fn both_hang(dump: &str) {
    let hangs = |task: &&str| task.starts_with("task 'hangs' (id ") && task.contains("running, spawned at ");
    let hanging: Vec<_> = dump.split("\n\n").filter(hangs).collect();
    assert_eq!(hanging.len(), 2, "{dump}");
    assert!(hanging.iter().all(|task| task.contains("program::spins")), "{dump}");
}
