//! The sends and receives of an `Async` around a datagram socket.

#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use super::detour::Detour;
use super::{Async, Datagram, Site, Waits};
use crate::net::datagram::Family;
use crate::sys;
use crate::waiting::attempt::Attempt;

impl<S: Datagram> Async<S> {
    /// Receives a message from the connected peer, and returns its length.
    ///
    /// What does not fit into the buffer is lost.
    ///
    /// # Errors
    /// Those of the socket.
    ///
    /// # Fairness
    /// A message wakes all receivers of the socket, which compete for it.
    ///
    /// # Examples
    /// ```
    /// use fibra_io::compat::Async;
    /// use fibra_io::net::UnixDatagram;
    ///
    /// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
    /// # runtime.run(|| -> std::io::Result<()> {
    /// let (here, there) = UnixDatagram::pair()?;
    /// let (here, there) = (Async::new(here), Async::new(there));
    /// let mut buf = [0; 16];
    /// let len = fibra_runtime::block_on(async {
    ///     here.send(b"hello").await?;
    ///     there.recv(&mut buf).await
    /// })?;
    /// assert_eq!(&buf[..len], b"hello");
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        let mut waits = Waits::new();
        poll_fn(|context| self.site(&mut waits).recv(context, buf)).await
    }

    /// Receives a message, and returns its length and the address of its sender.
    ///
    /// What does not fit into the buffer is lost.
    ///
    /// # Errors
    /// Those of the socket.
    ///
    /// # Examples
    /// ```
    /// use fibra_io::compat::Async;
    /// use fibra_io::net::UdpSocket;
    ///
    /// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
    /// # runtime.run(|| -> std::io::Result<()> {
    /// let server = Async::new(UdpSocket::bind("127.0.0.1:0")?);
    /// let client = UdpSocket::bind("127.0.0.1:0")?;
    /// client.send_to(b"ping", server.get_ref().local_addr()?)?;
    /// let mut buf = [0; 16];
    /// let answered = fibra_runtime::block_on(async {
    ///     let (len, from) = server.recv_from(&mut buf).await?;
    ///     server.send_to(&buf[..len], &from).await
    /// })?;
    /// assert_eq!(client.recv(&mut [0; 16])?, answered);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, S::Address)> {
        let mut waits = Waits::new();
        poll_fn(|context| self.site(&mut waits).recv_from(context, buf)).await
    }

    /// Sends a message to the connected peer.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        let mut waits = Waits::new();
        poll_fn(|context| self.site(&mut waits).send(context, buf)).await
    }

    /// Sends a message to an address.
    ///
    /// While the queue of a Unix receiver is full it waits. A further descriptor tells it of room.
    ///
    /// # Errors
    /// Those of the socket; and when there is no descriptor for that wait.
    pub async fn send_to(&self, buf: &[u8], address: &S::Address) -> io::Result<usize> {
        let mut waits = Waits::new();
        poll_fn(|context| self.site(&mut waits).send_to(context, buf, address)).await
    }

    /// [`recv`](Async::recv) as a poll, which keeps the waker of the last receiver.
    ///
    /// # Errors
    /// As [`recv`](Async::recv).
    ///
    /// # Examples
    /// ```
    /// use std::future::poll_fn;
    /// use fibra_io::compat::Async;
    /// use fibra_io::net::UnixDatagram;
    ///
    /// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
    /// # runtime.run(|| -> std::io::Result<()> {
    /// let (here, there) = UnixDatagram::pair()?;
    /// let (mut here, mut there) = (Async::new(here), Async::new(there));
    /// let mut buf = [0; 16];
    /// let sent = fibra_runtime::block_on(poll_fn(|cx| here.poll_send(cx, b"hello")))?;
    /// assert_eq!(fibra_runtime::block_on(poll_fn(|cx| there.poll_recv(cx, &mut buf)))?, sent);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_recv(&mut self, context: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.polled().recv(context, buf)
    }

    /// Polls for a message, as [`recv_from`](Async::recv_from) awaits one.
    ///
    /// It keeps the waker of the last caller.
    ///
    /// # Errors
    /// As [`recv_from`](Async::recv_from).
    ///
    /// # Examples
    /// ```
    /// use std::future::poll_fn;
    /// use fibra_io::compat::Async;
    /// use fibra_io::net::UdpSocket;
    ///
    /// # let runtime = fibra_runtime::Runtime::builder().driver(fibra_io::driver()).workers(1).build()?;
    /// # runtime.run(|| -> std::io::Result<()> {
    /// let mut server = Async::new(UdpSocket::bind("127.0.0.1:0")?);
    /// let mut client = Async::new(UdpSocket::bind("127.0.0.1:0")?);
    /// let address = server.get_ref().local_addr()?;
    /// let mut buf = [0; 16];
    /// fibra_runtime::block_on(poll_fn(|cx| client.poll_send_to(cx, b"ping", &address)))?;
    /// let (len, from) = fibra_runtime::block_on(poll_fn(|cx| server.poll_recv_from(cx, &mut buf)))?;
    /// assert_eq!((&buf[..len], from), (&b"ping"[..], client.into_inner().local_addr()?));
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_recv_from(
        &mut self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, S::Address)>> {
        self.polled().recv_from(context, buf)
    }

    /// [`send`](Async::send) as a poll, which keeps the waker of the last sender.
    ///
    /// # Errors
    /// As [`send`](Async::send).
    pub fn poll_send(&mut self, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.polled().send(context, buf)
    }

    /// [`send_to`](Async::send_to) as a poll, which keeps the waker of the last sender.
    ///
    /// While it is pending because of the queue of a Unix receiver it also keeps a descriptor:
    /// until it is polled to the end, or for another receiver, or the `Async` is dropped. A caller
    /// that gives up polling has that descriptor open as long.
    ///
    /// # Errors
    /// As [`send_to`](Async::send_to).
    pub fn poll_send_to(
        &mut self,
        context: &mut Context<'_>,
        buf: &[u8],
        address: &S::Address,
    ) -> Poll<io::Result<usize>> {
        self.polled().send_to(context, buf, address)
    }
}

impl<S: Datagram> Site<'_, S> {
    fn recv(&mut self, context: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let inner = self.socket.inner();
        let call = || inner.try_receive(buf, 0, || inner.has_heard_of_an_end());
        self.waits.reads.run(inner, self.origin, context, call)
    }

    fn recv_from(
        &mut self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, S::Address)>> {
        let inner = self.socket.inner();
        let mut receive = || sys::recv_from(inner.fd(), buf, 0);
        let call = || inner.try_receive_by(&mut receive, || inner.has_heard_of_an_end());
        self.waits.reads.run(inner, self.origin, context, call)
    }

    fn send(&mut self, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let inner = self.socket.inner();
        self.waits.writes.run(inner, self.origin, context, || inner.try_send(buf))
    }

    fn send_to(
        &mut self,
        context: &mut Context<'_>,
        buf: &[u8],
        address: &S::Address,
    ) -> Poll<io::Result<usize>> {
        let sent = self.send_around(context, buf, address);
        if sent.is_ready() {
            self.waits.detour = None;
        }
        sent
    }

    /// Sends, by way of a wait for the receiver's queue if that is full.
    fn send_around(
        &mut self,
        context: &mut Context<'_>,
        buf: &[u8],
        address: &S::Address,
    ) -> Poll<io::Result<usize>> {
        let inner = self.socket.inner();
        let receiver = S::Family::to_raw(address)?;
        let send = || inner.send_to_now(buf, &receiver);
        loop {
            let call = || inner.try_send_by(send);
            if let Some(sent) = ready!(self.waits.writes.run(inner, self.origin, context, call))? {
                return Poll::Ready(Ok(sent));
            }
            let Some(Detour { watch, probe, .. }) = Detour::to(&mut self.waits.detour, &receiver)? else {
                // A full queue makes the call wait for the room of this socket.
                return self.waits.writes.run(inner, self.origin, context, || send().map(Attempt::Done));
            };
            ready!(watch.run(probe, self.origin, context, || probe.look()))?;
            // It knows the socket that had the address when it was made. If another one has it by
            // now, and is full, then this would be ready for ever.
            self.waits.detour = None;
        }
    }
}
