//! The usage of a process, and the description of the machine, as the system tells them.

use crate::report::units;
use crate::sys;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

/// The resources that a process has used up to now.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time, user and system, all threads.
    pub cpu: Duration,
    /// Resident memory in bytes.
    pub resident: u64,
    /// The most resident memory it ever had, in bytes.
    pub peak: u64,
}

impl Usage {
    /// Reads the usage of process `pid`; `None` once it is gone, or where the system does not tell.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let cpu = sys::cpu_time_of(pid).ok()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Some(Self { cpu, resident: kibibytes(&status, "VmRSS:")?, peak: kibibytes(&status, "VmHWM:")? })
    }
}

/// Pins the calling thread to the `nth` of the processors that it may run on, counted from 0.
///
/// # Errors
///
/// `NotFound` where there are fewer, or what the system answered.
pub fn pin_thread(nth: usize) -> io::Result<()> {
    sys::pin_to(*sys::allowed_cpus().get(nth).ok_or(io::ErrorKind::NotFound)?)
}

/// Returns the value of a line such as `VmRSS:     1234 kB`, in bytes.
fn kibibytes(status: &str, key: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}

/// The machine on which the figures were taken.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name, as it calls itself.
    pub processor: String,
    /// How many processors this program may use.
    pub cores: usize,
    /// Physical memory in bytes.
    pub memory: u64,
    /// The operating system and the version of its kernel.
    pub kernel: String,
}

impl Machine {
    /// Describes this machine. An unknown field reads "unknown" or 0.
    #[must_use]
    pub fn describe() -> Self {
        let release = read_trimmed("/proc/sys/kernel/osrelease");
        let system = read_trimmed("/proc/sys/kernel/ostype");
        Self {
            processor: processor_name().unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory: kibibytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal:")
                .unwrap_or(0),
            kernel: match (system, release) {
                (Some(system), Some(release)) => format!("{system} {release}"),
                _ => std::env::consts::OS.into(),
            },
        }
    }

    /// Describes the machine in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { processor, cores, memory, kernel } = self;
        format!("{processor}, {cores} cores, {}, {kernel}", units::bytes(*memory))
    }
}

fn read_trimmed(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn processor_name() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests;
