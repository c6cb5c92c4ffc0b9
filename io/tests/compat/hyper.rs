//! Promises of hyper on our tasks: sockets, executor, timer.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::sides::guarded;
use crate::common::{in_tasks, listener, runtime};
use crate::paused::{TICK, paused};
use fibra_io::compat::{Async, Executor, Timer};
use fibra_io::net::TcpStream;
use fibra_runtime::time::{now, settle};
use fibra_runtime::{JoinHandle, Runtime, block_on, sleep, spawn};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::rt::{Sleep, Timer as _};
use hyper::service::service_fn;
use hyper::{Request, Response};

type Answer = Response<Full<Bytes>>;

/// Sends the body back.
async fn echo(request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(body)))
}

/// Serves so many connections, each in a task of its own.
fn serve(
    connections: usize,
    serve: impl Fn(TcpStream) + Clone + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let (listener, address) = listener();
    let server = fibra_runtime::spawn(move || {
        let tasks: Vec<_> = (0..connections)
            .map(|_| {
                let (stream, serve) = (listener.accept().unwrap().0, serve.clone());
                fibra_runtime::spawn(move || serve(stream))
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
    (address, server)
}

fn serve_http1(stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(Async::new(stream), service_fn(echo));
    block_on(connection).unwrap();
}

#[test]
fn a_server_answers_request_after_request_on_one_connection() {
    in_tasks(|| {
        let (address, server) = serve(1, serve_http1);
        let mut client = TcpStream::connect(address).unwrap();
        for round in 0..50 {
            let request = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 8\r\n\r\n{round:08}");
            client.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(format!("\r\n\r\n{round:08}").as_bytes()) {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                answer.extend(byte);
            }
            assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        }
        drop(client);
        server.join().unwrap();
    });
}

#[test]
fn a_client_and_a_server_of_hyper_exchange_large_bodies() {
    in_tasks(|| {
        let (address, server) = serve(4, serve_http1);
        let clients: Vec<_> = (0..4)
            .map(|i| {
                fibra_runtime::spawn(move || {
                    let stream = Async::new(TcpStream::connect(address).unwrap());
                    block_on(async {
                        let (mut sender, connection) =
                            hyper::client::conn::http1::handshake(stream).await.unwrap();
                        let driver = fibra_runtime::spawn(move || block_on(connection));
                        for _ in 0..3 {
                            let body = Full::new(Bytes::from(vec![i; 1 << 20]));
                            sender.ready().await.unwrap();
                            let answer = sender.send_request(Request::post("/").body(body).unwrap());
                            let bytes = answer.await.unwrap().into_body().collect().await.unwrap().to_bytes();
                            assert!(bytes.len() == 1 << 20 && bytes.iter().all(|byte| *byte == i));
                        }
                        drop(sender);
                        driver.await.unwrap().unwrap();
                    });
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        server.join().unwrap();
    });
}

#[test]
fn many_streams_of_http2_share_a_connection_on_our_executor() {
    in_tasks(|| {
        let (address, server) = serve(1, |stream| {
            let connection = hyper::server::conn::http2::Builder::new(Executor::new())
                .timer(Timer::new())
                .serve_connection(Async::new(stream), service_fn(echo));
            block_on(connection).unwrap();
        });
        let stream = Async::new(TcpStream::connect(address).unwrap());
        block_on(async {
            let (sender, connection) =
                hyper::client::conn::http2::handshake(Executor::new(), stream).await.unwrap();
            let driver = fibra_runtime::spawn(move || block_on(connection));
            let requests = (0..20_u8).map(|i| {
                let mut sender = sender.clone();
                async move {
                    let body = Full::new(Bytes::from(vec![i; 50_000]));
                    let answer =
                        sender.send_request(Request::post("http://x/").body(body).unwrap()).await.unwrap();
                    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
                    assert!(bytes.len() == 50_000 && bytes.iter().all(|byte| *byte == i));
                }
            });
            futures_util::future::join_all(requests).await;
            drop(sender);
            driver.await.unwrap().unwrap();
        });
        server.join().unwrap();
    });
}

#[test]
fn a_client_that_sends_no_head_is_cut_off_by_our_timer_and_the_next_is_served() {
    in_tasks(|| {
        let (timer, number) = (Timer::new(), Arc::new(AtomicUsize::new(0)));
        let (address, server) = serve(2, move |stream| {
            // The first is the slow one, and the only one to be short of time.
            let patience = match number.fetch_add(1, Ordering::Relaxed) {
                0 => Duration::from_millis(200),
                _ => LONG,
            };
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(timer.clone())
                .header_read_timeout(patience)
                .serve_connection(Async::new(stream), service_fn(echo));
            // The slow one ends with an error.
            _ = block_on(connection);
        });
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET / HT").unwrap();
        let mut rest = Vec::new();
        _ = slow.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP/1.1 200"));
        let mut quick = TcpStream::connect(address).unwrap();
        quick.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        quick.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        server.join().unwrap();
    });
}

#[test]
fn a_panic_of_a_handler_ends_its_connection_alone() {
    in_tasks(|| {
        async fn bad(_: Request<Incoming>) -> Result<Answer, Infallible> {
            std::panic::resume_unwind(Box::new("in a handler"))
        }
        let (listener, address) = listener();
        let accepting = fibra_runtime::spawn(move || listener.accept().unwrap().0);
        let mut client = TcpStream::connect(address).unwrap();
        let stream = Async::new(accepting.join().unwrap());
        let serving = fibra_runtime::spawn(move || {
            block_on(hyper::server::conn::http1::Builder::new().serve_connection(stream, service_fn(bad)))
        });
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        assert_eq!(client.read(&mut [0; 10]).unwrap_or(0), 0);
        assert!(serving.join().unwrap_err().is_panic());
    });
}

#[test]
fn an_executor_spawns_on_its_runtime_from_any_thread() {
    use hyper::rt::Executor as _;
    guarded(|| {
        let runtime = runtime(2);
        let executor = runtime.run(Executor::new);
        let (sender, receiver) = mpsc::channel();
        for _ in 0..10 {
            let sender = sender.clone();
            executor
                .execute(async move { sender.send(fibra_runtime::task::try_current().is_some()).unwrap() });
        }
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [true; 10]);
    });
}

#[test]
fn sleeps_end_in_the_order_of_their_deadlines_and_not_early() {
    /// Writes down that it was woken.
    struct Noted(u64, Instant, Arc<Mutex<Vec<u64>>>);
    impl Wake for Noted {
        fn wake(self: Arc<Self>) {
            assert!(self.1 <= now());
            self.2.lock().unwrap().push(self.0);
        }
    }
    paused(|| {
        let timer = Timer::new();
        let (begin, woken) = (now(), Arc::default());
        let mut sleeps = [30, 10, 20, 15].map(|minutes| {
            let deadline = begin + Duration::from_secs(60 * minutes);
            let waker = Waker::from(Arc::new(Noted(minutes, deadline, Arc::clone(&woken))));
            let mut sleep = timer.sleep_until(deadline);
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            sleep
        });
        sleep(LONG);
        assert_eq!(*woken.lock().unwrap(), [10, 15, 20, 30]);
        for sleep in &mut sleeps {
            assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
    });
}

/// A waker that counts.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(sleep: &mut Pin<Box<dyn Sleep>>, count: &Arc<Count>) -> Poll<()> {
    sleep.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(count))))
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_deadline_is_moved_away_and_closer() {
    paused(|| {
        let timer = Timer::new();
        let count = Arc::new(Count::default());
        let wakes = || count.0.load(Ordering::SeqCst);
        let mut moved = timer.sleep_until(now() + LONG);
        assert!(poll(&mut moved, &count).is_pending());
        timer.reset(&mut moved, now() + 3 * LONG);
        sleep(2 * LONG);
        assert_eq!(wakes(), 0);
        assert!(poll(&mut moved, &count).is_pending());
        timer.reset(&mut moved, now() + LONG / 2);
        sleep(LONG / 2 + TICK);
        assert_eq!(wakes(), 1);
        assert!(poll(&mut moved, &count).is_ready());
        timer.reset(&mut moved, now() + LONG);
        assert!(poll(&mut moved, &count).is_pending());
        sleep(LONG + TICK);
        assert_eq!(wakes(), 2);
        assert!(poll(&mut moved, &count).is_ready());
    });
}

#[test]
fn a_sleep_for_ever_that_is_given_a_time_wakes_its_waiter() {
    paused(|| {
        let timer = Timer::new();
        let count = Arc::new(Count::default());
        let mut never = timer.sleep(Duration::MAX);
        assert!(poll(&mut never, &count).is_pending());
        timer.reset(&mut never, now() + LONG);
        sleep(LONG + TICK);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(poll(&mut never, &count).is_ready());
        let mut unpolled = timer.sleep(Duration::MAX);
        timer.reset(&mut unpolled, now());
        assert!(poll(&mut unpolled, &count).is_ready());
        let mut left = timer.sleep(Duration::MAX);
        assert!(poll(&mut left, &count).is_pending());
        drop(left);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

#[test]
fn a_sleep_that_is_dropped_lets_its_waker_go() {
    in_tasks(|| {
        let timer = Timer::new();
        let count = Arc::new(Count::default());
        let mut sleeps: Vec<_> = (0..100).map(|_| timer.sleep(LONG)).collect();
        sleeps.iter_mut().for_each(|sleep| assert!(poll(sleep, &count).is_pending()));
        assert_eq!(Arc::strong_count(&count), 101);
        drop(sleeps);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

#[test]
fn sleeps_are_awaited_on_threads_and_by_executors_of_others() {
    guarded(|| {
        let runtime = runtime(1);
        let timer = runtime.run(Timer::new);
        let begin = Instant::now();
        futures_executor::block_on(timer.sleep(Duration::from_millis(2)));
        block_on(timer.sleep(Duration::from_millis(2)));
        let clone = timer.clone();
        thread::spawn(move || block_on(clone.sleep(Duration::from_millis(2)))).join().unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(6));
    });
}

#[test]
fn the_task_behind_a_timer_ends_with_it() {
    guarded(|| {
        let runtime = runtime(1);
        for _ in 0..100 {
            let timer = runtime.run(Timer::new);
            block_on(timer.sleep(Duration::from_micros(1)));
            drop(timer.sleep(LONG));
        }
        let timer = runtime.run(Timer::new);
        let mut kept = timer.sleep(LONG);
        let count = Arc::new(Count::default());
        assert!(poll(&mut kept, &count).is_pending());
        drop(timer);
        assert!(runtime.shutdown_timeout(LONG).is_empty());
        assert!(poll(&mut kept, &count).is_pending());
        drop(kept);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// What a request has, and its tasks inherit.
struct Heirloom(Arc<()>);

impl Clone for Heirloom {
    fn clone(&self) -> Heirloom {
        fibra_runtime::yield_now();
        Heirloom(Arc::clone(&self.0))
    }
}

fibra_runtime::task_local! {
    #[inherit]
    static HEIRLOOM: RefCell<Option<Heirloom>> = RefCell::new(None);
}

#[test]
fn a_timer_keeps_nothing_of_its_first_user_and_serves_others_meanwhile() {
    paused(|| {
        let timer = Timer::new();
        let kept = Arc::new(());
        let sleeper = |heirloom: Option<Arc<()>>| {
            let timer = timer.clone();
            spawn(move || {
                HEIRLOOM.with(|place| *place.borrow_mut() = heirloom.map(Heirloom));
                let (mut entered, count) = (timer.sleep(LONG), Arc::default());
                assert!(poll(&mut entered, &count).is_pending());
                sleep(LONG + TICK);
                assert_eq!(count.0.load(Ordering::SeqCst), 1);
            })
        };
        let sleepers = [sleeper(Some(Arc::clone(&kept))), sleeper(None)];
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
        settle();
        assert_eq!(Arc::strong_count(&kept), 1);
    });
}

#[test]
fn a_waker_that_panics_ends_no_other_sleep() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a bad waker"));
        }
    }
    paused(|| {
        let timer = Timer::new();
        let waker = Waker::from(Arc::new(Bad));
        let mut bad = timer.sleep(LONG);
        assert!(bad.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let count = Arc::new(Count::default());
        let mut others = [1, 2].map(|hours| timer.sleep(hours * LONG));
        others.iter_mut().for_each(|other| assert!(poll(other, &count).is_pending()));
        sleep(2 * LONG + TICK);
        assert_eq!(count.0.load(Ordering::SeqCst), 2);
        others.iter_mut().for_each(|other| assert!(poll(other, &count).is_ready()));
    });
}

/// The task of the timer has a place beside those that the limit allows.
#[test]
fn a_time_out_comes_where_no_more_tasks_are_allowed() {
    guarded(|| {
        let builder = Runtime::builder().driver(fibra_io::driver()).workers(1).max_tasks(1);
        builder.build().unwrap().run(|| {
            assert!(spawn(|| ()).join().unwrap_err().is_not_started());
            block_on(Timer::new().sleep(Duration::from_millis(2)));
            // It takes the place of no other task.
            assert!(spawn(|| ()).join().unwrap_err().is_not_started());
        });
    });
}
