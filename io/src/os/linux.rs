//! What only Linux and Android have.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub use std::os::linux::fs;

/// Additions to [`net`](crate::net).
pub mod net {
    use std::io;
    #[cfg(target_os = "android")]
    pub use std::os::android::net::SocketAddrExt;
    #[cfg(target_os = "linux")]
    pub use std::os::linux::net::SocketAddrExt;

    use socket2::SockRef;

    use crate::net::TcpStream;

    mod sealed {
        pub trait Sealed {}
    }

    impl sealed::Sealed for TcpStream {}

    /// Adds the options of [`TcpStream`] that only Linux has.
    ///
    /// It is std's `TcpStreamExt`, for tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// use fibra_io::net::{TcpListener, TcpStream};
    /// use fibra_io::os::linux::net::TcpStreamExt;
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let stream = TcpStream::connect(listener.local_addr()?)?;
    /// stream.set_quickack(false)?;
    /// assert!(!stream.quickack()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub trait TcpStreamExt: sealed::Sealed {
        /// Sets `TCP_QUICKACK`: acknowledge at once, without waiting for data to go back.
        ///
        /// The kernel may turn it off again by itself.
        ///
        /// # Errors
        ///
        /// What `setsockopt(2)` says.
        fn set_quickack(&self, quickack: bool) -> io::Result<()>;

        /// Returns true if `TCP_QUICKACK` is on.
        ///
        /// # Errors
        ///
        /// What `getsockopt(2)` says.
        fn quickack(&self) -> io::Result<bool>;
    }

    impl TcpStreamExt for TcpStream {
        fn set_quickack(&self, quickack: bool) -> io::Result<()> {
            SockRef::from(self).set_tcp_quickack(quickack)
        }

        fn quickack(&self) -> io::Result<bool> {
            SockRef::from(self).tcp_quickack()
        }
    }
}
