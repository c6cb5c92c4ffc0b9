//! What a stream of any kind must carry as one of tokio's or of futures-rs's, in both directions at once.

use fibra_runtime::block_on;

use crate::common::pattern;
use crate::common::sides::beside;

/// More than sockets keep.
const MUCH: usize = 4 << 20;

pub(crate) fn carry_as_tokio<S>(client: S, server: S)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let echo = beside(move || {
        block_on(async {
            let (mut reads, mut writes) = tokio::io::split(server);
            tokio::io::copy(&mut reads, &mut writes).await.unwrap();
            writes.shutdown().await.unwrap();
        });
    });
    let (mut reads, mut writes) = tokio::io::split(client);
    let sender = beside(move || {
        block_on(async {
            writes.write_all(&pattern(MUCH)).await.unwrap();
            writes.shutdown().await.unwrap();
        });
    });
    let mut back = Vec::new();
    block_on(reads.read_to_end(&mut back)).unwrap();
    assert!(back == pattern(MUCH), "{} bytes came back, or others", back.len());
    sender.join();
    echo.join();
}

pub(crate) fn carry_as_futures<S>(client: S, server: S)
where
    S: futures_io::AsyncRead + futures_io::AsyncWrite + Send + Unpin + 'static,
{
    use futures_util::io::{AsyncReadExt, AsyncWriteExt};
    let echo = beside(move || {
        block_on(async {
            let (reads, mut writes) = server.split();
            futures_util::io::copy(reads, &mut writes).await.unwrap();
            writes.close().await.unwrap();
        });
    });
    let (mut reads, mut writes) = client.split();
    let mut back = Vec::new();
    // In one task: what waits for room does not keep the other from reading.
    block_on(async {
        let bytes = pattern(MUCH);
        let sending = async {
            writes.write_all(&bytes).await.unwrap();
            writes.close().await.unwrap();
        };
        let (_, read) = futures_util::future::join(sending, reads.read_to_end(&mut back)).await;
        read.unwrap();
    });
    assert!(back == pattern(MUCH), "{} bytes came back, or others", back.len());
    echo.join();
}
