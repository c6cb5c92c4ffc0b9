//! Streams whose other ends follow scripts.

use std::io::{ErrorKind, Read, Write};
use std::panic::catch_unwind;
use std::time::Duration;

use fibra_sim::{Scripted, Sim};

fn message(f: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(f).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn reads_and_writes_follow_the_script() {
    let mut stream = Scripted::new().sends(b"ab").expects(b"xyz").sends(b"c");
    let mut buf = [0; 9];
    assert_eq!(stream.read(&mut buf).unwrap(), 2);
    stream.write_all(b"xy").unwrap();
    assert_eq!(stream.write(b"z!").unwrap(), 1, "a write ends where the script ends it");
    assert_eq!(stream.read(&mut buf).unwrap(), 1);
    assert_eq!(stream.read(&mut buf).unwrap(), 0);
}

#[test]
fn a_read_waits_for_the_write_before_it_and_for_time() {
    let report = Sim::builder().run(|| {
        let stream = Scripted::new().expects(b"question").waits(Duration::from_secs(60)).sends(b"answer");
        let mut reader = stream.clone();
        let reader = fibra::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        fibra::sleep(Duration::from_secs(60));
        (&stream).write_all(b"question").unwrap();
        assert_eq!(reader.join().unwrap(), "answer");
    });
    assert!(report.elapsed() >= Duration::from_secs(120));
}

#[test]
fn a_wait_that_a_timeout_ends_goes_on_at_the_next_read() {
    let report = Sim::builder().run(|| {
        let mut stream = Scripted::new().waits(Duration::from_secs(60)).sends(b"x");
        for _ in 0..3 {
            assert!(fibra::timeout(Duration::from_secs(10), || stream.read(&mut [0])).is_err());
        }
        assert_eq!(stream.read(&mut [0]).unwrap(), 1);
        assert_eq!(stream.write(b"").unwrap(), 0);
    });
    assert!(report.elapsed() >= Duration::from_secs(60));
}

#[test]
fn errors_come_once_to_either_direction() {
    let reset = || ErrorKind::ConnectionReset.into();
    let mut stream = Scripted::new().fails(reset()).expects(b"x").fails(reset());
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    stream.write_all(b"x").unwrap();
    assert_eq!(stream.write(b"y").unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_program_that_leaves_the_script_is_told() {
    let wrong = message(|| _ = (&Scripted::new().expects(b"GET /")).write(b"PUT /"));
    assert_eq!(wrong, "\"PUT /\" was written in the place of \"GET /\"");
    let early = message(|| _ = (&Scripted::new().sends(b"hello")).write(b"\n"));
    assert_eq!(early, "\"\\n\" was written where the script expects nothing");
    assert_eq!(message(|| drop(Scripted::new().sends(b"unread"))), "steps of the script that are left: 1");
}
