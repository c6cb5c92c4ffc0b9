//! The tasks of an image as text, in the form of the runtime's own dumps.

#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use fibra_insight::outside::{Modules, Symbols, Walker};
use fibra_runtime::stacks::{Found, OwnerMark, counts_by_state, describe};
use fibra_runtime::task::{Backtrace, TaskState};

use crate::image::{self, Result};
use crate::modules::Loaded;
use crate::printable::printable;
use crate::sys::Stopped;
use crate::tasks::{self, FoundTask};
use crate::{core_file, modules, process};

/// All started tasks of a process; its text is that of the program `fibra-dump`.
///
/// # Examples
/// ```
/// # use fibra_tools::dump::Dump;
/// let error = Dump::of_process(i32::MAX).err().unwrap();
/// assert_eq!(error, "there is no process 2147483647");
/// ```
pub struct Dump {
    head: String,
    /// What is not shown, a line each.
    missing: Vec<String>,
    tasks: Vec<FoundTask>,
    /// In the order of the tasks; `None` for one without a stack.
    stacks: Vec<Option<Backtrace>>,
}

impl Dump {
    /// Takes a dump of a process that lives. Its threads stand still while its tasks are copied.
    ///
    /// # Errors
    /// There is no such process, the caller may not look into it, or it does not use this version of fibra.
    pub fn of_process(pid: i32) -> Result<Self> {
        let mut image = process::open(pid)?;
        let Loaded { modules, roots, others } = modules::of(&image)?;
        image.memory = image::by_pages(image.memory);
        let begin = Instant::now();
        let copy = || Stopped::stop(pid).map(|stopped| tasks::copy(&image, &roots, &stopped.contexts()));
        // On a thread that ends: until then a thread that has not stopped in time would stop at any moment, and stand still.
        let tasks = thread::scope(|scope| scope.spawn(copy).join().expect("no panic"));
        let tasks = tasks.map_err(|error| process::refused(pid, &error))?;
        let head = format!("{}, stopped for {:.1} ms", image.title, begin.elapsed().as_secs_f64() * 1e3);
        Ok(Dump { missing: others, ..Dump::new(head, tasks, &modules) })
    }

    /// Takes a dump of a core file, of the program `exe` or the one that the file names.
    ///
    /// # Errors
    /// The file cannot be read, is no core file of this kind of processor, is truncated, or lacks the data of the program; or
    /// the program is not the one that has left the core, or does not use this version of fibra.
    pub fn of_core(path: &Path, exe: Option<&Path>) -> Result<Self> {
        let (image, threads) = core_file::open(path, exe)?;
        let Loaded { modules, roots, others } = modules::of(&image)?;
        if roots.iter().any(|root| image.word(*root).is_none()) {
            let title = image.title;
            return Err(format!(
                "{title} lacks the data of the program, with the tasks in it: set the bits 0x33 in \
                 /proc/PID/coredump_filter before the next one is written"
            ));
        }
        let tasks = tasks::copy(&image, &roots, &threads);
        let dump = Dump::new(format!("core {}", image.title), tasks, &modules);
        let both = dump.tasks.iter().zip(&dump.stacks);
        let lacks = both.filter(|(task, stack)| task.state != TaskState::Running && stack.is_none()).count();
        let stacks = format!(
            "the stacks that the core lacks, {lacks} in all: `gcore` leaves them out; use --pid, or a core that the \
             kernel writes (kill -ABRT)"
        );
        let missing = others.into_iter().chain((lacks > 0).then_some(stacks)).collect();
        Ok(Dump { missing, ..dump })
    }

    fn new(head: String, tasks: Vec<FoundTask>, modules: &Arc<Modules>) -> Self {
        let mut walker = Walker::new(Arc::clone(modules));
        let walks: Vec<_> = tasks.iter().map(|task| walk(&mut walker, task)).collect();
        let places: BTreeSet<_> = walks.iter().flat_map(|(places, _)| places.iter().copied()).collect();
        let places: Vec<_> = places.into_iter().collect();
        // By the place of its own sources it knows fibra's functions.
        let functions = Symbols::new(&Modules::loaded()).resolve(modules, &places);
        let functions: HashMap<_, _> = places.into_iter().zip(functions).collect();
        let backtrace = |(places, is_complete): (Vec<(usize, bool)>, bool)| {
            let frames = places.iter().map(|place| (place.0, functions[place].clone()));
            (!places.is_empty()).then(|| Backtrace::new(frames, is_complete))
        };
        Dump { head, missing: Vec::new(), tasks, stacks: walks.into_iter().map(backtrace).collect() }
    }
}

/// Returns the addresses of a task's frames, each with whether it is a return address, and whether they are all there.
fn walk(walker: &mut Walker, task: &FoundTask) -> (Vec<(usize, bool)>, bool) {
    let (mut places, mut is_complete) = (Vec::new(), task.is_complete);
    for stack in &task.stacks {
        let mut frames = Vec::new();
        let mut read = |address| stack.word(address);
        is_complete &= walker.walk(Walker::MOST_FRAMES, stack.context, &mut read, &mut frames);
        places.extend(frames.iter().enumerate().map(|(index, address)| (*address, index > 0)));
    }
    (places, is_complete)
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.tasks.len() == 1 { "" } else { "s" };
        let counts = counts_by_state(self.tasks.iter().map(|task| task.state));
        writeln!(f, "{}: {} started task{plural}{counts}", printable(&self.head), self.tasks.len())?;
        self.missing.iter().try_for_each(|line| writeln!(f, "not shown: {line}"))?;
        for (task, stack) in self.tasks.iter().zip(&self.stacks) {
            writeln!(f, "\n{}", printable(&self.headline(task)?))?;
            let lines = stack.as_ref().map(Backtrace::to_string).unwrap_or_default();
            lines.lines().try_for_each(|line| writeln!(f, "  {}", printable(line)))?;
        }
        Ok(())
    }
}

impl Dump {
    /// Returns the line about a task.
    fn headline(&self, task: &FoundTask) -> std::result::Result<String, fmt::Error> {
        let mut line = format!("{task} {}", task.state.name());
        if let (Some(_), Some(place)) = (&task.name, &task.spawned_at) {
            write!(line, ", spawned at {place}")?;
        }
        if let Some(found) = &task.waits_for {
            line.push_str(", waiting for ");
            self.write_wait(&mut line, found)?;
            if found.object > 0 && found.descriptor.is_none() {
                write!(line, " at {:#x}", found.object)?;
            }
        }
        Ok(line)
    }

    fn write_wait(&self, f: &mut String, found: &Found) -> fmt::Result {
        f.write_str(&found.name)?;
        if let Some(descriptor) = found.descriptor {
            let direction =
                found.direction.map_or(String::new(), |direction| format!(", {}", direction.name()));
            write!(f, " {descriptor}{direction}")?;
        }
        let owner = found.owner.map(|mark| {
            let is_owner = |task: &&FoundTask| match mark {
                OwnerMark::Number(number) => task.id == number,
                OwnerMark::Address(address) => task.address == address,
            };
            (mark, self.tasks.iter().find(is_owner))
        });
        match owner {
            Some((_, Some(owner))) => write!(f, " of {owner}")?,
            Some((OwnerMark::Number(number), None)) => write!(f, " of the owner with number {number}")?,
            Some((OwnerMark::Address(_), None)) => f.write_str(" of a thread, or an owner that has ended")?,
            None => {}
        }
        for (index, arm) in found.arms.iter().enumerate() {
            f.write_str(if index == 0 { " (" } else { ", " })?;
            self.write_wait(f, arm)?;
        }
        if found.arms.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

impl fmt::Display for FoundTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, self.id, self.name.as_deref(), self.spawned_at.as_deref())
    }
}
