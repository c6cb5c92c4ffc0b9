//! `ToSocketAddrs`: turns a user's value into addresses, and looks names up on the second pool.

#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::{io, iter, option, slice, vec};

use super::simulated;
use crate::waiting::cancel::check_may_wait;
use crate::waiting::second_pool::detached;

#[cfg(test)]
mod tests;

/// Turns a value into socket addresses: [`std::net::ToSocketAddrs`], for tasks.
///
/// The implementations are those of std. The ones for strings parse literal addresses in place; a name is looked up by
/// the system on a thread of the blocking pool while the task sleeps. Off the runtime the lookup blocks the thread.
///
/// # Cancellation
///
/// Waiting for a lookup is a cancellation point. The lookup itself goes on to its end, and its result is
/// dropped.
///
/// # Examples
///
/// ```
/// use fibra_io::net::{SocketAddr, ToSocketAddrs};
///
/// let found: Vec<SocketAddr> = "127.0.0.1:80".to_socket_addrs()?.collect();
/// assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], 80))]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ToSocketAddrs {
    /// The addresses, in the order in which they are to be tried.
    type Iter: Iterator<Item = SocketAddr>;

    /// Returns the addresses, after a lookup if need be.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if a string is no address, and what the lookup says.
    fn to_socket_addrs(&self) -> io::Result<Self::Iter>;
}

/// Returns every address of a host, in the order in which they are to be tried.
///
/// A literal address stands for itself. A name is looked up by the system, on a thread of the blocking pool while the task
/// sleeps; off the runtime the lookup blocks the thread.
///
/// # Cancellation
///
/// As for [`ToSocketAddrs`].
///
/// # Errors
///
/// As for [`ToSocketAddrs::to_socket_addrs`].
///
/// # Examples
///
/// ```
/// use fibra_io::net::lookup_host;
///
/// assert!(lookup_host("localhost:80")?.all(|address| address.ip().is_loopback()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn lookup_host<A: ToSocketAddrs>(host: A) -> io::Result<A::Iter> {
    host.to_socket_addrs()
}

/// Tries `each` address until one succeeds; the last error otherwise.
pub(crate) fn try_each<T>(
    addresses: impl ToSocketAddrs,
    mut each: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = None;
    for address in addresses.to_socket_addrs()? {
        match each(address) {
            Ok(value) => return Ok(value),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(no_address))
}

/// The error of an empty list of addresses.
pub(crate) fn no_address() -> io::Error {
    invalid("could not resolve to any addresses")
}

/// Implements the trait for addresses that need no lookup.
macro_rules! addresses {
    ($($ours:ty),+) => {$(
        impl ToSocketAddrs for $ours {
            type Iter = option::IntoIter<SocketAddr>;

            fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
                Ok(Some(SocketAddr::from(*self)).into_iter())
            }
        }
    )+};
}

addresses!(SocketAddr, SocketAddrV4, SocketAddrV6, (IpAddr, u16), (Ipv4Addr, u16), (Ipv6Addr, u16));

impl ToSocketAddrs for (&str, u16) {
    type Iter = vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(ip) => Ok(vec![SocketAddr::new(ip, port)].into_iter()),
            Err(_) => look_up(host, port),
        }
    }
}

impl ToSocketAddrs for (String, u16) {
    type Iter = vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        (self.0.as_str(), self.1).to_socket_addrs()
    }
}

impl ToSocketAddrs for str {
    type Iter = vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        if let Ok(address) = self.parse() {
            return Ok(vec![address].into_iter());
        }
        let (host, port) = self.rsplit_once(':').ok_or_else(|| invalid("invalid socket address"))?;
        let port = port.parse().map_err(|_| invalid("invalid port value"))?;
        look_up(host, port)
    }
}

impl ToSocketAddrs for String {
    type Iter = vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        self.as_str().to_socket_addrs()
    }
}

impl<'a> ToSocketAddrs for &'a [SocketAddr] {
    type Iter = iter::Cloned<slice::Iter<'a, SocketAddr>>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        Ok(self.iter().cloned())
    }
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {
    type Iter = T::Iter;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        (**self).to_socket_addrs()
    }
}

/// Asks the system, on a thread that may block. The name is owned, not borrowed: a server that does not answer must not
/// hold up a task that is cancelled meanwhile.
fn look_up(host: &str, port: u16) -> io::Result<vec::IntoIter<SocketAddr>> {
    if let Some(found) = simulated::look_up(host, port) {
        return found;
    }
    check_may_wait()?;
    let host = host.to_owned();
    detached(move || std::net::ToSocketAddrs::to_socket_addrs(&(host.as_str(), port)))
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
