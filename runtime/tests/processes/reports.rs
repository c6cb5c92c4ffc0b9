//! A report is written by one call, so that those of several threads and processes do not mix.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::hang_guard;
use crate::rerun::{child, is_child};
use fibra_runtime::{Runtime, task};

fn overflow(depth: usize) -> usize {
    let frame = std::hint::black_box([depth; 128]);
    match frame[0] {
        usize::MAX => depth,
        _ => overflow(depth + 1) + std::hint::black_box(&frame)[1],
    }
}

/// Standard error is a socket for messages here: each call that writes makes one.
#[test]
fn a_report_is_written_by_one_call() {
    if is_child() {
        let limit = Duration::from_millis(10);
        return Runtime::builder().workers(2).stall_limit(limit).build().unwrap().run(|| {
            let named = |name: &str| task::Builder::new().name(name);
            _ = named("unlucky").spawn(|| panic!("thirteen")).join();
            named("busy").spawn(move || thread::sleep(limit * 20)).join().unwrap();
            _ = named("deep").spawn(|| overflow(0)).join();
        });
    }
    let _guard = hang_guard();
    let (here, there) = UnixDatagram::pair().unwrap();
    let mut child = child("reports::a_report_is_written_by_one_call");
    let mut child = child.stdout(Stdio::null()).stderr(OwnedFd::from(there)).spawn().unwrap();
    here.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut said = Vec::new();
    let start = Instant::now();
    let mut message = [0; 4096];
    loop {
        let has_ended = child.try_wait().unwrap().is_some();
        while let Ok(n) = here.recv(&mut message) {
            said.push(String::from_utf8_lossy(&message[..n]).into_owned());
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{said:?}");
        if has_ended {
            break;
        }
    }
    for (name, what) in [("unlucky", "panicked"), ("busy", "limit"), ("deep", "overflowed")] {
        let is_report = |text: &&String| text.contains(&format!("'{name}'")) && text.contains(what);
        let report = said.iter().find(is_report);
        let report = report.unwrap_or_else(|| panic!("nothing in one piece of {name}: {said:#?}"));
        assert!(report.starts_with("fibra: ") && report.ends_with('\n'), "{report:?}");
    }
}
