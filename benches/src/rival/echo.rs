//! Echo servers of the rivals, each with as many workers as there are processors for the process.
#![expect(unsafe_code, reason = "may lets coroutines be spawned by a promise only")]

use std::io::{self, Read, Write};
use std::{iter, thread};

use smol::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Builder;

use super::{Service, greet, workers};

/// All echo servers.
pub const SERVICES: [Service; 4] = [
    Service { name: "tokio-current", serve: serve_with_tokio_current },
    Service { name: "tokio-multi", serve: serve_with_tokio_multi },
    Service { name: "smol", serve: serve_with_smol },
    Service { name: "may", serve: serve_with_may },
];

/// The size of a read, in bytes.
const ROOM: usize = 4096;

fn serve_with_tokio_current(address: &str) -> io::Result<()> {
    serve_with_tokio(&mut Builder::new_current_thread(), address)
}

fn serve_with_tokio_multi(address: &str) -> io::Result<()> {
    serve_with_tokio(Builder::new_multi_thread().worker_threads(workers()), address)
}

fn serve_with_tokio(builder: &mut Builder, address: &str) -> io::Result<()> {
    builder.enable_io().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await?;
        greet(listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(echo_with_tokio(stream));
        }
    })
}

fn serve_with_smol(address: &str) -> io::Result<()> {
    static EXECUTOR: smol::Executor<'static> = smol::Executor::new();
    let others = iter::repeat_n((), workers() - 1);
    others.for_each(|()| _ = thread::spawn(|| smol::block_on(EXECUTOR.run(smol::future::pending::<()>()))));
    let address = address.to_owned();
    smol::block_on(EXECUTOR.run(async {
        let listener = smol::net::TcpListener::bind(address).await?;
        greet(listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            EXECUTOR.spawn(echo_with_smol(stream)).detach();
        }
    }))
}

/// The name that both flavours share.
macro_rules! echo {
    ($name:ident, $stream:ty) => {
        async fn $name(mut stream: $stream) -> io::Result<()> {
            stream.set_nodelay(true)?;
            let mut buffer = [0; ROOM];
            loop {
                match stream.read(&mut buffer).await? {
                    0 => return Ok(()),
                    n => stream.write_all(&buffer[..n]).await?,
                }
            }
        }
    };
}

echo!(echo_with_tokio, tokio::net::TcpStream);
echo!(echo_with_smol, smol::net::TcpStream);

fn serve_with_may(address: &str) -> io::Result<()> {
    may::config().set_workers(workers());
    let listener = may::net::TcpListener::bind(address)?;
    greet(listener.local_addr()?)?;
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        // SAFETY: it keeps nothing that is tied to its thread over a suspension, and its stack has room for
        // the buffer.
        unsafe { may::coroutine::spawn(move || echo(stream)) };
    }
    Ok(())
}

/// Sends back what comes, until the client has closed its side.
pub(crate) fn echo(mut stream: impl Read + Write) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n])?,
        }
    }
}
