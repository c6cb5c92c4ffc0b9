//! fibra has each item at the path that std has it at: a program ports by `use fibra::` for `use std::`.
#![cfg(target_os = "linux")]

use fibra::io::pipe;
use fibra::net::{TcpListener, TcpStream, UdpSocket};
use fibra::os::linux::net::{SocketAddrExt, TcpStreamExt};
use fibra::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::io::{self, Read, Write};

/// Says a word into the one and hears it from the other.
fn passes(mut into: impl Write, mut from: impl Read) -> io::Result<()> {
    into.write_all(b"word")?;
    let mut heard = [0; 4];
    from.read_exact(&mut heard)?;
    assert_eq!(&heard, b"word");
    Ok(())
}

#[test]
fn words_pass_through_everything_that_std_has_for_it() -> io::Result<()> {
    fibra::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        client.set_quickack(true)?;
        passes(&client, listener.accept()?.0)?;

        let (here, there) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        here.send_to(b"word", there.local_addr()?)?;
        assert_eq!(there.recv_from(&mut [0; 8])?, (4, here.local_addr()?));

        let address = SocketAddr::from_abstract_name(format!("fibra paths {}", std::process::id()))?;
        let listener = UnixListener::bind_addr(&address)?;
        let client = UnixStream::connect_addr(&address)?;
        passes(&client, listener.accept()?.0)?;

        let (here, there) = UnixDatagram::pair()?;
        here.send(b"word")?;
        assert_eq!(there.recv(&mut [0; 8])?, 4);

        let (reader, writer) = pipe()?;
        passes(writer, reader)
    })
}

/// Never called: what std's type can do, ours can. Each list is checked with std's own type first.
#[expect(dead_code, reason = "it is compiled, and that is the test")]
mod every_trait {
    use std::fmt::Debug;
    use std::io::{BufRead, Read, Seek, Write};
    use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
    use std::panic::{RefUnwindSafe, UnwindSafe};
    use std::process::Stdio;

    use fibra::io::IsTerminal;

    trait Plain: Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe {}
    impl<T: Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe> Plain for T {}

    trait Open: AsFd + AsRawFd + IsTerminal {}
    impl<T: AsFd + AsRawFd + IsTerminal> Open for T {}

    trait Owner: Plain + Open + IntoRawFd + FromRawFd + From<OwnedFd> + Into<OwnedFd> {}
    impl<T: Plain + Open + IntoRawFd + FromRawFd + From<OwnedFd> + Into<OwnedFd>> Owner for T {}

    macro_rules! both {
        ($(fn $name:ident<$t:ident>() where { $($bounds:tt)* } for $std:ty, $ours:ty;)+) => {$(
            fn $name() {
                fn can<$t>() where $($bounds)* {}
                can::<$std>();
                can::<$ours>();
            }
        )+};
    }

    both! {
        fn tcp_stream<T>() where { T: Owner + Read + Write, for<'a> &'a T: Read + Write }
            for std::net::TcpStream, fibra::net::TcpStream;
        fn tcp_listener<T>() where { T: Owner } for std::net::TcpListener, fibra::net::TcpListener;
        fn udp_socket<T>() where { T: Owner } for std::net::UdpSocket, fibra::net::UdpSocket;
        fn unix_stream<T>() where { T: Owner + Read + Write, for<'a> &'a T: Read + Write }
            for std::os::unix::net::UnixStream, fibra::net::UnixStream;
        fn unix_listener<T>() where { T: Owner, for<'a> &'a T: IntoIterator }
            for std::os::unix::net::UnixListener, fibra::net::UnixListener;
        fn unix_datagram<T>() where { T: Owner } for std::os::unix::net::UnixDatagram, fibra::net::UnixDatagram;
        fn pipe_reader<T>() where { T: Owner + Read + Into<Stdio>, for<'a> &'a T: Read }
            for std::io::PipeReader, fibra::io::PipeReader;
        fn pipe_writer<T>() where { T: Owner + Write + Into<Stdio>, for<'a> &'a T: Write }
            for std::io::PipeWriter, fibra::io::PipeWriter;
        fn file<T>() where { T: Owner + Read + Write + Seek + Into<Stdio>, for<'a> &'a T: Read + Write + Seek }
            for std::fs::File, fibra::fs::File;
        fn stdin<T>() where { T: Plain + Open + Read, for<'a> &'a T: Read } for std::io::Stdin, fibra::io::Stdin;
        fn stdin_lock<T>() where { T: Debug + UnwindSafe + RefUnwindSafe + Open + Read + BufRead }
            for std::io::StdinLock<'static>, fibra::io::StdinLock<'static>;
        fn stdout<T>() where { T: Plain + Open + Write + Into<Stdio>, for<'a> &'a T: Write }
            for std::io::Stdout, fibra::io::Stdout;
        fn stdout_lock<T>() where { T: Debug + UnwindSafe + RefUnwindSafe + Open + Write }
            for std::io::StdoutLock<'static>, fibra::io::StdoutLock<'static>;
        fn stderr<T>() where { T: Plain + Open + Write + Into<Stdio>, for<'a> &'a T: Write }
            for std::io::Stderr, fibra::io::Stderr;
        fn stderr_lock<T>() where { T: Debug + UnwindSafe + RefUnwindSafe + Open + Write }
            for std::io::StderrLock<'static>, fibra::io::StderrLock<'static>;
        fn child_stdin<T>() where { T: Plain + Open + IntoRawFd + From<OwnedFd> + Into<OwnedFd> + Write + Into<Stdio>, for<'a> &'a T: Write }
            for std::process::ChildStdin, fibra::process::ChildStdin;
        fn child_stdout<T>() where { T: Plain + Open + IntoRawFd + From<OwnedFd> + Into<OwnedFd> + Read + Into<Stdio> }
            for std::process::ChildStdout, fibra::process::ChildStdout;
        fn child_stderr<T>() where { T: Plain + Open + IntoRawFd + From<OwnedFd> + Into<OwnedFd> + Read + Into<Stdio> }
            for std::process::ChildStderr, fibra::process::ChildStderr;
        fn child<T>() where { T: Plain } for std::process::Child, fibra::process::Child;
        fn command<T>() where { T: Debug + Send + Sync + Unpin } for std::process::Command, fibra::process::Command;
        fn options<T>() where { T: Plain + Clone + std::os::unix::fs::OpenOptionsExt }
            for std::fs::OpenOptions, fibra::fs::OpenOptions;
        fn directory<T>() where { T: Plain + Iterator } for std::fs::ReadDir, fibra::fs::ReadDir;
        fn entry<T>() where { T: Plain + std::os::unix::fs::DirEntryExt } for std::fs::DirEntry, fibra::fs::DirEntry;
        fn builder<T>() where { T: Plain + std::os::unix::fs::DirBuilderExt } for std::fs::DirBuilder, fibra::fs::DirBuilder;
    }

    fn a_command_has_what_unix_adds(theirs: &mut std::process::Command, ours: &mut fibra::process::Command) {
        fn std<C: std::os::unix::process::CommandExt>(_: &mut C) {}
        fn fibra<C: fibra::os::unix::process::CommandExt>(_: &mut C) {}
        std(theirs);
        fibra(ours);
    }

    #[expect(unused_imports, reason = "that they are there")]
    mod paths {
        use fibra::io::{
            BufReader, BufWriter, Bytes, Chain, Cursor, Empty, Error, ErrorKind, IntoInnerError, IoSlice,
            IoSliceMut, IsTerminal, LineWriter, Lines, Repeat, Result, Seek, SeekFrom, Sink, Split, Take,
            WriterPanicked, copy, empty, prelude, read_to_string, repeat, sink,
        };
        use fibra::os::fd::{AsFd, BorrowedFd, OwnedFd};
        use fibra::os::linux::fs::MetadataExt as _;
        use fibra::os::unix::ffi::OsStrExt;
        use fibra::os::unix::fs::{
            DirBuilderExt, DirEntryExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt,
            chown, chroot, fchown, lchown, symlink,
        };
        use fibra::os::unix::io::AsRawFd;
        use fibra::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
        use fibra::process::{
            CommandArgs, CommandEnvs, ExitCode, ExitStatus, Output, Termination, abort, exit, id,
        };
    }
}
