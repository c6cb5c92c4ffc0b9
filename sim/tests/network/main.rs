//! The simulated network: addresses, streams, messages, and their faults.

mod faults;
mod streams;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fibra::net::{Keepalive, TcpListener, TcpSocket, TcpStream, UdpSocket};
use fibra::time;
use fibra_sim::{Report, Sim, host, net};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

/// Simulates a program with some seeds.
fn simulate(program: fn()) -> Vec<Report> {
    (0..20).map(|seed| Sim::builder().seed(seed).run(program)).collect()
}

/// Starts a host that echoes what its clients send.
fn echo_server() -> fibra_sim::Host {
    host("server", || {
        for stream in TcpListener::bind("0.0.0.0:7").unwrap().incoming() {
            fibra::spawn(move || {
                let stream = stream.unwrap();
                _ = std::io::copy(&mut &stream, &mut &stream);
            });
        }
    })
}

/// Connects to the echo server once it listens.
fn connect() -> TcpStream {
    time::sleep(SECOND);
    TcpStream::connect("server:7").unwrap()
}

/// Sends a byte and waits for it to come back.
fn echo(stream: &mut TcpStream) {
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
}

#[test]
fn a_client_talks_to_a_server_by_its_name() {
    simulate(|| {
        let server = echo_server();
        let mut stream = connect();
        echo(&mut stream);
        let there = stream.peer_addr().unwrap();
        assert_eq!((there.ip(), there.port()), (server.ip(), 7));
        assert_ne!(stream.local_addr().unwrap().ip(), server.ip());
    });
}

#[test]
fn both_ends_know_their_addresses() {
    simulate(|| {
        let server = host("server", || {
            let listener = TcpListener::bind("0.0.0.0:80").unwrap();
            assert_eq!(listener.local_addr().unwrap().port(), 80);
            let (stream, from) = listener.accept().unwrap();
            assert_eq!(stream.peer_addr().unwrap(), from);
            (&stream).write_all(format!("{from} {}", stream.local_addr().unwrap()).as_bytes()).unwrap();
        });
        time::sleep(SECOND);
        let mut stream = TcpStream::connect((server.ip(), 80)).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        assert_eq!(told, format!("{} {}", stream.local_addr().unwrap(), stream.peer_addr().unwrap()));
        server.join();
    });
}

#[test]
fn options_of_the_internet_are_kept() {
    simulate(|| {
        let _server = echo_server();
        let stream = connect();
        assert!(!stream.nodelay().unwrap());
        assert_eq!(stream.ttl().unwrap(), 64);
        stream.set_nodelay(true).unwrap();
        stream.set_ttl(9).unwrap();
        let keepalive = Keepalive { idle: Some(SECOND), interval: Some(2 * SECOND), probes: Some(3) };
        stream.set_keepalive(Some(keepalive)).unwrap();
        assert!(stream.nodelay().unwrap());
        assert_eq!((stream.ttl().unwrap(), stream.keepalive().unwrap()), (9, Some(keepalive)));
        let socket = TcpSocket::v4().unwrap();
        socket.bind("0.0.0.0:99".parse().unwrap()).unwrap();
        assert_eq!(socket.local_addr().unwrap().port(), 99);
    });
}

#[test]
fn connects_fail_as_on_a_real_network() {
    simulate(|| {
        let _server = echo_server();
        time::sleep(SECOND);
        assert_eq!(TcpStream::connect("server:81").unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let begin = time::now();
        assert_eq!(TcpStream::connect("10.9.9.9:80").unwrap_err().kind(), ErrorKind::HostUnreachable);
        assert!(time::now() - begin >= 3 * SECOND);
        assert!(TcpStream::connect("nobody:80").unwrap_err().to_string().contains("nobody"));
        net::partition("main", "server");
        let begin = time::now();
        assert_eq!(TcpStream::connect("server:7").unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(time::now() - begin >= 120 * SECOND);
        let address = ("server:7").to_owned();
        let address = fibra::net::lookup_host(address.as_str()).unwrap().next().unwrap();
        let error = TcpStream::connect_timeout(&address, 5 * SECOND).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn ports_are_taken_and_free_again() {
    simulate(|| {
        let first = TcpListener::bind("0.0.0.0:80").unwrap();
        assert_eq!(TcpListener::bind("0.0.0.0:80").unwrap_err().kind(), ErrorKind::AddrInUse);
        let messages = UdpSocket::bind("0.0.0.0:80").unwrap();
        assert_eq!(UdpSocket::bind("0.0.0.0:80").unwrap_err().kind(), ErrorKind::AddrInUse);
        drop((first, messages));
        TcpListener::bind("0.0.0.0:80").unwrap();
        UdpSocket::bind("0.0.0.0:80").unwrap();
        let elsewhere = "10.9.9.9:80";
        assert_eq!(TcpListener::bind(elsewhere).unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    });
}

#[test]
fn a_host_reaches_itself_over_the_loopback() {
    simulate(|| {
        let _other = host("other", || drop(TcpListener::bind("127.0.0.1:80").unwrap().accept()));
        let listener = TcpListener::bind("127.0.0.1:80").unwrap();
        let client = TcpStream::connect("localhost:80").unwrap();
        let (_, from) = listener.accept().unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        assert!(from.ip().is_loopback());
        assert_eq!(TcpStream::connect("other:80").unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let listener = TcpListener::bind("[::1]:81").unwrap();
        let client = TcpStream::connect("[::1]:81").unwrap();
        assert_eq!(listener.accept().unwrap().1, client.local_addr().unwrap());
    });
}

#[test]
fn messages_keep_their_boundaries_and_tell_their_senders() {
    simulate(|| {
        let server = host("server", || {
            let socket = UdpSocket::bind("0.0.0.0:53").unwrap();
            let mut buf = [0; 16];
            for _ in 0..4 {
                let (len, from) = socket.recv_from(&mut buf).unwrap();
                socket.send_to(&buf[..len], from).unwrap();
            }
        });
        time::sleep(SECOND);
        let (open, connected) =
            (UdpSocket::bind("0.0.0.0:0").unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
        connected.connect("server:53").unwrap();
        let mut buf = [0; 16];
        for _ in 0..2 {
            open.send_to(b"ping", "server:53").unwrap();
            assert_eq!(open.peek_from(&mut buf).unwrap().0, 4);
            let (len, from) = open.recv_from(&mut buf).unwrap();
            assert_eq!((len, from), (4, connected.peer_addr().unwrap()));
            connected.send(b"hello").unwrap();
            assert_eq!(connected.recv(&mut buf).unwrap(), 5);
        }
        // From others nothing comes to a connected socket.
        open.send_to(b"stray", connected.local_addr().unwrap()).unwrap();
        connected.set_read_timeout(Some(SECOND)).unwrap();
        assert_eq!(connected.recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        server.join();
    });
}

#[test]
fn ctrl_c_reaches_the_listeners_of_one_host_and_ends_a_host_without() {
    simulate(|| {
        use fibra::signal::{SIGINT, Signal, exit_on_repeat};
        let heard = Arc::new(AtomicU32::new(0));
        let listen = |name| {
            let heard = Arc::clone(&heard);
            host(name, move || {
                exit_on_repeat(SIGINT).unwrap();
                let signal = Signal::new(SIGINT).unwrap();
                loop {
                    signal.recv();
                    heard.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let (first, _second) = (listen("first"), listen("second"));
        let deaf = echo_server();
        let mut stream = connect();
        first.ctrl_c();
        time::sleep(SECOND);
        assert_eq!(heard.load(Ordering::Relaxed), 1);
        first.ctrl_c();
        first.join();
        assert_eq!(heard.load(Ordering::Relaxed), 1, "the second one is the end");
        deaf.ctrl_c();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        deaf.restart();
        echo(&mut connect());
    });
}

#[test]
fn addresses_race_and_the_one_that_answers_wins() {
    simulate(|| {
        let server = echo_server();
        time::sleep(SECOND);
        let addresses = [server.ipv6(), server.ip()].map(|ip| SocketAddr::new(ip, 7));
        let begin = time::now();
        let stream = TcpStream::connect(&addresses[..]).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addresses[1], "nobody listens at the first");
        assert!(time::now() - begin < 50 * MILLI, "a refusal lets the next begin at once");
        net::rule(|packet| match packet.to().is_ipv6() {
            true => net::Verdict::Drop,
            false => net::Verdict::Pass,
        });
        let begin = time::now();
        let stream = TcpStream::connect(&addresses[..]).unwrap();
        let taken = time::now() - begin;
        assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
        assert!(taken >= 250 * MILLI && taken < 300 * MILLI, "the first has a head start: {taken:?}");
        net::partition("main", "server");
        let begin = time::now();
        let error = TcpStream::connect(&addresses[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(time::now() - begin >= 127 * SECOND);
    });
}

#[test]
fn a_select_waits_for_sockets_and_channels() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        let (sender, receiver) = fibra::sync::channel::bounded(1);
        let news = fibra::spawn(move || {
            time::sleep(SECOND);
            sender.send(7).unwrap();
        });
        let ready = fibra::Readiness::new(&stream).unwrap();
        stream.write_all(b"x").unwrap();
        let mut seen = Vec::new();
        while seen.len() < 2 {
            fibra::select! {
                wait(ready.readable().unwrap()) => seen.push(stream.read(&mut [0]).unwrap() as u32),
                recv(receiver) -> item => seen.push(item.unwrap()),
            }
        }
        assert_eq!(seen, [1, 7]);
        news.join().unwrap();
    });
}

#[test]
fn a_message_outlives_its_sender_and_tells_its_address() {
    simulate(|| {
        let receiver = UdpSocket::bind("0.0.0.0:53").unwrap();
        let mut buf = [0; 8];
        let _sender = host("sender", || {
            for _ in 0..100 {
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.send_to(b"gone", "main:53").unwrap();
            }
        });
        for _ in 0..100 {
            let (len, from) = receiver.recv_from(&mut buf).unwrap();
            assert_eq!((len, from.ip().is_loopback()), (4, false));
        }
        let near = UdpSocket::bind("0.0.0.0:0").unwrap();
        near.connect("127.0.0.1:53").unwrap();
        near.send(b"near").unwrap();
        let from = receiver.recv_from(&mut buf).unwrap().1;
        assert_eq!(from, near.local_addr().unwrap());
        receiver.send_to(b"back", from).unwrap();
        assert_eq!(near.recv(&mut buf).unwrap(), 4);
    });
}

#[test]
fn a_listener_on_each_worker_is_one_listener() {
    simulate(|| {
        let serve = |listener: TcpListener| drop(listener.accept().unwrap());
        let (address, tasks) = TcpListener::serve_on_each_worker("127.0.0.1:0", serve).unwrap();
        TcpStream::connect(address).unwrap();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn a_race_of_addresses_ends_with_its_deadline() {
    simulate(|| {
        let server = echo_server();
        time::sleep(SECOND);
        net::partition("main", "server");
        let addresses = [server.ipv6(), server.ip()].map(|ip| SocketAddr::new(ip, 7));
        let begin = time::now();
        assert!(fibra::timeout(SECOND, || TcpStream::connect(&addresses[..])).is_err());
        assert!(time::now() - begin < 2 * SECOND);
        let task = fibra::spawn(move || TcpStream::connect(&addresses[..]).map(drop));
        time::sleep(SECOND);
        task.cancel();
        assert!(task.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_host_has_one_name_and_one_address() {
    Sim::builder().run(|| {
        let [a, b] = ["a", "b"].map(|name| host(name, || {}));
        assert_ne!(a.ip(), b.ip());
        assert!(matches!(a.ip(), IpAddr::V4(_)));
        let found = fibra::net::lookup_host("b:1").unwrap().next().unwrap();
        assert_eq!((found.ip(), b.name()), (b.ip(), "b"));
    });
    let failure = Sim::builder().build().try_run(|| _ = [host("a", || {}), host("a", || {})]);
    assert!(failure.unwrap_err().reason().contains("\"a\""));
    let failure = Sim::builder().build().try_run(|| _ = host("localhost", || {}));
    assert!(failure.unwrap_err().reason().contains("\"localhost\" stands for each host itself"));
}
