//! HTTP servers of the rivals, each with as many workers as there are processors for the process: of may its
//! own, and hyper, which runs on a current-thread runtime of tokio's. They answer `/plaintext` as the rules
//! of the TechEmpower benchmarks ask for.

use std::convert::Infallible;
use std::io;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, SERVER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use may_minihttp::{HttpServer, HttpService};
use tokio::task::{LocalSet, spawn_local};

use super::{Service, greet, workers};

const TEXT: &str = "Hello, World!";

/// All HTTP servers.
pub const SERVICES: [Service; 2] = [
    Service { name: "may_minihttp", serve: serve_with_may },
    Service { name: "hyper", serve: serve_with_hyper },
];

#[derive(Clone)]
struct Plaintext;

impl HttpService for Plaintext {
    fn call(
        &mut self,
        request: may_minihttp::Request<'_, '_, '_>,
        answer: &mut may_minihttp::Response<'_>,
    ) -> io::Result<()> {
        match request.path() {
            "/plaintext" => answer.header("Content-Type: text/plain").body(TEXT),
            _ => _ = answer.status_code(404, "Not Found"),
        }
        Ok(())
    }
}

fn serve_with_may(address: &str) -> io::Result<()> {
    may::config().set_workers(workers());
    // As in its own programs for those benchmarks.
    may::config().set_pool_capacity(1000).set_stack_size(0x1000);
    // It does not say which port it has, so it is given one that is free.
    let address = std::net::TcpListener::bind(address)?.local_addr()?;
    let server = HttpServer(Plaintext).start(address)?;
    greet(address)?;
    server.join().map_err(|_| io::Error::other("may_minihttp panicked"))
}

fn serve_with_hyper(address: &str) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = tokio::net::TcpListener::bind(address).await?;
        greet(listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let mut server = http1::Builder::new();
            server.pipeline_flush(true);
            spawn_local(server.serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    })
}

async fn answer(request: hyper::Request<Incoming>) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let mut answer = match request.uri().path() {
        "/plaintext" => hyper::Response::new(Full::from(TEXT)),
        _ => {
            let mut answer = hyper::Response::new(Full::default());
            *answer.status_mut() = hyper::StatusCode::NOT_FOUND;
            answer
        }
    };
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer.headers_mut().insert(SERVER, HeaderValue::from_static("hyper"));
    Ok(answer)
}
