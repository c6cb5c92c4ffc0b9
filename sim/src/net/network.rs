//! The network as the library's sockets use it.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use fibra_io::network::{self, SocketOption, Transport};
use rustix::io::Errno;

use super::descriptors;
use super::state::{Messages, Process, Role, State};
use crate::host_id::HostId;

/// How many descriptors a simulation has beside those of its sockets.
const OWN_DESCRIPTORS: usize = 4;

/// The network of one run.
pub(crate) struct Network {
    state: Mutex<State>,
    tasks: Mutex<Tasks>,
    /// Fails the run: for a panic of a rule, or an error of the system.
    fail: Box<dyn Fn(String) + Send + Sync>,
}

/// The hosts of the tasks, by their ids, except those of the main host.
#[derive(Default)]
pub(crate) struct Tasks(HashMap<u64, HostId>);

impl Tasks {
    /// Notes on which host a task runs.
    pub(crate) fn set(&mut self, task: u64, host: HostId) {
        self.0.insert(task, host);
    }

    /// Notes that a task has spawned another one, which runs on the same host unless it was told otherwise.
    pub(crate) fn inherit(&mut self, parent: u64, child: u64) {
        if let Some(host) = self.0.get(&parent).copied() {
            self.0.entry(child).or_insert(host);
        }
    }

    /// Returns the host of a task.
    pub(crate) fn host_of(&self, task: u64) -> HostId {
        self.0.get(&task).copied().unwrap_or_default()
    }

    /// Returns the host of the running task.
    pub(crate) fn present_host(&self) -> HostId {
        fibra::task::try_current().map_or(HostId::default(), |task| self.host_of(task.id()))
    }
}

impl Network {
    /// # Errors
    /// If the process has no descriptor left.
    pub(crate) fn new(seed: u64, fail: impl Fn(String) + Send + Sync + 'static) -> io::Result<Self> {
        let state = Mutex::new(State::new(seed)?);
        Ok(Network { state, tasks: Mutex::default(), fail: Box::new(fail) })
    }

    pub(crate) fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many descriptors the simulation has, about.
    pub(crate) fn descriptors(&self) -> usize {
        OWN_DESCRIPTORS + self.state.try_lock().map_or(0, |state| 2 * state.sockets.len())
    }

    /// Adds a host.
    pub(crate) fn add_host(&self, name: &str) -> Option<HostId> {
        let mut state = self.lock();
        match state.host_named(name) {
            Some(_) => None,
            None => Some(state.add_host(name)),
        }
    }

    /// Returns the addresses of a host: of IPv4, and of IPv6.
    pub(crate) fn ips(&self, host: HostId) -> [IpAddr; 2] {
        self.lock().host(host).ips
    }

    /// Cuts a host off.
    pub(crate) fn crash(&self, host: HostId) {
        self.with(|state| state.crash(host));
    }

    /// Connects a host again.
    pub(crate) fn restart(&self, host: HostId) {
        let mut state = self.lock();
        let machine = state.host(host);
        (machine.is_up, machine.process) = (true, Process::new());
    }

    /// Returns false between a crash and the restart. May be called in a panic of a rule.
    pub(crate) fn is_up(&self, host: HostId) -> bool {
        self.state.try_lock().map_or(true, |mut state| state.host(host).is_up)
    }

    /// Returns the number of a host's process.
    pub(crate) fn process_of(&self, host: HostId) -> u64 {
        self.lock().host(host).process.0
    }

    #[track_caller]
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let done = act(&mut state);
        let failure = state.links.failure.take();
        drop(state);
        if let Some(reason) = failure {
            (self.fail)(reason);
        }
        done
    }

    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            // All other calls come from the one thread of the simulation, and end before it goes on.
            Err(TryLockError::WouldBlock) => panic!("a rule has used the network that it rules"),
        }
    }

    fn on<R>(
        &self,
        socket: BorrowedFd<'_>,
        act: impl FnOnce(&mut State, u64) -> io::Result<R>,
    ) -> io::Result<R> {
        self.with(|state| {
            let id = state.id_of(socket)?;
            act(state, id)
        })
    }
}

impl network::Network for Network {
    fn socket(&self, transport: Transport) -> io::Result<OwnedFd> {
        let host = self.tasks().present_host();
        let (pair, role) = match transport {
            // One byte for the end of `connect`, and one that stays.
            Transport::Stream => (descriptors::stream(2)?, Role::Fresh),
            Transport::Messages => {
                let pair = descriptors::messages()?;
                let users = descriptors::name_of(&pair.users)?;
                (pair, Role::Messages(Messages::new(users)))
            }
        };
        self.lock().add(host, pair, role).map(|(_, users)| users)
    }

    fn bind(&self, socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
        self.on(socket, |state, id| state.bind(id, address))
    }

    fn listen(&self, socket: BorrowedFd<'_>, backlog: usize) -> io::Result<()> {
        self.on(socket, |state, id| state.listen(id, backlog))
    }

    fn connect(&self, socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
        self.on(socket, |state, id| match state.sockets[&id].role.transport() {
            Transport::Stream => state.connect(id, address),
            Transport::Messages => state.connect_messages(id, socket, address),
        })
    }

    fn accept(&self, listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, SocketAddr)> {
        self.on(listener, |state, id| state.accept(id, listener))
    }

    fn local_addr(&self, socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
        self.on(socket, |state, id| {
            // Neither bound nor connected.
            Ok(state.sockets[&id].local.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0))))
        })
    }

    fn peer_addr(&self, socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
        self.on(socket, |state, id| match state.socket(id).map(|socket| &mut socket.role) {
            Some(Role::Stream(stream)) => stream.remote(),
            Some(Role::Messages(Messages { peer: Some(peer), .. })) => Ok(*peer),
            _ => Err(Errno::NOTCONN.into()),
        })
    }

    fn send_to(&self, socket: BorrowedFd<'_>, message: &[u8], address: SocketAddr) -> io::Result<usize> {
        self.on(socket, |state, id| state.send_message(id, message, address))
    }

    fn sender(&self, socket: BorrowedFd<'_>, name: &[u8]) -> io::Result<SocketAddr> {
        self.on(socket, |state, id| match state.socket(id).map(|socket| &socket.role) {
            Some(Role::Messages(Messages { peer: Some(peer), .. })) => Ok(*peer),
            _ => state.names.get(name).copied().ok_or_else(|| Errno::INVAL.into()),
        })
    }

    fn set_option(&self, socket: BorrowedFd<'_>, option: SocketOption, value: u32) -> io::Result<()> {
        self.on(socket, |state, id| {
            state.socket(id).map(|socket| socket.options.insert(option, value));
            Ok(())
        })
    }

    fn option(&self, socket: BorrowedFd<'_>, option: SocketOption) -> io::Result<u32> {
        // The defaults of Linux.
        let default = match option {
            SocketOption::NoDelay | SocketOption::ReusePort => 0,
            SocketOption::TimeToLive => 64,
            SocketOption::KeepaliveIdle => 7200,
            SocketOption::KeepaliveInterval => 75,
            SocketOption::KeepaliveProbes => 9,
        };
        self.on(socket, |state, id| Ok(*state.sockets[&id].options.get(&option).unwrap_or(&default)))
    }

    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let state = self.lock();
        match state.host_named(name) {
            _ if name == "localhost" => Ok(vec![IpAddr::from([127, 0, 0, 1])]),
            Some(host) => Ok(vec![state.ip(host, IpAddr::V4(Ipv4Addr::UNSPECIFIED))]),
            None => Err(io::Error::other(format!("the simulation has no host {name:?}"))),
        }
    }

    fn process(&self) -> u64 {
        self.process_of(self.tasks().present_host())
    }

    fn step(&self) -> io::Result<()> {
        let told = |error| format!("the simulated network has failed: {error}");
        self.with(|state| {
            state.links.failure = state.step().map_err(told).err().or(state.links.failure.take())
        });
        Ok(())
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.lock().next_arrival()
    }
}
