//! hyper 1 on fibra's sockets: each connection is a task that runs hyper's future, and handlers may block.
//!
//! Run `cargo run --release --features compat-examples --example hyper_server -- 127.0.0.1:8080` (that
//! address is the default), then in another terminal `curl localhost:8080/`, `curl localhost:8080/sum/20/22`
//! and `curl --data-binary @Cargo.toml localhost:8080/echo`.

use fibra::compat::{Async, Timer};
use fibra::net::{TcpListener, TcpStream};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use std::env;
use std::io::{self, Write};
use std::time::Duration;

/// The longest body of a request.
const LONGEST: usize = 1 << 20;
/// The largest head of a request.
const HEAD: usize = 16 * 1024;
/// How long a client may take to send the head.
const PATIENCE: Duration = Duration::from_secs(10);

type Answer = Response<Full<Bytes>>;

fn main() -> io::Result<()> {
    fibra::run(serve)
}

fn serve() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    io::stdout().flush()?;
    let timer = Timer::new();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let timer = timer.clone();
                fibra::spawn(move || connection(stream, timer));
            }
            Err(error) => {
                // Most likely no descriptor is left: a connection that ends frees one.
                eprintln!("accept: {error}");
                fibra::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Serves one connection. A client that disconnects, or speaks no HTTP, is no error of the server.
fn connection(stream: TcpStream, timer: Timer) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut server = http1::Builder::new();
    server.timer(timer).header_read_timeout(PATIENCE).max_buf_size(HEAD);
    _ = fibra::block_on(server.serve_connection(Async::new(stream), service_fn(answer)));
}

async fn answer(request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => Ok(plain(StatusCode::OK, "Hello, World!")),
        (&Method::GET, path) if path.starts_with("/sum/") => Ok(sum(path).await),
        (&Method::POST, "/echo") => Ok(echo(request.into_body()).await),
        _ => Ok(plain(StatusCode::NOT_FOUND, "not found")),
    }
}

/// Adds two numbers in a fibra task, and awaits its handle.
async fn sum(path: &str) -> Answer {
    let numbers: Option<Vec<u64>> = path.split('/').skip(2).map(|number| number.parse().ok()).collect();
    let Some(numbers) = numbers else { return plain(StatusCode::BAD_REQUEST, "two numbers, please") };
    let adding = fibra::spawn(move || numbers.into_iter().fold(0, u64::wrapping_add));
    match adding.await {
        Ok(sum) => plain(StatusCode::OK, sum.to_string()),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// Sends the body back unless it is too long.
async fn echo(body: Incoming) -> Answer {
    // Refuses by the announced length, since hyper would wait for the rest of the body.
    if body.size_hint().lower() > LONGEST as u64 {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "too long");
    }
    match Limited::new(body, LONGEST).collect().await {
        Ok(body) => Response::new(Full::new(body.to_bytes())),
        Err(_) => plain(StatusCode::PAYLOAD_TOO_LARGE, "too long, or cut short"),
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    answer
}
