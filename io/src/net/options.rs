//! Macros for the methods that several socket types have in common.
//!
//! A type invokes the macro of each set of methods that it has. Its only field is a
//! [`Socket`](super::socket::Socket). For the options a field suffices whose `option` returns
//! socket2's view of it.

#![forbid(unsafe_code)]

/// Clones, timeouts, deadlines and the mode of a socket that reads and writes.
macro_rules! handle_methods {
    ($ours:ident, $address:ty) => {
        impl $ours {
            /// Returns the address of this end.
            ///
            /// # Errors
            ///
            /// What `getsockname(2)` says.
            pub fn local_addr(&self) -> std::io::Result<$address> {
                use $crate::net::simulated::Address;
                self.0.std().local_addr().or_else(|error| <$address>::local(self.0.fd(), error))
            }

            /// Returns the address of the peer.
            ///
            /// # Errors
            ///
            /// `NotConnected` if there is none, or it has ended the connection.
            pub fn peer_addr(&self) -> std::io::Result<$address> {
                use $crate::net::simulated::Address;
                self.0.std().peer_addr().or_else(|error| <$address>::peer(self.0.fd(), error))
            }

            /// Makes a second handle of this socket, with a descriptor of its own.
            ///
            /// Both share the timeouts, the deadlines and the options.
            ///
            /// # Errors
            ///
            /// When the process has no descriptor left.
            pub fn try_clone(&self) -> std::io::Result<$ours> {
                self.0.try_clone().map($ours)
            }

            /// Sets how long a read waits for data; `None`, the default, is for ever.
            ///
            /// A read that has waited that long fails with `WouldBlock`, as in std on every Unix. A
            /// read that waits already keeps the timeout that it started with.
            ///
            /// # Errors
            ///
            /// `InvalidInput` if the timeout is zero.
            pub fn set_read_timeout(&self, timeout: Option<std::time::Duration>) -> std::io::Result<()> {
                self.0.set_timeout($crate::sys::Direction::Read, timeout)
            }

            /// Sets how long a write waits for room; `None`, the default, is for ever.
            ///
            /// A write that has waited that long fails with `WouldBlock`, as in std on every Unix. A
            /// write that waits already keeps the timeout that it started with.
            ///
            /// # Errors
            ///
            /// `InvalidInput` if the timeout is zero.
            pub fn set_write_timeout(&self, timeout: Option<std::time::Duration>) -> std::io::Result<()> {
                self.0.set_timeout($crate::sys::Direction::Write, timeout)
            }

            /// Returns the read timeout, as it was set.
            ///
            /// # Errors
            ///
            /// None; the type is std's.
            pub fn read_timeout(&self) -> std::io::Result<Option<std::time::Duration>> {
                Ok(self.0.timeout($crate::sys::Direction::Read))
            }

            /// Returns the write timeout, as it was set.
            ///
            /// # Errors
            ///
            /// None; the type is std's.
            pub fn write_timeout(&self) -> std::io::Result<Option<std::time::Duration>> {
                Ok(self.0.timeout($crate::sys::Direction::Write))
            }

            /// Takes the pending error of the socket away (`SO_ERROR`).
            ///
            /// It counts against the operation budget, so the caller may yield: a loop over it lets
            /// other tasks run.
            ///
            /// # Errors
            ///
            /// What `getsockopt(2)` says.
            pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
                fibra_runtime::wait::charge();
                self.0.option().take_error()
            }

            /// Makes calls through this handle fail with `WouldBlock` instead of waiting.
            ///
            /// `false` lets them wait again. The mode of the descriptor follows, for raw use.
            ///
            /// # Errors
            ///
            /// What `fcntl(2)` says.
            pub fn set_nonblocking(&self, nonblocking: bool) -> std::io::Result<()> {
                self.0.set_nonblocking(nonblocking)
            }

            fn option(&self) -> socket2::SockRef<'_> {
                self.0.option()
            }
        }

        $crate::waiting::timeouts::deadline_methods!(read $ours: it => it.0.timeouts().of($crate::sys::Direction::Read));
        $crate::waiting::timeouts::deadline_methods!(write $ours: it => it.0.timeouts().of($crate::sys::Direction::Write));
        $crate::net::options::buffer_methods!($ours);
    };
}

/// What the sockets that keep messages apart have in common.
macro_rules! message_methods {
    ($ours:ident, $address:ty) => {
        impl $ours {
            /// Waits for a message, and gives its length and the address of its sender.
            ///
            /// What does not fit into the buffer is lost.
            ///
            /// # Cancellation
            ///
            /// A wait is a cancellation point; no message is taken then.
            ///
            /// # Errors
            ///
            /// What `recvfrom(2)` says.
            pub fn recv_from(&self, buf: &mut [u8]) -> std::io::Result<(usize, $address)> {
                self.0.receive_from(buf, 0)
            }

            /// Receives a message and its sender, and leaves it to the next call.
            ///
            /// # Cancellation
            ///
            /// A wait is a cancellation point; no message is taken then.
            ///
            /// # Errors
            ///
            /// As [`recv_from`](Self::recv_from).
            pub fn peek_from(&self, buf: &mut [u8]) -> std::io::Result<(usize, $address)> {
                self.0.receive_from(buf, libc::MSG_PEEK)
            }

            /// Waits for a message, and returns its length.
            ///
            /// Bytes that do not fit into the buffer are lost. A connected socket receives from that
            /// address only.
            ///
            /// # Cancellation
            ///
            /// A wait is a cancellation point; no message is taken then.
            ///
            /// # Errors
            ///
            /// What `recv(2)` says, such as `ConnectionRefused` for a UDP socket whose previous
            /// message found no socket at its port.
            pub fn recv(&self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.0.receive_message(buf, 0)
            }

            /// Receives a message, and leaves it to the next call.
            ///
            /// # Cancellation
            ///
            /// A wait is a cancellation point; no message is taken then.
            ///
            /// # Errors
            ///
            /// As [`recv`](Self::recv).
            pub fn peek(&self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.0.receive_message(buf, libc::MSG_PEEK)
            }

            /// Sends a message to the address that the socket is connected to.
            ///
            /// Waits until there is room for it, here and in the queue of a Unix receiver.
            ///
            /// # Cancellation
            ///
            /// Waiting for room is a cancellation point; nothing is sent then.
            ///
            /// # Errors
            ///
            /// What `send(2)` says.
            pub fn send(&self, buf: &[u8]) -> std::io::Result<usize> {
                self.0.send_message(buf)
            }
        }
    };
}

/// The sizes of a socket's buffers.
macro_rules! buffer_methods {
    ($ours:ident) => {
        impl $ours {
            $crate::waiting::convert::forward! { self => self.option();
                /// Sets how many bytes the system keeps that have come and were not read
                /// (`SO_RCVBUF`). Linux doubles the number, to have room for its own records, and
                /// caps it at `net.core.rmem_max`.
                ///
                /// # Errors
                ///
                /// What `setsockopt(2)` says.
                fn set_recv_buffer_size(bytes: usize) -> std::io::Result<()>;

                /// Returns the size of the buffer for what has come, as the system has it.
                ///
                /// # Errors
                ///
                /// What `getsockopt(2)` says.
                fn recv_buffer_size() -> std::io::Result<usize>;

                /// Sets how many bytes the system keeps that are to be sent (`SO_SNDBUF`). Linux
                /// doubles the number, and caps it at `net.core.wmem_max`.
                ///
                /// # Errors
                ///
                /// What `setsockopt(2)` says.
                fn set_send_buffer_size(bytes: usize) -> std::io::Result<()>;

                /// Returns the size of the buffer for what is to be sent, as the system has it.
                ///
                /// # Errors
                ///
                /// What `getsockopt(2)` says.
                fn send_buffer_size() -> std::io::Result<usize>;
            }
        }
    };
}

/// The options of a TCP socket.
macro_rules! tcp_methods {
    ($ours:ident) => {
        impl $ours {
            $crate::waiting::convert::forward! { self => self.option();
                /// Sets how long closing the last handle goes on trying to deliver what is unsent
                /// (`SO_LINGER`, whole seconds). Zero throws it away and resets the connection.
                /// Closing with a linger time may block the thread.
                ///
                /// # Errors
                ///
                /// What `setsockopt(2)` says.
                fn set_linger(linger: Option<std::time::Duration>) -> std::io::Result<()>;

                /// Returns the linger time, if one is set.
                ///
                /// # Errors
                ///
                /// What `getsockopt(2)` says.
                fn linger() -> std::io::Result<Option<std::time::Duration>>;
            }

            /// Sets whether and how a silent peer is probed (`SO_KEEPALIVE`).
            ///
            /// A peer that does not answer ends the connection with an error.
            ///
            /// # Errors
            ///
            /// What `setsockopt(2)` says.
            pub fn set_keepalive(&self, keepalive: Option<$crate::net::Keepalive>) -> std::io::Result<()> {
                $crate::net::Keepalive::set(self.option(), keepalive)
            }

            /// Returns how a silent peer is probed, with every field set; `None` if it is not.
            ///
            /// # Errors
            ///
            /// What `getsockopt(2)` says.
            pub fn keepalive(&self) -> std::io::Result<Option<$crate::net::Keepalive>> {
                $crate::net::Keepalive::of(self.option())
            }

            /// Sets `TCP_NODELAY`: small packets leave at once, without Nagle's algorithm.
            ///
            /// # Errors
            ///
            /// What `setsockopt(2)` says.
            pub fn set_nodelay(&self, nodelay: bool) -> std::io::Result<()> {
                use $crate::net::simulated;
                use $crate::network::SocketOption::NoDelay;
                self.option()
                    .set_tcp_nodelay(nodelay)
                    .or_else(|error| simulated::set_option(self, NoDelay, nodelay.into(), error))
            }

            /// Returns true if `TCP_NODELAY` is set.
            ///
            /// # Errors
            ///
            /// What `getsockopt(2)` says.
            pub fn nodelay(&self) -> std::io::Result<bool> {
                use $crate::net::simulated;
                use $crate::network::SocketOption::NoDelay;
                self.option()
                    .tcp_nodelay()
                    .or_else(|error| simulated::option(self, NoDelay, error).map(|value| value != 0))
            }
        }
    };
}

/// The time to live.
macro_rules! ttl_methods {
    ($ours:ident) => {
        impl $ours {
            /// Sets the time to live of the packets sent from here, in hops.
            ///
            /// # Errors
            ///
            /// What `setsockopt(2)` says.
            pub fn set_ttl(&self, ttl: u32) -> std::io::Result<()> {
                use $crate::net::simulated;
                use $crate::network::SocketOption::TimeToLive;
                self.0.std().set_ttl(ttl).or_else(|error| simulated::set_option(self, TimeToLive, ttl, error))
            }

            /// Returns the time to live, in hops.
            ///
            /// # Errors
            ///
            /// What `getsockopt(2)` says.
            pub fn ttl(&self) -> std::io::Result<u32> {
                use $crate::net::simulated;
                use $crate::network::SocketOption::TimeToLive;
                self.0.std().ttl().or_else(|error| simulated::option(self, TimeToLive, error))
            }
        }
    };
}

/// Writes the methods of TCP and Unix listeners.
macro_rules! listener_methods {
    ($ours:ident, $accept:path, $stream:ty, $address:ty) => {
        impl $ours {
            /// Waits for the next connection, and returns it with the address of its peer.
            ///
            /// Connections that their clients gave up in the queue are skipped. The peer of a Unix
            /// connection is mostly unnamed.
            ///
            /// # Cancellation
            ///
            /// A wait is a cancellation point; clients that connect meanwhile stay in the queue. So is the
            /// pause of an accept that finds no descriptor left.
            ///
            /// # Errors
            ///
            /// What `accept(2)` says. If descriptors or memory have run out, the error comes after a pause
            /// of 10 milliseconds. Other tasks run meanwhile and may close descriptors, so a loop that logs the
            /// error and goes on survives.
            pub fn accept(&self) -> std::io::Result<($stream, $address)> {
                let (stream, peer) = self.0.accept($accept)?;
                Ok((self.take(stream), peer))
            }

            /// Accepts a connection if there is one.
            #[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
            pub(crate) fn try_accept(&self) -> std::io::Result<($stream, $address)> {
                let (stream, peer) = self.0.try_accept($accept)?;
                Ok((self.take(stream), peer))
            }

            /// Returns the address that the listener is bound to.
            ///
            /// # Errors
            ///
            /// What `getsockname(2)` says.
            pub fn local_addr(&self) -> std::io::Result<$address> {
                use $crate::net::simulated::Address;
                let socket = self.0.std();
                socket
                    .local_addr()
                    .or_else(|error| <$address>::local(std::os::fd::AsFd::as_fd(socket), error))
            }

            /// Makes a second handle of this listener, with a descriptor of its own.
            ///
            /// Both share the deadline.
            ///
            /// # Errors
            ///
            /// When the process has no descriptor left.
            pub fn try_clone(&self) -> std::io::Result<$ours> {
                self.0.try_clone().map($ours)
            }

            /// Takes the pending error of the socket away (`SO_ERROR`).
            ///
            /// It counts against the operation budget, so the caller may yield: a loop over it lets
            /// other tasks run.
            ///
            /// # Errors
            ///
            /// What `getsockopt(2)` says.
            pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
                fibra_runtime::wait::charge();
                self.0.take_error()
            }

            /// Sets the moment until which all accepts wait; `None`, the default, is for ever.
            ///
            /// An accept that would wait beyond it fails with `WouldBlock`, as a read at its deadline. A
            /// connection that is there already is accepted at any time. An accept that waits already keeps
            /// the deadline that it started with. std has no deadlines, so std types made from this value
            /// have none.
            pub fn set_accept_deadline(&self, deadline: Option<std::time::Instant>) {
                self.0.limit().set_deadline(deadline);
            }

            /// Returns the moment until which accepts wait.
            pub fn accept_deadline(&self) -> Option<std::time::Instant> {
                self.0.limit().deadline()
            }

            /// Makes `accept` through this handle fail with `WouldBlock` instead of waiting.
            ///
            /// `false` lets it wait again.
            ///
            /// # Errors
            ///
            /// None; the type is std's.
            pub fn set_nonblocking(&self, nonblocking: bool) -> std::io::Result<()> {
                self.0.set_nonblocking(nonblocking);
                Ok(())
            }
        }
    };
}

/// Writes `incoming`, and its iterator over the connections of a listener.
macro_rules! incoming {
    ($ours:ident, $stream:ident) => {
        impl $ours {
            /// Iterates over the connections: [`accept`](Self::accept) without end.
            ///
            /// Errors are items too: an iterator that skips them (`flatten`) hides a lack of descriptors.
            ///
            /// # Cancellation
            ///
            /// As for [`accept`](Self::accept), each time.
            pub fn incoming(&self) -> Incoming<'_> {
                Incoming { listener: self }
            }
        }

        /// Iterates over the connections of a borrowed listener, for ever.
        ///
        #[doc = concat!("Made by [`", stringify!($ours), "::incoming`].")]
        #[derive(Debug)]
        #[must_use = "iterators are lazy and do nothing unless consumed"]
        pub struct Incoming<'a> {
            listener: &'a $ours,
        }

        impl Iterator for Incoming<'_> {
            type Item = std::io::Result<$stream>;

            fn next(&mut self) -> Option<std::io::Result<$stream>> {
                Some(self.listener.accept().map(|(stream, _peer)| stream))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (usize::MAX, None)
            }
        }

        impl std::iter::FusedIterator for Incoming<'_> {}
    };
}

pub(crate) use {
    buffer_methods, handle_methods, incoming, listener_methods, message_methods, tcp_methods, ttl_methods,
};
