//! Promises of tokio beside our tasks, kept to a crate that insists on tokio's own reactor and timers: reqwest, which fetches
//! from a server that is written with our sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, in_tasks, listener, pattern, runtime, until};
use crate::refused::refused;
use fibra_io::compat::tokio as beside_tokio;
use fibra_io::net::TcpStream;
use fibra_runtime::{block_on, spawn};
use reqwest::Client;

/// More than a socket takes at once.
const MUCH: usize = 1 << 20;

/// Gives as many bytes as the path says, or, under `/held`, none for as long as the client waits.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    /// Requests for `/held` that came.
    held: Arc<AtomicUsize>,
    /// Connections of clients that have gone.
    given_up: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Server {
        let (listener, address) = listener();
        let server = Server { address, held: Arc::default(), given_up: Arc::default() };
        let serves = server.clone();
        beside(move || {
            for stream in listener.incoming() {
                let (server, stream) = (serves.clone(), stream.unwrap());
                beside(move || server.serve(&stream));
            }
        });
        server
    }

    /// Answers one request after the other.
    fn serve(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(path) = next_request(&mut reader) {
            if path == "/held" {
                self.held.fetch_add(1, Ordering::SeqCst);
                _ = reader.read(&mut [0]);
                self.given_up.fetch_add(1, Ordering::SeqCst);
                return;
            }
            let len = path[1..].parse().unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {len}\r\n\r\n");
            if stream.write_all(&[head.as_bytes(), &pattern(len)].concat()).is_err() {
                return;
            }
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Waits until so many requests are held.
    fn holds(&self, count: usize) {
        until(|| self.held.load(Ordering::SeqCst) == count);
    }

    /// Waits until so many of the held clients have gone.
    fn is_given_up(&self, count: usize) {
        until(|| self.given_up.load(Ordering::SeqCst) == count);
    }
}

/// The path of a request, when its head is there. None: there is no more.
fn next_request(reader: &mut impl BufRead) -> Option<String> {
    let mut lines = reader.lines().map_while(Result::ok);
    let first = lines.next()?;
    lines.find(|line| line.is_empty())?;
    first.split(' ').nth(1).map(str::to_owned)
}

/// One that asks the server itself, whatever proxy the environment names.
fn client() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

/// Fetches so many bytes, and looks whether they are those.
fn fetch(client: &Client, server: &Server, len: usize) {
    let body = beside_tokio::block_on(async {
        let response = client.get(server.url(&len.to_string())).send().await.unwrap();
        response.error_for_status().unwrap().bytes().await.unwrap()
    });
    assert!(body == pattern(len), "{} bytes came, or others", body.len());
}

#[test]
fn several_tasks_fetch_at_once_by_one_client() {
    everywhere(|| {
        let server = Server::start();
        let client = client();
        let fetching: Vec<_> = (0..8)
            .map(|i| {
                let (client, server) = (client.clone(), server.clone());
                beside(move || {
                    for round in 0..5 {
                        fetch(&client, &server, i * 1000 + round);
                    }
                    fetch(&client, &server, MUCH);
                })
            })
            .collect();
        fetching.into_iter().for_each(|fetching| fetching.join());
    });
}

#[test]
fn a_body_is_read_as_it_comes() {
    in_tasks(|| {
        let server = Server::start();
        let all = beside_tokio::block_on(async {
            let mut response = client().get(server.url(&MUCH.to_string())).send().await.unwrap();
            let mut all = Vec::new();
            while let Some(chunk) = response.chunk().await.unwrap() {
                all.extend(chunk);
            }
            all
        });
        assert!(all == pattern(MUCH), "{} bytes came, or others", all.len());
    });
}

#[test]
fn a_request_of_a_cancelled_task_is_given_up_and_the_client_serves_the_others() {
    guarded(|| {
        runtime(1).run(|| {
            let server = Server::start();
            let client = client();
            let asking: Vec<_> = (0..4)
                .map(|_| {
                    let (client, url) = (client.clone(), server.url("held"));
                    spawn(move || beside_tokio::block_on(client.get(url).send()))
                })
                .collect();
            server.holds(4);
            fetch(&client, &server, 1000);
            asking.iter().for_each(|asking| asking.cancel());
            assert!(asking.into_iter().all(|asking| asking.join().is_err_and(|error| error.is_cancelled())));
            server.is_given_up(4);
            fetch(&client, &server, 1000);
        });
    });
}

#[test]
fn a_timeout_of_ours_and_one_of_theirs_end_a_request() {
    in_tasks(|| {
        let server = Server::start();
        let client = client();
        let get = || client.get(server.url("held"));
        let late = fibra_runtime::timeout(Duration::from_millis(5), || beside_tokio::block_on(get().send()));
        assert!(late.is_err());
        // Its timer wants the context when it is made.
        let theirs = async { get().timeout(Duration::from_millis(5)).send().await };
        assert!(beside_tokio::block_on(theirs).is_err_and(|error| error.is_timeout()));
        // One that had not come so far was not held.
        until(|| server.held.load(Ordering::SeqCst) == server.given_up.load(Ordering::SeqCst));
        fetch(&client, &server, 1000);
    });
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    in_tasks(|| {
        let outcome = beside_tokio::block_on(client().get(format!("http://{}", refused())).send());
        assert!(outcome.is_err_and(|error| error.is_connect()));
    });
}

/// It is tokio's reactor that carries it.
#[test]
fn without_tokio_beside_it_there_is_no_request() {
    guarded(|| {
        runtime(1).run(|| {
            let server = Server::start();
            let alone = || drop(block_on(client().get(server.url("1000")).send()));
            assert!(catch_unwind(AssertUnwindSafe(alone)).is_err());
            fetch(&client(), &server, 1000);
        });
    });
}
