//! The simulated network: addresses, streams, messages, and their faults.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
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
fn a_packet_takes_the_latency() {
    simulate(|| {
        net::latency(20 * MILLI..=20 * MILLI);
        let _server = echo_server();
        let mut stream = connect();
        let begin = time::now();
        echo(&mut stream);
        let taken = time::now() - begin;
        assert!(taken >= 40 * MILLI && taken < 41 * MILLI, "{taken:?}");
    });
}

#[test]
fn an_advance_delivers_what_arrives_on_the_way() {
    simulate(|| {
        net::latency(20 * MILLI..=20 * MILLI);
        let _server = echo_server();
        let mut stream = connect();
        let begin = time::now();
        let echoing = fibra::spawn(move || {
            echo(&mut stream);
            time::now()
        });
        time::advance(SECOND);
        assert!(echoing.is_finished());
        let taken = echoing.join().unwrap() - begin;
        assert!(taken >= 40 * MILLI && taken < 50 * MILLI, "{taken:?}");
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
fn much_is_carried_through_small_buffers_and_a_slow_reader_slows_the_writer() {
    simulate(|| {
        const LEN: usize = 3 << 20;
        let reader = host("server", || {
            let (mut stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
            let (mut buf, mut at) = (vec![0; 100_000], 0);
            loop {
                let n = stream.read(&mut buf).unwrap();
                if n == 0 {
                    break;
                }
                assert!(buf[..n].iter().enumerate().all(|(i, byte)| *byte == ((at + i) % 251) as u8));
                at += n;
                time::sleep(100 * MILLI);
            }
            assert_eq!(at, LEN);
        });
        net::loss(0.1);
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        let bytes: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
        let begin = time::now();
        stream.write_all(&bytes).unwrap();
        drop(stream);
        let taken = time::now() - begin;
        assert!(taken > SECOND, "the writer is slowed: {taken:?}");
        reader.join();
    });
}

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
fn a_reset_is_econnreset() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        echo(&mut stream);
        net::reset("main", "server");
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ECONNRESET));
        assert_eq!(stream.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_reader_that_sleeps_hears_of_the_reset() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        let reader = fibra::spawn(move || stream.read(&mut [0]).unwrap_err().kind());
        time::sleep(SECOND);
        net::reset("main", "server");
        assert_eq!(reader.join().unwrap(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    simulate(|| {
        let server = host("server", || {
            let (mut stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
            let mut request = String::new();
            stream.read_to_string(&mut request).unwrap();
            time::sleep(SECOND);
            stream.write_all(request.to_uppercase().as_bytes()).unwrap();
        });
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        stream.write_all(b"request").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "REQUEST");
        server.join();
    });
}

#[test]
fn a_stream_that_both_sides_have_ended_is_read_to_its_end() {
    simulate(|| {
        let server = host("server", || {
            let (mut stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
            let mut request = String::new();
            stream.read_to_string(&mut request).unwrap();
            stream.write_all(request.to_uppercase().as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            time::sleep(2 * SECOND);
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            assert_eq!(stream.local_addr().unwrap().port(), 80);
        });
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        let local = stream.local_addr().unwrap();
        stream.write_all(b"request").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        time::sleep(SECOND);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!((answer.as_str(), stream.local_addr().unwrap()), ("REQUEST", local));
        server.join();
    });
}

#[test]
fn a_close_with_unread_bytes_resets() {
    simulate(|| {
        let server = host("server", || {
            let (stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
            time::sleep(SECOND);
            drop(stream);
        });
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        stream.write_all(b"never read").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        server.join();
    });
}

#[test]
fn a_write_to_a_closed_connection_fails_in_the_end() {
    simulate(|| {
        let server = host("server", || drop(TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap()));
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        stream.write_all(b"into the void").unwrap();
        time::sleep(SECOND);
        let error = stream.write(b"x").unwrap_err().kind();
        assert!(matches!(error, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error:?}");
        server.join();
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
fn a_program_that_reads_no_more_keeps_its_connection() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        echo(&mut stream);
        stream.shutdown(Shutdown::Read).unwrap();
        for _ in 0..10 {
            stream.write_all(b"x").unwrap();
            time::sleep(MILLI);
        }
        stream.shutdown(Shutdown::Both).unwrap();
        time::sleep(SECOND);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
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
fn sockets_leave_nothing_behind() {
    Sim::builder().run(|| {
        let _server = echo_server();
        // More than there are ports to choose from.
        for _ in 0..20_000 {
            UdpSocket::bind("0.0.0.0:0").unwrap();
        }
        for _ in 0..3 {
            time::sleep(SECOND);
            let socket = TcpSocket::v4().unwrap();
            socket.bind("0.0.0.0:99".parse().unwrap()).unwrap();
            let server = fibra::net::lookup_host("server:7").unwrap().next().unwrap();
            let mut stream = socket.connect(server).unwrap();
            echo(&mut stream);
            net::reset("main", "server");
        }
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
fn a_small_buffer_does_not_stop_a_writer() {
    simulate(|| {
        let _server = echo_server();
        let stream = connect();
        stream.set_send_buffer_size(4096).unwrap();
        let writer = stream.try_clone().unwrap();
        let writer = fibra::spawn(move || {
            (&writer).write_all(&[7; 100_000]).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut bytes = Vec::new();
        (&stream).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [7; 100_000]);
        writer.join().unwrap();
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
