//! A process without descriptors. Alone in its file: the limit is the process's, and a child process that starts meanwhile has
//! copies of the simulated sockets until it runs its program.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use fibra::net::UdpSocket;
use fibra::time;
use fibra_sim::Sim;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_network_without_descriptors_fails_the_run_by_name() {
    let failure = Sim::builder().build().try_run(|| {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let maximum = getrlimit(Resource::Nofile).maximum;
        // All below the next one are in use.
        let next = File::open("/dev/null").unwrap().as_raw_fd();
        setrlimit(Resource::Nofile, Rlimit { current: Some(next as u64), maximum }).unwrap();
        sockets[0].send_to(b"lost", sockets[1].local_addr().unwrap()).unwrap();
        time::sleep(Duration::from_secs(1));
    });
    let reason = failure.unwrap_err().reason().to_owned();
    assert!(reason.contains("the simulated network has failed: Too many open files"), "{reason}");
}
