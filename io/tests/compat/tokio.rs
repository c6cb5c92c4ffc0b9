//! Promises of tokio beside our tasks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::sides::guarded;
use crate::common::{everywhere, in_tasks, nap, pair, runtime};
use crate::rerun::{errors, is_child, rerun};
use fibra_io::compat::{Async, tokio as beside_tokio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn sockets_and_timers_and_tasks_of_tokio_work() {
    everywhere(|| {
        let sum = beside_tokio::block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let number = stream.read_u32().await.unwrap();
                stream.write_u32(number * 2).await.unwrap();
            });
            let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
            let begin = Instant::now();
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert!(begin.elapsed() >= Duration::from_millis(2));
            client.write_u32(21).await.unwrap();
            let answer = client.read_u32().await.unwrap();
            server.await.unwrap();
            answer
        });
        assert_eq!(sum, 42);
    });
}

#[test]
fn the_context_is_left_while_the_task_sleeps() {
    guarded(|| {
        runtime(1).run(|| {
            let tasks: Vec<_> = (0..20)
                .map(|i| {
                    fibra_runtime::spawn(move || {
                        for _ in 0..20 {
                            beside_tokio::block_on(async {
                                tokio::time::sleep(Duration::from_micros(i * 10)).await;
                                tokio::runtime::Handle::current();
                                tokio::task::yield_now().await;
                            });
                            assert!(tokio::runtime::Handle::try_current().is_err());
                            fibra_runtime::yield_now();
                        }
                    })
                })
                .collect();
            assert!(tokio::runtime::Handle::try_current().is_err());
            tasks.into_iter().for_each(|task| task.join().unwrap());
        });
    });
}

#[test]
fn a_cancel_drops_the_future_in_the_context() {
    struct Spawns(Arc<AtomicUsize>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let count = Arc::clone(&self.0);
            tokio::spawn(async move { count.fetch_add(1, Ordering::SeqCst) });
        }
    }
    in_tasks(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let spawns = Spawns(Arc::clone(&count));
        let late = fibra_runtime::timeout(Duration::from_millis(2), || {
            beside_tokio::block_on(async {
                let _spawns = spawns;
                tokio::time::sleep(Duration::from_secs(3600)).await;
            });
        });
        assert!(late.is_err());
        crate::common::until(|| count.load(Ordering::SeqCst) == 1);
        assert!(tokio::runtime::Handle::try_current().is_err());
        let spawns = Spawns(Arc::clone(&count));
        beside_tokio::block_on(async move { drop(spawns) });
        crate::common::until(|| count.load(Ordering::SeqCst) == 2);
    });
}

#[test]
fn a_poll_that_waits_is_told_so() {
    in_tasks(|| {
        let waits = fibra_runtime::spawn(|| {
            beside_tokio::block_on(async { fibra_runtime::sleep(Duration::from_millis(1)) });
        });
        let error = waits.join().unwrap_err();
        for word in ["forbid_suspend", "sleep", "compat::tokio::block_on", "await"] {
            assert!(error.to_string().contains(word), "{error}");
        }
        assert_eq!(beside_tokio::block_on(async { 1 }), 1);
    });
}

#[test]
fn a_task_that_unwinds_may_wait_in_the_drop_of_its_future() {
    struct Waits(Arc<AtomicUsize>);
    impl Drop for Waits {
        fn drop(&mut self) {
            fibra_runtime::sleep(Duration::from_millis(1));
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    guarded(|| {
        runtime(1).run(|| {
            let count = Arc::new(AtomicUsize::new(0));
            let tasks: Vec<_> = (0..10)
                .map(|_| {
                    let waits = Waits(Arc::clone(&count));
                    fibra_runtime::spawn(move || {
                        beside_tokio::block_on(async {
                            let _waits = waits;
                            tokio::time::sleep(Duration::from_secs(3600)).await;
                        });
                    })
                })
                .collect();
            nap(1);
            tasks.iter().for_each(|task| task.cancel());
            assert!(tasks.into_iter().all(|task| task.join().is_err_and(|error| error.is_cancelled())));
            assert_eq!(count.load(Ordering::SeqCst), 10);
            beside_tokio::block_on(tokio::time::sleep(Duration::from_micros(10)));
        });
    });
}

/// The two need each other's sleep: `time::sleep` wants the context when it is made.
#[test]
fn a_future_made_outside_of_the_context_is_refused_by_tokio_and_one_made_inside_is_not() {
    in_tasks(|| {
        let outside = std::panic::catch_unwind(|| drop(tokio::time::sleep(Duration::from_micros(1))));
        assert!(outside.is_err());
        beside_tokio::block_on(async { tokio::time::sleep(Duration::from_micros(1)).await });
    });
}

#[test]
fn our_sockets_are_polled_on_the_thread_of_tokio() {
    guarded(|| {
        let runtime = runtime(2);
        let (client, server) = runtime.run(|| {
            let (client, server) = pair();
            (Async::new(client), Async::new(server))
        });
        let tokio = beside_tokio::handle().unwrap();
        let (mut client, mut server) = (client, server);
        let echo = tokio.spawn(async move {
            let mut buf = [0; 1000];
            server.read_exact(&mut buf).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
            server.write_all(&buf).await.unwrap();
        });
        let back = runtime.run(|| {
            fibra_runtime::block_on(async {
                client.write_all(&[7; 1000]).await.unwrap();
                let mut back = [0; 1000];
                client.read_exact(&mut back).await.unwrap();
                back
            })
        });
        assert_eq!(back, [7; 1000]);
        fibra_runtime::block_on(echo).unwrap();
    });
}

#[test]
fn the_end_of_a_task_of_ours_is_awaited_on_the_thread_of_tokio() {
    guarded(|| {
        let runtime = runtime(1);
        let ours = runtime.spawn(|| {
            nap(1);
            42
        });
        let theirs = beside_tokio::handle().unwrap().spawn(async { ours.await.unwrap() });
        assert_eq!(runtime.run(|| fibra_runtime::block_on(theirs).unwrap()), 42);
        let lost = runtime.spawn(fibra_runtime::task::park);
        let task = lost.task().clone();
        let theirs = beside_tokio::handle().unwrap().spawn(lost);
        thread::sleep(Duration::from_millis(1));
        theirs.abort();
        assert!(fibra_runtime::block_on(theirs).unwrap_err().is_cancelled());
        assert!(!task.is_finished());
        task.unpark();
    });
}

#[test]
fn channels_of_tokio_pass_messages_between_tasks_of_ours_without_its_context() {
    in_tasks(|| {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(2);
        let sending = fibra_runtime::spawn(move || {
            for i in 0..1000 {
                fibra_runtime::block_on(sender.send(i)).unwrap();
            }
        });
        for i in 0..1000 {
            assert_eq!(fibra_runtime::block_on(receiver.recv()), Some(i));
        }
        assert_eq!(fibra_runtime::block_on(receiver.recv()), None);
        sending.join().unwrap();
        let lock = Arc::new(tokio::sync::Mutex::new(0));
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let lock = Arc::clone(&lock);
                fibra_runtime::spawn(move || {
                    for _ in 0..100 {
                        let mut count = fibra_runtime::block_on(lock.lock());
                        fibra_runtime::yield_now();
                        *count += 1;
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(*fibra_runtime::block_on(lock.lock()), 1000);
    });
}

#[test]
fn the_thread_of_tokio_is_told_that_it_would_wait_for_itself() {
    guarded(|| {
        let spawned = beside_tokio::handle().unwrap().spawn(async { beside_tokio::block_on(async { 1 }) });
        assert!(fibra_runtime::block_on(spawned).unwrap_err().is_panic());
        assert_eq!(beside_tokio::block_on(async { 1 }), 1);
    });
}

#[test]
fn the_first_calls_at_one_moment_start_one_runtime() {
    guarded(|| {
        let ids = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| ids.lock().unwrap().push(beside_tokio::handle().unwrap().id()));
            }
        });
        let ids = ids.into_inner().unwrap();
        assert!(ids.iter().all(|id| *id == ids[0]));
    });
}

#[test]
fn a_wait_on_the_thread_of_tokio_is_told_so() {
    in_tasks(|| {
        let (client, _server) = pair();
        let socket = move || _ = std::io::Read::read(&mut &client, &mut [0]);
        type Wait = Box<dyn FnOnce() + Send>;
        let waits: Vec<(&str, Wait)> = vec![
            ("sleep", Box::new(|| fibra_runtime::sleep(Duration::from_millis(1)))),
            ("park", Box::new(fibra_runtime::task::park)),
            ("join", {
                let task = fibra_runtime::spawn(fibra_runtime::task::park);
                Box::new(|| _ = task.join())
            }),
            ("a socket", Box::new(socket)),
        ];
        for (name, wait) in waits {
            let theirs = beside_tokio::handle().unwrap().spawn(async { wait() });
            let panic = fibra_runtime::block_on(theirs).unwrap_err().into_panic();
            let text = panic.downcast_ref::<String>().expect("a text");
            for word in [name, "only thread of tokio", "Handle::spawn"] {
                assert!(text.contains(word), "{name}: {text}");
            }
        }
    });
}

#[test]
fn a_contended_lock_on_the_thread_of_tokio_is_named_with_its_place() {
    const TEST: &str = "tokio::a_contended_lock_on_the_thread_of_tokio_is_named_with_its_place";
    if is_child() {
        // More than once, since the lock may be free again before a slow thread comes to it. One is reported.
        for _ in 0..5 {
            let lock = Arc::new(fibra_sync::Mutex::new(()));
            let (begin, begins) = std::sync::mpsc::channel();
            let other = Arc::clone(&lock);
            let locks = async move {
                begin.send(()).unwrap();
                drop(other.lock());
            };
            let guard = lock.lock();
            let theirs = beside_tokio::handle().unwrap().spawn(locks);
            begins.recv().unwrap();
            thread::sleep(Duration::from_millis(20));
            drop(guard);
            fibra_runtime::block_on(theirs).unwrap();
        }
        return;
    }
    guarded(|| {
        let output = rerun(TEST);
        let text = errors(&output);
        assert!(output.status.success(), "{text}");
        let report = text.lines().find(|line| line.starts_with("fibra: a contended mutex at 0x"));
        let report = report.unwrap_or_else(|| panic!("no report in: {text}"));
        let place = concat!("locked at ", file!(), ":");
        assert!(report.contains(place) && report.contains("blocks the only thread of tokio"), "{report}");
    });
}

#[test]
fn a_contended_lock_in_a_poll_panics_with_its_name_and_its_place() {
    const TEST: &str = "tokio::a_contended_lock_in_a_poll_panics_with_its_name_and_its_place";
    if is_child() {
        let lock = fibra_sync::Mutex::new(());
        let _guard = lock.lock();
        let locks = || {
            beside_tokio::block_on(async { drop(lock.lock()) });
        };
        let error = runtime(1).run(|| fibra_runtime::scope(|scope| scope.spawn(locks).join().unwrap_err()));
        for part in ["mutex at 0x", "compat::tokio::block_on", "await its async form"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        return;
    }
    guarded(|| {
        let output = rerun(TEST);
        let text = errors(&output);
        assert!(output.status.success(), "{text}");
        let place = concat!("panicked at ", file!(), ":");
        assert!(text.contains(place), "{text}");
    });
}
