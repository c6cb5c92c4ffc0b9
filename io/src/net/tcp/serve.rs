//! `TcpListener::serve_on_each_worker`: one port, with a listener on each worker.

#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fibra_runtime::{Handle, JoinHandle};

use super::TcpListener;
use super::socket::listen_at;
use crate::net::ToSocketAddrs;
use crate::net::resolve::try_each;

impl TcpListener {
    /// Serves one port by a listener on each worker of the current runtime.
    ///
    /// The listeners share the port by `SO_REUSEPORT`. `serve` runs once on every worker, in a task
    /// that stays there.
    ///
    /// The system divides the connections between the listeners by their addresses, so a connection
    /// wakes one worker and not all of them. But the system does not know which worker is busy, and
    /// a connection waits for its worker. One listener and many workers do better with few
    /// connections, or with connections of very different cost. A connection stays on the worker
    /// that accepted it if [`spawn_local`](fibra_runtime::spawn_local) serves it.
    ///
    /// Returns the address once all listeners are bound. The tasks end when `serve` returns, or are
    /// cancelled with the runtime.
    ///
    /// # Cancellation
    ///
    /// As for [`ToSocketAddrs`]: waiting for a lookup is a cancellation point.
    ///
    /// # Panics
    ///
    /// Off a runtime.
    ///
    /// # Errors
    ///
    /// As [`bind`](TcpListener::bind); also if another program has the port without `SO_REUSEPORT`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{Read, Write};
    /// use std::time::Duration;
    /// use fibra_io::net::{TcpListener, TcpStream};
    ///
    /// let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(2).build()?;
    /// runtime.run(|| -> std::io::Result<()> {
    ///     let (address, tasks) = TcpListener::serve_on_each_worker("127.0.0.1:0", |listener| {
    ///         loop {
    ///             match listener.accept() {
    ///                 Ok((mut stream, _)) => drop(fibra_runtime::spawn_local(move || stream.write_all(b"hello"))),
    ///                 Err(error) => {
    ///                     // Out of descriptors, most likely: some connection will end and free one.
    ///                     eprintln!("accept: {error}");
    ///                     fibra_runtime::sleep(Duration::from_millis(10));
    ///                 }
    ///             }
    ///         }
    ///     })?;
    ///     assert_eq!(tasks.len(), 2);
    ///     let mut greeting = String::new();
    ///     TcpStream::connect(address)?.read_to_string(&mut greeting)?;
    ///     assert_eq!(greeting, "hello");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn serve_on_each_worker<A, F, T>(addr: A, serve: F) -> io::Result<(SocketAddr, Vec<JoinHandle<T>>)>
    where
        A: ToSocketAddrs,
        F: Fn(TcpListener) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        let runtime = Handle::current();
        let bound = try_each(addr, |address| bind_shared(address, runtime.workers()))?;
        let address = bound[0].local_addr()?;
        let serve = Arc::new(serve);
        let start = |(worker, listener)| {
            let serve = Arc::clone(&serve);
            runtime.spawn_on_worker(worker, move || serve(listener))
        };
        Ok((address, bound.into_iter().enumerate().map(start).collect()))
    }
}

/// Binds `count` listeners to one port, at least one.
fn bind_shared(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    let first = listen_at(address, true)?;
    // If the port was left to the system, the others take its choice.
    let address = first.local_addr()?;
    let others = (1..count).map(|_| listen_at(address, true));
    std::iter::once(Ok(first)).chain(others).collect()
}
