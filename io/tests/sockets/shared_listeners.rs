//! Listeners that are made of what others have open as well, in this process or in another one.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::abstract_name::abstract_address;
use crate::common::sides::{beside, guarded};
use crate::common::{everywhere, kind, listener, runtime};
use crate::rerun::{child, errors, is_child};
use fibra_io::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use socket2::SockRef;

/// A listener of ours, of either family.
trait Listener: AsFd + From<OwnedFd> + Into<OwnedFd> + Send + Sized + 'static {
    fn new() -> Self;
    fn accept_one(&self) -> io::Result<()>;
    fn connect(&self);
    fn set_deadline(&self, deadline: Option<Instant>);
    fn not_to_wait(&self);

    /// Another descriptor of the open file.
    fn descriptor(&self) -> OwnedFd {
        self.as_fd().try_clone_to_owned().unwrap()
    }

    /// Sees that an accept waits until a client comes.
    fn waits(&self) {
        let deadline = Instant::now() + Duration::from_millis(3);
        self.set_deadline(Some(deadline));
        assert_eq!(kind(self.accept_one()), ErrorKind::WouldBlock);
        assert!(Instant::now() >= deadline, "it does not wait");
        self.set_deadline(None);
        self.connect();
        self.accept_one().unwrap();
    }
}

impl Listener for TcpListener {
    fn new() -> TcpListener {
        listener().0
    }

    fn accept_one(&self) -> io::Result<()> {
        self.accept().map(drop)
    }

    fn connect(&self) {
        drop(TcpStream::connect(self.local_addr().unwrap()).unwrap());
    }

    fn set_deadline(&self, deadline: Option<Instant>) {
        self.set_accept_deadline(deadline);
    }

    fn not_to_wait(&self) {
        self.set_nonblocking(true).unwrap();
    }
}

impl Listener for UnixListener {
    fn new() -> UnixListener {
        UnixListener::bind_addr(&abstract_address()).unwrap()
    }

    fn accept_one(&self) -> io::Result<()> {
        self.accept().map(drop)
    }

    fn connect(&self) {
        drop(UnixStream::connect_addr(&self.local_addr().unwrap()).unwrap());
    }

    fn set_deadline(&self, deadline: Option<Instant>) {
        self.set_accept_deadline(deadline);
    }

    fn not_to_wait(&self) {
        self.set_nonblocking(true).unwrap();
    }
}

/// An open file that blocks, as std makes it.
fn made_by_std<D: Listener>() -> OwnedFd {
    D::new().into()
}

fn is_nonblocking(fd: &impl AsFd) -> bool {
    SockRef::from(fd).nonblocking().unwrap()
}

/// Two of one open file: the first is one that we have made, or was made as the second.
fn pairs<D: Listener>() -> [(D, OwnedFd); 2] {
    let (fresh, adopted) = (D::new(), D::from(made_by_std::<D>()));
    [fresh, adopted].map(|first| {
        let other = first.descriptor();
        (first, other)
    })
}

fn both_wait<D: Listener>() {
    for is_used in [false, true] {
        for (first, other) in pairs::<D>() {
            if is_used {
                first.waits();
                assert!(is_nonblocking(&other), "by our doing");
            }
            let second = D::from(other);
            second.waits();
            first.waits();
        }
    }
}

#[test]
fn one_that_is_made_of_the_descriptor_of_another_waits() {
    everywhere(|| {
        both_wait::<TcpListener>();
        both_wait::<UnixListener>();
    });
}

fn each_gets_one<D: Listener>() {
    let std = made_by_std::<D>();
    let acceptors: Vec<_> = (0..4)
        .map(|_| {
            let clone = std.try_clone().unwrap();
            beside(move || D::from(clone).accept_one().unwrap())
        })
        .collect();
    let ours = D::from(std);
    (0..4).for_each(|_| ours.connect());
    acceptors.into_iter().for_each(|acceptor| acceptor.join());
}

#[test]
fn clones_of_one_of_std_s_wait_though_others_accept_already() {
    everywhere(|| {
        each_gets_one::<TcpListener>();
        each_gets_one::<UnixListener>();
    });
}

fn asks_for_the_mode<D: Listener>() {
    let std = made_by_std::<D>();
    SockRef::from(&std).set_nonblocking(true).unwrap();
    let ours = D::from(std);
    ours.waits();
    ours.not_to_wait();
    assert_eq!(kind(ours.accept_one()), ErrorKind::WouldBlock);
}

#[test]
fn one_that_is_not_to_wait_is_told_so_once_it_is_ours() {
    everywhere(|| {
        asks_for_the_mode::<TcpListener>();
        asks_for_the_mode::<UnixListener>();
    });
}

fn leaves_as_it_was_asked_to<D: Listener>() {
    for (first, other) in pairs::<D>() {
        first.waits();
        let leaving: OwnedFd = D::from(other).into();
        assert!(!is_nonblocking(&leaving));
        // The mode is that of both; were it minded, the worker would stop.
        first.waits();
        let leaving = D::from(leaving);
        leaving.not_to_wait();
        assert!(is_nonblocking(&leaving.into()));
        first.waits();
    }
}

#[test]
fn one_of_several_leaves_in_the_mode_that_it_was_asked_for_and_the_others_go_on_waiting() {
    everywhere(|| {
        leaves_as_it_was_asked_to::<TcpListener>();
        leaves_as_it_was_asked_to::<UnixListener>();
    });
}

/// The listener is the standard input of the other process.
fn waits_elsewhere<D: Listener>(test: &str) {
    if is_child() {
        runtime(1).run(|| D::from(io::stdin().as_fd().try_clone_to_owned().unwrap()).waits());
        return;
    }
    guarded(|| {
        runtime(1).run(|| {
            let listener = D::new();
            listener.waits();
            let output = child(test).stdin(listener.descriptor()).output().unwrap();
            assert!(output.status.success(), "{}", errors(&output));
            listener.waits();
        });
    });
}

#[test]
fn a_child_waits_on_the_listener_that_it_inherits() {
    waits_elsewhere::<TcpListener>("shared_listeners::a_child_waits_on_the_listener_that_it_inherits");
}

#[test]
fn a_child_waits_on_the_unix_listener_that_it_inherits() {
    waits_elsewhere::<UnixListener>("shared_listeners::a_child_waits_on_the_unix_listener_that_it_inherits");
}
