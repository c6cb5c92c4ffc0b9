//! Faults of the simulated network: partitions, losses, crashes and rules.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use fibra::net::{TcpListener, TcpStream, UdpSocket};
use fibra::time;
use fibra_sim::{Sim, host, net};

use crate::{MILLI, SECOND, connect, echo, echo_server, simulate};

#[test]
fn partition_then_heal_delivers() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        net::partition("main", "server");
        stream.write_all(b"x").unwrap();
        stream.set_read_timeout(Some(60 * SECOND)).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        let late = fibra::spawn(|| {
            time::sleep(60 * SECOND);
            net::heal("main", "server");
        });
        stream.set_read_timeout(None).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 1);
        late.join().unwrap();
    });
}

#[test]
fn what_is_held_comes_after_the_release() {
    simulate(|| {
        let receiver = host("receiver", || {
            let socket = UdpSocket::bind("0.0.0.0:53").unwrap();
            let begin = time::now();
            assert_eq!(socket.recv(&mut [0; 9]).unwrap(), 5);
            assert!(time::now() - begin >= 10 * SECOND);
        });
        time::sleep(SECOND);
        net::hold("main", "receiver");
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.send_to(b"hello", "receiver:53").unwrap();
        time::sleep(10 * SECOND);
        net::release("main", "receiver");
        receiver.join();
    });
}

#[test]
fn messages_get_lost_and_streams_do_not() {
    let reports = simulate(|| {
        net::loss(0.3);
        let receiver = host("receiver", || {
            let socket = UdpSocket::bind("0.0.0.0:53").unwrap();
            socket.set_read_timeout(Some(10 * SECOND)).unwrap();
            let mut count = 0;
            while socket.recv(&mut [0; 9]).is_ok() {
                count += 1;
            }
            assert!((100..180).contains(&count), "{count} of 200");
        });
        let _server = echo_server();
        let mut stream = connect();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..200 {
            socket.send_to(b"hello", "receiver:53").unwrap();
            time::sleep(MILLI);
        }
        for _ in 0..20 {
            echo(&mut stream);
        }
        receiver.join();
    });
    assert!(reports.iter().any(|report| report.elapsed() != reports[0].elapsed()));
}

#[test]
fn a_crashed_hosts_peers_see_it_and_it_comes_back() {
    simulate(|| {
        type Errors = Arc<Mutex<Vec<Option<i32>>>>;
        struct Connects(Errors);
        impl Drop for Connects {
            fn drop(&mut self) {
                let error = TcpStream::connect("main:1").unwrap_err();
                self.0.lock().unwrap().push(error.raw_os_error());
            }
        }
        let errors = Errors::default();
        let of_host = Arc::clone(&errors);
        let server = host("server", move || {
            let _connects = Connects(Arc::clone(&of_host));
            for stream in TcpListener::bind("0.0.0.0:7").unwrap().incoming() {
                fibra::spawn(move || {
                    let stream = stream.unwrap();
                    _ = std::io::copy(&mut &stream, &mut &stream);
                });
            }
        });
        let mut stream = connect();
        echo(&mut stream);
        let local = stream.local_addr().unwrap();
        server.crash();
        assert_eq!(*errors.lock().unwrap(), [Some(libc::ENETDOWN)], "it unwinds without a network");
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(stream.local_addr().unwrap(), local);
        assert_eq!(TcpStream::connect("server:7").unwrap_err().kind(), ErrorKind::ConnectionRefused);
        server.restart();
        echo(&mut connect());
    });
}

#[test]
fn the_panics_of_a_crashing_host_fail_no_run() {
    simulate(|| {
        let server = host("server", || {
            let children = [(); 3].map(|()| fibra::spawn(fibra::task::park));
            // Some were cancelled before this task, some after it.
            children.into_iter().for_each(|child| child.join().unwrap());
        });
        time::sleep(SECOND);
        server.crash();
        server.restart();
        time::sleep(SECOND);
        server.crash();
        server.join();
    });
    let failure = Sim::builder().build().try_run(|| {
        let server = host("server", || panic!("by itself"));
        time::sleep(SECOND);
        server.crash();
    });
    assert!(failure.unwrap_err().reason().contains("by itself"));
}

#[test]
fn time_goes_on_when_a_packet_outlives_all_sockets() {
    simulate(|| {
        let server = echo_server();
        let stream = connect();
        // The reset is on its way when the last socket closes.
        server.crash();
        drop(stream);
        time::sleep(SECOND);
    });
}

#[test]
fn a_crash_behind_a_partition_is_seen_after_it() {
    simulate(|| {
        let server = echo_server();
        let mut stream = connect();
        echo(&mut stream);
        net::partition("main", "server");
        server.crash();
        stream.set_read_timeout(Some(60 * SECOND)).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        net::heal("main", "server");
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_stream_sends_again_what_a_rule_drops_for_a_while() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        let end = time::now() + 5 * SECOND;
        net::rule(move |packet| match packet.to().port() == 7 && time::now() < end {
            true => net::Verdict::Drop,
            false => net::Verdict::Pass,
        });
        echo(&mut stream);
        assert!(time::now() >= end && time::now() < end + 10 * SECOND);
        TcpStream::connect("server:7").unwrap();
    });
}

#[test]
fn a_rule_that_panics_fails_the_run() {
    let reason = |rule: fn(&net::Packet) -> net::Verdict| {
        let program = move || {
            let _server = echo_server();
            net::rule(rule);
            echo(&mut connect());
            echo(&mut connect());
        };
        Sim::builder().build().try_run(program).unwrap_err().reason().to_owned()
    };
    assert!(reason(|_| panic!("no such packet")).contains("no such packet"));
    // In the task that connects, and beside the tasks.
    let waits = reason(|_| {
        fibra::yield_now();
        net::Verdict::Pass
    });
    assert!(waits.contains("`forbid_suspend` forbids it"), "{waits}");
    let waits = reason(|packet| {
        if let net::Content::Bytes(_) = packet.content() {
            fibra::task::park();
        }
        net::Verdict::Pass
    });
    assert!(waits.contains("would block the only thread of the simulation"), "{waits}");
    let used = reason(|packet| match net::loss(0.0) {
        () if packet.to().is_ipv6() => net::Verdict::Drop,
        () => net::Verdict::Pass,
    });
    assert!(used.contains("a rule has used the network"), "{used}");
}

#[test]
fn a_host_that_always_panics_does_not_stop_the_others() {
    let report = Sim::builder().run(|| {
        let _host = fibra_sim::restarting_host("unstable", || panic!("again"));
        time::sleep(10 * SECOND);
    });
    assert!(report.steps() < 1000);
}

#[test]
fn a_rule_sees_packets_and_decides() {
    simulate(|| {
        let (seen, count) = (Arc::new(AtomicU32::new(0)), fibra::sync::Mutex::new(0));
        let all = Arc::clone(&seen);
        net::rule(move |packet| {
            all.fetch_add(1, Ordering::Relaxed);
            match packet.content() {
                // The third piece of each stream is lost once.
                net::Content::Bytes(_) => {
                    let mut count = count.lock();
                    *count += 1;
                    if *count % 3 == 0 { net::Verdict::Drop } else { net::Verdict::Pass }
                }
                net::Content::End => net::Verdict::Delay(SECOND),
                _ => net::Verdict::Pass,
            }
        });
        let _server = echo_server();
        let mut stream = connect();
        for _ in 0..10 {
            echo(&mut stream);
        }
        stream.shutdown(Shutdown::Write).unwrap();
        let begin = time::now();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        assert!(time::now() - begin >= 2 * SECOND);
        assert!(seen.load(Ordering::Relaxed) >= 24);
    });
}

#[test]
fn everybody_asleep_over_the_network_is_a_deadlock() {
    let failure = Sim::builder().build().try_run(|| {
        let _server = echo_server();
        let mut stream = connect();
        _ = stream.read(&mut [0]);
    });
    let reason = failure.unwrap_err().reason().to_owned();
    assert!(reason.contains("sleep") && reason.contains("server"), "{reason}");
}

#[test]
fn one_seed_makes_one_course_with_loss_and_latency() {
    let program = || {
        net::loss(0.2);
        let _server = echo_server();
        let clients: Vec<_> = (0..5)
            .map(|_| {
                fibra::spawn(|| {
                    let mut stream = connect();
                    (0..20).for_each(|_| echo(&mut stream));
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
    };
    for seed in 0..20 {
        Sim::builder().seed(seed).check_determinism(true).run(program);
    }
}

/// Five hosts, each of which sends a heartbeat to the four others every second.
#[test]
fn an_hour_of_heartbeats() {
    const HOSTS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let begin = std::time::Instant::now();
    let report = Sim::builder().run(|| {
        let hosts = HOSTS.map(|name| {
            host(name, move || {
                let socket = UdpSocket::bind("0.0.0.0:1").unwrap();
                let receiver = socket.try_clone().unwrap();
                fibra::spawn(move || {
                    let mut buf = [0; 8];
                    while receiver.recv(&mut buf).is_ok() {}
                });
                let peers = HOSTS.into_iter().filter(|peer| *peer != name);
                let peers: Vec<_> =
                    peers.flat_map(|peer| fibra::net::lookup_host((peer, 1)).unwrap()).collect();
                for _ in 0..3600 {
                    time::sleep(SECOND);
                    for peer in &peers {
                        socket.send_to(b"alive", peer).unwrap();
                    }
                }
            })
        });
        hosts.into_iter().for_each(fibra_sim::Host::join);
    });
    assert!(report.elapsed() >= 3600 * SECOND);
    println!("an hour of heartbeats takes {:?}", begin.elapsed());
}
