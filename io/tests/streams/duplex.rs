//! A connection in memory behaves as a socket does.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::sides::{Side, beside, guarded};
use crate::common::{everywhere, kind, nap, pattern, runtime};
use crate::paused::{is_about, paused, taken};
use fibra_io::io::{DuplexStream, duplex};
use fibra_runtime::time::{now, settle};
use fibra_runtime::{spawn, timeout, wait};

/// Runs `promise` in a plain thread, and in virtual time.
fn in_both_times(promise: impl Fn()) {
    guarded(&promise);
    paused(promise);
}

/// A time after which what has not come will not come.
const SHORT: Duration = Duration::from_millis(20);
/// What has not come after this long does not come.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn bytes_come_out_in_order() {
    everywhere(|| {
        for capacity in [1, 7, 64, 100_000] {
            let (mut here, mut there) = duplex(capacity);
            let bytes = 20_000.min(capacity * 1000);
            let writer = beside(move || {
                for chunk in pattern(bytes).chunks(777) {
                    here.write_all(chunk).unwrap();
                }
            });
            let mut read = Vec::new();
            assert_eq!(there.read_to_end(&mut read).unwrap(), bytes);
            assert!(read == pattern(bytes));
            writer.join();
        }
    });
}

#[test]
fn both_directions_go_at_once() {
    everywhere(|| {
        let (here, mut there) = duplex(100);
        let here = Arc::new(here);
        let echo = beside(move || {
            let mut buf = [0; 64];
            while let n @ 1.. = there.read(&mut buf).unwrap() {
                there.write_all(&buf[..n]).unwrap();
            }
        });
        let writer = {
            let here = Arc::clone(&here);
            beside(move || {
                (&*here).write_all(&pattern(50_000)).unwrap();
                here.shutdown(Shutdown::Write).unwrap();
            })
        };
        let mut back = Vec::new();
        (&*here).read_to_end(&mut back).unwrap();
        assert!(back == pattern(50_000));
        writer.join();
        echo.join();
    });
}

#[test]
fn a_task_and_a_thread_can_talk() {
    guarded(|| {
        let (mut here, mut there) = duplex(10);
        let thread = std::thread::spawn(move || {
            let mut all = Vec::new();
            there.read_to_end(&mut all).unwrap();
            all
        });
        runtime(1).run(move || here.write_all(&pattern(10_000)).unwrap());
        assert!(thread.join().unwrap() == pattern(10_000));
    });
}

#[test]
fn a_writer_waits_for_room() {
    in_both_times(|| {
        let (mut here, mut there) = duplex(4);
        assert_eq!(here.write(b"abcdef").unwrap(), 4);
        here.set_write_timeout(Some(SHORT)).unwrap();
        assert_eq!(kind(here.write(b"x")), ErrorKind::WouldBlock);
        there.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(here.write(b"xyzw").unwrap(), 3);
        here.set_write_timeout(None).unwrap();
        let writer = beside(move || here.write_all(b"12345").unwrap());
        let mut rest = String::new();
        there.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "dxyz12345");
        writer.join();
    });
}

#[test]
fn timeouts_are_those_of_a_socket() {
    in_both_times(|| {
        let (mut here, _there) = duplex(4);
        assert_eq!(here.read_timeout().unwrap(), None);
        here.set_read_timeout(Some(SHORT)).unwrap();
        let spent = taken(|| assert_eq!(kind(here.read(&mut [0])), ErrorKind::WouldBlock));
        assert!(is_about(spent, SHORT) || !wait::in_task() && spent > SHORT, "{spent:?}");
        assert_eq!(kind(here.set_read_timeout(Some(Duration::ZERO))), ErrorKind::InvalidInput);
        assert_eq!(here.read_timeout().unwrap(), Some(SHORT));
        here.set_write_timeout(Some(SHORT)).unwrap();
        assert_eq!(here.write_timeout().unwrap(), Some(SHORT));
    });
}

#[test]
fn a_dropped_end_is_an_end_for_the_other() {
    everywhere(|| {
        let (mut here, mut there) = duplex(100);
        here.write_all(b"last words").unwrap();
        drop(here);
        let mut text = String::new();
        there.read_to_string(&mut text).unwrap();
        assert_eq!(text, "last words");
        assert_eq!(kind(there.write(b"x")), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_dropped_end_wakes_its_waiters() {
    everywhere(|| {
        let (here, mut there) = duplex(1);
        let reader = beside(move || there.read(&mut [0]).unwrap());
        nap(2);
        drop(here);
        assert_eq!(reader.join(), 0);
        let (here, mut there) = duplex(1);
        let writer = beside(move || kind(there.write_all(&[0; 100])));
        nap(2);
        drop(here);
        assert_eq!(writer.join(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn shutdown_ends_one_direction() {
    everywhere(|| {
        let (mut here, mut there) = duplex(100);
        here.write_all(b"ab").unwrap();
        here.shutdown(Shutdown::Write).unwrap();
        assert_eq!(kind(here.write(b"c")), ErrorKind::BrokenPipe);
        there.write_all(b"answer").unwrap();
        let mut buf = [0; 6];
        assert_eq!(there.read(&mut buf).unwrap(), 2);
        assert_eq!(there.read(&mut buf).unwrap(), 0);
        here.read_exact(&mut buf).unwrap();
        assert_eq!(&buf, b"answer");
        there.write_all(b"unheard").unwrap();
        here.shutdown(Shutdown::Read).unwrap();
        assert_eq!(here.read(&mut buf).unwrap(), 0);
        assert_eq!(kind(there.write(b"x")), ErrorKind::BrokenPipe);
    });
}

#[test]
fn shutdown_wakes_the_own_reader() {
    everywhere(|| {
        let (here, _there) = duplex(1);
        let here = Arc::new(here);
        let reader = {
            let here = Arc::clone(&here);
            beside(move || (&*here).read(&mut [0]).unwrap())
        };
        nap(2);
        here.shutdown(Shutdown::Both).unwrap();
        assert_eq!(reader.join(), 0);
    });
}

#[test]
fn an_empty_transfer_does_not_wait() {
    everywhere(|| {
        let (mut here, mut there) = duplex(1);
        here.write_all(b"x").unwrap();
        assert_eq!(here.write(&[]).unwrap(), 0);
        assert_eq!(here.read(&mut []).unwrap(), 0);
        there.read_exact(&mut [0]).unwrap();
        assert_eq!(there.read(&mut []).unwrap(), 0);
    });
}

#[test]
fn many_writers_and_readers_lose_nothing() {
    everywhere(|| {
        let (here, there) = duplex(10);
        let (here, there) = (Arc::new(here), Arc::new(there));
        let writers: Vec<_> = (0..4_u8)
            .map(|number| {
                let here = Arc::clone(&here);
                beside(move || (0..500).for_each(|_| (&*here).write_all(&[number]).unwrap()))
            })
            .collect();
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let there = Arc::clone(&there);
                beside(move || {
                    let mut all = Vec::new();
                    (&*there).read_to_end(&mut all).unwrap();
                    all
                })
            })
            .collect();
        writers.into_iter().for_each(Side::join);
        drop(here);
        let mut read: Vec<u8> = readers.into_iter().flat_map(Side::join).collect();
        read.sort_unstable();
        assert!(read == [[0; 500], [1; 500], [2; 500], [3; 500]].concat());
    });
}

#[test]
fn a_cancelled_wait_leaves_the_stream_as_it_is() {
    paused(|| {
        let (here, mut there) = duplex(2);
        let here = Arc::new(here);
        assert!(timeout(SHORT, || (&*here).read(&mut [0])).is_err());
        let writer = {
            let here = Arc::clone(&here);
            spawn(move || (&*here).write_all(b"abcd").unwrap())
        };
        settle();
        writer.cancel();
        assert!(writer.join().unwrap_err().is_cancelled());
        let mut two = [0; 2];
        there.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"ab");
        there.write_all(b"yz").unwrap();
        (&*here).read_exact(&mut two).unwrap();
        assert_eq!(&two, b"yz");
    });
}

#[test]
fn a_cancelled_task_drops_its_end() {
    paused(|| {
        let (mut here, mut there) = duplex(2);
        let reader = spawn(move || there.read(&mut [0]).unwrap());
        settle();
        reader.cancel();
        assert!(reader.join().unwrap_err().is_cancelled());
        assert_eq!(kind(here.write(b"x")), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_read_and_a_write_fail_at_their_deadlines() {
    in_both_times(|| {
        let (mut here, mut there) = duplex(2);
        let deadline = now() + SHORT;
        here.set_read_deadline(Some(deadline));
        here.set_write_deadline(Some(deadline));
        assert_eq!((here.read_deadline(), here.write_deadline()), (Some(deadline), Some(deadline)));
        assert_eq!(kind(here.read(&mut [0])), ErrorKind::WouldBlock);
        assert!(now() >= deadline);
        assert_eq!(kind(here.write_all(b"abc")), ErrorKind::WouldBlock);
        // What is there is read, and what there is room for is written.
        there.write_all(b"x").unwrap();
        here.read_exact(&mut [0]).unwrap();
        there.read_exact(&mut [0; 2]).unwrap();
        here.write_all(b"d").unwrap();
        here.set_read_deadline(None);
        here.set_read_timeout(Some(SHORT)).unwrap();
        assert_eq!(kind(here.read(&mut [0])), ErrorKind::WouldBlock, "the timeout is left");
        assert_eq!(there.read_deadline(), None, "each end has its own");
    });
}

/// Has a task make steps until its turn is over, each of them one that a thread waits for to do its own, and the tasks beside it
/// begin once all of these are done.
fn in_step(step: impl Fn() + Send + 'static, other: impl Fn() -> bool + Send + 'static) {
    guarded(|| {
        let done = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&done);
        let thread = thread::spawn(move || {
            while other() {
                counts.fetch_add(1, Ordering::SeqCst);
            }
        });
        runtime(1).run(move || {
            let steps = Arc::new(AtomicUsize::new(0));
            // Blocks the worker.
            let keep_up = {
                let steps = Arc::clone(&steps);
                move || {
                    let start = Instant::now();
                    while done.load(Ordering::SeqCst) < steps.load(Ordering::SeqCst) {
                        assert!(start.elapsed() < LONG, "the other end has not heard");
                        thread::sleep(Duration::from_micros(100));
                    }
                }
            };
            let beside = spawn(keep_up.clone());
            while !beside.is_finished() {
                steps.fetch_add(1, Ordering::SeqCst);
                step();
                keep_up();
                // It falls asleep, and is found so.
                thread::sleep(Duration::from_micros(200));
            }
            beside.join().unwrap();
        });
        thread.join().unwrap();
    });
}

#[test]
fn a_reader_hears_of_a_write_before_the_writer_gives_its_turn_up() {
    let (here, there) = duplex(16);
    in_step(move || (&here).write_all(b"x").unwrap(), move || (&there).read(&mut [0]).unwrap() > 0);
}

#[test]
fn a_writer_hears_of_a_read_before_the_reader_gives_its_turn_up() {
    let (here, there) = duplex(1);
    (&there).write_all(b"x").unwrap();
    in_step(move || (&here).read_exact(&mut [0]).unwrap(), move || (&there).write(b"x").is_ok());
}

/// Reads in its destructor.
struct ReadsInDrop(DuplexStream, std::sync::mpsc::Sender<ErrorKind>);

impl Drop for ReadsInDrop {
    fn drop(&mut self) {
        _ = self.1.send(kind(self.0.read(&mut [0])));
    }
}

#[test]
fn a_destructor_that_would_wait_in_a_cancelled_task_times_out() {
    paused(|| {
        let (_here, there) = duplex(2);
        let (tell, told) = channel();
        let holder = spawn(move || {
            let _reads = ReadsInDrop(there, tell);
            fibra_runtime::sleep(Duration::from_secs(3600));
        });
        settle();
        holder.cancel();
        assert!(holder.join().unwrap_err().is_cancelled());
        assert_eq!(told.try_recv(), Ok(ErrorKind::TimedOut));
    });
}

#[test]
#[should_panic(expected = "capacity 0")]
fn a_stream_without_room_is_refused() {
    drop(duplex(0));
}

/// Never called: what users may do with it.
#[expect(dead_code, reason = "it is compiled, and that is the test")]
fn the_type_may_cross_threads() {
    fn both<T: Send + Sync + std::fmt::Debug>() {}
    both::<DuplexStream>();
}
