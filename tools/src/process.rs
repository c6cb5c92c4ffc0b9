//! A process that lives.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::image::{Image, Mapping, Result};

/// Opens the memory of a process.
///
/// # Errors
/// There is no such process, or the caller may not look into it.
pub(crate) fn open(pid: i32) -> Result<Image> {
    let refused = |error| refused(pid, &error);
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(refused)?;
    let memory = File::open(format!("/proc/{pid}/mem")).map_err(refused)?;
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let file = |path: &str| match program.as_deref() == Some(Path::new(path)) {
        // Leads to it even if it was deleted or replaced.
        true => format!("/proc/{pid}/exe").into(),
        false if path.starts_with('/') => PathBuf::from(format!("/proc/{pid}/root{path}")),
        false => path.into(),
    };
    Ok(Image {
        title: format!("process {pid}"),
        memory: Arc::new(move |address, into: &mut [u8]| memory.read_exact_at(into, address as u64).ok()),
        mappings: maps.lines().filter_map(|line| mapping(line, file)).collect(),
    })
}

/// Tells the user why a process cannot be looked into.
pub(crate) fn refused(pid: i32, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no process {pid}"),
        // Its parent has not taken note of its end yet.
        _ if error.raw_os_error() == Some(libc::ESRCH) => format!("process {pid} has ended"),
        io::ErrorKind::PermissionDenied => format!(
            "no permission to look into process {pid}: it is of another user, is traced already, or \
             kernel.yama.ptrace_scope forbids it"
        ),
        _ => format!("process {pid}: {error}"),
    }
}

/// Reads a line of `maps`: `7f00-7f80 r-xp 00001000 fe:00 1234   /path`.
fn mapping(line: &str, file: impl Fn(&str) -> PathBuf) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |hex| u64::from_str_radix(hex, 16).ok();
    let (offset, path) = (number(fields.nth(1)?)?, fields.nth(2).unwrap_or_default().trim_start());
    Some(Mapping {
        range: number(start)? as usize..number(end)? as usize,
        file: (!path.is_empty()).then(|| (file(path), offset)),
    })
}
