//! Promises of our Unix sockets as sockets of tokio, of futures-rs and of hyper.

use std::convert::Infallible;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use crate::both_ways::{carry_as_futures, carry_as_tokio};
use crate::common::sides::{beside, guarded};
use crate::common::{in_tasks, kind, nap, pattern, runtime, until};
use crate::count::{Count, polled};
use fibra_io::compat::Async;
use fibra_io::net::UnixStream;
use fibra_runtime::block_on;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};

/// More than the sockets keep.
const MUCH: usize = 4 << 20;

#[test]
fn the_traits_of_tokio_carry_megabytes_both_ways_at_once() {
    in_tasks(|| {
        let (client, server) = UnixStream::pair().unwrap();
        carry_as_tokio(Async::new(client), Async::new(server));
    });
}

#[test]
fn the_traits_of_futures_carry_megabytes_both_ways_at_once() {
    in_tasks(|| {
        let (client, server) = UnixStream::pair().unwrap();
        carry_as_futures(Async::new(client), Async::new(server));
    });
}

#[test]
fn a_client_and_a_server_of_hyper_exchange_large_bodies() {
    async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let body = request.into_body().collect().await.expect("a whole body").to_bytes();
        Ok(Response::new(Full::new(body)))
    }
    in_tasks(|| {
        let (client, server) = UnixStream::pair().unwrap();
        let server = beside(move || {
            let builder = hyper::server::conn::http1::Builder::new();
            block_on(builder.serve_connection(Async::new(server), service_fn(echo))).unwrap();
        });
        block_on(async {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(Async::new(client)).await.unwrap();
            let driver = fibra_runtime::spawn(move || block_on(connection));
            for _ in 0..3 {
                sender.ready().await.unwrap();
                let body = Full::new(Bytes::from(pattern(MUCH)));
                let answer = sender.send_request(Request::post("/").body(body).unwrap());
                let bytes = answer.await.unwrap().into_body().collect().await.unwrap().to_bytes();
                assert!(bytes == pattern(MUCH));
            }
            drop(sender);
            driver.await.unwrap().unwrap();
        });
        server.join();
    });
}

/// Writes until a write fails, and gives the error.
async fn write_on(stream: &mut Async<UnixStream>) -> ErrorKind {
    use futures_util::io::AsyncWriteExt;
    kind(stream.write_all(&pattern(MUCH)).await)
}

async fn write_on_as_tokio(stream: &mut Async<UnixStream>) -> ErrorKind {
    use tokio::io::AsyncWriteExt;
    kind(stream.write_all(&pattern(MUCH)).await)
}

async fn write_on_as_hyper(stream: &mut Async<UnixStream>) -> ErrorKind {
    use hyper::rt::Write;
    kind(loop {
        let writing =
            std::future::poll_fn(|context| Pin::new(&mut *stream).poll_write(context, &[7; 64 * 1024]));
        if let Err(error) = writing.await {
            break Err::<(), _>(error);
        }
    })
}

/// The system sends no event to a poller.
#[test]
fn a_writer_into_a_full_socket_hears_that_it_was_shut_down() {
    in_tasks(|| {
        for world in 0..3 {
            for is_own in [true, false] {
                let (stream, other) = UnixStream::pair().unwrap();
                let clone = stream.try_clone().unwrap();
                let mut stream = Async::new(stream);
                let writer = beside(move || match world {
                    0 => block_on(write_on(&mut stream)),
                    1 => block_on(write_on_as_tokio(&mut stream)),
                    _ => block_on(write_on_as_hyper(&mut stream)),
                });
                nap(5);
                match is_own {
                    true => clone.shutdown(Shutdown::Write).unwrap(),
                    false => other.shutdown(Shutdown::Read).unwrap(),
                }
                assert_eq!(writer.join(), ErrorKind::BrokenPipe);
            }
        }
    });
}

#[test]
fn polled_writer_on_a_foreign_executor_is_woken_by_a_shutdown() {
    guarded(|| {
        let runtime = runtime(1);
        let (mut stream, other) = runtime.run(|| {
            let (stream, other) = UnixStream::pair().unwrap();
            (Async::new(stream), other)
        });
        let writer = thread::spawn(move || futures_executor::block_on(write_on(&mut stream)));
        nap(5);
        other.shutdown(Shutdown::Read).unwrap();
        assert_eq!(writer.join().unwrap(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn polled_writer_is_woken_by_a_shutdown_after_its_first_runtime_ended() {
    guarded(|| {
        let first = runtime(1);
        let (mut stream, other) = first.run(|| {
            let (stream, other) = UnixStream::pair().unwrap();
            (Async::new(stream), other)
        });
        let waits = first.spawn(move || {
            let waiting = fibra_runtime::timeout(std::time::Duration::from_millis(5), || {
                block_on(write_on(&mut stream))
            });
            assert!(waiting.is_err());
            stream
        });
        let mut stream = waits.join().unwrap();
        drop(first);
        let second = runtime(1);
        let writer = second.spawn(move || block_on(write_on(&mut stream)));
        nap(5);
        other.shutdown(Shutdown::Read).unwrap();
        assert_eq!(writer.join().unwrap(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_writer_is_woken_to_look_again_until_it_is_dropped() {
    use futures_io::AsyncWrite;
    in_tasks(|| {
        let (stream, _other) = UnixStream::pair().unwrap();
        let mut stream = Async::new(stream);
        let count = Arc::new(Count::default());
        let write = |stream: &mut Async<UnixStream>| {
            polled(&count, |context| Pin::new(stream).poll_write(context, &[7; 64 * 1024]))
        };
        while write(&mut stream).is_ready() {}
        for times in 1..4 {
            until(|| count.wakes() == times);
            assert!(write(&mut stream).is_pending(), "it waits on");
        }
        drop(stream);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// The runtime has no room for a task beside the one that polls.
#[test]
fn writers_into_many_full_sockets_are_woken_by_one_clock() {
    use futures_io::AsyncWrite;
    guarded(|| {
        let builder = fibra_runtime::Runtime::builder().driver(fibra_io::driver());
        builder.workers(1).max_tasks(1).build().unwrap().run(|| {
            let mut writers: Vec<_> = (0..100)
                .map(|_| {
                    let (stream, other) = UnixStream::pair().unwrap();
                    (Async::new(stream), other, Arc::new(Count::default()))
                })
                .collect();
            let write = |stream: &mut Async<UnixStream>, count: &Arc<Count>| {
                polled(count, |context| Pin::new(stream).poll_write(context, &[7; 64 * 1024]))
            };
            for (stream, other, count) in &mut writers {
                while write(stream, count).is_ready() {}
                other.shutdown(Shutdown::Read).unwrap();
            }
            for (stream, _, count) in &mut writers {
                until(|| count.wakes() > 0);
                until(|| match write(stream, count) {
                    Poll::Pending => false,
                    Poll::Ready(outcome) => kind(outcome) == ErrorKind::BrokenPipe,
                });
            }
        });
    });
}

/// Sees that blocking writers end as well.
#[test]
fn tasks_that_write_into_full_sockets_are_told_by_the_same_clock() {
    in_tasks(|| {
        let writers: Vec<_> = (0..20)
            .map(|_| {
                let (mut stream, other) = UnixStream::pair().unwrap();
                let writer = beside(move || kind(stream.write_all(&pattern(MUCH))));
                (writer, other)
            })
            .collect();
        nap(5);
        writers.iter().for_each(|(_, other)| other.shutdown(Shutdown::Read).unwrap());
        assert!(writers.into_iter().all(|(writer, _)| writer.join() == ErrorKind::BrokenPipe));
    });
}
