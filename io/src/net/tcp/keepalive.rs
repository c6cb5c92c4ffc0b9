//! `Keepalive`: how a silent peer is probed.

#![forbid(unsafe_code)]

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use crate::net::simulated;
use crate::network::SocketOption;

/// The probes of a silent TCP connection.
///
/// A field that is `None` is left to the system.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use fibra_io::net::{Keepalive, TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let stream = TcpStream::connect(listener.local_addr()?)?;
/// assert_eq!(stream.keepalive()?, None);
/// stream.set_keepalive(Some(Keepalive { idle: Some(Duration::from_secs(30)), ..Keepalive::default() }))?;
/// assert_eq!(stream.keepalive()?.unwrap().idle, Some(Duration::from_secs(30)));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// The silence before the first probe, in whole seconds.
    pub idle: Option<Duration>,
    /// The time between two probes, in whole seconds.
    pub interval: Option<Duration>,
    /// The number of unanswered probes that ends the connection.
    pub probes: Option<u32>,
}

impl Keepalive {
    pub(crate) fn set(option: SockRef<'_>, keepalive: Option<Keepalive>) -> io::Result<()> {
        let Some(keepalive) = keepalive else { return option.set_keepalive(false) };
        let mut wish = TcpKeepalive::new();
        if let Some(idle) = keepalive.idle {
            wish = wish.with_time(idle);
        }
        if let Some(interval) = keepalive.interval {
            wish = wish.with_interval(interval);
        }
        if let Some(probes) = keepalive.probes {
            wish = wish.with_retries(probes);
        }
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        let probes = [
            (SocketOption::KeepaliveIdle, keepalive.idle.map(seconds)),
            (SocketOption::KeepaliveInterval, keepalive.interval.map(seconds)),
            (SocketOption::KeepaliveProbes, keepalive.probes),
        ];
        option.set_tcp_keepalive(&wish).or_else(|error| {
            let given = probes.into_iter().filter_map(|(name, value)| Some((name, value?)));
            simulated::set_options(&*option, given, error)
        })
    }

    pub(crate) fn of(option: SockRef<'_>) -> io::Result<Option<Keepalive>> {
        if !option.keepalive()? {
            return Ok(None);
        }
        let number = |name, error| simulated::option(&*option, name, error);
        let seconds = |name, error| number(name, error).map(|value| Duration::from_secs(value.into()));
        let idle = option.tcp_keepalive_time().or_else(|error| seconds(SocketOption::KeepaliveIdle, error));
        let interval =
            option.tcp_keepalive_interval().or_else(|error| seconds(SocketOption::KeepaliveInterval, error));
        let probes =
            option.tcp_keepalive_retries().or_else(|error| number(SocketOption::KeepaliveProbes, error));
        Ok(Some(Keepalive { idle: Some(idle?), interval: Some(interval?), probes: Some(probes?) }))
    }
}
