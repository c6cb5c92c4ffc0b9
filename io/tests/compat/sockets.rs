//! Promises of our sockets as sockets of tokio and of futures-rs.

use std::future::{Future, poll_fn};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use crate::both_ways::{carry_as_futures, carry_as_tokio};
use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks, kind, nap, pair, pattern, runtime, until};
use crate::count::{Count, polled};
use fibra_io::compat::Async;
use fibra_io::net::TcpStream;
use fibra_runtime::block_on;

/// Polls a read of one byte.
fn read_byte(stream: &mut Async<TcpStream>, context: &mut Context<'_>) -> Poll<std::io::Result<Option<u8>>> {
    let mut byte = [0];
    let read = futures_io::AsyncRead::poll_read(Pin::new(stream), context, &mut byte);
    read.map_ok(|count| (count == 1).then_some(byte[0]))
}

fn write_some(stream: &mut Async<TcpStream>, context: &mut Context<'_>) -> Poll<std::io::Result<usize>> {
    futures_io::AsyncWrite::poll_write(Pin::new(stream), context, &[7; 64 * 1024])
}

/// Writes until the socket takes no more.
fn fill(stream: &mut Async<TcpStream>, count: &Arc<Count>) -> usize {
    let mut filled = 0;
    while let Poll::Ready(written) = polled(count, |context| write_some(stream, context)) {
        filled += written.unwrap();
    }
    filled
}

#[expect(dead_code, reason = "checked by the compiler only")]
fn bounds_of_the_adapter() {
    fn of_tokio<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Sync + Unpin + 'static>() {}
    fn of_futures<S: futures_io::AsyncRead + futures_io::AsyncWrite>() {}
    fn of_hyper<S: hyper::rt::Read + hyper::rt::Write>() {}
    of_tokio::<Async<TcpStream>>();
    of_futures::<Async<TcpStream>>();
    of_hyper::<Async<TcpStream>>();
}

#[test]
fn the_traits_of_tokio_carry_megabytes_both_ways_at_once() {
    in_tasks(|| {
        let (client, server) = pair();
        carry_as_tokio(Async::new(client), Async::new(server));
    });
}

#[test]
fn the_traits_of_futures_carry_megabytes_both_ways_at_once() {
    in_tasks(|| {
        let (client, server) = pair();
        carry_as_futures(Async::new(client), Async::new(server));
    });
}

#[test]
fn each_direction_keeps_its_own_waker() {
    in_tasks(|| {
        let (client, mut server) = pair();
        let mut client = Async::new(client);
        let (reads, writes) = (Arc::new(Count::default()), Arc::new(Count::default()));
        assert!(polled(&reads, |context| read_byte(&mut client, context)).is_pending());
        let mut filled = fill(&mut client, &writes);
        nap(1);
        assert_eq!(reads.wakes(), 0);
        server.write_all(&[42]).unwrap();
        until(|| reads.wakes() == 1);
        assert!(matches!(
            polled(&reads, |context| read_byte(&mut client, context)),
            Poll::Ready(Ok(Some(42)))
        ));
        assert!(polled(&reads, |context| read_byte(&mut client, context)).is_pending());
        let before = writes.wakes();
        if before > 0 {
            // Room may come late, and nothing else has woken it: the system moves what it has taken on by itself.
            let more = fill(&mut client, &writes);
            assert!(more > 0);
            filled += more;
        }
        let mut taken = vec![0; filled];
        server.read_exact(&mut taken).unwrap();
        until(|| writes.wakes() > before);
        assert!(polled(&writes, |context| write_some(&mut client, context)).is_ready());
        drop(server);
        until(|| reads.wakes() > 1);
    });
}

#[test]
fn only_the_waker_of_the_last_poll_is_called_and_the_others_are_let_go() {
    in_tasks(|| {
        let (client, mut server) = pair();
        let mut client = Async::new(client);
        let counts: Vec<Arc<Count>> = (0..4).map(|_| Arc::default()).collect();
        for count in &counts {
            assert!(polled(count, |context| read_byte(&mut client, context)).is_pending());
        }
        assert!(counts[..3].iter().all(|count| Arc::strong_count(count) == 1));
        server.write_all(&[1]).unwrap();
        until(|| counts[3].wakes() == 1);
        assert!(counts[..3].iter().all(|count| count.wakes() == 0));
        assert_eq!(Arc::strong_count(&counts[3]), 1);
    });
}

#[test]
fn dropped_half_way_it_lets_its_wakers_go_and_closes() {
    in_tasks(|| {
        let (client, mut server) = pair();
        let mut client = Async::new(client);
        let count = Arc::new(Count::default());
        assert!(polled(&count, |context| read_byte(&mut client, context)).is_pending());
        fill(&mut client, &count);
        drop(client);
        assert_eq!(Arc::strong_count(&count), 1);
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).unwrap();
        assert_eq!(count.wakes(), 0);
    });
}

#[test]
fn a_waker_may_drop_the_socket_that_it_was_left_with() {
    /// Drops the socket when it is woken, for reading or for writing.
    struct Ends(Mutex<Option<Async<TcpStream>>>, AtomicBool);
    impl Wake for Ends {
        fn wake(self: Arc<Self>) {
            let socket = self.0.lock().unwrap().take();
            let had_one = socket.is_some();
            drop(socket);
            self.1.fetch_or(had_one, Ordering::SeqCst);
        }
    }
    in_tasks(|| {
        for _ in 0..50 {
            let (client, server) = pair();
            let mut client = Async::new(client);
            fill(&mut client, &Arc::default());
            let ends = Arc::new(Ends(Mutex::default(), AtomicBool::new(false)));
            let waker = Waker::from(Arc::clone(&ends));
            let mut context = Context::from_waker(&waker);
            assert!(read_byte(&mut client, &mut context).is_pending());
            while write_some(&mut client, &mut context).is_ready() {}
            // It is left there now: a poll with a used-up budget calls its waker itself.
            *ends.0.lock().unwrap() = Some(client);
            // Closed with bytes unread it resets the connection: one edge for both directions.
            drop(server);
            until(|| ends.1.load(Ordering::SeqCst));
        }
    });
}

#[test]
fn it_ends_as_the_socket_does() {
    use futures_util::io::{AsyncReadExt, AsyncWriteExt};
    in_tasks(|| {
        let (client, server) = pair();
        let mut client = Async::new(client);
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(block_on(client.read(&mut [0; 8])).unwrap(), 0);
        block_on(client.close()).unwrap();
        assert_eq!((&server).read(&mut [0; 8]).unwrap(), 0);
        drop(server);
        until(|| block_on(client.write(&[1])).is_err());
        block_on(client.close()).unwrap();
    });
}

#[test]
fn several_buffers_are_written_and_read_in_one_call() {
    in_tasks(|| {
        let (client, mut server) = pair();
        let mut client = Async::new(client);
        assert!(tokio::io::AsyncWrite::is_write_vectored(&client));
        let parts = [IoSlice::new(b"one "), IoSlice::new(b"two")];
        let written = block_on(poll_fn(|context| {
            tokio::io::AsyncWrite::poll_write_vectored(Pin::new(&mut client), context, &parts)
        }));
        assert_eq!(written.unwrap(), 7);
        let mut text = [0; 7];
        server.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"one two");
        server.write_all(&text).unwrap();
        let (mut first, mut second) = ([0; 3], [0; 10]);
        let read = block_on(futures_util::io::AsyncReadExt::read_vectored(
            &mut client,
            &mut [std::io::IoSliceMut::new(&mut first), std::io::IoSliceMut::new(&mut second)],
        ));
        assert_eq!((read.unwrap(), &first, &second[..4]), (7, b"one", &b" two"[..]));
    });
}

#[test]
fn one_that_polls_and_one_that_blocks_share_a_socket() {
    in_tasks(|| {
        let (client, server) = pair();
        let mut client = Async::new(client);
        let count = Arc::new(Count::default());
        assert!(polled(&count, |context| read_byte(&mut client, context)).is_pending());
        let client = Arc::new(client);
        let blocking = {
            let client = Arc::clone(&client);
            beside(move || {
                let mut byte = [0];
                client.get_ref().read_exact(&mut byte).map(|()| byte[0])
            })
        };
        nap(1);
        (&server).write_all(&[9]).unwrap();
        assert_eq!(blocking.join().unwrap(), 9);
        until(|| count.wakes() == 1);
        let client = Arc::try_unwrap(client).unwrap().into_inner();
        (&server).write_all(&[8]).unwrap();
        let mut byte = [0];
        (&client).read_exact(&mut byte).unwrap();
        assert_eq!(byte, [8]);
    });
}

#[test]
fn made_in_a_task_it_is_polled_in_tasks_of_all_workers() {
    guarded(|| {
        runtime(2).run(|| {
            let (client, mut server) = pair();
            let mut client = Async::new(client);
            // Threads of both workers take turns, as they come.
            for round in 0..200 {
                let reading = fibra_runtime::spawn(move || {
                    let byte = block_on(poll_fn(|context| read_byte(&mut client, context)));
                    (client, byte.unwrap())
                });
                fibra_runtime::yield_now();
                server.write_all(&[round]).unwrap();
                let (back, byte) = reading.join().unwrap();
                assert_eq!(byte, Some(round));
                client = back;
            }
        });
    });
}

#[test]
fn made_in_a_task_it_is_polled_on_any_thread_by_any_executor() {
    guarded(|| {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let (client, mut server) = runtime.run(|| {
                let (client, server) = pair();
                (Async::new(client), server)
            });
            let writer = thread::spawn(move || {
                for byte in 0..100 {
                    server.write_all(&[byte]).unwrap();
                    thread::sleep(Duration::from_micros(200));
                }
                server
            });
            let mut client = client;
            for byte in 0..100 {
                let reading = poll_fn(|context| read_byte(&mut client, context));
                let read = match byte % 2 {
                    0 => block_on(reading),
                    _ => futures_executor::block_on(reading),
                };
                assert_eq!(read.unwrap(), Some(byte));
            }
            drop(writer.join().unwrap());
            assert_eq!(block_on(poll_fn(|context| read_byte(&mut client, context))).unwrap(), None);
        }
    });
}

#[test]
fn made_on_a_thread_it_waits_once_a_task_has_polled_it() {
    guarded(|| {
        let runtime = runtime(1);
        let (client, mut server) = pair();
        let mut client = Async::new(client);
        let count = Arc::new(Count::default());
        runtime.run(|| assert!(polled(&count, |context| read_byte(&mut client, context)).is_pending()));
        let writer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(1));
            server.write_all(&[5]).unwrap();
        });
        let read = futures_executor::block_on(poll_fn(|context| read_byte(&mut client, context)));
        assert_eq!(read.unwrap(), Some(5));
        writer.join().unwrap();
    });
}

#[test]
fn where_no_reactor_hears_of_it_a_wait_is_refused() {
    guarded(|| {
        let (client, mut server) = pair();
        let mut client = Async::new(client);
        let refused = block_on(poll_fn(|context| read_byte(&mut client, context)));
        assert_eq!(kind(refused), ErrorKind::Unsupported);
        server.write_all(&[3]).unwrap();
        // What need not wait is done.
        until(|| match block_on(poll_fn(|context| read_byte(&mut client, context))) {
            Ok(byte) => byte == Some(3),
            Err(error) => error.kind() != ErrorKind::Unsupported,
        });
        let without = fibra_runtime::Runtime::builder().workers(1).build().unwrap();
        let refused = without.run(|| block_on(poll_fn(|context| read_byte(&mut client, context))));
        assert_eq!(kind(refused), ErrorKind::Unsupported);
    });
}

#[test]
fn the_end_of_its_runtime_wakes_it_and_another_takes_over() {
    guarded(|| {
        let first = runtime(1);
        let (mut client, mut server) = first.run(|| {
            let (client, server) = pair();
            (Async::new(client), server)
        });
        let count = Arc::new(Count::default());
        assert!(polled(&count, |context| read_byte(&mut client, context)).is_pending());
        drop(first);
        until(|| count.wakes() == 1);
        let refused = block_on(poll_fn(|context| read_byte(&mut client, context)));
        assert_eq!(kind(refused), ErrorKind::Unsupported);
        let second = runtime(1);
        let byte = second.run(|| {
            fibra_runtime::spawn(move || server.write_all(&[6]));
            block_on(poll_fn(|context| read_byte(&mut client, context)))
        });
        assert_eq!(byte.unwrap(), Some(6));
    });
}

#[test]
fn a_poll_at_the_end_of_the_runtime_is_served_or_refused() {
    guarded(|| {
        for round in 0..40 {
            let runtime = runtime(1 + round % 2);
            let pairs = runtime.run(|| {
                [(); 8].map(|()| {
                    let (client, server) = pair();
                    (Async::new(client), server)
                })
            });
            let reading = AtomicUsize::new(0);
            thread::scope(|scope| {
                let mut servers = Vec::new();
                for (mut client, server) in pairs {
                    servers.push(server);
                    let reading = &reading;
                    scope.spawn(move || {
                        // At the latest once the runtime is gone and all was read.
                        while let Ok(Some(_)) = block_on(poll_fn(|context| read_byte(&mut client, context))) {
                            reading.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                }
                for _ in 0..round % 10 {
                    servers.iter_mut().for_each(|server| server.write_all(&[1]).unwrap());
                }
                if round % 3 == 0 {
                    until(|| reading.load(Ordering::SeqCst) == 8 * (round % 10));
                }
                drop(runtime);
            });
        }
    });
}

#[test]
fn timeouts_and_cancels_end_a_poll_that_waits() {
    in_tasks(|| {
        let (client, server) = pair();
        let mut client = Async::new(client);
        let read = |client: &mut Async<TcpStream>| block_on(poll_fn(|context| read_byte(client, context)));
        assert!(fibra_runtime::timeout(Duration::from_millis(2), || read(&mut client)).is_err());
        (&server).write_all(&[1]).unwrap();
        assert_eq!(read(&mut client).unwrap(), Some(1));
        let reading = fibra_runtime::spawn(move || read(&mut client));
        nap(1);
        reading.cancel();
        assert!(reading.join().unwrap_err().is_cancelled());
        assert_eq!((&server).read(&mut [0]).unwrap(), 0, "it was closed by the unwinding");
    });
}

#[test]
fn a_future_that_always_has_input_starves_no_task() {
    guarded(|| {
        runtime(1).run(|| {
            let (client, mut server) = pair();
            let flood = thread::spawn(move || while server.write_all(&[1; 4096]).is_ok() {});
            let reader = fibra_runtime::spawn(move || {
                let mut client = Async::new(client);
                // One byte at a time, in a future that never has to wait.
                block_on(async {
                    while poll_fn(|context| read_byte(&mut client, context)).await.unwrap().is_some() {}
                });
            });
            for _ in 0..100 {
                fibra_runtime::spawn(|| ()).join().unwrap();
            }
            reader.cancel();
            assert!(reader.join().is_err_and(|error| error.is_cancelled()));
            // There is no reader any more.
            flood.join().unwrap();
        });
    });
}

#[test]
fn an_executor_of_others_goes_on_where_a_turn_is_used_up() {
    guarded(|| {
        runtime(1).run(|| {
            let (client, mut server) = pair();
            server.write_all(&pattern(1000)).unwrap();
            drop(server);
            let mut client = Async::new(client);
            // Blocks the worker, which has polled all events.
            until(|| client.get_ref().peek(&mut [0; 1000]).unwrap() == 1000);
            let all = futures_executor::block_on(async {
                let mut all = Vec::new();
                while all.len() < 1000 {
                    all.extend(poll_fn(|context| read_byte(&mut client, context)).await.unwrap());
                }
                all
            });
            assert_eq!(all, pattern(1000));
        });
    });
}

#[test]
fn the_end_of_a_task_is_awaited_by_an_executor_of_others() {
    guarded(|| {
        let runtime = runtime(2);
        let task = runtime.spawn(|| {
            nap(1);
            42
        });
        assert_eq!(futures_executor::block_on(task).unwrap(), 42);
        let tasks: Vec<_> = (0..100).map(|i| runtime.spawn(move || i)).collect();
        let all = futures_executor::block_on(futures_util::future::join_all(tasks));
        assert!(all.into_iter().enumerate().all(|(i, value)| value.unwrap() == i));
    });
}

#[test]
fn a_socket_moves_in_and_out() {
    everywhere(|| {
        let (client, mut server) = pair();
        let address = client.local_addr().unwrap();
        let client = Async::from(client);
        assert_eq!(client.get_ref().local_addr().unwrap(), address);
        assert!(format!("{client:?}").contains("TcpStream"));
        let mut client = client.into_inner();
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
    });
}

#[expect(dead_code, reason = "checked by the compiler only")]
fn a_read_is_a_future_that_may_be_sent(stream: &mut Async<TcpStream>) -> impl Future + Send {
    tokio::io::AsyncReadExt::read_u8(stream)
}
