//! Echo servers of the rivals, for `load` to set beside fibra's: `echo_rivals RIVAL ADDRESS`, where RIVAL is `tokio-current`,
//! `tokio-multi`, `smol` or `may`. The first line says where it listens.
//!
//! Each is written as its users would, with as many workers as there are processors for the process.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::{iter, thread};

use fibra_bench::rival::{self, greet, workers};
use smol::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Builder;

/// The bytes that are read at a time.
const ROOM: usize = 4096;

fn main() -> ExitCode {
    rival::main("echo_rivals", "tokio-current|tokio-multi|smol|may", |name, address| match name {
        "tokio-current" => Some(serve_with_tokio(&mut Builder::new_current_thread(), address)),
        "tokio-multi" => {
            Some(serve_with_tokio(Builder::new_multi_thread().worker_threads(workers()), address))
        }
        "smol" => Some(serve_with_smol(address)),
        "may" => Some(serve_with_may(address)),
        _ => None,
    })
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

/// The text that both have for it.
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
        // SAFETY: it keeps nothing that is tied to its thread over a suspension, and its stack has room for the buffer.
        unsafe { may::coroutine::spawn(move || echo_with_may(stream)) };
    }
    Ok(())
}

fn echo_with_may(mut stream: may::net::TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; ROOM];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n])?,
        }
    }
}
